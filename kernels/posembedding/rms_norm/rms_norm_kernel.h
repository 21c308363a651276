// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// y[r, :] = x[r, :] * rstd[r] * gamma[:],  rstd[r] = 1 / sqrt(mean(x[r, :]^2) + epsilon)     x [rows, D], gamma [D]
// A core owns a contiguous range of rows and walks it in tiles of rowsPerTile rows. Rows that are longer than a tile
// (on the card, than UB) are cut into tiles of colsPerTile columns and read twice: for the sum of squares, and to be
// scaled. UB: x and y tiles (queues), for 16-bit types x as floats and room for squares (for float in the y tile),
// gamma, one row of sums and rstd.
#ifndef MST_POSEMBEDDING_RMS_NORM_KERNEL_H_
#define MST_POSEMBEDDING_RMS_NORM_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "posembedding/rms_norm/rms_norm_gamma.h"
#include "posembedding/rms_norm/rms_norm_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X, typename G>
class RmsNormKernel {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR rstd, const RmsNormTilingData* tiling,
                              TPipe* pipe) {
    tiling_ = tiling;
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(y));
    rstdGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(rstd));
    isSplit_ = tiling->colsPerTile < tiling->D;
    holdsGamma_ = tiling->gammaCols >= tiling->D;
    xAgainGm_ = xGm_;
    SetStreaming(xGm_, tiling->streams);
    SetStreaming(yGm_, tiling->streams);

    const int64_t tile = tiling->rowsPerTile * tiling->pitch;
    const int64_t rowFloats = RoundUpOf(tiling->rowsPerTile, kBlockFloats);
    pipe->InitBuffer(xQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(yQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(rstdQueue_, tiling->buffers, rowFloats * sizeof(float));
    gamma_.Init(gamma, tiling->gammaCols, pipe);
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(floatBuf_, tile * sizeof(float));
      const int64_t squares = IsShortRow(tiling->colsPerTile, tiling->pitch) ? tile : MinOf(tile, kDotStrip);
      pipe->InitBuffer(squareBuf_, squares * sizeof(float));
    }
    pipe->InitBuffer(sumBuf_, rowFloats * sizeof(float));
    pipe->InitBuffer(partBuf_, rowFloats * sizeof(float));
    pipe->InitBuffer(spreadBuf_, rowFloats * kUbBlockBytes);
    pipe->InitBuffer(workBuf_, ReduceWorkFloats(tiling->colsPerTile) * sizeof(float));
  }

  __aicore__ inline void Process() {
    const int64_t rowBegin = tiling_->rows * GetBlockIdx() / GetBlockNum();
    const int64_t rowEnd = tiling_->rows * (GetBlockIdx() + 1) / GetBlockNum();
    LocalTensor<float> gamma;
    if (holdsGamma_) gamma = gamma_.Load(0, tiling_->D);
    for (int64_t row = rowBegin; row < rowEnd; row += tiling_->rowsPerTile) {
      const int64_t rows = MinOf(tiling_->rowsPerTile, rowEnd - row);
      if (isSplit_) {
        SplitRow(row, gamma);
      } else {
        WholeRows(row, rows, gamma);
      }
    }
    if (holdsGamma_) gamma_.Free(gamma);
  }

 private:
  __aicore__ inline void WholeRows(int64_t row, int64_t rows, const LocalTensor<float>& gamma) {
    const int64_t D = tiling_->D;
    CopyIn(xGm_, row, rows, 0, D);
    LocalTensor<X> x = xQueue_.template DeQue<X>();
    LocalTensor<X> y = yQueue_.template AllocTensor<X>();
    LocalTensor<float> xFloat = ToFloat(x, rows);
    RowDot(sumBuf_.Get<float>(), Squares(y), xFloat, xFloat, workBuf_.Get<float>(), rows, D, tiling_->pitch,
           tiling_->pitch);
    LocalTensor<float> rstd = Rstd(rows);
    Scale(y, xFloat, rstd, gamma, rows, D);
    xQueue_.FreeTensor(x);
    CopyOut(y, row, rows, 0, D);
    CopyRstdOut(rstd, row, rows);
  }

  // One row that is longer than a tile; gamma is here as a whole, or comes tile by tile.
  __aicore__ inline void SplitRow(int64_t row, const LocalTensor<float>& wholeGamma) {
    LocalTensor<float> sum = sumBuf_.Get<float>();
    LocalTensor<float> part = partBuf_.Get<float>();
    Duplicate(sum, 0.0f, kBlockFloats);  // RowDot has barriers before the first addition
    for (int64_t col = 0; col < tiling_->D; col += tiling_->colsPerTile) {
      const int64_t cols = MinOf(tiling_->colsPerTile, tiling_->D - col);
      CopyIn(xGm_, row, 1, col, cols);
      LocalTensor<X> x = xQueue_.template DeQue<X>();
      LocalTensor<float> xFloat = ToFloat(x, 1);
      // In place: this tile is read again below.
      RowDot(part, xFloat, xFloat, xFloat, workBuf_.Get<float>(), 1, cols, tiling_->pitch, tiling_->pitch);
      Add(sum, sum, part, 1);
      PipeBarrier<PIPE_V>();
      xQueue_.FreeTensor(x);
    }
    LocalTensor<float> rstd = Rstd(1);
    for (int64_t col = 0; col < tiling_->D; col += tiling_->colsPerTile) {
      const int64_t cols = MinOf(tiling_->colsPerTile, tiling_->D - col);
      LocalTensor<float> gamma = holdsGamma_ ? wholeGamma[col] : gamma_.Load(col, cols);
      CopyIn(xAgainGm_, row, 1, col, cols);
      LocalTensor<X> x = xQueue_.template DeQue<X>();
      LocalTensor<X> y = yQueue_.template AllocTensor<X>();
      LocalTensor<float> xFloat = ToFloat(x, 1);
      Scale(y, xFloat, rstd, gamma, 1, cols);
      xQueue_.FreeTensor(x);
      CopyOut(y, row, 1, col, cols);
      if (!holdsGamma_) gamma_.Free(gamma);
    }
    CopyRstdOut(rstd, row, 1);
  }

  __aicore__ inline void CopyIn(const GlobalTensor<X>& src, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    LocalTensor<X> x = xQueue_.template AllocTensor<X>();
    CopyRowsIn(x, src[row * tiling_->D + col], rows, cols, tiling_->D, tiling_->pitch);
    xQueue_.EnQue(x);
  }

  __aicore__ inline LocalTensor<float> ToFloat(const LocalTensor<X>& x, int64_t rows) {
    if constexpr (IsSameType<X, float>::value) {
      return x;
    } else {
      LocalTensor<float> xFloat = floatBuf_.Get<float>();
      Cast(xFloat, x, RoundMode::CAST_NONE, rows * tiling_->pitch);
      PipeBarrier<PIPE_V>();
      return xFloat;
    }
  }

  // Where the squares go: the y tile, which is written only later, if it is of the right type.
  __aicore__ inline LocalTensor<float> Squares(const LocalTensor<X>& y) {
    if constexpr (IsSameType<X, float>::value) {
      return y;
    } else {
      return squareBuf_.Get<float>();
    }
  }

  // From the sums in sumBuf_. The caller hands the tensor on to CopyRstdOut.
  __aicore__ inline LocalTensor<float> Rstd(int64_t rows) {
    LocalTensor<float> sums = sumBuf_.Get<float>();
    LocalTensor<float> ones = partBuf_.Get<float>();
    LocalTensor<float> rstd = rstdQueue_.template AllocTensor<float>();
    const int32_t count = static_cast<int32_t>(rows);
    Muls(sums, sums, tiling_->oneOverD, count);
    PipeBarrier<PIPE_V>();
    Adds(sums, sums, tiling_->epsilon, count);
    PipeBarrier<PIPE_V>();
    Sqrt(sums, sums, count);
    Duplicate(ones, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Div(rstd, ones, sums, count);
    PipeBarrier<PIPE_V>();
    return rstd;
  }

  __aicore__ inline void Scale(const LocalTensor<X>& y, const LocalTensor<float>& x, const LocalTensor<float>& rstd,
                               const LocalTensor<float>& gamma, int64_t rows, int64_t cols) {
    LocalTensor<float> yFloat;
    if constexpr (IsSameType<X, float>::value) {
      yFloat = y;
    } else {
      yFloat = x;
    }
    SpreadRows(spreadBuf_.Get<float>(), rstd, rows);
    RowMulSpread(yFloat, x, spreadBuf_.Get<float>(), rows, cols, tiling_->pitch);
    RowMul(yFloat, yFloat, gamma, rows, cols, tiling_->pitch);
    if constexpr (!IsSameType<X, float>::value) {
      Cast(y, yFloat, RoundMode::CAST_RINT, rows * tiling_->pitch);
      PipeBarrier<PIPE_V>();  // the next tile overwrites yFloat
    }
  }

  __aicore__ inline void CopyOut(LocalTensor<X>& y, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    yQueue_.EnQue(y);
    y = yQueue_.template DeQue<X>();
    CopyRowsOut(yGm_[row * tiling_->D + col], y, rows, cols, tiling_->D, tiling_->pitch);
    yQueue_.FreeTensor(y);
  }

  __aicore__ inline void CopyRstdOut(LocalTensor<float>& rstd, int64_t row, int64_t rows) {
    rstdQueue_.EnQue(rstd);
    rstd = rstdQueue_.template DeQue<float>();
    CopyRowsOut(rstdGm_[row], rstd, 1, rows, rows, RoundUpOf(rows, kBlockFloats));
    rstdQueue_.FreeTensor(rstd);
  }

  const RmsNormTilingData* tiling_;
  bool isSplit_;
  bool holdsGamma_;
  GlobalTensor<X> xGm_, xAgainGm_, yGm_;  // xAgainGm_ is x where it is read for the second time
  RmsNormGamma<G> gamma_;
  GlobalTensor<float> rstdGm_;
  TQue<TPosition::VECIN, 1> xQueue_;
  TQue<TPosition::VECOUT, 1> yQueue_, rstdQueue_;
  TBuf<TPosition::VECCALC> floatBuf_, squareBuf_, sumBuf_, partBuf_, spreadBuf_, workBuf_;
};

template <typename X, typename G>
__aicore__ inline void RmsNormRun(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR rstd, GM_ADDR workspace,
                                  const RmsNormTilingData* tiling) {
  TPipe pipe;
  RmsNormKernel<X, G> kernel;
  kernel.Init(x, gamma, y, rstd, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_RMS_NORM_KERNEL_H_
