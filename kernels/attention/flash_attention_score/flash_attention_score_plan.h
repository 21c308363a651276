// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the tiling functions of FlashAttentionScore and its gradient have in common, on the host side.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_PLAN_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_PLAN_H_

#include <string>

#include "attention/flash_attention_score/flash_attention_score_problem.h"

namespace mst {

constexpr int64_t kFlashPadFloats = 16;         // keeps the rows of a tile from falling on the same cache sets
constexpr int64_t kFlashMaxDenseRows = 1024;    // rows that are brought together in the workspace first
constexpr int64_t kFlashMinCoreWork = 1 << 20;  // fewer multiplications than this do not pay for waking another core
constexpr int64_t kFlashHeadPad = 16;           // elements: a block of any dtype, and a fractal

// A plan needs the lengths and prefixes themselves. `op`: class name, for the error.
inline Status FlashCheckReadable(const char* op, const FlashAttentionScoreProblem& p) {
  const bool readable = (p.shape.packed == 0 || (p.qEnds != nullptr && p.kvEnds != nullptr)) &&
                        (p.shape.hasPrefix == 0 || p.prefix != nullptr);
  if (p.shape.B == 0 || readable) return Status::Ok();
  return Status::ValueError(std::string("For '") + op +
                            "', lengths and 'prefix' must be readable by the host, but got shapes only.");
}

// Sizes of the pieces that a tiling tries in turn.
struct FlashCandidate {
  int32_t qRows;
  int32_t kvCols;
  int32_t stripRows;
};

// Bytes of the unified buffer that the FlashScoreStrip and the FlashDropout of a kernel take. `softmaxBytes`: of the
// former's work strip.
inline int64_t FlashStripBytes(const FlashAttentionScoreProblem& p, const FlashCandidate& c, int64_t softmaxBytes) {
  const FlashAttentionScoreShape& s = p.shape;
  const int64_t strip = int64_t{c.stripRows} * c.kvCols;
  const bool readsPse = s.pseType == 0 || s.pseType == 1;
  const int64_t index = FlashNeedsIndex(s) ? strip * 4 : 0;
  const int64_t work = int64_t{FlashWorkFloats(s, c.stripRows, c.kvCols)} * 4 + softmaxBytes;
  const int64_t bits = 2 * strip / 8;
  const int64_t raw = readsPse ? strip * p.elementBytes : s.hasMask != 0 ? strip : 0;
  const int64_t maskBits = (3 * c.stripRows + 1) * int64_t{FlashDropRowBytes(c.kvCols)};
  const int64_t dropout = s.dropKind == 1 ? maskBits : s.dropKind == 2 ? FlashGeneratorBytes(c.kvCols) : 0;
  return index + work + bits + raw + dropout;
}

// Bytes of L1 for what a vector core brings there beside the left operands of all Matmul objects, `leftBytes`. On the
// card two vector cores share the L1 of a cube core, which has the buffers of both.
inline int64_t FlashL1Bytes(const Platform& platform, int64_t leftBytes) { return (platform.l1Bytes - leftBytes) / 2; }

// No piece of key and value is small enough for L1. `op`: class name.
inline Status FlashTooWide(const char* op, const FlashAttentionScoreShape& s, const Platform& platform) {
  return Status::ValueError("For '" + std::string(op) + "', the head dims of 'query' and 'value' must fit L1 of " +
                            platform.soc + " together, but are " + std::to_string(s.D) + " and " +
                            std::to_string(s.Dv) + ".");
}

// Cuts units, added one by one in the order in which the kernel counts them, into ranges of equal cost.
class FlashUnitRanges {
 public:
  // `total`: the cost of all units; `unitBegin`: room for cores + 1.
  FlashUnitRanges(int32_t cores, int64_t total, int64_t* unitBegin)
      : cores_(cores), total_(total), unitBegin_(unitBegin) {
    unitBegin_[0] = 0;
  }

  void Add(int64_t cost) {
    // A unit belongs to the core in whose share its middle lies.
    while (core_ + 1 < cores_ && (sum_ + cost / 2) * cores_ >= total_ * (core_ + 1)) unitBegin_[++core_] = unit_;
    sum_ += cost;
    ++unit_;
  }

  // After the last unit.
  void End() {
    while (core_ < cores_) unitBegin_[++core_] = unit_;
  }

 private:
  int32_t cores_;
  int64_t total_;
  int64_t* unitBegin_;
  int32_t core_ = 0;
  int64_t unit_ = 0;
  int64_t sum_ = 0;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_PLAN_H_
