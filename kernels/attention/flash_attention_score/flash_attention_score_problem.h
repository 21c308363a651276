// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// From the arguments of FlashAttentionScore or its gradient to the problem that both share.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_PROBLEM_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_PROBLEM_H_

#include "attention/flash_attention_score/flash_attention_score_tiling.h"
#include "common/op_args.h"

namespace mst {

inline long L(int64_t value) { return static_cast<long>(value); }  // for %ld in the texts of errors

// Checks everything that shapes, attributes and the values known so far tell. With dims that are not known yet only
// what does not need them is checked, and `problem` must not be used.
Status FlashAttentionProblemOf(const OpArgs& args, FlashAttentionScoreProblem* problem);

// The query rows and keys of each sequence of the batch.
struct FlashLengths {
  int64_t rows;
  int64_t keys;
};
FlashLengths FlashLengthsOf(const FlashAttentionScoreProblem& problem, int64_t sequence);
// The most rows and the most keys of any sequence.
FlashLengths FlashLongestOf(const FlashAttentionScoreProblem& problem);

// Packed sequences come with where each ends; other layouts have no lengths. Part of FlashAttentionProblemOf.
Status FlashReadLengths(const OpArgs& args, FlashAttentionScoreProblem* problem);

// Rules of sparse_mode, the token limits and prefix; part of FlashAttentionProblemOf.
Status FlashCheckBand(const OpArgs& args, FlashAttentionScoreProblem* problem);

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_PROBLEM_H_
