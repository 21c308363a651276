// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Operations on a tile of float rows in UB. `pitch`, a multiple of 8, is the distance of two rows in floats; what lies
// between `cols` and `pitch` is never part of a result. At most 255 rows.
//
// Short rows are worked on with one instruction per 64 columns that repeats over the rows; long ones row by row. The
// choice depends on cols and pitch alone, so that the order of a sum does too.
#ifndef MST_COMMON_ROW_OPS_H_
#define MST_COMMON_ROW_OPS_H_

#include "common/kernel_util.h"

namespace mst {

constexpr int64_t kShortRow = 256;  // columns

__aicore__ inline bool IsShortRow(int64_t cols, int64_t pitch) {
  return cols <= kShortRow && pitch <= kMaxRepeat * kBlockFloats;
}

// folded[row, i] = sum, or maximum, of tile[row, i + 64 * n] for all n, where folded[row, 0..63] = tile[row, 0..63]
// before; it may be the tile itself.
template <bool kMax>
__aicore__ inline void FoldRows(const AscendC::LocalTensor<float>& folded, int64_t foldedPitch,
                                const AscendC::LocalTensor<float>& tile, int64_t rows, int64_t cols, int64_t pitch) {
  const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
  const uint8_t foldedStride = static_cast<uint8_t>(foldedPitch / kBlockFloats);
  const AscendC::BinaryRepeatParams params(1, 1, 1, foldedStride, foldedStride, stride);
  for (int64_t col = kRepeatFloats; col < cols; col += kRepeatFloats) {
    if (col > kRepeatFloats) AscendC::PipeBarrier<PIPE_V>();
    const uint64_t mask = MinOf(kRepeatFloats, cols - col);
    if constexpr (kMax) {
      AscendC::Max(folded, folded, tile[col], mask, static_cast<uint8_t>(rows), params);
    } else {
      AscendC::Add(folded, folded, tile[col], mask, static_cast<uint8_t>(rows), params);
    }
  }
}

// out[i] = sum, or maximum, of the first `lanes` floats of repeat i; `stride`: blocks from one to the next.
template <bool kMax>
__aicore__ inline void WholeReduce(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& src,
                                   int32_t repeat, int32_t lanes, int32_t stride) {
  if constexpr (kMax) {
    AscendC::WholeReduceMax<float>(out, src, lanes, repeat, 1, 1, stride, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
  } else {
    AscendC::WholeReduceSum<float>(out, src, lanes, repeat, 1, 1, stride);
  }
}

// out[8 i + j] = sum, or maximum, of the j-th block of repeat i.
template <bool kMax>
__aicore__ inline void BlockReduce(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& src,
                                   int32_t repeat, int32_t lanes, int32_t stride) {
  if constexpr (kMax) {
    AscendC::BlockReduceMax<float>(out, src, repeat, lanes, 1, 1, stride);
  } else {
    AscendC::BlockReduceSum<float>(out, src, repeat, lanes, 1, 1, stride);
  }
}

// out[row] = sum, or maximum, of tile[row, :]. Destroys the tile if it is short and has more than 64 columns. `work`:
// ReduceWorkFloats or MaxWorkFloats floats.
template <bool kMax>
__aicore__ inline void RowReduce(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& tile,
                                 const AscendC::LocalTensor<float>& work, int64_t rows, int64_t cols, int64_t pitch) {
  if (!IsShortRow(cols, pitch)) {
    const int32_t count = static_cast<int32_t>(cols);
    for (int64_t row = 0; row < rows; ++row) {
      if constexpr (kMax) {
        AscendC::ReduceMax<float>(out[row], tile[row * pitch], work, count);
      } else {
        AscendC::ReduceSum<float>(out[row], tile[row * pitch], work, count);
      }
      AscendC::PipeBarrier<PIPE_V>();  // `work` is used again
    }
    return;
  }
  FoldRows<kMax>(tile, pitch, tile, rows, cols, pitch);
  if (cols > kRepeatFloats) AscendC::PipeBarrier<PIPE_V>();
  WholeReduce<kMax>(out, tile, static_cast<int32_t>(rows), static_cast<int32_t>(MinOf(kRepeatFloats, cols)),
                    static_cast<int32_t>(pitch / kBlockFloats));
  AscendC::PipeBarrier<PIPE_V>();
}

// out[i] = sum, or maximum, of the i-th block of `count` floats, at most 255 * 64.
template <bool kMax>
__aicore__ inline void ReduceBlocks(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& src,
                                    int64_t count) {
  const int32_t whole = static_cast<int32_t>(count / kRepeatFloats);
  const int32_t rest = static_cast<int32_t>(count % kRepeatFloats);
  if (whole > 0) BlockReduce<kMax>(out, src, whole, kRepeatFloats, kBlockFloats);
  if (rest > 0) BlockReduce<kMax>(out[whole * kBlockFloats], src[whole * kRepeatFloats], 1, rest, kBlockFloats);
}

// As RowReduce, but the tile stays. `folded`: 64 floats per row, rows rounded up to 8. Short rows that fill repeats and
// touch are reduced in blocks, which takes the card half the time.
template <bool kMax>
__aicore__ inline void RowReduceKept(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& tile,
                                     const AscendC::LocalTensor<float>& folded, const AscendC::LocalTensor<float>& work,
                                     int64_t rows, int64_t cols, int64_t pitch) {
  if (!IsShortRow(cols, pitch) || cols < kRepeatFloats) {
    RowReduce<kMax>(out, tile, work, rows, cols, pitch);  // writes nothing into such a tile
    return;
  }
  if (cols == pitch && cols % kRepeatFloats == 0) {
    ReduceBlocks<kMax>(folded, tile, rows * cols);
    AscendC::PipeBarrier<PIPE_V>();
    const uint8_t step = static_cast<uint8_t>(cols / kRepeatFloats);  // blocks of results per row
    AscendC::LocalTensor<float> heads = folded;
    uint8_t headStep = step;
    for (uint8_t i = 1; i < step; ++i) {
      const AscendC::LocalTensor<float> sum = folded[RoundUpOf(rows, kBlockFloats) * kShortRow / kBlockFloats];
      const AscendC::BinaryRepeatParams params(1, headStep, step, 8, static_cast<uint8_t>(8 * headStep),
                                               static_cast<uint8_t>(8 * step));
      const uint8_t repeat = static_cast<uint8_t>(CeilDivOf(rows, kBlockFloats));
      if constexpr (kMax) {
        AscendC::Max(sum, heads, folded[i * kBlockFloats], uint64_t{kRepeatFloats}, repeat, params);
      } else {
        AscendC::Add(sum, heads, folded[i * kBlockFloats], uint64_t{kRepeatFloats}, repeat, params);
      }
      AscendC::PipeBarrier<PIPE_V>();
      heads = sum;
      headStep = 1;
    }
    ReduceBlocks<kMax>(out, heads, rows * kBlockFloats);
    AscendC::PipeBarrier<PIPE_V>();
    return;
  }
  AscendC::Copy(folded, tile, uint64_t{kRepeatFloats}, static_cast<uint8_t>(rows),
                AscendC::CopyRepeatParams(1, 1, kBlockFloats, static_cast<uint16_t>(pitch / kBlockFloats)));
  AscendC::PipeBarrier<PIPE_V>();
  FoldRows<kMax>(folded, kRepeatFloats, tile, rows, cols, pitch);
  if (cols > kRepeatFloats) AscendC::PipeBarrier<PIPE_V>();
  RowReduce<kMax>(out, folded, work, rows, kRepeatFloats, kRepeatFloats);
}

// sums[row] = sum of tile[row, :], which is destroyed. `work`: ReduceWorkFloats(cols) floats.
__aicore__ inline int64_t ReduceWorkFloats(int64_t cols) {
  return RoundUpOf(CeilDivOf(cols, kRepeatFloats), kBlockFloats);
}
__aicore__ inline void RowSum(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<float>& tile,
                              const AscendC::LocalTensor<float>& work, int64_t rows, int64_t cols, int64_t pitch) {
  RowReduce<false>(sums, tile, work, rows, cols, pitch);
}

// As `work` for maxima: a value and an index of each repeat.
__aicore__ inline int64_t MaxWorkFloats(int64_t cols) {
  return RoundUpOf(2 * CeilDivOf(cols, kRepeatFloats), kBlockFloats);
}

// spread[row, 0..7] = factors[row]; 8 floats per row, both with rows rounded up to 8.
__aicore__ inline void SpreadRows(const AscendC::LocalTensor<float>& spread, const AscendC::LocalTensor<float>& factors,
                                  int64_t rows) {
  AscendC::Brcb(spread, factors, static_cast<uint8_t>(CeilDivOf(rows, kBlockFloats)),
                AscendC::BrcbRepeatParams(1, kBlockFloats));
  AscendC::PipeBarrier<PIPE_V>();
}

// An instruction on two tensors, in all its forms.
struct MulInstruction {
  template <typename... Operands>
  __aicore__ static inline void Run(const Operands&... operands) {
    AscendC::Mul(operands...);
  }
};

struct MulAddInstruction {
  template <typename... Operands>
  __aicore__ static inline void Run(const Operands&... operands) {
    AscendC::MulAddDst(operands...);
  }
};

struct SubInstruction {
  template <typename... Operands>
  __aicore__ static inline void Run(const Operands&... operands) {
    AscendC::Sub(operands...);
  }
};

struct DivInstruction {
  template <typename... Operands>
  __aicore__ static inline void Run(const Operands&... operands) {
    AscendC::Div(operands...);
  }
};

// An instruction on each row of a tile and a row of factors; factorPitch 0: the same row of factors for all.
template <typename Instruction>
__aicore__ inline void RowsWithRow(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                   const AscendC::LocalTensor<float>& factor, int64_t rows, int64_t cols, int64_t pitch,
                                   int64_t factorPitch) {
  if (cols == pitch && factorPitch == pitch) {
    Instruction::Run(dst, tile, factor, static_cast<int32_t>(rows * cols));
  } else if (!IsShortRow(cols, pitch)) {
    for (int64_t row = 0; row < rows; ++row) {
      Instruction::Run(dst[row * pitch], tile[row * pitch], factor[row * factorPitch], static_cast<int32_t>(cols));
    }
  } else {
    const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
    const uint8_t factorStride = static_cast<uint8_t>(factorPitch / kBlockFloats);
    const AscendC::BinaryRepeatParams params(1, 1, 1, stride, stride, factorStride);
    for (int64_t col = 0; col < cols; col += kRepeatFloats) {
      const uint64_t mask = MinOf(kRepeatFloats, cols - col);
      Instruction::Run(dst[col], tile[col], factor[col], mask, static_cast<uint8_t>(rows), params);
    }
  }
  AscendC::PipeBarrier<PIPE_V>();
}

// dst[row, :] = tile[row, :] * factor[row, :]
__aicore__ inline void RowMul(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                              const AscendC::LocalTensor<float>& factor, int64_t rows, int64_t cols, int64_t pitch,
                              int64_t factorPitch = 0) {
  RowsWithRow<MulInstruction>(dst, tile, factor, rows, cols, pitch, factorPitch);
}

// dst[row, :] += tile[row, :] * factor[row, :]
__aicore__ inline void RowMulAdd(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                 const AscendC::LocalTensor<float>& factor, int64_t rows, int64_t cols, int64_t pitch,
                                 int64_t factorPitch) {
  RowsWithRow<MulAddInstruction>(dst, tile, factor, rows, cols, pitch, factorPitch);
}

// sums[row] = sum of a[row, :] * b[row, :]; bPitch as factorPitch. `products`, which may be `a`: room for the
// tile or, where rows are long, for kDotStrip columns, on which strip after strip is added up.
constexpr int64_t kDotStrip = 2048;  // columns
__aicore__ inline void RowDot(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<float>& products,
                              const AscendC::LocalTensor<float>& a, const AscendC::LocalTensor<float>& b,
                              const AscendC::LocalTensor<float>& work, int64_t rows, int64_t cols, int64_t pitch,
                              int64_t bPitch) {
  if (IsShortRow(cols, pitch)) {
    RowMul(products, a, b, rows, cols, pitch, bPitch);
    RowSum(sums, products, work, rows, cols, pitch);
    return;
  }
  const int32_t strip = static_cast<int32_t>(MinOf(kDotStrip, cols));
  for (int64_t row = 0; row < rows; ++row) {
    AscendC::Mul(products, a[row * pitch], b[row * bPitch], strip);
    AscendC::PipeBarrier<PIPE_V>();
    for (int64_t col = strip; col < cols; col += strip) {
      const int32_t count = static_cast<int32_t>(MinOf(strip, cols - col));
      AscendC::MulAddDst(products, a[row * pitch + col], b[row * bPitch + col], count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::ReduceSum<float>(sums[row], products, work, strip);
    AscendC::PipeBarrier<PIPE_V>();
  }
}

// values[row] = tile[row, 0]; pitch at most 2040.
__aicore__ inline void RowFirst(const AscendC::LocalTensor<float>& values, const AscendC::LocalTensor<float>& tile,
                                int64_t rows, int64_t pitch) {
  AscendC::WholeReduceSum<float>(values, tile, 1, static_cast<int32_t>(rows), 1, 1,
                                 static_cast<int32_t>(pitch / kBlockFloats));
  AscendC::PipeBarrier<PIPE_V>();
}

// Each element of a tile with the value of its row, which SpreadRows has spread over a block. One instruction covers 64
// columns of all rows or, where it cannot step over the pitch, the columns of one row.
template <typename Instruction>
__aicore__ inline void RowsWithSpread(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                      const AscendC::LocalTensor<float>& spread, int64_t rows, int64_t cols,
                                      int64_t pitch) {
  if (pitch == kBlockFloats) {  // as the spread values lie
    Instruction::Run(dst, tile, spread, static_cast<int32_t>(rows * pitch));
    AscendC::PipeBarrier<PIPE_V>();
    return;
  }
  if (pitch <= kMaxRepeat * kBlockFloats) {
    const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
    const AscendC::BinaryRepeatParams params(1, 1, 0, stride, stride, 1);
    for (int64_t col = 0; col < cols; col += kRepeatFloats) {
      const uint64_t mask = MinOf(kRepeatFloats, cols - col);
      Instruction::Run(dst[col], tile[col], spread, mask, static_cast<uint8_t>(rows), params);
    }
    AscendC::PipeBarrier<PIPE_V>();
    return;
  }
  const AscendC::BinaryRepeatParams params(1, 1, 0, 8, 8, 0);
  constexpr int64_t kRun = kMaxRepeat * kRepeatFloats;
  for (int64_t row = 0; row < rows; ++row) {
    const AscendC::LocalTensor<float> value = spread[row * kBlockFloats];
    for (int64_t col = 0; col < cols; col += kRun) {
      const int64_t at = row * pitch + col;
      const uint8_t whole = static_cast<uint8_t>(MinOf(kRun, cols - col) / kRepeatFloats);
      const uint64_t rest = MinOf(kRun, cols - col) % kRepeatFloats;
      const int64_t restAt = at + whole * kRepeatFloats;
      if (whole > 0) Instruction::Run(dst[at], tile[at], value, uint64_t{kRepeatFloats}, whole, params);
      if (rest > 0) Instruction::Run(dst[restAt], tile[restAt], value, rest, uint8_t{1}, params);
    }
  }
  AscendC::PipeBarrier<PIPE_V>();
}

// dst[row, :] = tile[row, :] * value[row]
__aicore__ inline void RowMulSpread(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                    const AscendC::LocalTensor<float>& spread, int64_t rows, int64_t cols,
                                    int64_t pitch) {
  RowsWithSpread<MulInstruction>(dst, tile, spread, rows, cols, pitch);
}

// dst[row, :] = tile[row, :] - value[row]
__aicore__ inline void RowSubSpread(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                    const AscendC::LocalTensor<float>& spread, int64_t rows, int64_t cols,
                                    int64_t pitch) {
  RowsWithSpread<SubInstruction>(dst, tile, spread, rows, cols, pitch);
}

// dst[row, :] = tile[row, :] / value[row]
__aicore__ inline void RowDivSpread(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& tile,
                                    const AscendC::LocalTensor<float>& spread, int64_t rows, int64_t cols,
                                    int64_t pitch) {
  RowsWithSpread<DivInstruction>(dst, tile, spread, rows, cols, pitch);
}

}  // namespace mst

#endif  // MST_COMMON_ROW_OPS_H_
