// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// A strip of scores in UB: from products of queries and keys to scaled, biased and masked scores.
//
// type 1: S = scale * (A + pse); types 0, 2, 3: S = scale * A, then softcap, then + pse or + slope bias; hidden: -inf.
// A strip is `rows` x `tile.colsPad` floats, one row after the other; colsPad is a multiple of colsUnit; what lies in
// columns [cols, colsPad) is hidden as well.
// UB: index strip, one raw strip of real_shift or attn_mask, work strip, bits.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_STRIP_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_STRIP_H_

#include <type_traits>

#include "attention/flash_attention_score/flash_attention_score_units.h"

namespace mst {

constexpr float kFlashHidden = -__builtin_inff();
constexpr int32_t kFlashCompareUnit = 128;  // elements: a compare works on multiples of 256 bytes

// The sum of `count` values, which it destroys. `work` as for ReduceSum.
__aicore__ inline float FlashSum(const AscendC::LocalTensor<float>& values, const AscendC::LocalTensor<float>& work,
                                 int32_t count) {
  AscendC::ReduceSum<float>(values, values, work, count);
  WaitPipe<AscendC::HardEvent::V_S>();
  const float sum = values.GetValue(0);
  WaitPipe<AscendC::HardEvent::S_V>();
  return sum;
}

// Keys [key, key + cols) of one query head.
struct FlashTile {
  int64_t head;
  int64_t key;
  int32_t cols;
  int32_t colsPad;
};

template <typename T>
class FlashScoreStrip {
 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles, int32_t softmaxBytes, GM_ADDR realShift,
                              GM_ADDR slopes, GM_ADDR attnMask) {
    shape_ = shape;
    readsPse_ = shape->pseType == 0 || shape->pseType == 1;
    const int32_t strip = tiles->stripRows * tiles->kvCols;
    stripRows_ = tiles->stripRows;
    bitsBytes_ = strip / 8;
    if (FlashNeedsIndex(*shape)) pipe->InitBuffer(indexBuf_, strip * sizeof(float));
    const int32_t work = FlashWorkFloats(*shape, stripRows_, tiles->kvCols) * sizeof(float) + softmaxBytes;
    if (work != 0) pipe->InitBuffer(workBuf_, work);
    pipe->InitBuffer(bitsBuf_, 2 * bitsBytes_);
    if (readsPse_) pipe->InitBuffer(rawQue_, 1, strip * sizeof(T));
    if (!readsPse_ && shape->hasMask != 0) pipe->InitBuffer(rawQue_, 1, strip);
    realShiftGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(realShift));
    slopesGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(slopes));
    maskGm_.SetGlobalBuffer(attnMask);
    indexCols_ = -1;
  }

  // Bytes for the temporaries of softmax, `softmaxBytes` at least; free between two calls of Score.
  __aicore__ inline AscendC::LocalTensor<float> Work() { return workBuf_.Get<float>(); }
  // Bits for a strip that the caller may use.
  __aicore__ inline AscendC::LocalTensor<uint8_t> Bits() { return bitsBuf_.Get<uint8_t>(); }

  // `row`: the sequence's row of the first in the strip. With softcap and `wantsSlope`, `capSlope` becomes
  // 1 - tanh^2, the derivative of the capped scores.
  __aicore__ inline void Score(const AscendC::LocalTensor<float>& scores, const FlashSequence& sequence,
                               const FlashTile& tile, int64_t row, int64_t rows, bool wantsSlope,
                               const AscendC::LocalTensor<float>& capSlope) {
    const int32_t count = static_cast<int32_t>(rows * tile.colsPad);
    if (shape_->pseType == 1) AddRealShift(scores, sequence, tile, row, rows);
    if (shape_->softcap > 0.0f) {
      Cap(scores, count, wantsSlope, capSlope);
    } else if (shape_->scale != 1.0f) {
      AscendC::Muls(scores, scores, shape_->scale, count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    if (shape_->pseType == 0) AddRealShift(scores, sequence, tile, row, rows);
    if (shape_->pseType >= 2) AddSlopes(scores, sequence, tile, row, count);
    if (shape_->hasMask != 0) HideByTensor(scores, sequence, tile, row, rows);
    HideByBand(scores, sequence.band, tile, row, rows);
  }

 private:
  __aicore__ inline int32_t CompareCount(int32_t count) const {
    return static_cast<int32_t>(RoundUpOf(count, kFlashCompareUnit));
  }

  // S = cap * tanh(scale * A / cap)
  __aicore__ inline void Cap(const AscendC::LocalTensor<float>& scores, int32_t count, bool wantsSlope,
                             const AscendC::LocalTensor<float>& capSlope) {
    AscendC::Muls(scores, scores, shape_->scale / shape_->softcap, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Tanh(scores, scores, workBuf_.Get<uint8_t>(), static_cast<uint32_t>(count));
    AscendC::PipeBarrier<PIPE_V>();
    if (wantsSlope) {
      AscendC::Mul(capSlope, scores, scores, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Muls(capSlope, capSlope, -1.0f, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Adds(capSlope, capSlope, 1.0f, count);
    }
    AscendC::Muls(scores, scores, shape_->softcap, count);
    AscendC::PipeBarrier<PIPE_V>();
  }

  // Rows of a tensor of the scores' shape to `dst`, pitch colsPad. A pitch of 0 in GM repeats one row.
  template <typename U>
  __aicore__ inline void LoadRows(const AscendC::LocalTensor<U>& dst, const AscendC::GlobalTensor<U>& src, int64_t rows,
                                  int64_t gmPitch, const FlashTile& tile) {
    if (gmPitch >= tile.cols) {
      CopyRowsIn(dst, src, rows, tile.cols, gmPitch, tile.colsPad);
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      CopyRowsIn(dst[r * tile.colsPad], src[r * gmPitch], 1, tile.cols, tile.cols, tile.colsPad);
    }
  }

  __aicore__ inline void AddRealShift(const AscendC::LocalTensor<float>& scores, const FlashSequence& sequence,
                                      const FlashTile& tile, int64_t row, int64_t rows) {
    AscendC::LocalTensor<T> raw = rawQue_.template AllocTensor<T>();
    int64_t pitch = shape_->pseRow;
    int64_t offset = sequence.index * shape_->pseBatch + tile.head * shape_->pseHead + row * pitch + tile.key;
    if (shape_->packed != 0) {
      pitch = sequence.keys;
      offset = shape_->N * sequence.pairBase + (tile.head * sequence.rows + row) * pitch + tile.key;
    }
    LoadRows(raw, realShiftGm_[offset], rows, pitch, tile);
    rawQue_.EnQue(raw);
    raw = rawQue_.template DeQue<T>();
    const int32_t count = static_cast<int32_t>(rows * tile.colsPad);
    if constexpr (std::is_same_v<T, float>) {
      AscendC::Add(scores, scores, raw, count);
    } else {
      const AscendC::LocalTensor<float> bias = workBuf_.Get<float>();
      AscendC::Cast(bias, raw, AscendC::RoundMode::CAST_NONE, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Add(scores, scores, bias, count);
    }
    AscendC::PipeBarrier<PIPE_V>();
    rawQue_.FreeTensor(raw);
  }

  // S -= slope * |distance|, or its square root
  __aicore__ inline void AddSlopes(const AscendC::LocalTensor<float>& scores, const FlashSequence& sequence,
                                   const FlashTile& tile, int64_t row, int32_t count) {
    const AscendC::LocalTensor<float> index = Index(tile.colsPad, 1);
    const AscendC::LocalTensor<float> bias = workBuf_.Get<float>();
    const int64_t distance = shape_->kvStart + tile.key - shape_->qStart - row;
    const float slope = slopesGm_.GetValue(sequence.index * shape_->slopeBatch + tile.head);
    AscendC::Adds(bias, index, static_cast<float>(distance), count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Abs(bias, bias, count);
    AscendC::PipeBarrier<PIPE_V>();
    if (shape_->pseType == 3) {
      AscendC::Sqrt(bias, bias, count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::Axpy(scores, bias, -slope, count);
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void HideByTensor(const AscendC::LocalTensor<float>& scores, const FlashSequence& sequence,
                                      const FlashTile& tile, int64_t row, int64_t rows) {
    AscendC::LocalTensor<uint8_t> raw = rawQue_.template AllocTensor<uint8_t>();
    const int64_t offset =
        sequence.index * shape_->maskBatch + tile.head * shape_->maskHead + row * shape_->maskRow + tile.key;
    LoadRows(raw, maskGm_[offset], rows, shape_->maskRow, tile);
    rawQue_.EnQue(raw);
    raw = rawQue_.template DeQue<uint8_t>();
    const int32_t count = CompareCount(static_cast<int32_t>(rows * tile.colsPad));
    const AscendC::LocalTensor<half> flags = workBuf_.Get<half>();
    AscendC::Cast(flags, raw, AscendC::RoundMode::CAST_NONE, count);
    AscendC::PipeBarrier<PIPE_V>();
    rawQue_.FreeTensor(raw);
    const AscendC::LocalTensor<uint8_t> bits = Bits();
    AscendC::CompareScalar(bits, flags, static_cast<half>(0.0f), AscendC::CMPMODE::EQ, static_cast<uint32_t>(count));
    AscendC::PipeBarrier<PIPE_V>();
    Keep(scores, bits, count);
  }

  __aicore__ inline void HideByBand(const AscendC::LocalTensor<float>& scores, const FlashBand& band,
                                    const FlashTile& tile, int64_t row, int64_t rows) {
    const int32_t count = CompareCount(static_cast<int32_t>(rows * tile.colsPad));
    // With c and r counted in the strip, visible is lower <= c - r <= upper, or c < prefix.
    const int64_t lower = band.first + row - tile.key;
    const int64_t upper = band.last + row - tile.key;
    const int64_t prefix = band.prefix - tile.key;
    const AscendC::LocalTensor<uint8_t> bits = Bits();
    if (lower > 1 - rows && prefix < tile.cols) Compare(bits, tile.colsPad, 1, lower, AscendC::CMPMODE::GE, count);
    if (lower > 1 - rows && prefix < tile.cols) Keep(scores, bits, count);
    if (upper < tile.cols - 1 && prefix < tile.cols) {
      Compare(bits, tile.colsPad, 1, upper, AscendC::CMPMODE::LE, count);
      if (prefix > 0) {
        const AscendC::LocalTensor<uint8_t> more = bits[bitsBytes_];
        Compare(more, tile.colsPad, 0, prefix, AscendC::CMPMODE::LT, count);
        AscendC::Or(bits.template ReinterpretCast<uint16_t>(), bits.template ReinterpretCast<uint16_t>(),
                    more.template ReinterpretCast<uint16_t>(), count / 16);
        AscendC::PipeBarrier<PIPE_V>();
      }
      Keep(scores, bits, count);
    }
    if (tile.cols < tile.colsPad) {
      Compare(bits, tile.colsPad, 0, tile.cols, AscendC::CMPMODE::LT, count);
      Keep(scores, bits, count);
    }
  }

  __aicore__ inline void Compare(const AscendC::LocalTensor<uint8_t>& bits, int32_t colsPad, int32_t rowStep,
                                 int64_t bound, AscendC::CMPMODE mode, int32_t count) {
    const float value = static_cast<float>(MaxOf(-kFlashFarTile, MinOf(kFlashFarTile, bound)));
    AscendC::CompareScalar(bits, Index(colsPad, rowStep), value, mode, static_cast<uint32_t>(count));
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void Keep(const AscendC::LocalTensor<float>& scores, const AscendC::LocalTensor<uint8_t>& bits,
                              int32_t count) {
    AscendC::Select(scores, bits, scores, kFlashHidden, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                    static_cast<uint32_t>(count));
    AscendC::PipeBarrier<PIPE_V>();
  }

  // index[r][c] = c - rowStep * r, kept until another shape is asked for.
  __aicore__ inline AscendC::LocalTensor<float> Index(int32_t colsPad, int32_t rowStep) {
    const AscendC::LocalTensor<float> index = indexBuf_.Get<float>();
    if (indexCols_ == colsPad && indexRowStep_ == rowStep) return index;
    indexCols_ = colsPad;
    indexRowStep_ = rowStep;
    AscendC::CreateVecIndex(index, 0.0f, static_cast<uint32_t>(colsPad));
    AscendC::PipeBarrier<PIPE_V>();
    for (int32_t r = 1; r < stripRows_; ++r) {
      AscendC::Adds(index[r * colsPad], index, static_cast<float>(-rowStep * r), colsPad);
    }
    AscendC::PipeBarrier<PIPE_V>();
    return index;
  }

  static constexpr int64_t kFlashFarTile = 1 << 20;  // beyond every index of a strip, exact in float

  const FlashAttentionScoreShape* shape_;
  bool readsPse_;
  int32_t stripRows_;
  int32_t bitsBytes_;  // of a strip
  int32_t indexCols_;
  int32_t indexRowStep_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> indexBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> bitsBuf_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> rawQue_;
  AscendC::GlobalTensor<T> realShiftGm_;
  AscendC::GlobalTensor<float> slopesGm_;
  AscendC::GlobalTensor<uint8_t> maskGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_STRIP_H_
