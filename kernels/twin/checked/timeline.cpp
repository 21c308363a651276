// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <algorithm>

namespace AscendC {
namespace check {
namespace {

struct Ends {
  Lane source;
  Lane target;
};

// In the order of HardEvent.
constexpr Ends kEnds[] = {
    {kCopyIn, kCube},     // MTE2_MTE1
    {kCube, kCopyIn},     // MTE1_MTE2
    {kCube, kCube},       // MTE1_M
    {kCube, kCube},       // M_MTE1
    {kCopyIn, kVector},   // MTE2_V
    {kVector, kCopyIn},   // V_MTE2
    {kCopyOut, kVector},  // MTE3_V
    {kVector, kCopyOut},  // V_MTE3
    {kCube, kVector},     // M_V
    {kVector, kCube},     // V_M
    {kVector, kVector},   // V_V
    {kCopyOut, kCube},    // MTE3_MTE1
    {kCube, kCopyOut},    // MTE1_MTE3
    {kCube, kVector},     // MTE1_V
    {kCopyIn, kCube},     // MTE2_M
    {kCube, kCopyIn},     // M_MTE2
    {kVector, kCube},     // V_MTE1
    {kCube, kCube},       // M_FIX
    {kCube, kCube},       // FIX_M
    {kCopyOut, kCopyIn},  // MTE3_MTE2
    {kCopyIn, kCopyOut},  // MTE2_MTE3
    {kScalar, kVector},   // S_V
    {kVector, kScalar},   // V_S
    {kScalar, kCopyIn},   // S_MTE2
    {kCopyIn, kScalar},   // MTE2_S
    {kScalar, kCopyOut},  // S_MTE3
    {kCopyOut, kScalar},  // MTE3_S
    {kCopyIn, kCube},     // MTE2_FIX
    {kCube, kCopyIn},     // FIX_MTE2
    {kCube, kScalar},     // FIX_S
    {kCube, kScalar},     // M_S
    {kCube, kCopyOut},    // FIX_MTE3
    {kCube, kCube},       // MTE1_FIX
    {kCube, kCube},       // FIX_MTE1
    {kCube, kCube},       // FIX_FIX
};
static_assert(sizeof(kEnds) / sizeof(kEnds[0]) == static_cast<size_t>(HardEvent::MAX), "an event without its pipes");

void Raise(Clock* clock, const Clock& to) {
  for (int lane = 0; lane < kLanes; ++lane) (*clock)[lane] = std::max((*clock)[lane], to[lane]);
}

}  // namespace

Lane LaneOf(pipe_t pipe) {
  switch (pipe) {
    case PIPE_S:
      return kScalar;
    case PIPE_V:
      return kVector;
    case PIPE_MTE2:
      return kCopyIn;
    case PIPE_MTE3:
      return kCopyOut;
    default:
      return kCube;
  }
}

const char* NameOf(Lane lane) {
  static constexpr const char* kNames[] = {"S", "V", "M", "MTE2", "MTE3"};
  return kNames[lane];
}

Lane SourceOf(HardEvent event) { return kEnds[static_cast<int>(event)].source; }
Lane TargetOf(HardEvent event) { return kEnds[static_cast<int>(event)].target; }

void Timeline::Reset() {
  for (int lane = 0; lane < kLanes; ++lane) {
    known_[lane] = {};
    issued_[lane].clear();
  }
}

uint32_t Timeline::Issue(Lane lane, const char* name, Site site) {
  issued_[lane].push_back({name, site});
  const uint32_t number = static_cast<uint32_t>(issued_[lane].size());
  if (lane == kScalar) known_[kScalar][kScalar] = number;
  return number;
}

Clock Timeline::Capture(Lane lane) const {
  Clock clock = known_[lane];
  clock[lane] = static_cast<uint32_t>(issued_[lane].size());
  return clock;
}

void Timeline::Join(Lane lane, const Clock& clock) {
  if (lane != kScalar) {
    Raise(&known_[lane], clock);
    return;
  }
  // What the scalar unit has waited for is complete before anything that it issues later.
  for (Clock& known : known_) Raise(&known, clock);
}

void Timeline::Barrier(Lane lane) { known_[lane][lane] = static_cast<uint32_t>(issued_[lane].size()); }

void Timeline::BarrierAll() {
  for (Clock& known : known_) known = Issued();
}

Clock Timeline::Issued() const {
  Clock all;
  for (int lane = 0; lane < kLanes; ++lane) all[lane] = static_cast<uint32_t>(issued_[lane].size());
  return all;
}

}  // namespace check
}  // namespace AscendC
