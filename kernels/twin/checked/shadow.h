// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What has been done to every byte of a buffer: the instructions that last read and wrote it, and whether it holds a
// value. Bytes with the same history are one segment.
#ifndef MST_TWIN_CHECKED_SHADOW_H_
#define MST_TWIN_CHECKED_SHADOW_H_

#include <cstdint>
#include <vector>

#include "timeline.h"

namespace AscendC {
namespace check {

struct Span {
  int64_t begin;
  int64_t end;  // bytes
};
using Spans = std::vector<Span>;  // ascending, none touches the next

enum Touch : uint8_t { kTouchRead = 1, kTouchWrite = 2, kTouchAdd = 4 };

struct Segment {
  Span span;
  Clock write;  // per lane, the number of the last instruction that wrote these bytes; 0: none
  Clock add;    // the same of additions to global memory, which may come in any order
  Clock read;
  uint8_t touched;  // Touch bits, until ForgetTouches
  bool defined;     // whether they hold a value
};

class Shadow {
 public:
  struct Conflict {
    Span span;
    Lane lane;
    uint32_t number;
    bool wrote;
  };

  // All of [0, bytes), untouched.
  void Reset(int64_t bytes, bool defined);
  // Whether an earlier access to `spans`, after which an instruction that reads, writes or adds to them has to come,
  // may not be complete: it is not among the `known`.
  bool FindConflict(const Spans& spans, Touch touch, const Clock& known, Conflict* conflict);
  // Notes what instruction `number` of `lane` does to `spans`. What is written holds a value from now on.
  void Note(const Spans& spans, Touch touch, Lane lane, uint32_t number);

  // Whether the last FindConflict met bytes without a value.
  bool metUndefined() const { return metUndefined_; }
  // Appends the parts of `span` without a value.
  void FindUndefined(const Span& span, Spans* found) const;
  // `spans` lose their value.
  void Undefine(const Spans& spans);
  void ForgetTouches();
  // Everything so far is complete.
  void ForgetOrder();

  const std::vector<Segment>& segments() const { return segments_; }

 private:
  template <typename Change>
  void Update(const Spans& spans, const Change& change);
  size_t FirstAt(int64_t begin) const;

  std::vector<Segment> segments_;  // all bytes, in order
  std::vector<Segment> changed_;   // spare
  bool metUndefined_ = false;
};

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_SHADOW_H_
