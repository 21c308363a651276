// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "runtime.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "runtime_launch.h"

namespace mst {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// `bytes` is a multiple of kHugePage, and so is the address.
uint8_t* MapPages(size_t bytes) {
  void* memory = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  uint8_t* begin = static_cast<uint8_t*>(memory);
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (skip != 0) munmap(begin, skip);
  begin += skip;
  munmap(begin + bytes, kHugePage - skip);
  madvise(begin, bytes, MADV_HUGEPAGE);  // only a hint: fails where huge pages are switched off
  return begin;
}

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits for `done` without sleeping, for as long as a sleep and a wake-up would take anyway.
template <typename Done>
bool SpinUntil(const Done& done) {
  constexpr auto kLimit = std::chrono::microseconds(30);
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      CpuRelax();
    }
  } while (std::chrono::steady_clock::now() - start < kLimit);
  return done();
}

}  // namespace

// ---- local memory

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) munmap(chunk.base, chunk.bytes);
}

void Arena::Grow(size_t bytes) {
  const size_t size = RoundUp(bytes, kHugePage);
  uint8_t* base = MapPages(size);
  chunks_.push_back({base, size});
  next_ = base;
  left_ = size;
}

// One chunk as large as all of them: the next kernel of this size needs no second one.
void Arena::Merge() {
  size_t total = 0;
  for (const Chunk& chunk : chunks_) {
    total += chunk.bytes;
    munmap(chunk.base, chunk.bytes);
  }
  chunks_.clear();
  left_ = 0;
  Grow(total);
}

CoreContext& ThisCore() {
  thread_local CoreContext core;
  return core;
}

void KernelError(const char* text) { throw std::logic_error(text); }

// ---- the pool

namespace {

int PositiveFromEnv(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < 1 || value > 4096) {
    throw std::invalid_argument(std::string(name) + " must be an integer in [1, 4096], but got '" + text + "'.");
  }
  return static_cast<int>(value);
}

int CpusOf(pid_t pid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(pid, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

// CPUs by the quota of the container; a large number when there is none.
int QuotaCpus() {
  constexpr int kNone = 1 << 16;
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return kNone;
  long quota = 0;
  long period = 0;
  const int fields = std::fscanf(file, "%ld %ld", &quota, &period);
  std::fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0) return kNone;
  return static_cast<int>(std::max(1L, (quota + period - 1) / period));
}

int DefaultThreads() {
  if (const int fromEnv = PositiveFromEnv("MS_OPS_NUM_THREADS")) return fromEnv;
  int cpus = CpusOf(0);
  if (cpus == 0) cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cpus = std::min(cpus, QuotaCpus());
  const char* role = std::getenv("MS_ROLE");
  if (role == nullptr || std::strcmp(role, "MS_WORKER") != 0) return cpus;
  // Under msrun the ranks of this host share its CPUs, unless msrun has bound each rank to CPUs of its own: then the
  // rank has fewer of them than its parent. MS_WORKER_NUM counts all hosts; with several, MS_OPS_NUM_THREADS helps.
  if (CpusOf(0) < CpusOf(getppid())) return cpus;
  const char* workers = std::getenv("MS_WORKER_NUM");
  const int ranks = workers == nullptr ? 1 : std::max(1, std::atoi(workers));
  return std::max(1, cpus / ranks);
}

class Pool {
 public:
  int Threads() {
    std::lock_guard<std::mutex> lock(settingMutex_);
    if (threads_ == 0) threads_ = DefaultThreads();
    return threads_;
  }

  void SetThreads(int threads) {
    std::lock_guard<std::mutex> lock(settingMutex_);
    threads_ = threads;
  }

  void Run(LaunchState* launch) {
    const int threads = Threads();
    const int helpers = std::min(threads, launch->cores()) - 1;
    if (helpers <= 0) {
      launch->Run();
      return;
    }
    std::lock_guard<std::mutex> oneLaunch(launchMutex_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      try {
        for (; workers_ < helpers; ++workers_) std::thread(&Pool::Work, this).detach();
      } catch (const std::system_error&) {
        // The process may have no more threads: those it has do the work.
      }
      launch->SetConcurrency(std::min(threads, workers_ + 1));
      launch_ = launch;
      seats_ = helpers;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    launch->Run();
    // Whoever has not joined by now finds nothing to do any more.
    {
      std::lock_guard<std::mutex> lock(mutex_);
      launch_ = nullptr;
      seats_ = 0;
    }
    if (SpinUntil([&] { return active_.load(std::memory_order_acquire) == 0; })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return active_.load(std::memory_order_acquire) == 0; });
  }

 private:
  void Work() {
    uint64_t seen = 0;
    for (;;) {
      SpinUntil([&] { return generation_.load(std::memory_order_acquire) != seen; });
      LaunchState* launch;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
        seen = generation_.load(std::memory_order_relaxed);
        if (seats_ == 0) continue;
        --seats_;
        active_.fetch_add(1, std::memory_order_relaxed);
        launch = launch_;
      }
      launch->Run();
      if (active_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard<std::mutex> lock(mutex_);
        idle_.notify_one();
      }
    }
  }

  std::mutex settingMutex_;
  int threads_ = 0;         // 0: not asked yet
  std::mutex launchMutex_;  // held for a whole launch
  std::mutex mutex_;        // the fields below
  std::condition_variable wake_;
  std::condition_variable idle_;
  int workers_ = 0;
  LaunchState* launch_ = nullptr;
  int seats_ = 0;               // workers that may still join the launch
  std::atomic<int> active_{0};  // workers that run it
  std::atomic<uint64_t> generation_{0};
};

