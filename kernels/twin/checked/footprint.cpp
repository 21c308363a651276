// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "footprint.h"

#include <algorithm>

namespace AscendC {
namespace check {
namespace {

constexpr int64_t kRepeatLanes = 128;

void Add(Spans* spans, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!spans->empty() && spans->back().begin <= begin && begin <= spans->back().end) {
    spans->back().end = std::max(spans->back().end, end);
  } else {
    spans->push_back({begin, end});
  }
}

// Calls fn(lane, begin, end) for runs of bytes that adjoin.
template <typename Fn>
void ForEachRun(const Operand& o, const Range& range, int64_t first, const Fn& fn) {
  if (o.walk == Operand::Walk::kRun) {
    fn(0, first, first + o.elements * o.elementBytes);
  } else if (o.walk == Operand::Walk::kBlocks) {
    for (int64_t i = 0; i < o.blocks; ++i) {
      const int64_t begin = first + i * (o.bytes + o.gapBytes);
      fn(i << 32, begin, begin + o.bytes);
    }
  } else if (range.count >= 0) {
    fn(0, first, first + range.count * o.elementBytes);
  } else {
    const int64_t lanesPerBlock = kBlock / o.elementBytes;
    for (int r = 0; r < range.repeat; ++r) {
      const int64_t base = first + r * o.rep * kBlock;
      if (range.bits == nullptr && o.blk == 1) {
        fn(r * kRepeatLanes, base, base + (range.lastLane + 1) * o.elementBytes);
        continue;
      }
      for (int64_t lane = 0; lane <= range.lastLane; ++lane) {
        if (range.bits != nullptr && (range.bits[lane / 64] >> lane % 64 & 1) == 0) continue;
        const int64_t at = base + lane / lanesPerBlock * o.blk * kBlock + lane % lanesPerBlock * o.elementBytes;
        fn(r * kRepeatLanes + lane, at, at + o.elementBytes);
      }
    }
  }
}

}  // namespace

int64_t ExtentOf(const Operand& o, const Range& range) {
  if (o.walk == Operand::Walk::kRun) return o.elements * o.elementBytes;
  if (o.walk == Operand::Walk::kBlocks) return (o.blocks - 1) * (o.bytes + o.gapBytes) + o.bytes;
  if (range.count >= 0) return range.count * o.elementBytes;
  if (range.repeat == 0 || range.lastLane < 0) return 0;
  const int64_t lane = range.lastLane * o.elementBytes;
  return (range.repeat - 1) * o.rep * kBlock + lane / kBlock * o.blk * kBlock + lane % kBlock + o.elementBytes;
}

void SpansOf(const Operand& o, const Range& range, uint64_t base, Spans* spans) {
  spans->clear();
  ForEachRun(o, range, static_cast<int64_t>(o.address - base),
             [spans](int64_t /*lane*/, int64_t begin, int64_t end) { Add(spans, begin, end); });
  SortAndMerge(spans);
}

void PiecesOf(const Operand& o, const Range& range, uint64_t base, std::vector<Piece>* pieces) {
  pieces->clear();
  ForEachRun(o, range, static_cast<int64_t>(o.address - base), [pieces](int64_t lane, int64_t begin, int64_t end) {
    if (begin < end) pieces->push_back({lane, {begin, end}});
  });
}

void SortAndMerge(Spans* spans) {
  const auto before = [](const Span& a, const Span& b) { return a.end < b.begin; };
  bool inOrder = true;
  for (size_t i = 1; i < spans->size(); ++i) inOrder = inOrder && before((*spans)[i - 1], (*spans)[i]);
  if (inOrder) return;
  std::sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  const Spans all = *spans;
  spans->clear();
  for (const Span& span : all) Add(spans, span.begin, span.end);
}

}  // namespace check
}  // namespace AscendC
