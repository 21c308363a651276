// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Integer arithmetic of tiling functions, on the host side.
#ifndef MST_COMMON_TILING_MATH_H_
#define MST_COMMON_TILING_MATH_H_

#include <algorithm>
#include <cstdint>

#include "common/platform.h"

namespace mst {

constexpr int64_t kBlockBytes = 32;          // unit of the unified buffer
constexpr int64_t kMinBytesPerCore = 65536;  // less work than this does not pay for waking another core
constexpr int64_t kTileBytesCard = 16384;    // copies of 16 KB reach the full bandwidth of the card
constexpr int64_t kRowsPerTileMax = 248;     // repeats of one instruction are at most 255; a multiple of 8
constexpr int64_t kCopyPiecesMax = 4095;     // pieces of one copy
constexpr int64_t kColsUnit = 64;            // columns of a partial tile are a multiple of one vector instruction

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t unit) { return CeilDiv(a, unit) * unit; }
constexpr int64_t RoundDown(int64_t a, int64_t unit) { return a / unit * unit; }

// Whether a tensor of so many bytes is better moved past the caches: nothing of it would still be there for its next
// reader.
inline int32_t StreamsPastCaches(const Platform& platform, int64_t bytes) { return bytes >= platform.l2Bytes; }

// Cores for memory-bound work of `units` indivisible pieces that move `bytes` in all; 0 without work.
inline int32_t CoresForBytes(const Platform& platform, int64_t units, int64_t bytes) {
  const int64_t tasks = int64_t{platform.vectorCores} * platform.tasksPerCore;
  return static_cast<int32_t>(std::min({tasks, units, std::max<int64_t>(1, bytes / kMinBytesPerCore)}));
}

}  // namespace mst

#endif  // MST_COMMON_TILING_MATH_H_
