// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What runs the logical cores of a kernel on the CPU: thread pool, per-thread local memory, core context, scratch.
// Lives once per process, in libmst_runtime.so; every instruction-level library links to it.
#ifndef MST_TWIN_RUNTIME_H_
#define MST_TWIN_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#define MST_RUNTIME_API __attribute__((visibility("default")))

namespace mst {

// Memory of one on-chip level (UB or L1) of the calling thread. Kept between launches, since the first touch of fresh
// pages costs more than many kernels; grows while a kernel allocates, without moving what it already gave out.
class MST_RUNTIME_API Arena {
 public:
  static constexpr size_t kAlign = 64;
  // Distance between buffers, so that tiles of 4096 bytes do not fall on the same cache sets.
  static constexpr size_t kStagger = 1152;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint8_t* Alloc(size_t bytes) {
    const size_t step = (bytes + kAlign - 1) / kAlign * kAlign + kStagger;
    if (step > left_) Grow(step);
    uint8_t* buffer = next_;
    next_ += step;
    left_ -= step;
    return buffer;
  }
  // Takes everything back.
  void Reset() {
    if (chunks_.size() > 1) Merge();
    if (!chunks_.empty()) {
      next_ = chunks_[0].base;
      left_ = chunks_[0].bytes;
    }
  }

 private:
  struct Chunk {
    uint8_t* base;
    size_t bytes;
  };
  void Grow(size_t bytes);
  void Merge();

  uint8_t* next_ = nullptr;
  size_t left_ = 0;
  std::vector<Chunk> chunks_;
};

class LaunchState;

// The logical core that the calling thread runs at the moment.
struct CoreContext {
  int32_t index = 0;  // in the launch
  int32_t blockIdx = 0;
  int32_t blockNum = 1;
  int32_t subBlockIdx = 0;  // in a group, of a vector core
  int32_t subBlockNum = 1;
  bool isCube = false;
  Arena ub;
  Arena l1;
  void* pipe = nullptr;           // the kernel's TPipe
  bool atomicAdd = false;         // SetAtomicAdd is in force
  LaunchState* launch = nullptr;  // the launch this core belongs to
};

MST_RUNTIME_API CoreContext& ThisCore();

// Runs fn(ctx, core) for every core in [0, cores), handing cores out to the pool lowest index first; the caller takes
// part. Returns when all are done. The first exception of a core is thrown here and the cores not yet begun are
// skipped. A single core runs inline. Launches of several threads at once are run one after the other.
MST_RUNTIME_API void LaunchKernel(int cores, void (*fn)(void* ctx, int core), void* ctx);

// The same for kernels whose cube cores run too: each group has a cube core and two vector cores, in this order.
constexpr int kGroupCores = 3;
MST_RUNTIME_API void LaunchGroups(int groups, void (*fn)(void* ctx, int core), void* ctx);

// "core 3" of a launch, or "cube core 1" of one in groups: as the kernel knows itself by GetBlockIdx.
MST_RUNTIME_API std::string NameOfCore(int index);

// What a core tells those that wait for it: the checked build's vector clock, merged by maximum. Empty in the fast one.
using Knowledge = std::vector<uint32_t>;

// Flags between cores, by mode and id as CrossCoreSetFlag has them. A set counts when all cores that set the flag
// together have set it; then it can be waited for once by each that it reaches. Waiting needs all cores of the launch
// running at once (at most PoolThreads()). False: the other cores have ended or wait as well.
MST_RUNTIME_API void SetCrossCoreFlag(int mode, int id, const Knowledge& known);
MST_RUNTIME_API bool WaitCrossCoreFlag(int id, Knowledge* known);

// Barrier among all cores of the launch, or those of the caller's kind: sets a flag and waits for it.
MST_RUNTIME_API Knowledge SyncAllCores(bool ownKind, const Knowledge& known);

// Threads of the pool, the caller included: MS_OPS_NUM_THREADS, or the CPUs this process may use divided by the local
// ranks of msrun.
MST_RUNTIME_API int PoolThreads();
// Overrides that number; 0 returns to the default.
MST_RUNTIME_API void SetPoolThreads(int threads);

// Global-memory scratch for one launch, 64-byte aligned. Blocks are kept and reused, by any thread.
class MST_RUNTIME_API Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// Throws std::logic_error: a kernel broke a rule that the card would punish with a hang.
[[noreturn]] MST_RUNTIME_API void KernelError(const char* text);

}  // namespace mst

#endif  // MST_TWIN_RUNTIME_H_
