// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the checked build knows about a core while its TPipe lives, and about a launch.
#ifndef MST_TWIN_CHECKED_CORE_H_
#define MST_TWIN_CHECKED_CORE_H_

#include <array>
#include <deque>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/cpu_entry.h"
#include "runtime.h"
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

// What a core knows of each core of its launch: the instructions that are complete, and how often it has waited for
// each flag. A vector clock over cores, flat since the runtime hands it on; cores of which nothing is known may be left
// out.
constexpr int kCrossCoreIds = 11;  // the others are for SyncAll (11 to 14) and Matmul objects (15)
struct CoreClock {
  Clock done;
  std::array<uint32_t, kCrossCoreIds> waits;
};
CoreClock ClockOf(const mst::Knowledge& known, int core);
void SetClock(mst::Knowledge* known, int core, const CoreClock& clock);

struct Core {
  std::deque<Buffer> buffers;
  size_t used = 0;  // of those; the others are kept for the next core
  int64_t ubBytes = 0;
  int64_t l1Bytes = 0;  // with what the other vector core and the Matmul objects take
  Event events[static_cast<int>(HardEvent::MAX)][kEventIds] = {};
  Timeline timeline;
  // Of each tensor of the launch that kernels may write: what this core has done to it.
  std::vector<Shadow> gm;
  uint64_t launch = 0;
  int index = 0;                          // in the launch
  mst::Knowledge known;                   // of the other cores, and of its own waits
  uint32_t sets[2][kCrossCoreIds] = {};   // of flags between cores, those of mode 2 apart
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

// In a group the cube core has no vector unit, no unified buffer and nothing that copies from there; a vector core has
// no cube, since its group's cube core runs the kernel itself.
void InspectLane(const char* name, Lane lane);

// A tensor of the launch that holds `address`, or nullptr.
const mst::GmBuffer* GmBufferAt(uint64_t address);
const mst::Platform& CheckedPlatform();

// Whoever comes from another launch, or was another core of it, knows nothing.
void EnterLaunch(Core* core);
// The core begins with its TPipe. When it tells other cores something, hears of them, or ends, what it has done to
// global memory since then is held against what the others did.
void BeginGlobal(Core* core);
void PublishGlobal(const char* name, Core* core);
// What this core knows of `gm`, nullptr for a tensor that no kernel may write.
Shadow* GlobalShadow(Core* core, const mst::GmBuffer& gm);
// Whether other cores wrote all of `span`, as this one knows.
bool IsPublished(const Core& core, const mst::GmBuffer& gm, const Span& span);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_CORE_H_
