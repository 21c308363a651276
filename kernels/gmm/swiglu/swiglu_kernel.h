// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// y[r, :] = silu(x[r, 0, :]) * x[r, 1, :],  silu(a) = a / (1 + exp(-a))     x [rows, 2, H], y [rows, H]
// The output is cut into tiles of rowsPerTile x colsPerTile, numbered row by row; a core owns a contiguous share.
// UB: tiles of both halves and of the output (queues), and for 16-bit types a float copy of each.
// Tails between the rows of a tile are computed with, whatever they hold, and never copied out.
#ifndef MST_GMM_SWIGLU_KERNEL_H_
#define MST_GMM_SWIGLU_KERNEL_H_

#include "common/kernel_util.h"
#include "gmm/swiglu/swiglu_tiling.h"
#include "kernel_operator.h"

namespace mst {

using namespace AscendC;

// Some columns of some rows of the output.
struct SwigluTile {
  int64_t row, rows, col, cols;
};

__aicore__ inline SwigluTile SwigluTileAt(const SwigluTilingData* tiling, int64_t tile) {
  const int64_t colTiles = CeilDivOf(tiling->H, tiling->colsPerTile);
  const int64_t row = tile / colTiles * tiling->rowsPerTile;
  const int64_t col = tile % colTiles * tiling->colsPerTile;
  return {row, MinOf(tiling->rowsPerTile, tiling->rows - row), col, MinOf(tiling->colsPerTile, tiling->H - col)};
}

template <typename X>
class SwigluKernel {
 public:
  __aicore__ inline void Init(GM_ADDR input, GM_ADDR output, const SwigluTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(input));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(output));
    SetStreaming(xGm_, tiling->streams);
    SetStreaming(yGm_, tiling->streams);
    const int64_t tile = tiling->rowsPerTile * tiling->pitch;
    pipe->InitBuffer(gateQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(upQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(yQueue_, tiling->buffers, tile * sizeof(X));
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(gateBuf_, tile * sizeof(float));
      pipe->InitBuffer(upBuf_, tile * sizeof(float));
      pipe->InitBuffer(yBuf_, tile * sizeof(float));
    }
  }

  __aicore__ inline void Process() {
    const int64_t tileEnd = tiling_->tiles * (GetBlockIdx() + 1) / GetBlockNum();
    for (int64_t i = tiling_->tiles * GetBlockIdx() / GetBlockNum(); i < tileEnd; ++i) {
      const SwigluTile tile = SwigluTileAt(tiling_, i);
      CopyIn(tile);
      Compute(tile.rows);
      CopyOut(tile);
    }
  }

 private:
  __aicore__ inline void CopyIn(const SwigluTile& tile) {
    const int64_t offset = tile.row * 2 * tiling_->H + tile.col;
    LocalTensor<X> gate = gateQueue_.template AllocTensor<X>();
    CopyRowsIn(gate, xGm_[offset], tile.rows, tile.cols, 2 * tiling_->H, tiling_->pitch);
    gateQueue_.EnQue(gate);
    LocalTensor<X> up = upQueue_.template AllocTensor<X>();
    CopyRowsIn(up, xGm_[offset + tiling_->H], tile.rows, tile.cols, 2 * tiling_->H, tiling_->pitch);
    upQueue_.EnQue(up);
  }

  __aicore__ inline void Compute(int64_t rows) {
    const uint32_t count = static_cast<uint32_t>(rows * tiling_->pitch);
    LocalTensor<X> gate = gateQueue_.template DeQue<X>();
    LocalTensor<X> up = upQueue_.template DeQue<X>();
    LocalTensor<X> y = yQueue_.template AllocTensor<X>();
    const float beta = 1.0f;
    if constexpr (IsSameType<X, float>::value) {
      SwiGLU(y, up, gate, beta, count);
    } else {
      LocalTensor<float> gateFloat = gateBuf_.Get<float>();
      LocalTensor<float> upFloat = upBuf_.Get<float>();
      LocalTensor<float> yFloat = yBuf_.Get<float>();
      Cast(gateFloat, gate, RoundMode::CAST_NONE, count);
      Cast(upFloat, up, RoundMode::CAST_NONE, count);
      PipeBarrier<PIPE_V>();
      SwiGLU(yFloat, upFloat, gateFloat, beta, count);
      PipeBarrier<PIPE_V>();
      Cast(y, yFloat, RoundMode::CAST_RINT, count);
    }
    gateQueue_.FreeTensor(gate);
    upQueue_.FreeTensor(up);
    yQueue_.EnQue(y);
  }

  __aicore__ inline void CopyOut(const SwigluTile& tile) {
    LocalTensor<X> y = yQueue_.template DeQue<X>();
    CopyRowsOut(yGm_[tile.row * tiling_->H + tile.col], y, tile.rows, tile.cols, tiling_->H, tiling_->pitch);
    yQueue_.FreeTensor(y);
  }

  const SwigluTilingData* tiling_;
  GlobalTensor<X> xGm_, yGm_;
  TQue<TPosition::VECIN, 1> gateQueue_, upQueue_;
  TQue<TPosition::VECOUT, 1> yQueue_;
  TBuf<TPosition::VECCALC> gateBuf_, upBuf_, yBuf_;
};

template <typename X>
__aicore__ inline void SwigluRun(GM_ADDR input, GM_ADDR output, GM_ADDR workspace, const SwigluTilingData* tiling) {
  TPipe pipe;
  SwigluKernel<X> kernel;
  kernel.Init(input, output, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_GMM_SWIGLU_KERNEL_H_
