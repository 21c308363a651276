// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// g = dsoftmax plus dy at the chosen experts, dx = p * (g - sum(g * p)), p the softmax of x over all experts or, with
// renorm, over the chosen ones (then dx is 0 elsewhere).                            x, dx [T, E], dy, expert_idx [T, k]
// A core owns a contiguous range of tokens. Finished tokens (expert E) add nothing to g, nor does any other expert that
// there is not: on a card nobody else looks at expert_idx.
// UB: x, dy, expert_idx, dsoftmax and dx (queues), p, g and a tile to work in as floats.
#ifndef MST_MOE_MOE_GATING_TOP_K_SOFTMAX_GRAD_KERNEL_H_
#define MST_MOE_MOE_GATING_TOP_K_SOFTMAX_GRAD_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "moe/moe_gating_top_k_softmax/moe_gating_top_k_softmax_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X>
class MoeGatingTopKSoftmaxGradKernel {
 public:
  __aicore__ inline void Init(GM_ADDR dy, GM_ADDR x, GM_ADDR expertIdx, GM_ADDR dsoftmax, GM_ADDR dx,
                              const MoeGatingTopKSoftmaxGradTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dy));
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    expertIdxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(expertIdx));
    dsoftmaxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(dsoftmax));
    dxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dx));
    const int64_t rows = RoundUpOf(tiling->rowsPerTile, kBlockFloats);
    const int64_t experts = tiling->rowsPerTile * tiling->expertPitch;
    const int64_t choices = tiling->rowsPerTile * tiling->choicePitch;
    pipe->InitBuffer(dyQueue_, tiling->buffers, choices * sizeof(X));
    pipe->InitBuffer(xQueue_, tiling->buffers, experts * sizeof(X));
    pipe->InitBuffer(expertQueue_, tiling->buffers, choices * sizeof(int32_t));
    if (tiling->hasSoftmax) pipe->InitBuffer(dsoftmaxQueue_, tiling->buffers, experts * sizeof(float));
    pipe->InitBuffer(dxQueue_, tiling->buffers, experts * sizeof(X));
    pipe->InitBuffer(dyBuf_, choices * sizeof(float));
    pipe->InitBuffer(probBuf_, experts * sizeof(float));
    pipe->InitBuffer(gradBuf_, experts * sizeof(float));
    pipe->InitBuffer(chosenBuf_, experts * sizeof(float));
    pipe->InitBuffer(tempBuf_, experts * sizeof(float));
    pipe->InitBuffer(rowBuf_, rows * sizeof(float));
    pipe->InitBuffer(spreadBuf_, rows * kUbBlockBytes);
    pipe->InitBuffer(workBuf_, MaxWorkFloats(tiling->expertPitch) * sizeof(float));
  }

  __aicore__ inline void Process() {
    const int64_t tokenEnd = tiling_->T * (GetBlockIdx() + 1) / GetBlockNum();
    for (int64_t token = tiling_->T * GetBlockIdx() / GetBlockNum(); token < tokenEnd; token += tiling_->rowsPerTile) {
      const int64_t rows = MinOf(tiling_->rowsPerTile, tokenEnd - token);
      Gather(token, rows);
      Probabilities(token, rows);
      Gradient(token, rows);
    }
  }

 private:
  // gradBuf_ = g, chosenBuf_ = 1 at the chosen experts (with renorm).
  __aicore__ inline void Gather(int64_t token, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t k = tiling_->k;
    const int64_t pitch = tiling_->expertPitch;
    const int64_t choicePitch = tiling_->choicePitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> grad = gradBuf_.Get<float>();
    LocalTensor<float> chosen = chosenBuf_.Get<float>();
    LocalTensor<float> dyFloat = dyBuf_.Get<float>();
    LocalTensor<X> dy = dyQueue_.template AllocTensor<X>();
    CopyRowsIn(dy, dyGm_[token * k], rows, k, k, choicePitch);
    dyQueue_.EnQue(dy);
    LocalTensor<int32_t> experts = expertQueue_.template AllocTensor<int32_t>();
    CopyRowsIn(experts, expertIdxGm_[token * k], rows, k, k, choicePitch);
    expertQueue_.EnQue(experts);
    dy = dyQueue_.template DeQue<X>();
    experts = expertQueue_.template DeQue<int32_t>();
    if constexpr (IsSameType<X, float>::value) {
      Muls(dyFloat, dy, 1.0f, static_cast<int32_t>(rows * choicePitch));
    } else {
      Cast(dyFloat, dy, RoundMode::CAST_NONE, static_cast<uint32_t>(rows * choicePitch));
    }
    if (tiling_->hasSoftmax) {
      LocalTensor<float> dsoftmax = dsoftmaxQueue_.template AllocTensor<float>();
      CopyRowsIn(dsoftmax, dsoftmaxGm_[token * E], rows, E, E, pitch);
      dsoftmaxQueue_.EnQue(dsoftmax);
      dsoftmax = dsoftmaxQueue_.template DeQue<float>();
      Muls(grad, dsoftmax, 1.0f, count);
      dsoftmaxQueue_.FreeTensor(dsoftmax);
    } else {
      Duplicate(grad, 0.0f, count);
    }
    if (tiling_->renorm) Duplicate(chosen, 0.0f, count);
    WaitPipe<HardEvent::V_S>();  // DeQue made the vector pipe wait for the copies
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t expert = experts.GetValue(row * choicePitch + j);
        if (expert < 0 || expert >= E) {  // finished: any finite p will do, as g is 0
          if (tiling_->renorm && j == 0) SetRow(chosen, row * pitch, E);
          continue;
        }
        const int64_t at = row * pitch + expert;
        grad.SetValue(at, grad.GetValue(at) + dyFloat.GetValue(row * choicePitch + j));
        if (tiling_->renorm) chosen.SetValue(at, 1.0f);
      }
    }
    WaitPipe<HardEvent::S_V>();
    dyQueue_.FreeTensor(dy);
    expertQueue_.FreeTensor(experts);
  }

  __aicore__ inline void SetRow(const LocalTensor<float>& chosen, int64_t at, int64_t E) {
    for (int64_t expert = 0; expert < E; ++expert) chosen.SetValue(at + expert, 1.0f);
  }

  // probBuf_ = p
  __aicore__ inline void Probabilities(int64_t token, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t pitch = tiling_->expertPitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> prob = probBuf_.Get<float>();
    LocalTensor<float> temp = tempBuf_.Get<float>();
    LocalTensor<float> rowValue = rowBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    LocalTensor<X> x = xQueue_.template AllocTensor<X>();
    CopyRowsIn(x, xGm_[token * E], rows, E, E, pitch);
    xQueue_.EnQue(x);
    x = xQueue_.template DeQue<X>();
    if constexpr (IsSameType<X, float>::value) {
      Muls(prob, x, 1.0f, count);
    } else {
      Cast(prob, x, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
    }
    PipeBarrier<PIPE_V>();
    xQueue_.FreeTensor(x);
    Muls(temp, prob, 1.0f, count);
    PipeBarrier<PIPE_V>();
    RowMax(rowValue, temp, workBuf_.Get<float>(), rows, E, pitch);
    SpreadRows(spread, rowValue, rows);
    RowSubSpread(prob, prob, spread, rows, E, pitch);
    Exp(prob, prob, count);
    PipeBarrier<PIPE_V>();
    if (tiling_->renorm) {
      Mul(prob, prob, chosenBuf_.Get<float>(), count);
      PipeBarrier<PIPE_V>();
    }
    Muls(temp, prob, 1.0f, count);
    PipeBarrier<PIPE_V>();
    RowSum(rowValue, temp, workBuf_.Get<float>(), rows, E, pitch);
    SpreadRows(spread, rowValue, rows);
    RowDivSpread(prob, prob, spread, rows, E, pitch);
  }

  __aicore__ inline void Gradient(int64_t token, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t pitch = tiling_->expertPitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> prob = probBuf_.Get<float>();
    LocalTensor<float> grad = gradBuf_.Get<float>();
    LocalTensor<float> temp = tempBuf_.Get<float>();
    LocalTensor<float> rowValue = rowBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    Mul(temp, grad, prob, count);
    PipeBarrier<PIPE_V>();
    RowSum(rowValue, temp, workBuf_.Get<float>(), rows, E, pitch);
    SpreadRows(spread, rowValue, rows);
    RowSubSpread(grad, grad, spread, rows, E, pitch);
    LocalTensor<X> dx = dxQueue_.template AllocTensor<X>();
    if constexpr (IsSameType<X, float>::value) {
      Mul(dx, grad, prob, count);
    } else {
      Mul(grad, grad, prob, count);
      PipeBarrier<PIPE_V>();
      Cast(dx, grad, RoundMode::CAST_RINT, static_cast<uint32_t>(count));
    }
    PipeBarrier<PIPE_V>();  // the next tile overwrites what these read
    dxQueue_.EnQue(dx);
    dx = dxQueue_.template DeQue<X>();
    CopyRowsOut(dxGm_[token * E], dx, rows, E, E, pitch);
    dxQueue_.FreeTensor(dx);
  }

  const MoeGatingTopKSoftmaxGradTilingData* tiling_;
  GlobalTensor<X> dyGm_, xGm_, dxGm_;
  GlobalTensor<int32_t> expertIdxGm_;
  GlobalTensor<float> dsoftmaxGm_;
  TQue<TPosition::VECIN, 1> dyQueue_, xQueue_, expertQueue_, dsoftmaxQueue_;
  TQue<TPosition::VECOUT, 1> dxQueue_;
  TBuf<TPosition::VECCALC> dyBuf_, probBuf_, gradBuf_, chosenBuf_, tempBuf_, rowBuf_, spreadBuf_, workBuf_;
};

template <typename X>
__aicore__ inline void MoeGatingTopKSoftmaxGradRun(GM_ADDR dy, GM_ADDR x, GM_ADDR expertIdx, GM_ADDR dsoftmax,
                                                   GM_ADDR dx, GM_ADDR workspace,
                                                   const MoeGatingTopKSoftmaxGradTilingData* tiling) {
  TPipe pipe;
  MoeGatingTopKSoftmaxGradKernel<X> kernel;
  kernel.Init(dy, x, expertIdx, dsoftmax, dx, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_MOE_MOE_GATING_TOP_K_SOFTMAX_GRAD_KERNEL_H_
