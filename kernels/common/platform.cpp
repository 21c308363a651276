// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "common/platform.h"

#include <cstring>

namespace mst {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

// Atlas A2: 24 or 20 cube cores with two vector cores each. UB and L1 are what a kernel may use of 192 and 512 KiB.
constexpr Platform Ascend910B(const char* soc, int32_t cubeCores, int64_t l2Bytes, double mhz) {
  return {soc,        2 * cubeCores, cubeCores, /*tasksPerCore=*/1, 196352, 524032, 64 * kKiB, 64 * kKiB,
          128 * kKiB, l2Bytes,       mhz};
}

constexpr Platform kAscend[] = {
    Ascend910B("ascend910b1", 24, 192 * kMiB, 1850),
    Ascend910B("ascend910b2", 24, 192 * kMiB, 1800),
    Ascend910B("ascend910b3", 20, 192 * kMiB, 1800),
    Ascend910B("ascend910b4", 20, 96 * kMiB, 1500),
};

}  // namespace

const Platform* FindPlatform(const char* soc) {
  for (const Platform& platform : kAscend) {
    if (std::strcmp(platform.soc, soc) == 0) return &platform;
  }
  return nullptr;
}

Platform CpuPlatform(int32_t threads) {
  // A tile of 192 KiB stays in any L2 of 256 KiB and more. L1 holds packed operands, which live in L2 and L3;
  // with 7680 KiB the gradient of long sequences stays below 32 MB on two threads.
  return {"cpu",     threads,   threads,    /*tasksPerCore=*/4, 192 * kKiB, 7680 * kKiB,
          64 * kKiB, 64 * kKiB, 128 * kKiB, 8 * kMiB,           /*mhz=*/0};
}

}  // namespace mst
