// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Between the cores of a launch: which kind has which pipes, what a core tells the others, and what it hears of them.
#include <algorithm>
#include <vector>

#include "check.h"
#include "core.h"
#include "cost.h"

namespace AscendC {
namespace check {
namespace {

constexpr uint32_t kMaxCrossCoreCount = 15;

Core& EnterCrossCore(const char* name, int id) {
  if (IsCosting()) mst::KernelError("the cost model knows no flags between cores");
  if (id >= kCrossCoreIds) Violation(name, "flag id must be from 0 to %d, but is %d", kCrossCoreIds - 1, id);
  Core& core = CheckedCore();
  EnterLaunch(&core);
  return core;
}

// What others have told is complete before anything that this core issues later.
void Hear(Core* core, const mst::Knowledge& known) {
  if (core->known.size() < known.size()) core->known.resize(known.size());
  for (size_t i = 0; i < known.size(); ++i) core->known[i] = std::max(core->known[i], known[i]);
  core->timeline.Join(kScalar, ClockOf(core->known, core->index).done);
}

}  // namespace

void InspectLane(const char* name, Lane lane) {
  const mst::CoreContext& core = mst::ThisCore();
  if (core.isCube && (lane == kVector || lane == kCopyOut)) {
    Violation(name, "is for pipe %s, which a cube core lacks", NameOf(lane));
  }
  if (core.subBlockNum > 1 && lane == kCube) Violation(name, "is for the cube, which a vector core lacks");
}

mst::Knowledge BeforeCrossCoreSet(int mode, pipe_t pipe, int id) {
  const bool off = IsSwitchedOff("flag");
  InspectLane("CrossCoreSetFlag", LaneOf(pipe));
  Core& core = EnterCrossCore("CrossCoreSetFlag", id);
  const int self = core.index;
  const int group = self - self % mst::kGroupCores;
  const uint32_t sets = ++core.sets[mode == 2][id];
  std::vector<int> targets = {self};  // each of those that a flag of mode 0 or 1 reaches knows its own waits best
  if (mode == 2) targets = mst::ThisCore().isCube ? std::vector<int>{group + 1, group + 2} : std::vector<int>{group};
  for (const int target : targets) {
    if (sets <= ClockOf(core.known, target).waits[id] + kMaxCrossCoreCount) continue;
    Violation("CrossCoreSetFlag",
              "flag %d of %s may be set more than %u times at once: nothing tells this core of its waits", id,
              mst::NameOfCore(target).c_str(), kMaxCrossCoreCount);
  }
  PublishGlobal("CrossCoreSetFlag", &core);
  if (off) return {};
  mst::Knowledge known = core.known;
  SetClock(&known, self, {core.timeline.Capture(LaneOf(pipe)), ClockOf(core.known, self).waits});
  return known;
}

void BeforeCrossCoreWait(int id) { EnterCrossCore("CrossCoreWaitFlag", id); }

void CrossCoreWaitFails(int id) {
  Violation("CrossCoreWaitFlag", "flag %d is never set: all other cores have ended or wait", id);
}

void AfterCrossCoreWait(int id, const mst::Knowledge& known) {
  const bool off = IsSwitchedOff("flag");
  Core& core = CheckedCore();
  PublishGlobal("CrossCoreWaitFlag", &core);
  if (!off) Hear(&core, known);
  CoreClock own = ClockOf(core.known, core.index);
  ++own.waits[id];
  SetClock(&core.known, core.index, own);
}

mst::Knowledge BeforeSyncAll() {
  if (IsSwitchedOff("SyncAll")) return {};
  Core& core = CheckedCore();
  EnterLaunch(&core);
  core.timeline.BarrierAll();
  if (IsCosting()) ChargeSyncAll(&core);
  PublishGlobal("SyncAll", &core);
  for (Shadow& shadow : core.gm) shadow.ForgetOrder();
  mst::Knowledge known = core.known;
  SetClock(&known, core.index, {core.timeline.Issued(), ClockOf(core.known, core.index).waits});
  return known;
}

void AfterSyncAll(const mst::Knowledge& known) {
  if (!IsSwitchedOff("SyncAll")) Hear(&CheckedCore(), known);
}

}  // namespace check
}  // namespace AscendC
