// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// a = x[r, 0, :], b = x[r, 1, :], s = sigmoid(a), silu = a * s                       x, dx [rows, 2, H], dy [rows, H]
// dx[r, 0, :] = dy * b * (s + silu * (1 - s)),  dx[r, 1, :] = dy * silu
// Tiles as in the forward. UB: tiles of dy, both halves of x and both halves of dx (queues), for 16-bit types float
// copies of the first three; sigmoid and a tile to work in.
#ifndef MST_GMM_SWIGLU_GRAD_KERNEL_H_
#define MST_GMM_SWIGLU_GRAD_KERNEL_H_

#include "common/kernel_util.h"
#include "gmm/swiglu/swiglu_kernel.h"
#include "kernel_operator.h"

namespace mst {

using namespace AscendC;

template <typename X>
class SwigluGradKernel {
 public:
  __aicore__ inline void Init(GM_ADDR doutput, GM_ADDR input, GM_ADDR dinput, const SwigluGradTilingData* tiling,
                              TPipe* pipe) {
    tiling_ = tiling;
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(doutput));
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(input));
    dxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dinput));
    SetStreaming(dyGm_, tiling->streams);
    SetStreaming(xGm_, tiling->streams);
    SetStreaming(dxGm_, tiling->streams);
    const int64_t tile = tiling->rowsPerTile * tiling->pitch;
    pipe->InitBuffer(dyQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(gateQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(upQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(dgateQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(dupQueue_, tiling->buffers, tile * sizeof(X));
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(dyBuf_, tile * sizeof(float));
      pipe->InitBuffer(gateBuf_, tile * sizeof(float));
      pipe->InitBuffer(upBuf_, tile * sizeof(float));
    }
    pipe->InitBuffer(sigmoidBuf_, tile * sizeof(float));
    pipe->InitBuffer(workBuf_, tile * sizeof(float));
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
    const int64_t H = tiling_->H;
    const int64_t offset = tile.row * 2 * H + tile.col;
    LocalTensor<X> dy = dyQueue_.template AllocTensor<X>();
    CopyRowsIn(dy, dyGm_[tile.row * H + tile.col], tile.rows, tile.cols, H, tiling_->pitch);
    dyQueue_.EnQue(dy);
    LocalTensor<X> gate = gateQueue_.template AllocTensor<X>();
    CopyRowsIn(gate, xGm_[offset], tile.rows, tile.cols, 2 * H, tiling_->pitch);
    gateQueue_.EnQue(gate);
    LocalTensor<X> up = upQueue_.template AllocTensor<X>();
    CopyRowsIn(up, xGm_[offset + H], tile.rows, tile.cols, 2 * H, tiling_->pitch);
    upQueue_.EnQue(up);
  }

  __aicore__ inline void Compute(int64_t rows) {
    const int32_t count = static_cast<int32_t>(rows * tiling_->pitch);
    LocalTensor<X> dyStored = dyQueue_.template DeQue<X>();
    LocalTensor<X> gateStored = gateQueue_.template DeQue<X>();
    LocalTensor<X> upStored = upQueue_.template DeQue<X>();
    LocalTensor<X> dgate = dgateQueue_.template AllocTensor<X>();
    LocalTensor<X> dup = dupQueue_.template AllocTensor<X>();
    LocalTensor<float> work = workBuf_.Get<float>();
    LocalTensor<float> dy, gate, up;
    if constexpr (IsSameType<X, float>::value) {
      dy = dyStored;
      gate = gateStored;
      up = upStored;
    } else {
      dy = dyBuf_.Get<float>();
      gate = gateBuf_.Get<float>();
      up = upBuf_.Get<float>();
      Cast(dy, dyStored, RoundMode::CAST_NONE, count);
      Cast(gate, gateStored, RoundMode::CAST_NONE, count);
      Cast(up, upStored, RoundMode::CAST_NONE, count);
      PipeBarrier<PIPE_V>();
    }
    Gradients(dy, gate, up, work, count);
    if constexpr (IsSameType<X, float>::value) {
      Mul(dup, dy, gate, count);
      Mul(dgate, up, work, count);
    } else {
      Mul(dy, dy, gate, count);
      Mul(up, up, work, count);
      PipeBarrier<PIPE_V>();
      Cast(dup, dy, RoundMode::CAST_RINT, count);
      Cast(dgate, up, RoundMode::CAST_RINT, count);
    }
    PipeBarrier<PIPE_V>();  // the next tile overwrites what these read
    dyQueue_.FreeTensor(dyStored);
    gateQueue_.FreeTensor(gateStored);
    upQueue_.FreeTensor(upStored);
    dgateQueue_.EnQue(dgate);
    dupQueue_.EnQue(dup);
  }

  // work = s + silu * (1 - s), gate = silu, up = dy * up
  __aicore__ inline void Gradients(const LocalTensor<float>& dy, const LocalTensor<float>& gate,
                                   const LocalTensor<float>& up, const LocalTensor<float>& work, int32_t count) {
    LocalTensor<float> sigmoid = sigmoidBuf_.Get<float>();
    Sigmoid(sigmoid, gate, work.template ReinterpretCast<uint8_t>(), static_cast<uint32_t>(count));
    Mul(up, up, dy, count);
    PipeBarrier<PIPE_V>();
    Mul(gate, gate, sigmoid, count);
    Adds(work, sigmoid, -1.0f, count);  // exact for s >= 1/2, where silu may be large
    PipeBarrier<PIPE_V>();
    Mul(work, work, gate, count);
    PipeBarrier<PIPE_V>();
    Sub(work, sigmoid, work, count);
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void CopyOut(const SwigluTile& tile) {
    const int64_t H = tiling_->H;
    const int64_t offset = tile.row * 2 * H + tile.col;
    LocalTensor<X> dgate = dgateQueue_.template DeQue<X>();
    CopyRowsOut(dxGm_[offset], dgate, tile.rows, tile.cols, 2 * H, tiling_->pitch);
    dgateQueue_.FreeTensor(dgate);
    LocalTensor<X> dup = dupQueue_.template DeQue<X>();
    CopyRowsOut(dxGm_[offset + H], dup, tile.rows, tile.cols, 2 * H, tiling_->pitch);
    dupQueue_.FreeTensor(dup);
  }

  const SwigluGradTilingData* tiling_;
  GlobalTensor<X> dyGm_, xGm_, dxGm_;
  TQue<TPosition::VECIN, 1> dyQueue_, gateQueue_, upQueue_;
  TQue<TPosition::VECOUT, 1> dgateQueue_, dupQueue_;
  TBuf<TPosition::VECCALC> dyBuf_, gateBuf_, upBuf_, sigmoidBuf_, workBuf_;
};

template <typename X>
__aicore__ inline void SwigluGradRun(GM_ADDR doutput, GM_ADDR input, GM_ADDR dinput, GM_ADDR workspace,
                                     const SwigluGradTilingData* tiling) {
  TPipe pipe;
  SwigluGradKernel<X> kernel;
  kernel.Init(doutput, input, dinput, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_GMM_SWIGLU_GRAD_KERNEL_H_
