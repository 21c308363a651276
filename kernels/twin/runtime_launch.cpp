// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "runtime_launch.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace mst {

namespace {

// Thrown into the cores that wait when another core fails: the first exception is the one that counts.
struct LaunchAborted {};

constexpr int kFlagIds = 16;    // the card takes the last four bits of an id
constexpr int kAllCores = 3;    // the mode of SyncAll<false>, after those of CrossCoreSetFlag
constexpr int kSyncAllId = 14;  // as on the card, where kernels leave it alone

void Merge(const Knowledge& from, Knowledge* to) {
  if (to->size() < from.size()) to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] = std::max((*to)[i], from[i]);
}

}  // namespace

void LaunchState::Run() {
  CoreContext& core = ThisCore();
  int index;
  while ((index = next_.fetch_add(1, std::memory_order_relaxed)) < cores_) {
    if (failed_.load(std::memory_order_relaxed)) break;
    const int place = index % kGroupCores;
    core.index = index;
    core.isCube = IsCube(index);
    core.subBlockIdx = inGroups_ && place > 0 ? place - 1 : 0;
    core.subBlockNum = inGroups_ && place > 0 ? kGroupCores - 1 : 1;
    core.blockIdx = BlockOf(index);
    core.blockNum = inGroups_ ? cores_ / kGroupCores : cores_;
    core.atomicAdd = false;
    core.launch = this;
    try {
      fn_(ctx_, index);
      Leave();
    } catch (const LaunchAborted&) {
    } catch (...) {
      Fail(std::current_exception());
    }
  }
  core.launch = nullptr;
}

std::string LaunchState::NameOf(int index) const {
  const std::string name = "core " + std::to_string(BlockOf(index));
  return !inGroups_ ? name : (IsCube(index) ? "cube " : "vector ") + name;
}

void LaunchState::Set(int mode, int id, const Knowledge& known) {
  if (mode != 0 && !inGroups_) {
    throw std::logic_error("CrossCoreSetFlag: mode " + std::to_string(mode) + " is for cores in groups");
  }
  if (mode == 1 && ThisCore().isCube) throw std::logic_error("CrossCoreSetFlag: mode 1 is for vector cores");
  std::unique_lock<std::mutex> lock(mutex_);
  if (!Count(mode, id % kFlagIds, known)) return;
  lock.unlock();
  arrived_.notify_all();
}

bool LaunchState::Wait(int id, Knowledge* known) {
  std::unique_lock<std::mutex> lock(mutex_);
  return Await(id % kFlagIds, known, &lock);
}

Knowledge LaunchState::Sync(bool ownKind, const Knowledge& known) {
  Knowledge all;
  std::unique_lock<std::mutex> lock(mutex_);
  const bool isLast = Count(ownKind ? 0 : kAllCores, kSyncAllId, known);
  if (!Await(kSyncAllId, &all, &lock)) {
    throw std::logic_error("SyncAll: the other cores ended without it, or wait for something else");
  }
  lock.unlock();
  if (isLast) arrived_.notify_all();
  return all;
}

void LaunchState::Finish() {
  if (error_) std::rethrow_exception(error_);
  for (size_t i = 0; i < flags_.size(); ++i) {
    if (flags_[i].empty()) continue;
    throw std::logic_error("CrossCoreSetFlag: flag " + std::to_string(i % kFlagIds) + " of " +
                           NameOf(static_cast<int>(i / kFlagIds)) + " is still set at the end of the kernel");
  }
  for (const auto& [key, signal] : signals_) {
    if (signal.open.empty()) continue;
    throw std::logic_error("CrossCoreSetFlag: flag " + std::to_string(std::get<1>(key)) +
                           " was set by some of the cores only that set it together");
  }
}

int LaunchState::BlockOf(int index) const {
  const int group = index / kGroupCores;
  return !inGroups_ ? index : IsCube(index) ? group : (kGroupCores - 1) * group + index % kGroupCores - 1;
}

bool LaunchState::SetTogether(int mode, int a, int b) const {
  if (mode == kAllCores) return true;
  return IsCube(a) == IsCube(b) && (mode == 0 || a / kGroupCores == b / kGroupCores);
}

