// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Queues and events of a pipe; the thread pool, its errors and its scratch memory.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "twin_test.h"

namespace twin_test {

// ---- queues

void TestQueues() {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> queue;
  pipe.InitBuffer(queue, 2, 128);
  LocalTensor<float> a = queue.AllocTensor<float>(), b = queue.AllocTensor<float>();
  Check(a.GetSize() == 32 && a.GetPhyAddr() != b.GetPhyAddr(), "two buffers");
  Check(reinterpret_cast<uintptr_t>(a.GetPhyAddr()) % 64 == 0, "buffers are aligned");
  const auto throws = [](auto f) {
    try {
      f();
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  };
  Check(throws([&] { queue.AllocTensor<float>(); }), "no third buffer");
  Check(throws([&] { queue.DeQue<float>(); }), "nothing to take");
  queue.EnQue(b);
  queue.EnQue(a);
  LocalTensor<float> first = queue.DeQue<float>();
  Check(first.GetPhyAddr() == b.GetPhyAddr() && queue.HasTensorInQue(), "first in, first out");
  queue.FreeTensor(first);
  Check(queue.AllocTensor<float>().GetPhyAddr() == b.GetPhyAddr(), "a freed buffer comes back");
  const TEventID id = pipe.AllocEventID<HardEvent::MTE2_V>();
  Check(pipe.FetchEventID(HardEvent::MTE2_V) != id, "event ids differ");
  pipe.ReleaseEventID<HardEvent::MTE2_V>(id);
  Check(pipe.FetchEventID(HardEvent::MTE2_V) == id, "a released event id comes back");
}

// ---- the pool

namespace {

struct Counter {
  std::atomic<int> runs{0};
  std::atomic<int> seen[64] = {};
};

void CountCore(void* ctx, int core) {
  Counter* counter = static_cast<Counter*>(ctx);
  if (GetBlockIdx() == core) ++counter->seen[core];
  ++counter->runs;
}

bool LaunchAll(int cores) {
  Counter counter;
  mst::LaunchKernel(cores, CountCore, &counter);
  for (int i = 0; i < cores; ++i) {
    if (counter.seen[i] != 1) return false;
  }
  return counter.runs == cores;
}

template <typename Error>
bool LaunchThrows(int cores, void (*fn)(void*, int), const char* text) {
  try {
    mst::LaunchKernel(cores, fn, nullptr);
  } catch (const Error& error) {
    return std::string(error.what()).find(text) != std::string::npos;
  }
  return false;
}

}  // namespace

void TestPool(bool withFork) {
  mst::SetPoolThreads(4);
  bool ok = true;
  for (int i = 0; i < 500; ++i) ok = ok && LaunchAll(i % 64);
  Check(ok, "every core once");
  Counter counter;
  for (int i = 0; i < 200; ++i) {
    mst::LaunchKernel(
        4,
        [](void* ctx, int) {
          Counter* c = static_cast<Counter*>(ctx);
          ++c->runs;
          SyncAll();
          if (c->runs % 4 == 0) ++c->seen[0];
          SyncAll();
        },
        &counter);
  }
  Check(counter.seen[0] == 800, "SyncAll waits for all", counter.seen[0]);
  Check(LaunchThrows<std::logic_error>(5, [](void*, int) { SyncAll(); }, "4 threads"), "SyncAll with too many cores");
  Check(LaunchThrows<std::runtime_error>(
            4,
            [](void*, int core) {
              if (core == 2) throw std::runtime_error("core 2");
              SyncAll();
            },
            "core 2"),
        "an exception comes through");
  Check(LaunchThrows<std::logic_error>(
            4,
            [](void*, int core) {
              if (core != 2) SyncAll();
            },
            "ended without"),
        "a core that misses SyncAll");
  Check(LaunchAll(8), "the pool works after errors");
  std::atomic<bool> all{true};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        mst::Scratch scratch(1000 * (i % 7));
        if (scratch.data() != nullptr) scratch.data()[0] = 1;
        if (!LaunchAll(6)) all = false;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  Check(all, "launches from several threads");
  if (withFork) {
    const pid_t child = fork();
    if (child == 0) _exit(LaunchAll(7) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    Check(status == 0, "a forked child has a pool of its own");
  }
  mst::SetPoolThreads(0);
  setenv("MS_OPS_NUM_THREADS", "3", 1);
  Check(mst::PoolThreads() == 3, "MS_OPS_NUM_THREADS");
  mst::SetPoolThreads(0);
  setenv("MS_OPS_NUM_THREADS", "many", 1);
  bool refused = false;
  try {
    mst::PoolThreads();
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  Check(refused, "MS_OPS_NUM_THREADS that is no number");
  // Buffers given out stay valid while the arena grows, and a second kernel of the same size finds one piece.
  mst::Arena arena;
  for (int round = 0; round < 3; ++round) {
    arena.Reset();
    std::vector<uint8_t*> buffers;
    for (int i = 0; i < 20; ++i) {
      buffers.push_back(arena.Alloc(600 * 1024));
      *buffers.back() = static_cast<uint8_t>(i);
    }
    for (int i = 0; i < 20; ++i) ok = ok && *buffers[static_cast<size_t>(i)] == i;
  }
  Check(ok, "arena");
}

}  // namespace twin_test
