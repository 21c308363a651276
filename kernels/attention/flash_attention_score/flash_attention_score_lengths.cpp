// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "attention/flash_attention_score/flash_attention_score_problem.h"

namespace mst {
namespace {

// int64 values that the host can read, or nullptr.
HostInt64 HostOf(const TensorArg& arg) {
  return arg.dtype == DType::kInt64 ? static_cast<HostInt64>(arg.data) : nullptr;
}

Status CheckEnds(const OpArgs& args, const char* name, int64_t count, int64_t tokens) {
  const HostInt64 ends = HostOf(args.Input(name));
  if (ends == nullptr) return Status::Ok();
  int64_t last = 0;
  for (int64_t b = 0; b < count; ++b) {
    if (ends[b] < last) {
      return ValueErrorFor(args, "'%s' must be cumulative and not decrease, but element %ld is %ld after %ld.", name,
                           L(b), L(ends[b]), L(last));
    }
    last = ends[b];
  }
  if (last == tokens) return Status::Ok();
  return ValueErrorFor(args, "the last element of '%s' must be %ld, the number of tokens, but got %ld.", name,
                       L(tokens), L(last));
}

}  // namespace

FlashLengths FlashLengthsOf(const FlashAttentionScoreProblem& problem, int64_t b) {
  const FlashAttentionScoreShape& s = problem.shape;
  if (s.packed == 0) return {s.Sq, s.Skv};
  if (b == 0) return {problem.qEnds[0], problem.kvEnds[0]};
  return {problem.qEnds[b] - problem.qEnds[b - 1], problem.kvEnds[b] - problem.kvEnds[b - 1]};
}

FlashLengths FlashLongestOf(const FlashAttentionScoreProblem& problem) {
  FlashLengths longest = {0, 0};
  for (int64_t b = 0; b < (problem.shape.packed != 0 ? problem.shape.B : std::min<int64_t>(1, problem.shape.B)); ++b) {
    const FlashLengths lengths = FlashLengthsOf(problem, b);
    longest = {std::max(longest.rows, lengths.rows), std::max(longest.keys, lengths.keys)};
  }
  return longest;
}

Status FlashReadLengths(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  const char* const names[] = {"actual_seq_qlen", "actual_seq_kvlen"};
  for (const char* name : names) {
    if (args.Has(name) == (s.packed != 0)) continue;
    return ValueErrorFor(args,
                         s.packed != 0 ? "'%s' must be given with input_layout 'TND', but got None."
                                       : "'%s' must be None unless input_layout is 'TND', but got a Tensor.",
                         name);
  }
  if (s.packed == 0) return Status::Ok();
  const Shape& q = args.Input(names[0]).shape;
  const Shape& kv = args.Input(names[1]).shape;
  if (q.size() != 1 || kv.size() != 1) {
    return ValueErrorFor(args, "rank of '%s' must be 1, but got %zu.", names[q.size() == 1],
                         q.size() == 1 ? kv.size() : q.size());
  }
  if (q[0] == 0 && s.Sq != 0) {
    return ValueErrorFor(args, "'%s' must not be empty with %ld tokens, but got [].", names[0], L(s.Sq));
  }
  if (q[0] != kv[0]) {
    return ValueErrorFor(args, "'%s' must have as many elements as there are sequences (%ld), but got %ld.", names[1],
                         L(q[0]), L(kv[0]));
  }
  if (kv[0] == 0 && s.Skv != 0) {
    return ValueErrorFor(args, "'%s' must not be empty with %ld tokens, but got [].", names[1], L(s.Skv));
  }
  s.B = q[0];
  MST_RETURN_IF_ERROR(CheckEnds(args, names[0], s.B, s.Sq));
  MST_RETURN_IF_ERROR(CheckEnds(args, names[1], s.B, s.Skv));
  problem->qEnds = HostOf(args.Input(names[0]));
  problem->kvEnds = HostOf(args.Input(names[1]));
  return Status::Ok();
}

}  // namespace mst
