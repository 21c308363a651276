// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The cores of one launch: who takes which, how they wait for each other, and the first error.
#ifndef MST_TWIN_RUNTIME_LAUNCH_H_
#define MST_TWIN_RUNTIME_LAUNCH_H_

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "runtime.h"

namespace mst {

class LaunchState {
 public:
  LaunchState(int cores, bool inGroups, void (*fn)(void*, int), void* ctx)
      : cores_(cores), inGroups_(inGroups), fn_(fn), ctx_(ctx) {}

  // Takes cores until none is left. Called by every thread that takes part.
  void Run();
  // When all cores have ended: throws the first error, or what is left of flags.
  void Finish();

  void SetConcurrency(int threads) { threads_ = threads; }
  int cores() const { return cores_; }
  std::string NameOf(int index) const;

  // Of this core; see runtime.h.
  void Set(int mode, int id, const Knowledge& known);
  bool Wait(int id, Knowledge* known);
  Knowledge Sync(bool ownKind, const Knowledge& known);

 private:
  // A flag as it is set by cores together: the n-th sets of all of them are one.
  struct Signal {
    struct Round {
      int missing;  // sets
      Knowledge known;
    };
    std::vector<uint32_t> sets;  // by core
    uint32_t passed = 0;         // rounds without the open ones
    std::vector<Round> open;
  };

  bool IsCube(int index) const { return inGroups_ && index % kGroupCores == 0; }
  int BlockOf(int index) const;
  bool SetTogether(int mode, int a, int b) const;
  bool Reaches(int mode, int from, int to) const;
  // Whether it was the last set that was missing; then those that wait have to be told.
  bool Count(int mode, int id, const Knowledge& known);
  bool Await(int id, Knowledge* known, std::unique_lock<std::mutex>* lock);
  // Most launches have no flags.
  void Prepare();
  std::vector<Knowledge>& FlagOf(int core, int id);
  void Fail(std::exception_ptr error);
  void Leave();
  // Cores that all wait will never go on: the first of them has an error instead of a hang.
  void CheckReachable();

  static constexpr int kNone = -1;
  const int cores_;
  const bool inGroups_;
  void (*const fn_)(void*, int);
  void* const ctx_;
  int threads_ = 1;
  std::atomic<int> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::tuple<int, int, int>, Signal> signals_;  // by mode, id and the first core that sets it
  std::vector<std::vector<Knowledge>> flags_;            // by core and id: the sets not yet waited for
  std::vector<int> awaited_;                             // by core: the id that it waits for
  int waiting_ = 0;                                      // cores that wait
  int finished_ = 0;                                     // cores that have ended
  int stuck_ = kNone;                                    // the core that is told
  std::exception_ptr error_;
};

}  // namespace mst

#endif  // MST_TWIN_RUNTIME_LAUNCH_H_