// Blocks of scratch that no launch uses at the moment.
class ScratchList {
 public:
  struct Block {
    uint8_t* data;
    size_t bytes;
  };

  Block Take(size_t bytes) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      size_t best = blocks_.size();
      for (size_t i = 0; i < blocks_.size(); ++i) {
        if (blocks_[i].bytes >= bytes && (best == blocks_.size() || blocks_[i].bytes < blocks_[best].bytes)) best = i;
      }
      if (best == blocks_.size() && !blocks_.empty()) {  // none fits: replace one, so that their number stays
        munmap(blocks_.back().data, blocks_.back().bytes);
        blocks_.pop_back();
      } else if (best != blocks_.size()) {
        const Block block = blocks_[best];
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(best));
        return block;
      }
    }
    const size_t size = RoundUp(bytes, kHugePage);
    return {MapPages(size), size};
  }

  void Give(Block block) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

// Never destroyed: workers may outlive the static objects of the process. After fork the child has none of the
// threads, and any of the mutexes may be locked for good, so it starts with fresh ones.
alignas(Pool) unsigned char poolMemory[sizeof(Pool)];
alignas(ScratchList) unsigned char scratchMemory[sizeof(ScratchList)];
Pool* const pool = reinterpret_cast<Pool*>(poolMemory);
ScratchList* const scratchList = reinterpret_cast<ScratchList*>(scratchMemory);

void NewState() {
  new (poolMemory) Pool;
  new (scratchMemory) ScratchList;
}

__attribute__((constructor)) void InitRuntime() {
  NewState();
  pthread_atfork(nullptr, nullptr, NewState);
}

}  // namespace

namespace {

void Launch(LaunchState* launch) {
  if (launch->cores() <= 0) return;
  pool->Run(launch);
  launch->Finish();
}

}  // namespace

void LaunchKernel(int cores, void (*fn)(void* ctx, int core), void* ctx) {
  LaunchState launch(cores, false, fn, ctx);
  Launch(&launch);
}

void LaunchGroups(int groups, void (*fn)(void* ctx, int core), void* ctx) {
  LaunchState launch(kGroupCores * groups, true, fn, ctx);
  Launch(&launch);
}

int PoolThreads() { return pool->Threads(); }

void SetPoolThreads(int threads) {
  if (threads < 0 || threads > 4096) {
    throw std::invalid_argument("the number of threads must be in [0, 4096], but got " + std::to_string(threads) + ".");
  }
  pool->SetThreads(threads);
}

Scratch::Scratch(int64_t bytes) {
  if (bytes <= 0) return;
  const ScratchList::Block block = scratchList->Take(static_cast<size_t>(bytes));
  data_ = block.data;
  bytes_ = block.bytes;
}

Scratch::~Scratch() {
  if (data_ != nullptr) scratchList->Give({data_, bytes_});
}

}  // namespace mst
