// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Which bytes hold a value. What was never written may be moved around and computed with, as long as no result depends
// on it: an instruction that works lane by lane, and a copy, hand it on; whoever needs a value refuses it.
//
// Refused in: scalar reads, reductions, operands of a Matmul, copies to an output of the operator, and sums in global
// memory to which something is added. Not followed: through Compare and Select and the copies with Nd2NzParams, whose
// results count as values, and through instructions that read runs of elements (Brcb, Gather, sorting, softmax), which
// may read more than counts.
#ifndef MST_TWIN_CHECKED_VALUES_H_
#define MST_TWIN_CHECKED_VALUES_H_

#include "core.h"
#include "footprint.h"

namespace AscendC {
namespace check {

// An operand, and where what is known about its bytes is kept.
struct Place {
  Operand operand;
  Shadow* shadow;  // nullptr: of a tensor that is only read
  const mst::GmBuffer* gm;
  const char* memory;
  uint64_t base;
};

// The lanes of an instruction that read bytes without a value.
class LostLanes {
 public:
  bool empty() const { return lanes_.empty(); }
  // Adds those of an operand that the instruction reads.
  void Read(const char* name, const Place& place, const Range& range, bool isRefused);
  // What the instruction has written of `place` has no value in these lanes.
  void Write(const char* name, const Place& place, const Range& range) const;

 private:
  Spans lanes_;
};

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_VALUES_H_