bool LaunchState::Reaches(int mode, int from, int to) const {
  if (mode != 2) return SetTogether(mode, from, to);
  return IsCube(from) != IsCube(to) && from / kGroupCores == to / kGroupCores;
}

bool LaunchState::Count(int mode, int id, const Knowledge& known) {
  const int self = ThisCore().index;
  Prepare();
  int sources = 0, first = self;
  for (int core = 0; core < cores_; ++core) {
    if (!SetTogether(mode, self, core)) continue;
    ++sources;
    first = std::min(first, core);
  }
  Signal& signal = signals_[{mode, id, first}];
  signal.sets.resize(static_cast<size_t>(cores_));
  const size_t round = signal.sets[static_cast<size_t>(self)]++ - signal.passed;
  if (round == signal.open.size()) signal.open.push_back({sources, {}});
  Merge(known, &signal.open[round].known);
  if (--signal.open[round].missing > 0) return false;
  for (int core = 0; core < cores_; ++core) {  // round is 0: each core's sets are in order
    if (!Reaches(mode, self, core)) continue;
    FlagOf(core, id).push_back(signal.open[0].known);
    int& awaited = awaited_[static_cast<size_t>(core)];
    if (awaited != id) continue;
    awaited = kNone;
    --waiting_;
  }
  signal.open.erase(signal.open.begin());
  ++signal.passed;
  return true;
}

bool LaunchState::Await(int id, Knowledge* known, std::unique_lock<std::mutex>* lock) {
  const int self = ThisCore().index;
  if (cores_ > threads_) {
    throw std::logic_error("waiting for other cores: the launch has " + std::to_string(cores_) + " cores, but only " +
                           std::to_string(threads_) + " threads run at once");
  }
  Prepare();
  if (FlagOf(self, id).empty()) {
    int& awaited = awaited_[static_cast<size_t>(self)];
    awaited = id;
    ++waiting_;
    CheckReachable();
    arrived_.wait(*lock, [&] { return awaited == kNone || failed_.load(std::memory_order_relaxed); });
    if (awaited != kNone) {
      if (stuck_ == self) return false;
      throw LaunchAborted();
    }
  }
  std::vector<Knowledge>& flag = FlagOf(self, id);
  Merge(flag.front(), known);
  flag.erase(flag.begin());
  return true;
}

void LaunchState::Prepare() {
  if (!flags_.empty()) return;
  flags_.resize(static_cast<size_t>(cores_ * kFlagIds));
  awaited_.assign(static_cast<size_t>(cores_), kNone);
}

void LaunchState::Fail(std::exception_ptr error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
  arrived_.notify_all();
}

void LaunchState::Leave() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++finished_;
  CheckReachable();
}

void LaunchState::CheckReachable() {
  if (waiting_ == 0 || waiting_ + finished_ < cores_ || failed_.exchange(true)) return;
  for (stuck_ = 0; awaited_[static_cast<size_t>(stuck_)] == kNone;) ++stuck_;
  arrived_.notify_all();
}

std::vector<Knowledge>& LaunchState::FlagOf(int core, int id) {
  return flags_[static_cast<size_t>(core * kFlagIds + id)];
}

namespace {

LaunchState& ThisLaunch() {
  LaunchState* launch = ThisCore().launch;
  if (launch == nullptr) KernelError("flags between cores are for kernels that were launched");
  return *launch;
}

}  // namespace

std::string NameOfCore(int index) {
  const LaunchState* launch = ThisCore().launch;
  return launch == nullptr ? "core " + std::to_string(index) : launch->NameOf(index);
}

void SetCrossCoreFlag(int mode, int id, const Knowledge& known) { ThisLaunch().Set(mode, id, known); }
bool WaitCrossCoreFlag(int id, Knowledge* known) { return ThisLaunch().Wait(id, known); }
Knowledge SyncAllCores(bool ownKind, const Knowledge& known) { return ThisLaunch().Sync(ownKind, known); }

}  // namespace mst
