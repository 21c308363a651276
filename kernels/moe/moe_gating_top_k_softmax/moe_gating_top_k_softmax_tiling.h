// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_MOE_MOE_GATING_TOP_K_SOFTMAX_TILING_H_
#define MST_MOE_MOE_GATING_TOP_K_SOFTMAX_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

constexpr int32_t kMoeSortUnit = 32;                   // elements that one sort takes
constexpr int32_t kMoeShortChoice = kMoeSortUnit / 2;  // up to this k a sort takes the heads of two lists or more
constexpr int32_t kMoeMaskBits = 256;                  // elements that one mask is for: a block
constexpr int32_t kMoeChoicesAtOnce = 8;               // of a row for which there are masks

struct MoeGatingTopKSoftmaxProblem {
  int64_t T;       // tokens
  int64_t E;       // experts
  int64_t k;       // experts chosen per token
  int64_t xBytes;  // bytes of one element of x
  bool renorm;     // softmax over the chosen logits only
  bool hasFinished;
  bool hasSoftmax;  // softmax_result is wanted
};

struct MoeGatingTopKSoftmaxTilingData {
  TilingHead head;
  int64_t T;            // tokens; core i owns [i * T / cores, (i + 1) * T / cores)
  int64_t E;            // experts
  int64_t k;            // experts chosen per token
  int64_t rowsPerTile;  // tokens
  int64_t expertPitch;  // elements between rows of E in UB: a multiple of the 32 that one sort takes
  int64_t choicePitch;  // elements between rows of k in UB
  int32_t renorm;       // 1: softmax over the chosen logits only
  int32_t hasFinished;
  int32_t hasSoftmax;  // 1: softmax_result is wanted
  int32_t sortsAgain;  // 1: the heads of the sorted lists of a row are sorted again; 0: the lists are merged
  int32_t buffers;     // buffers per queue
};

struct MoeGatingTopKSoftmaxGradProblem {
  int64_t T;        // tokens
  int64_t E;        // experts
  int64_t k;        // experts chosen per token
  int64_t xBytes;   // bytes of one element of x
  bool renorm;      // softmax over the chosen logits only
  bool hasSoftmax;  // there is a gradient of softmax_result
};

struct MoeGatingTopKSoftmaxGradTilingData {
  TilingHead head;
  int64_t T;            // tokens; core i owns [i * T / cores, (i + 1) * T / cores)
  int64_t E;            // experts
  int64_t k;            // experts chosen per token
  int64_t rowsPerTile;  // tokens
  int64_t expertPitch;  // elements between rows of E in UB
  int64_t dyPitch;      // elements between rows of dy in UB
  int64_t choicePitch;  // elements between rows of k numbers of 32 bits in UB
  int32_t renorm;       // 1: softmax over the chosen logits only
  int32_t hasSoftmax;   // 1: there is a gradient of softmax_result
  int32_t byMask;       // 1: masks put the results of the choices in their place; 0: the scalar unit does
  int32_t buffers;      // buffers per queue
};

}  // namespace mst

#endif  // MST_MOE_MOE_GATING_TOP_K_SOFTMAX_TILING_H_
