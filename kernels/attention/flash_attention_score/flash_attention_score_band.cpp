// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "attention/flash_attention_score/flash_attention_score_band.h"

#include <algorithm>

#include "attention/flash_attention_score/flash_attention_score_problem.h"

namespace mst {
namespace {

// A band without any pair is a mistake of the caller. Packed sequences may each miss it.
Status CheckTokens(const OpArgs& args, const FlashAttentionScoreShape& s) {
  const bool usesBand = s.sparseMode == 4 || s.sparseMode >= 7 || (s.sparseMode == 0 && s.hasMask != 0);
  if (!usesBand) return Status::Ok();
  if (s.preTokens + s.nextTokens < 0) {
    return ValueErrorFor(args, "the sum of 'pre_tokens' and 'next_tokens' must be at least 0, but got %ld and %ld.",
                         L(s.preTokens), L(s.nextTokens));
  }
  if (s.packed != 0 || s.Sq == 0 || s.Skv == 0) return Status::Ok();
  const FlashBand band = FlashBandOf(s, 0, s.Sq, s.Skv, 0);
  if (band.first < s.Skv && band.last > -s.Sq) return Status::Ok();
  return ValueErrorFor(args,
                       "'pre_tokens' and 'next_tokens' must leave a pair of %ld queries and %ld keys, but got %ld "
                       "and %ld.",
                       L(s.Sq), L(s.Skv), L(s.preTokens), L(s.nextTokens));
}

// Modes 7 and 8: one sequence has the band, the others are causal. Needs the lengths.
Status ReadBandSequence(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  if (s.sparseMode < 7) return Status::Ok();
  if (s.packed == 0) {
    return ValueErrorFor(args, "input_layout must be 'TND' with sparse_mode %d, but got '%s'.", s.sparseMode,
                         args.Str("input_layout").c_str());
  }
  if (problem->qEnds == nullptr || problem->kvEnds == nullptr) return Status::Ok();
  for (int64_t b = 0; b < s.B; ++b) {
    if (FlashLengthsOf(*problem, b).rows == 0) continue;
    if (s.bandSequence < 0 || s.sparseMode == 7) s.bandSequence = b;
  }
  for (int64_t b = 0; b < s.B; ++b) {
    const FlashLengths lengths = FlashLengthsOf(*problem, b);
    if (b == s.bandSequence) {
      const int64_t leastNext = lengths.rows - lengths.keys;
      if (s.preTokens < lengths.keys) {
        return ValueErrorFor(args,
                             "'pre_tokens' must be at least %ld, the keys of sequence %ld, with sparse_mode %d, "
                             "but got %ld.",
                             L(lengths.keys), L(b), s.sparseMode, L(s.preTokens));
      }
      if (s.nextTokens < leastNext) {
        return ValueErrorFor(args,
                             "'next_tokens' must be at least %ld, queries less keys of sequence %ld, with "
                             "sparse_mode %d, but got %ld.",
                             L(leastNext), L(b), s.sparseMode, L(s.nextTokens));
      }
      if (s.sparseMode == 7 && s.nextTokens > 0) {
        return ValueErrorFor(args, "'next_tokens' must be at most 0 with sparse_mode 7, but got %ld.", L(s.nextTokens));
      }
    } else if (s.sparseMode == 7 && lengths.rows > lengths.keys) {
      return ValueErrorFor(args,
                           "sequence %ld must have at most as many queries as keys (%ld) with sparse_mode 7, but "
                           "got %ld.",
                           L(b), L(lengths.keys), L(lengths.rows));
    }
  }
  return Status::Ok();
}

Status ReadPrefix(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  const bool wantsPrefix = s.sparseMode == 5 || s.sparseMode == 6;
  s.hasPrefix = wantsPrefix;
  if (!wantsPrefix) {
    if (!args.Has("prefix")) return Status::Ok();
    return ValueErrorFor(args, "'prefix' must be None with sparse_mode %d, but got a Tensor.", s.sparseMode);
  }
  if (s.sparseMode == 5 && s.packed != 0) {
    return ValueErrorFor(args, "input_layout must be another than 'TND' with sparse_mode 5, but got 'TND'.");
  }
  if (!args.Has("prefix")) {
    return ValueErrorFor(args, "'prefix' must be given with sparse_mode %d, but got None.", s.sparseMode);
  }
  const Shape& shape = args.Input("prefix").shape;
  if (shape != Shape{s.B}) {
    return ValueErrorFor(args, "shape of 'prefix' must be [%ld], but got %s.", L(s.B), ToString(shape).c_str());
  }
  const bool knowsLengths = s.packed == 0 || (problem->qEnds != nullptr && problem->kvEnds != nullptr);
  problem->prefix = static_cast<HostInt64>(args.Input("prefix").data);
  if (problem->prefix == nullptr || !knowsLengths) return Status::Ok();
  for (int64_t b = 0; b < s.B; ++b) {
    const FlashLengths lengths = FlashLengthsOf(*problem, b);
    const int64_t least = std::max<int64_t>(0, lengths.keys - lengths.rows);
    if (problem->prefix[b] >= least && problem->prefix[b] <= lengths.keys) continue;
    return ValueErrorFor(args, "element %ld of 'prefix' must be from %ld to %ld, but got %ld.", L(b), L(least),
                         L(lengths.keys), L(problem->prefix[b]));
  }
  return Status::Ok();
}

// The one mask of all packed sequences must cover the longest.
Status CheckPackedMask(const OpArgs& args, const FlashAttentionScoreProblem& problem) {
  const FlashAttentionScoreShape& s = problem.shape;
  if (s.packed == 0 || s.hasMask == 0 || problem.qEnds == nullptr || problem.kvEnds == nullptr) return Status::Ok();
  for (int64_t b = 0; b < s.B; ++b) {
    const FlashLengths lengths = FlashLengthsOf(problem, b);
    if (lengths.rows <= s.maskRows && lengths.keys <= s.maskRow) continue;
    return ValueErrorFor(args, "shape of 'attn_mask' must be at least [%ld, %ld] for sequence %ld, but got [%ld, %ld].",
                         L(lengths.rows), L(lengths.keys), L(b), L(s.maskRows), L(s.maskRow));
  }
  return Status::Ok();
}

}  // namespace

Status FlashCheckBand(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  MST_RETURN_IF_ERROR(CheckTokens(args, problem->shape));
  MST_RETURN_IF_ERROR(ReadBandSequence(args, problem));
  MST_RETURN_IF_ERROR(ReadPrefix(args, problem));
  return CheckPackedMask(args, *problem);
}

}  // namespace mst
