// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Global memory between cores: two cores that touch the same bytes do so in any order, unless one of them has heard of
// the other, by a SyncAll or by flags, what it did.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "core.h"
#include "cost_launch.h"

namespace AscendC {
namespace check {
namespace {

struct Access {
  Segment what;
  Timeline::Instruction by;
};

// What one core did to one tensor while it knew the same of the others.
struct Record {
  int core;
  std::shared_ptr<const mst::Knowledge> known;
  Clock end;                     // all that the core had issued
  std::vector<Access> accesses;  // ascending
};

constexpr size_t kClockWords = kLanes + kCrossCoreIds;  // of a core

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

// The last accesses to `segment` that must not be in any order with one that did `touched`.
Clock OpposedTo(unsigned touched, const Segment& segment) {
  Clock clock = segment.write;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (touched != kTouchAdd) clock[lane] = std::max(clock[lane], segment.add[lane]);
    if (touched != kTouchRead) clock[lane] = std::max(clock[lane], segment.read[lane]);
  }
  return clock;
}

bool Covers(const mst::Knowledge& known, int core, const Clock& clock) {
  const Clock done = ClockOf(known, core).done;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (clock[lane] > done[lane]) return false;
  }
  return true;
}

void Compare(const char* name, const mst::GmBuffer& gm, const Record& own, const Record& other) {
  if (Covers(*own.known, other.core, other.end)) return;
  size_t j = 0;
  for (const Access& access : own.accesses) {
    const Segment& a = access.what;
    while (j < other.accesses.size() && other.accesses[j].what.span.end <= a.span.begin) ++j;
    for (size_t i = j; i < other.accesses.size() && other.accesses[i].what.span.begin < a.span.end; ++i) {
      const Segment& b = other.accesses[i].what;
      const Timeline::Instruction& by = other.accesses[i].by;
      if (MayMeet(a.touched, b.touched) || Covers(*own.known, other.core, OpposedTo(a.touched, b)) ||
          Covers(*other.known, own.core, OpposedTo(b.touched, a))) {
        continue;
      }
      Violation(name,
                "%s (%s) %s bytes [%ld, %ld) of '%s', which %s (%s) of %s %s as well: no SyncAll, and no flag between "
                "cores, orders them",
                access.by.name, LineOf(access.by.site).c_str(), Verb(a.touched),
                static_cast<long>(std::max(a.span.begin, b.span.begin)),
                static_cast<long>(std::min(a.span.end, b.span.end)), gm.name, by.name, LineOf(by.site).c_str(),
                mst::NameOfCore(other.core).c_str(), Verb(b.touched));
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

CoreClock ClockOf(const mst::Knowledge& known, int core) {
  CoreClock clock = {};
  const auto at = static_cast<size_t>(core) * kClockWords;
  if (at + kClockWords > known.size()) return clock;
  std::copy_n(&known[at], kLanes, clock.done.begin());
  std::copy_n(&known[at + kLanes], kCrossCoreIds, clock.waits.begin());
  return clock;
}

void SetClock(mst::Knowledge* known, int core, const CoreClock& clock) {
  const auto at = static_cast<size_t>(core) * kClockWords;
  known->resize(std::max(known->size(), at + kClockWords));
  std::copy_n(clock.done.begin(), kLanes, &(*known)[at]);
  std::copy_n(clock.waits.begin(), kCrossCoreIds, &(*known)[at + kLanes]);
}

void EnterLaunch(Core* core) {
  const uint64_t launch = TheLaunch().number;
  const int index = mst::ThisCore().index;
  if (core->launch == launch && core->index == index) return;
  core->launch = launch;
  core->index = index;
  core->timeline.Reset();
  core->known.clear();
  std::memset(core->sets, 0, sizeof(core->sets));
  core->gm.clear();
}

void BeginGlobal(Core* core) {
  const Launch& launch = TheLaunch();
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
  const auto known = std::make_shared<const mst::Knowledge>(core->known);
  for (size_t i = 0; i < core->gm.size(); ++i) {
    Record record = {core->index, known, core->timeline.Issued(), {}};
    for (const Segment& segment : core->gm[i].segments()) {
      if (segment.touched != 0) record.accesses.push_back({segment, LastOf(core->timeline, segment)});
    }
    core->gm[i].ForgetTouches();
    if (record.accesses.empty()) continue;
    const std::lock_guard<std::mutex> lock(launch.mutex);
    for (const Record& other : launch.records[i]) {
      if (other.core != record.core) Compare(name, launch.buffers[i], record, other);
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
      if (record.core == core.index) continue;
      for (const Access& access : record.accesses) {
        const Segment& a = access.what;
        if (a.span.begin > from || a.span.end <= from || (a.touched & ~kTouchRead) == 0) continue;
        if (!Covers(core.known, record.core, OpposedTo(kTouchRead, a))) continue;
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
