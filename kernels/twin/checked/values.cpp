// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>

namespace AscendC {
namespace check {
namespace {

// Bytes of a lane: what a copy moves has no elements.
int64_t LaneBytes(const Operand& operand) { return operand.walk == Operand::Walk::kBlocks ? 1 : operand.elementBytes; }

}  // namespace

void LostLanes::Read(const char* name, const Place& place, const Range& range, bool isRefused) {
  thread_local std::vector<Piece> pieces;
  Spans lost;
  const int64_t laneBytes = LaneBytes(place.operand);
  PiecesOf(place.operand, range, place.base, &pieces);
  for (const Piece& piece : pieces) {
    lost.clear();
    place.shadow->FindUndefined(piece.span, &lost);
    for (const Span& span : lost) {
      if (place.gm != nullptr && IsPublished(CheckedCore(), *place.gm, span)) continue;
      if (isRefused) {
        Violation(name, "reads bytes [%ld, %ld) of %s, which were never written", static_cast<long>(span.begin),
                  static_cast<long>(span.end), place.memory);
      }
      lanes_.push_back({piece.lane + (span.begin - piece.span.begin) / laneBytes,
                        piece.lane + (span.end - piece.span.begin + laneBytes - 1) / laneBytes});
    }
  }
  SortAndMerge(&lanes_);
}

void LostLanes::Write(const char* name, const Place& place, const Range& range) const {
  thread_local std::vector<Piece> pieces;
  Spans lost;
  const Operand& o = place.operand;
  const int64_t laneBytes = LaneBytes(o);
  PiecesOf(o, range, place.base, &pieces);
  for (const Piece& piece : pieces) {
    if (o.tail > 0) lost.push_back({std::max(piece.span.begin, piece.span.end - o.tail), piece.span.end});
    const int64_t end = piece.lane + (piece.span.end - piece.span.begin) / laneBytes;
    for (auto lanes = std::upper_bound(lanes_.begin(), lanes_.end(), piece.lane,
                                       [](int64_t lane, const Span& span) { return lane < span.end; });
         lanes != lanes_.end() && lanes->begin < end; ++lanes) {
      lost.push_back({piece.span.begin + (std::max(lanes->begin, piece.lane) - piece.lane) * laneBytes,
                      piece.span.begin + (std::min(lanes->end, end) - piece.lane) * laneBytes});
    }
  }
  if (lost.empty()) return;
  SortAndMerge(&lost);
  if (place.gm != nullptr && place.gm->role != mst::GmRole::kWorkspace) {
    Violation(name, "writes bytes [%ld, %ld) of '%s' from memory that was never written",
              static_cast<long>(lost[0].begin), static_cast<long>(lost[0].end), place.memory);
  }
  place.shadow->Undefine(lost);
}

}  // namespace check
}  // namespace AscendC
