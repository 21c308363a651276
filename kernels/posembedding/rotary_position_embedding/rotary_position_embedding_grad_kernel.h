// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The gradient of x: the forward's kernel with the other second table.
#ifndef MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_GRAD_KERNEL_H_
#define MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_GRAD_KERNEL_H_

#include "posembedding/rotary_position_embedding/rotary_position_embedding_kernel.h"

namespace mst {

template <typename X, typename T>
__aicore__ inline void RotaryPositionEmbeddingGradRun(GM_ADDR dy, GM_ADDR cos, GM_ADDR sin, GM_ADDR dx,
                                                      GM_ADDR workspace,
                                                      const RotaryPositionEmbeddingGradTilingData* tiling) {
  TPipe pipe;
  RotaryPositionEmbeddingKernel<X, T, true> kernel;
  kernel.Init(dy, cos, sin, dx, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_GRAD_KERNEL_H_
