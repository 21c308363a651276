// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// gamma as floats in UB, all of it or a tile at a time. UB: gamma as stored (queue), for 16-bit types a float copy.
#ifndef MST_POSEMBEDDING_RMS_NORM_GAMMA_H_
#define MST_POSEMBEDDING_RMS_NORM_GAMMA_H_

#include "common/kernel_util.h"
#include "kernel_operator.h"

namespace mst {

using namespace AscendC;

template <typename G>
class RmsNormGamma {
 public:
  // `room`: elements that are in UB at a time.
  __aicore__ inline void Init(GM_ADDR gamma, int64_t room, TPipe* pipe) {
    room_ = room;
    gammaGm_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(gamma));
    pipe->InitBuffer(queue_, 1, room * sizeof(G));
    if constexpr (!IsSameType<G, float>::value) pipe->InitBuffer(floatBuf_, room * sizeof(float));
  }

  // Columns [col, col + cols), until they are given back with Free.
  __aicore__ inline LocalTensor<float> Load(int64_t col, int64_t cols) {
    LocalTensor<G> gamma = queue_.template AllocTensor<G>();
    CopyRowsIn(gamma, gammaGm_[col], 1, cols, cols, room_);
    queue_.EnQue(gamma);
    gamma = queue_.template DeQue<G>();
    if constexpr (IsSameType<G, float>::value) {
      return gamma;
    } else {
      LocalTensor<float> gammaFloat = floatBuf_.Get<float>();
      Cast(gammaFloat, gamma, RoundMode::CAST_NONE, cols);
      PipeBarrier<PIPE_V>();
      queue_.FreeTensor(gamma);
      return gammaFloat;
    }
  }

  __aicore__ inline void Free(LocalTensor<float>& gamma) {
    if constexpr (IsSameType<G, float>::value) queue_.FreeTensor(gamma);
  }

 private:
  int64_t room_;
  GlobalTensor<G> gammaGm_;
  TQue<TPosition::VECIN, 1> queue_;
  TBuf<TPosition::VECCALC> floatBuf_;
};

}  // namespace mst

#endif  // MST_POSEMBEDDING_RMS_NORM_GAMMA_H_
