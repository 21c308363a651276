// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Queues and events of a pipe; flags between cores; the thread pool, its errors and its scratch memory.
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

// ---- flags between cores

namespace {

template <typename Error>
bool LaunchThrows(int cores, void (*fn)(void*, int), const char* text,
                  decltype(mst::LaunchKernel) launch = mst::LaunchKernel) {
  try {
    launch(cores, fn, nullptr);
  } catch (const Error& error) {
    return std::string(error.what()).find(text) != std::string::npos;
  }
  return false;
}

// What cores write here, those that wait for them must see.
struct Board {
  int cube[2] = {};    // by group
  int vector[4] = {};  // by vector core
  std::atomic<int> wrong{0};

  void Expect(bool ok) {
    if (!ok) ++wrong;
  }
};

constexpr int kRounds = 300;

// Each round the cube core gives, its vector cores answer.
void PingPong(void* ctx, int) {
  Board& board = *static_cast<Board*>(ctx);
  const int64_t block = GetBlockIdx();
  for (int round = 1; round <= kRounds; ++round) {
    if ASCEND_IS_AIC {
      board.cube[block] = round;
      CrossCoreSetFlag<2, PIPE_FIX>(3);
      CrossCoreWaitFlag(4);
      board.Expect(board.vector[2 * block] == round && board.vector[2 * block + 1] == round);
    }
    if ASCEND_IS_AIV {
      CrossCoreWaitFlag(3);
      board.Expect(board.cube[block / 2] == round);
      board.vector[block] = round;
      CrossCoreSetFlag<2, PIPE_MTE3>(4);
    }
  }
}

// Each round a vector core writes, and reads what the other one of its group (mode 1), or every one (mode 0), wrote.
template <uint8_t modeId>
void Exchange(void* ctx, int) {
  Board& board = *static_cast<Board*>(ctx);
  if ASCEND_IS_AIC
    return;
  const int64_t block = GetBlockIdx();
  for (int round = 1; round <= kRounds; ++round) {
    board.vector[block] = round;
    CrossCoreSetFlag<modeId, PIPE_MTE3>(0);
    CrossCoreWaitFlag(0);
    for (int64_t other = 0; other < 4; ++other) {
      board.Expect((modeId == 1 && other / 2 != block / 2) || board.vector[other] == round);
    }
    CrossCoreSetFlag<modeId, PIPE_MTE2>(1);
    CrossCoreWaitFlag(1);
  }
}

bool Agrees(decltype(PingPong) kernel) {
  Board board;
  mst::LaunchGroups(2, kernel, &board);
  return board.wrong == 0;
}

}  // namespace

void TestCrossCoreFlags() {
  mst::SetPoolThreads(6);
  Board board;
  mst::LaunchGroups(
      2,
      [](void* ctx, int core) {
        Board& b = *static_cast<Board*>(ctx);
        const int64_t block = GetBlockIdx();
        bool isCube = false;
        if ASCEND_IS_AIC
          isCube = true;
        if ASCEND_IS_AIV
          b.Expect(!isCube);
        b.Expect(isCube == (core % 3 == 0) && GetBlockNum() == 2);
        b.Expect(GetSubBlockNum() == (isCube ? 1 : 2));
        b.Expect(block == (isCube ? core / 3 : core / 3 * 2 + GetSubBlockIdx()));
        b.Expect(GetSubBlockIdx() == (isCube ? 0 : core % 3 - 1));
        ++(isCube ? b.cube : b.vector)[block];
      },
      &board);
  Check(board.wrong == 0 && board.cube[1] == 1 && board.vector[3] == 1, "cores of groups");
  Check(Agrees(PingPong), "flags of mode 2");
  Check(Agrees(Exchange<1>), "flags of mode 1");
  Check(Agrees(Exchange<0>), "flags of mode 0");
  const auto eachKind = [](void* ctx, int core) {  // the cube cores neither wait nor keep others waiting
    Board& b = *static_cast<Board*>(ctx);
    if ASCEND_IS_AIC
      return;
    b.vector[GetBlockIdx()] = 1;
    SyncAll();
    for (const int value : b.vector) b.Expect(value == 1);
  };
  Check(Agrees(eachKind), "SyncAll of vector cores");
  const auto all = [](void* ctx, int core) {
    Board& b = *static_cast<Board*>(ctx);
    (core % 3 == 0 ? b.cube : b.vector)[GetBlockIdx()] = 1;
    SyncAll<false>();
    for (const int value : b.vector) b.Expect(value == 1);
    for (const int value : b.cube) b.Expect(value == 1);
  };
  Check(Agrees(all), "SyncAll of all cores");

  const auto aheadOfOthers = [](void*, int core) {  // sets may come before waits
    for (int i = 0; i < 15; ++i) CrossCoreSetFlag<0, PIPE_MTE3>(10);
    for (int i = 0; i < 15; ++i) CrossCoreWaitFlag(10);
  };
  Check(Agrees(aheadOfOthers), "15 flags at once");
  using Error = std::logic_error;
  const auto throws = [](decltype(PingPong) kernel, const char* text) {
    return LaunchThrows<Error>(2, kernel, text, mst::LaunchGroups);
  };
  const auto oneSets = [](void*, int core) {
    if (core == 1) CrossCoreSetFlag<2, PIPE_MTE3>(5);
    if (core == 0) CrossCoreWaitFlag(5);
  };
  Check(throws(oneSets, "CrossCoreWaitFlag: the flag is never set"),
        "a set of one vector core does not reach the cube");
  const auto circle = [](void*, int core) {
    CrossCoreWaitFlag(core % 3 == 0 ? 6 : 7);
    if ASCEND_IS_AIC
      CrossCoreSetFlag<2, PIPE_FIX>(7);
    if ASCEND_IS_AIV
      CrossCoreSetFlag<2, PIPE_MTE3>(6);
  };
  Check(throws(circle, "CrossCoreWaitFlag: the flag is never set"), "cores that wait for each other");
  const auto syncAndFlag = [](void*, int core) {
    if (core == 0) SyncAll<false>();
    if (core != 0) CrossCoreWaitFlag(0);
  };
  Check(throws(syncAndFlag, "SyncAll: the other cores ended without it"), "one in SyncAll, the others wait for a flag");
  const auto left = [](void*, int core) {
    if (core == 3) CrossCoreSetFlag<2, PIPE_FIX>(9);
    if (core == 4) CrossCoreWaitFlag(9);
  };
  Check(throws(left, "flag 9 of vector core 3 is still set"), "a flag that one of two waits for");
  const auto half = [](void*, int core) {
    if (core == 4) CrossCoreSetFlag<1, PIPE_MTE3>(9);
  };
  Check(throws(half, "flag 9 was set by some of the cores"), "a flag that one of two sets");
  const auto plain = [](void*, int) { CrossCoreSetFlag<2, PIPE_MTE3>(0); };
  Check(LaunchThrows<Error>(2, plain, "mode 2 is for cores in groups"), "mode 2 without groups");
  const auto cube = [](void*, int core) {
    if (core == 0) CrossCoreSetFlag<1, PIPE_FIX>(0);
  };
  Check(throws(cube, "mode 1 is for vector cores"), "mode 1 of a cube core");
  mst::SetPoolThreads(5);
  Check(throws(circle, "6 cores, but only 5 threads"), "fewer threads than cores that wait");
  mst::SetPoolThreads(0);
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
