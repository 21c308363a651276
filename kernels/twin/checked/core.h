// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the checked build knows about a core while its TPipe lives, and about a launch.
#ifndef MST_TWIN_CHECKED_CORE_H_
#define MST_TWIN_CHECKED_CORE_H_

#include <deque>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/cpu_entry.h"
#include "shadow.h"
#include "timeline.h"
#include "trace.h"

namespace AscendC {
namespace check {

enum class State { kFree, kAllocated, kQueued, kDequeued, kAlways };

struct Buffer {
  std::string name;
  uint64_t base;
  uint32_t bytes;
  bool isInL1;
  State state;
  Clock ready;  // what the last EnQue promises
  Clock freed;  // what the last FreeTensor promises
  // Of a queue: the pipe that fills the buffer and the one that it is for. What the first has written since AllocTensor
  // is for the second after EnQue and DeQue only.
  Lane filler;
  Lane user;
  bool isFilled;
  bool isSent;  // the last EnQue counts
  Shadow shadow;
};

constexpr int kEventIds = 8;

struct Event {
  bool isSet;
  Clock clock;
};

struct Matmul {
  TCubeTiling tiling;
  Clock done;  // what its last IterateAll promises
};

struct Core {
  std::deque<Buffer> buffers;
  size_t used = 0;  // of those; the others are kept for the next core
  int64_t ubBytes = 0;
  int64_t l1Bytes = 0;  // with what the other vector core and the Matmul objects take
  Event events[static_cast<int>(HardEvent::MAX)][kEventIds] = {};
  Timeline timeline;
  // Of each tensor of the launch that kernels may write: what this core has done to it since the last SyncAll.
  std::vector<Shadow> gm;
  uint64_t launch = 0;
  int blockIdx = 0;
  int phase = 0;                          // SyncAlls passed in this launch
  std::map<const void*, Matmul> matmuls;  // by the address of the kernel's object

  // For the costs.
  Trace trace;
  Product nextProduct = {};                  // of the next IterateAll
  int pendingIssues = 0;                     // flags and queue operations since the last instruction
  std::unordered_set<uint64_t> scalarLines;  // of global memory, that the scalar unit has read or written
};

Core& CheckedCore();

// Throws: an instruction broke a rule. Names it, the core and the line of the kernel.
[[noreturn]] __attribute__((format(printf, 2, 3))) void Violation(const char* name, const char* format, ...);

// A tensor of the launch that holds `address`, or nullptr.
const mst::GmBuffer* GmBufferAt(uint64_t address);
const mst::Platform& CheckedPlatform();

// The core begins with its TPipe; it arrives at SyncAll, or ends: what it did to global memory is held against what
// the other cores did between the same two SyncAlls.
void BeginGlobal(Core* core);
void PublishGlobal(const char* name, Core* core);
// What this core knows of `gm`, nullptr for a tensor that no kernel may write.
Shadow* GlobalShadow(Core* core, const mst::GmBuffer& gm);
// Whether other cores wrote all of `span` before a SyncAll that this one has passed.
bool IsPublished(const Core& core, const mst::GmBuffer& gm, const Span& span);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_CORE_H_
