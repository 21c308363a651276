// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What a tiling function may know about the machine: one entry per Ascend SoC and one for the CPU.
#ifndef MST_COMMON_PLATFORM_H_
#define MST_COMMON_PLATFORM_H_

#include <cstdint>

namespace mst {

struct Platform {
  const char* soc;       // "ascend910b1", ..., "cpu"
  int32_t vectorCores;   // vector cores; on the CPU the threads of the pool
  int32_t cubeCores;     // cube cores; on the CPU the threads of the pool
  int32_t tasksPerCore;  // tasks a core may be given; above 1 only where they are handed out dynamically (CPU)
  int64_t ubBytes;       // unified buffer of a vector core; on the CPU the part of L2 a tile should live in
  int64_t l1Bytes;       // L1 of a cube core; on the CPU the room for packed operands per thread
  int64_t l0aBytes;      // L0A, L0B and L0C of a cube core
  int64_t l0bBytes;
  int64_t l0cBytes;
  int64_t l2Bytes;  // L2 of all cores together; on the CPU what a reader may still find there of a tensor
  double mhz;       // clock of the cores; 0 on the CPU
  bool isCpu() const { return soc[0] == 'c'; }
};

// The platform of a SoC name, or nullptr.
const Platform* FindPlatform(const char* soc);
// The CPU with `threads` threads.
Platform CpuPlatform(int32_t threads);

}  // namespace mst

#endif  // MST_COMMON_PLATFORM_H_
