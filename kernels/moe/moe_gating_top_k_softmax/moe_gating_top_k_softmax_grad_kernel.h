// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// g = dsoftmax plus dy at the chosen experts, dx = p * (g - sum(g * p)), p the softmax of x over all experts or, with
// renorm, over the chosen ones (then dx is 0 elsewhere).                            x, dx [T, E], dy, expert_idx [T, k]
// A core owns a contiguous range of tokens. The experts of a token differ. Finished tokens (expert E) add nothing to g,
// nor does any other expert that there is not: on a card nobody else looks at expert_idx.
// dx is first made as if dy were 0 in it. That of the chosen experts, from their gathered logits, is then put in its
// place: by masks or, on the CPU, one by one.
// UB: x, dy, expert_idx, dsoftmax and dx (queues), exp(x - max) as floats, 64 floats of a row to reduce, what belongs
// to the choices; masks.
#ifndef MST_MOE_MOE_GATING_TOP_K_SOFTMAX_GRAD_KERNEL_H_
#define MST_MOE_MOE_GATING_TOP_K_SOFTMAX_GRAD_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "moe/moe_gating_top_k_softmax/moe_gating_top_k_softmax_masks.h"
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
    const int64_t choices = RoundUpOf(tiling->rowsPerTile * tiling->choicePitch, kRepeatFloats);
    pipe->InitBuffer(dyQueue_, tiling->buffers, tiling->rowsPerTile * tiling->dyPitch * sizeof(X));
    pipe->InitBuffer(xQueue_, tiling->buffers, experts * sizeof(X));
    pipe->InitBuffer(expertQueue_, tiling->buffers, choices * sizeof(int32_t));
    if (tiling->hasSoftmax) {
      pipe->InitBuffer(dsoftmaxQueue_, tiling->buffers, experts * sizeof(float));
      pipe->InitBuffer(gradBuf_, experts * sizeof(float));
    }
    pipe->InitBuffer(dxQueue_, tiling->buffers, experts * sizeof(X));
    pipe->InitBuffer(expBuf_, experts * sizeof(float));
    pipe->InitBuffer(foldBuf_, rows * kRepeatFloats * sizeof(float));
    pipe->InitBuffer(dyBuf_, choices * sizeof(float));
    pipe->InitBuffer(isThereBuf_, choices / 8);
    pipe->InitBuffer(rowBeginBuf_, choices * sizeof(int32_t));
    pipe->InitBuffer(expertBuf_, choices * sizeof(int32_t));
    pipe->InitBuffer(offsetBuf_, choices * sizeof(int32_t));
    pipe->InitBuffer(storedBuf_, choices * sizeof(X));
    pipe->InitBuffer(choiceBuf_, choices * sizeof(float));
    pipe->InitBuffer(productBuf_, choices * sizeof(float));
    pipe->InitBuffer(maxBuf_, rows * sizeof(float));
    pipe->InitBuffer(sumBuf_, rows * sizeof(float));
    pipe->InitBuffer(dotBuf_, rows * sizeof(float));
    pipe->InitBuffer(spreadBuf_, rows * kUbBlockBytes);
    pipe->InitBuffer(sumSpreadBuf_, rows * kUbBlockBytes);
    pipe->InitBuffer(workBuf_, MaxWorkFloats(MaxOf(tiling->expertPitch, tiling->choicePitch)) * sizeof(float));
    if (tiling->byMask) {
      pipe->InitBuffer(positionBuf_, choices * sizeof(float));
      pipe->InitBuffer(placeOfRowBuf_, choices * sizeof(float));
      masks_.Init(tiling->rowsPerTile, tiling->expertPitch, pipe);
    }
    FillRows();
  }

  __aicore__ inline void Process() {
    const int64_t tokenEnd = tiling_->T * (GetBlockIdx() + 1) / GetBlockNum();
    for (int64_t token = tiling_->T * GetBlockIdx() / GetBlockNum(); token < tokenEnd; token += tiling_->rowsPerTile) {
      const int64_t rows = MinOf(tiling_->rowsPerTile, tokenEnd - token);
      LocalTensor<int32_t> experts =
          CopyIn(expertQueue_, expertIdxGm_[token * tiling_->k], rows, tiling_->k, tiling_->choicePitch);
      LocalTensor<X> dy = CopyIn(dyQueue_, dyGm_[token * tiling_->k], rows, tiling_->k, tiling_->dyPitch);
      LocalTensor<X> x = CopyIn(xQueue_, xGm_[token * tiling_->E], rows, tiling_->E, tiling_->expertPitch);
      Choices(x, dy, experts, rows);
      dyQueue_.FreeTensor(dy);
      if (tiling_->byMask) expertQueue_.FreeTensor(experts);
      Exponentials(x, rows);
      xQueue_.FreeTensor(x);
      LocalTensor<X> dx = dxQueue_.template AllocTensor<X>();
      Gradient(dx, token, rows);
      if (tiling_->byMask) {
        PlaceByMask(dx, rows);
      } else {
        PlaceOneByOne(dx, experts, rows);
        expertQueue_.FreeTensor(experts);
      }
      dxQueue_.EnQue(dx);
      dx = dxQueue_.template DeQue<X>();
      CopyRowsOut(dxGm_[token * tiling_->E], dx, rows, tiling_->E, tiling_->E, tiling_->expertPitch);
      dxQueue_.FreeTensor(dx);
    }
  }

 private:
  // rowBeginBuf_: first element of each row in a tile, for every choice; placeOfRowBuf_: that in the row's mask.
  __aicore__ inline void FillRows() {
    const int64_t choicePitch = tiling_->choicePitch;
    LocalTensor<int32_t> begin = rowBeginBuf_.Get<int32_t>();
    LocalTensor<float> place = placeOfRowBuf_.Get<float>();
    Duplicate(begin, 0, static_cast<int32_t>(choicePitch));
    if (tiling_->byMask) Duplicate(place, 0.0f, static_cast<int32_t>(choicePitch));
    PipeBarrier<PIPE_V>();
    for (int64_t done = 1; done < tiling_->rowsPerTile; done *= 2) {
      const int64_t elements = done * tiling_->expertPitch;
      const int32_t count = static_cast<int32_t>(MinOf(done, tiling_->rowsPerTile - done) * choicePitch);
      Adds(begin[done * choicePitch], begin, static_cast<int32_t>(elements), count);
      if (tiling_->byMask) {
        Adds(place[done * choicePitch], place, static_cast<float>(elements < kMoeMaskBits ? elements : 0), count);
      }
      PipeBarrier<PIPE_V>();
    }
  }

  template <typename U>
  __aicore__ inline LocalTensor<U> CopyIn(TQue<TPosition::VECIN, 1>& queue, const GlobalTensor<U>& src, int64_t rows,
                                          int64_t cols, int64_t pitch) {
    LocalTensor<U> tile = queue.template AllocTensor<U>();
    CopyRowsIn(tile, src, rows, cols, cols, pitch);
    queue.EnQue(tile);
    return queue.template DeQue<U>();
  }

  // choiceBuf_ = the logits of the choices, offsetBuf_ = where they are in a tile, in bytes, dyBuf_ = dy. Of experts
  // that there are not dy is 0 and the logit, with renorm, as low as can be.
  __aicore__ inline void Choices(const LocalTensor<X>& x, const LocalTensor<X>& dy, const LocalTensor<int32_t>& experts,
                                 int64_t rows) {
    const int32_t count = CountOfChoices(rows);
    LocalTensor<float> dyFloat = dyBuf_.Get<float>();
    LocalTensor<float> choice = choiceBuf_.Get<float>();
    LocalTensor<int32_t> expert = expertBuf_.Get<int32_t>();
    LocalTensor<int32_t> offset = offsetBuf_.Get<int32_t>();
    LocalTensor<uint8_t> isThere = isThereBuf_.Get<uint8_t>();
    LocalTensor<X> stored = storedBuf_.Get<X>();
    LocalTensor<float> position = positionBuf_.Get<float>();
    DyToFloat(dyFloat, dy, rows);
    Maxs(expert, experts, 0, count);
    PipeBarrier<PIPE_V>();
    Mins(expert, expert, static_cast<int32_t>(tiling_->E - 1), count);
    PipeBarrier<PIPE_V>();
    Compare(isThere, experts, expert, CMPMODE::EQ, static_cast<uint32_t>(RoundUpOf(count, kRepeatFloats)));
    Add(offset, expert, rowBeginBuf_.Get<int32_t>(), count);
    if (tiling_->byMask) Cast(position, expert, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
    Select(dyFloat, isThere, dyFloat, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
    Muls(offset, offset, static_cast<int32_t>(sizeof(X)), count);
    if (tiling_->byMask) Add(position, position, placeOfRowBuf_.Get<float>(), count);
    PipeBarrier<PIPE_V>();
    Gather(stored, x, offset.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(count));
    if (tiling_->byMask) {
      Select(position, isThere, position, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
      masks_.Start(position, tiling_->choicePitch, RoundUpOf(rows, masks_.RowsPerMask()));
    }
    PipeBarrier<PIPE_V>();
    StepOfMasks();
    ToFloat(choice, stored, count);
    PipeBarrier<PIPE_V>();
    if (tiling_->renorm) {
      Select(choice, isThere, choice, kLowest, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
      PipeBarrier<PIPE_V>();
    }
  }

  // choiceBuf_ = exp(x - max) of the choices, expBuf_ = that of all experts, of which renorm makes no use,
  // sumSpreadBuf_ = the sum.
  __aicore__ inline void Exponentials(const LocalTensor<X>& x, int64_t rows) {
    LocalTensor<float> exps = expBuf_.Get<float>();
    LocalTensor<float> choice = choiceBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    if (tiling_->renorm) {
      RowReduceKept<true>(maxBuf_.Get<float>(), choice, foldBuf_.Get<float>(), workBuf_.Get<float>(), rows, tiling_->k,
                          tiling_->choicePitch);
      SpreadRows(spread, maxBuf_.Get<float>(), rows);
    } else {
      AllExponentials(exps, x, rows);
    }
    StepOfMasks();
    RowSubSpread(choice, choice, spread, rows, tiling_->k, tiling_->choicePitch);
    StepOfMasks();
    Exp(choice, choice, CountOfChoices(rows));
    PipeBarrier<PIPE_V>();
    StepOfMasks();
    RowReduceKept<false>(sumBuf_.Get<float>(), tiling_->renorm ? choice : exps, foldBuf_.Get<float>(),
                         workBuf_.Get<float>(), rows, tiling_->renorm ? tiling_->k : tiling_->E,
                         tiling_->renorm ? tiling_->choicePitch : tiling_->expertPitch);
    StepOfMasks();
    SpreadRows(sumSpreadBuf_.Get<float>(), sumBuf_.Get<float>(), rows);
  }

  // spreadBuf_ = the maxima
  __aicore__ inline void AllExponentials(const LocalTensor<float>& exps, const LocalTensor<X>& x, int64_t rows) {
    const int64_t pitch = tiling_->expertPitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    LocalTensor<float> logits = exps;
    if constexpr (IsSameType<X, float>::value) {
      logits = x;
    } else {
      StepOfMasks();
      ToFloat(exps, x, count);
      PipeBarrier<PIPE_V>();
    }
    StepOfMasks();
    RowReduceKept<true>(maxBuf_.Get<float>(), logits, foldBuf_.Get<float>(), workBuf_.Get<float>(), rows, tiling_->E,
                        pitch);
    StepOfMasks();
    SpreadRows(spread, maxBuf_.Get<float>(), rows);
    StepOfMasks();
    RowSubSpread(exps, logits, spread, rows, tiling_->E, pitch);
    Exp(exps, exps, count);
  }

  // dx as if dy were 0 in it; productBuf_ = that of the choices.
  __aicore__ inline void Gradient(const LocalTensor<X>& dx, int64_t token, int64_t rows) {
    const int64_t k = tiling_->k;
    const int64_t choicePitch = tiling_->choicePitch;
    const int32_t choices = CountOfChoices(rows);
    LocalTensor<float> choiceGrad = dyBuf_.Get<float>();
    LocalTensor<float> product = productBuf_.Get<float>();
    LocalTensor<float> dot = dotBuf_.Get<float>();
    LocalTensor<float> sum = sumBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    Mul(product, choiceGrad, choiceBuf_.Get<float>(), choices);
    PipeBarrier<PIPE_V>();
    RowSum(dot, product, workBuf_.Get<float>(), rows, k, choicePitch);
    if (tiling_->hasSoftmax) AddSoftmax(token, rows);
    Div(dot, dot, sum, static_cast<int32_t>(rows));
    PipeBarrier<PIPE_V>();
    SpreadRows(spread, dot, rows);
    Muls(dot, dot, -1.0f, static_cast<int32_t>(rows));
    RowSubSpread(choiceGrad, choiceGrad, spread, rows, k, choicePitch);
    Div(dot, dot, sum, static_cast<int32_t>(rows));
    RowDivSpread(choiceGrad, choiceGrad, sumSpreadBuf_.Get<float>(), rows, k, choicePitch);
    Mul(product, choiceGrad, choiceBuf_.Get<float>(), choices);
    if (tiling_->renorm) {
      Duplicate(dx, static_cast<X>(0.0f), static_cast<int32_t>(rows * tiling_->expertPitch));
      PipeBarrier<PIPE_V>();
    } else {
      GradientOfOthers(dx, rows);
    }
  }

  // dotBuf_ = -sum(g * p) / sum, spreadBuf_ = sum(g * p)
  __aicore__ inline void GradientOfOthers(const LocalTensor<X>& dx, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t pitch = tiling_->expertPitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> exps = expBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    LocalTensor<float> result = exps;
    if constexpr (IsSameType<X, float>::value) result = dx;
    if (tiling_->hasSoftmax) {
      LocalTensor<float> grad = gradBuf_.Get<float>();
      RowSubSpread(grad, grad, spread, rows, E, pitch);
      RowDivSpread(grad, grad, sumSpreadBuf_.Get<float>(), rows, E, pitch);
      Mul(result, exps, grad, count);
      PipeBarrier<PIPE_V>();
    } else {
      SpreadRows(spread, dotBuf_.Get<float>(), rows);
      RowMulSpread(result, exps, spread, rows, E, pitch);
    }
    if constexpr (!IsSameType<X, float>::value) {
      Cast(dx, exps, RoundMode::CAST_RINT, static_cast<uint32_t>(count));  // barriers follow before it is used
    }
  }

  // gradBuf_ = dsoftmax, which is added to dyBuf_ and, times exponentials, to dotBuf_.
  __aicore__ inline void AddSoftmax(int64_t token, int64_t rows) {
    const int32_t choices = CountOfChoices(rows);
    const int32_t count = static_cast<int32_t>(rows * tiling_->expertPitch);
    LocalTensor<float> grad = gradBuf_.Get<float>();
    LocalTensor<float> dot = dotBuf_.Get<float>();
    LocalTensor<float> added = maxBuf_.Get<float>();
    LocalTensor<float> choiceGrad = dyBuf_.Get<float>();
    LocalTensor<float> gathered = productBuf_.Get<float>();
    LocalTensor<int32_t> offset = offsetBuf_.Get<int32_t>();
    LocalTensor<float> dsoftmax =
        CopyIn(dsoftmaxQueue_, dsoftmaxGm_[token * tiling_->E], rows, tiling_->E, tiling_->expertPitch);
    Mul(grad, dsoftmax, expBuf_.Get<float>(), count);
    Muls(offset, offset, static_cast<int32_t>(sizeof(float) / sizeof(X)), choices);
    PipeBarrier<PIPE_V>();
    RowSum(added, grad, workBuf_.Get<float>(), rows, tiling_->E, tiling_->expertPitch);
    Add(dot, dot, added, static_cast<int32_t>(rows));
    Gather(gathered, dsoftmax, offset.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(choices));
    Muls(grad, dsoftmax, 1.0f, count);
    PipeBarrier<PIPE_V>();
    dsoftmaxQueue_.FreeTensor(dsoftmax);
    Add(choiceGrad, choiceGrad, gathered, choices);  // barriers follow before it is used
  }

  // Towards the masks of the first choices, beside other work. A barrier belongs between two of these.
  __aicore__ inline void StepOfMasks() {
    if (tiling_->byMask) masks_.Step();
  }

  __aicore__ inline void PlaceByMask(const LocalTensor<X>& dx, int64_t rows) {
    for (int64_t first = 0; first < tiling_->k; first += kMoeChoicesAtOnce) {
      if (first > 0) {
        masks_.Start(positionBuf_.Get<float>()[first], tiling_->choicePitch, RoundUpOf(rows, masks_.RowsPerMask()));
      }
      masks_.Finish();
      masks_.Place(dx, productBuf_.Get<float>()[first], MinOf(kMoeChoicesAtOnce, tiling_->k - first));
    }
  }

  __aicore__ inline void PlaceOneByOne(const LocalTensor<X>& dx, const LocalTensor<int32_t>& experts, int64_t rows) {
    LocalTensor<X> value = storedBuf_.Get<X>();
    if constexpr (IsSameType<X, float>::value) {
      value = productBuf_.Get<float>();
    } else {
      Cast(value, productBuf_.Get<float>(), RoundMode::CAST_RINT, static_cast<uint32_t>(CountOfChoices(rows)));
    }
    WaitPipe<HardEvent::V_S>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < tiling_->k; ++j) {
        const int64_t expert = experts.GetValue(row * tiling_->choicePitch + j);
        if (expert < 0 || expert >= tiling_->E) continue;
        dx.SetValue(row * tiling_->expertPitch + expert, value.GetValue(row * tiling_->choicePitch + j));
      }
    }
    WaitPipe<HardEvent::S_V>();  // for which EnQue and FreeTensor make the copies wait
  }

  __aicore__ inline void DyToFloat(const LocalTensor<float>& dst, const LocalTensor<X>& dy, int64_t rows) {
    if (tiling_->dyPitch == tiling_->choicePitch) {
      ToFloat(dst, dy, static_cast<int32_t>(rows * tiling_->choicePitch));
    } else if constexpr (!IsSameType<X, float>::value) {
      const UnaryRepeatParams params(1, 1, static_cast<uint8_t>(tiling_->choicePitch / kBlockFloats),
                                     static_cast<uint8_t>(tiling_->dyPitch * sizeof(X) / kUbBlockBytes));
      for (int64_t col = 0; col < tiling_->choicePitch; col += kRepeatFloats) {
        const uint64_t mask = MinOf(kRepeatFloats, tiling_->choicePitch - col);
        Cast(dst[col], dy[col], RoundMode::CAST_NONE, mask, static_cast<uint8_t>(rows), params);
      }
    }
  }

  // Of rows of choices, with those that share a mask with one of them.
  __aicore__ inline int32_t CountOfChoices(int64_t rows) const {
    if (tiling_->byMask) rows = RoundUpOf(rows, masks_.RowsPerMask());
    return static_cast<int32_t>(rows * tiling_->choicePitch);
  }

  __aicore__ inline void ToFloat(const LocalTensor<float>& dst, const LocalTensor<X>& src, int32_t count) {
    if constexpr (IsSameType<X, float>::value) {
      Muls(dst, src, 1.0f, count);
    } else {
      Cast(dst, src, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
    }
  }

  static constexpr float kLowest = -3.402823466e38f;

  const MoeGatingTopKSoftmaxGradTilingData* tiling_;
  GlobalTensor<X> dyGm_, xGm_, dxGm_;
  GlobalTensor<int32_t> expertIdxGm_;
  GlobalTensor<float> dsoftmaxGm_;
  TQue<TPosition::VECIN, 1> dyQueue_, xQueue_, expertQueue_, dsoftmaxQueue_;
  TQue<TPosition::VECOUT, 1> dxQueue_;
  TBuf<TPosition::VECCALC> expBuf_, foldBuf_, gradBuf_, dyBuf_, isThereBuf_, rowBeginBuf_, expertBuf_, offsetBuf_,
      storedBuf_, choiceBuf_, productBuf_, maxBuf_, sumBuf_, dotBuf_, spreadBuf_, sumSpreadBuf_, workBuf_, positionBuf_,
      placeOfRowBuf_;
  MoeChoiceMasks<X> masks_;
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
