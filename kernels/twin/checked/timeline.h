// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Which instructions of a core are known to be complete when another begins: a vector clock per pipe.
//
// The scalar unit issues the instructions of all pipes in program order; each pipe begins its own in that order, but
// whether one is complete when a later one begins is known only by a barrier, an event, or both in turn. The scalar
// unit itself works in order.
#ifndef MST_TWIN_CHECKED_TIMELINE_H_
#define MST_TWIN_CHECKED_TIMELINE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "site.h"
#include "types.h"

namespace AscendC {
namespace check {

// The cube with its own copies (M, MTE1, FIX) is one: all of it belongs to the Matmul object.
enum Lane { kScalar, kVector, kCube, kCopyIn, kCopyOut, kLanes };

Lane LaneOf(pipe_t pipe);
const char* NameOf(Lane lane);
Lane SourceOf(HardEvent event);
Lane TargetOf(HardEvent event);

// Per lane, the number of its instructions that are complete.
using Clock = std::array<uint32_t, kLanes>;

class Timeline {
 public:
  struct Instruction {
    const char* name;
    Site site;
  };

  void Reset();
  // The next instruction of a lane; its number, from 1 on.
  uint32_t Issue(Lane lane, const char* name, Site site);
  // What an instruction of `lane` that begins now finds complete.
  const Clock& Known(Lane lane) const { return known_[lane]; }
  // What is complete once all of `lane` so far is.
  Clock Capture(Lane lane) const;
  // From now on `lane` begins after `clock`.
  void Join(Lane lane, const Clock& clock);
  void Barrier(Lane lane);
  void BarrierAll();
  // Of each lane, the number of the last instruction.
  Clock Issued() const;

  const Instruction& At(Lane lane, uint32_t number) const { return issued_[lane][number - 1]; }

 private:
  Clock known_[kLanes];
  std::vector<Instruction> issued_[kLanes];
};

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_TIMELINE_H_
