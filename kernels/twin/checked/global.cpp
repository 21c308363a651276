// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Global memory between cores: two cores that touch the same bytes between the same two SyncAlls may do so in any
// order.
#include <algorithm>
#include <mutex>

#include "core.h"
#include "cost_launch.h"
#include "runtime.h"

namespace AscendC {
namespace check {
namespace {

struct Access {
  Span span;
  uint8_t touched;
  Timeline::Instruction by;
};

// What one core did to one tensor between two SyncAlls.
struct Record {
  int core;
  int phase;
  std::vector<Access> accesses;  // ascending
};

struct Launch {
  std::mutex mutex;
  uint64_t number = 0;
  mst::Platform platform = mst::CpuPlatform(1);
  std::vector<mst::GmBuffer> buffers;
  std::vector<std::vector<Record>> records;  // per buffer
};
Launch& TheLaunch() {
  static Launch launch;  // it has the thread pool for itself
  return launch;
}

bool MayMeet(unsigned a, unsigned b) { return (a | b) == kTouchRead || (a | b) == kTouchAdd; }

const char* Verb(unsigned touched) {
  if ((touched & kTouchWrite) != 0) return "writes";
  return (touched & kTouchAdd) != 0 ? "adds to" : "reads";
}

void Compare(const char* name, const mst::GmBuffer& gm, const Record& own, const Record& other) {
  size_t j = 0;
  for (const Access& a : own.accesses) {
    while (j < other.accesses.size() && other.accesses[j].span.end <= a.span.begin) ++j;
    for (size_t i = j; i < other.accesses.size() && other.accesses[i].span.begin < a.span.end; ++i) {
      const Access& b = other.accesses[i];
      if (MayMeet(a.touched, b.touched)) continue;
      Violation(name, "%s (%s) %s bytes [%ld, %ld) of '%s', which %s (%s) of core %d %s as well without a SyncAll",
                a.by.name, LineOf(a.by.site).c_str(), Verb(a.touched),
                static_cast<long>(std::max(a.span.begin, b.span.begin)),
                static_cast<long>(std::min(a.span.end, b.span.end)), gm.name, b.by.name, LineOf(b.by.site).c_str(),
                other.core, Verb(b.touched));
    }
  }
}

// The last instruction that did what makes the segment's verb.
Timeline::Instruction LastOf(const Timeline& timeline, const Segment& segment) {
  const Clock& clock = (segment.touched & kTouchWrite) != 0 ? segment.write
                       : (segment.touched & kTouchAdd) != 0 ? segment.add
                                                            : segment.read;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (clock[lane] != 0) return timeline.At(static_cast<Lane>(lane), clock[lane]);
  }
  return {"an instruction", 0};
}

}  // namespace

const mst::Platform& CheckedPlatform() { return TheLaunch().platform; }

const mst::GmBuffer* GmBufferAt(uint64_t address) {
  for (const mst::GmBuffer& gm : TheLaunch().buffers) {
    const uint64_t base = reinterpret_cast<uint64_t>(gm.data);
    if (address >= base && address < base + gm.bytes) return &gm;
  }
  return nullptr;
}

void BeginGlobal(Core* core) {
  const Launch& launch = TheLaunch();
  const int blockIdx = mst::ThisCore().blockIdx;
  if (core->launch != launch.number || core->blockIdx != blockIdx) core->phase = 0;
  core->launch = launch.number;
  core->blockIdx = blockIdx;
  core->gm.resize(launch.buffers.size());
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const mst::GmBuffer& gm = launch.buffers[i];
    core->gm[i].Reset(gm.role == mst::GmRole::kInput ? 0 : gm.bytes, gm.role == mst::GmRole::kUpdated);
  }
}

Shadow* GlobalShadow(Core* core, const mst::GmBuffer& gm) {
  if (gm.role == mst::GmRole::kInput) return nullptr;
  return &core->gm[static_cast<size_t>(&gm - TheLaunch().buffers.data())];
}

void PublishGlobal(const char* name, Core* core) {
  Launch& launch = TheLaunch();
  for (size_t i = 0; i < core->gm.size(); ++i) {
    Record record = {core->blockIdx, core->phase, {}};
    for (const Segment& segment : core->gm[i].segments()) {
      if (segment.touched == 0) continue;
      record.accesses.push_back({segment.span, segment.touched, LastOf(core->timeline, segment)});
    }
    core->gm[i].ForgetOrder();
    if (record.accesses.empty()) continue;
    const std::lock_guard<std::mutex> lock(launch.mutex);
    for (const Record& other : launch.records[i]) {
      if (other.core != record.core && other.phase == record.phase) Compare(name, launch.buffers[i], record, other);
    }
    launch.records[i].push_back(std::move(record));
  }
}

bool IsPublished(const Core& core, const mst::GmBuffer& gm, const Span& span) {
  Launch& launch = TheLaunch();
  const std::lock_guard<std::mutex> lock(launch.mutex);
  int64_t from = span.begin;
  for (bool moved = true; moved && from < span.end;) {
    moved = false;
    for (const Record& record : launch.records[static_cast<size_t>(&gm - launch.buffers.data())]) {
      if (record.core == core.blockIdx || record.phase >= core.phase) continue;
      for (const Access& a : record.accesses) {
        if (a.span.begin > from || a.span.end <= from || (a.touched & ~kTouchRead) == 0) continue;
        from = a.span.end;
        moved = true;
      }
    }
  }
  return from >= span.end;
}

}  // namespace check
}  // namespace AscendC

extern "C" __attribute__((visibility("default"))) void mst_launch_begin(const mst::Platform* platform,
                                                                        const mst::GmBuffer* buffers, int count) {
  AscendC::check::Launch& launch = AscendC::check::TheLaunch();
  ++launch.number;
  launch.platform = *platform;
  launch.buffers.assign(buffers, buffers + count);
  launch.records.assign(static_cast<size_t>(count), {});
  AscendC::check::BeginCosts(*platform, buffers, count);
}
