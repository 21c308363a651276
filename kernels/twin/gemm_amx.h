// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 pairs on AMX tiles: one instruction multiplies 16 x 32 by 32 x 16 values. For gemm.cpp only.
// Instructions are assembly text, because the file is compiled for CPUs without them too.
#ifndef MST_TWIN_GEMM_AMX_H_
#define MST_TWIN_GEMM_AMX_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mst {
namespace gemm {
namespace amx {

constexpr int kTile = 16;       // rows and fp32 columns of a tile
constexpr int kTilePairs = 16;  // pairs of a tile's row of A

// Asks the kernel for the tile registers, once per process.
inline bool RequestPermission() {
  constexpr int kArchRequestPermission = 0x1023;
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kArchRequestPermission, kTileData) == 0;
}

// Tiles: C 0..3 (2 x 2), A 4 and 5, B 6 and 7.
struct alignas(64) Config {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};

// Rows of the upper and the lower tile of A, pairs of a step.
inline void Configure(int upper, int lower, int pairs) {
  Config config;
  const int rows[8] = {upper, upper, lower, lower, upper, lower, pairs, pairs};
  for (int t = 0; t < 8; t++) {
    config.rows[t] = uint8_t(rows[t]);
    config.rowBytes[t] = rows[t] == 0 ? 0 : uint16_t(t == 4 || t == 5 ? pairs * 4 : 64);
  }
  asm volatile("ldtilecfg %0" : : "m"(config));
}
inline void Release() { asm volatile("tilerelease" : : : "memory"); }

#define MST_TILE_LOAD(tile, base, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(base), "r"(stride) : "memory")
#define MST_TILE_STORE(tile, base, stride) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(base), "r"(stride) : "memory")
#define MST_TILE_ZERO(tile) asm volatile("tilezero %%tmm" #tile : :)
#define MST_TILE_DOT(c, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

// 16 columns of B and of C.
struct Columns {
  const char* b;    // of the first pair row
  int64_t bStride;  // bytes from pair row to pair row
  float* c;
  int64_t cStride;  // bytes
};

// One or two tiles of rows by one or two of columns, `steps` steps of `pairs` pairs.
template <bool kLower, bool kRight>
inline void Block(const char* a, int64_t aStride, const Columns& left, const Columns& right, int64_t steps, int pairs,
                  bool accumulate) {
  const char* aLower = a + kTile * aStride;
  char* c0 = reinterpret_cast<char*>(left.c);
  char* c1 = reinterpret_cast<char*>(right.c);
  if (accumulate) {
    MST_TILE_LOAD(0, c0, left.cStride);
    if constexpr (kRight) MST_TILE_LOAD(1, c1, right.cStride);
    if constexpr (kLower) MST_TILE_LOAD(2, c0 + kTile * left.cStride, left.cStride);
    if constexpr (kLower && kRight) MST_TILE_LOAD(3, c1 + kTile * right.cStride, right.cStride);
  } else {
    MST_TILE_ZERO(0);
    if constexpr (kRight) MST_TILE_ZERO(1);
    if constexpr (kLower) MST_TILE_ZERO(2);
    if constexpr (kLower && kRight) MST_TILE_ZERO(3);
  }
  const char* b0 = left.b;
  const char* b1 = right.b;
  for (int64_t s = 0; s < steps; s++) {
    MST_TILE_LOAD(4, a, aStride);
    MST_TILE_LOAD(6, b0, left.bStride);
    MST_TILE_DOT(0, 4, 6);
    if constexpr (kRight) {
      MST_TILE_LOAD(7, b1, right.bStride);
      MST_TILE_DOT(1, 4, 7);
    }
    if constexpr (kLower) {
      MST_TILE_LOAD(5, aLower, aStride);
      MST_TILE_DOT(2, 5, 6);
      if constexpr (kRight) MST_TILE_DOT(3, 5, 7);
    }
    a += pairs * 4;
    aLower += pairs * 4;
    b0 += pairs * left.bStride;
    b1 += pairs * right.bStride;
  }
  MST_TILE_STORE(0, c0, left.cStride);
  if constexpr (kRight) MST_TILE_STORE(1, c1, right.cStride);
  if constexpr (kLower) MST_TILE_STORE(2, c0 + kTile * left.cStride, left.cStride);
  if constexpr (kLower && kRight) MST_TILE_STORE(3, c1 + kTile * right.cStride, right.cStride);
}

#undef MST_TILE_LOAD
#undef MST_TILE_STORE
#undef MST_TILE_ZERO
#undef MST_TILE_DOT

// Columns [first, first + count) of 16 aligned columns of B, for columns of C from c.
struct Column {
  const char* b;
  int64_t bStride;
  float* c;
  int first;
  int count;
  bool whole() const { return count == kTile; }
};

// C tiles of up to 32 rows of one column; where the column is not whole, through memory of our own.
class Target {
 public:
  Target(const Column& column, int64_t ldc, int64_t row, int rows, bool accumulate)
      : column_(column), c_(column.c + row * ldc), ldc_(ldc), rows_(rows) {
    if (column.whole()) return;
    if (!accumulate) return;
    memset(tile_, 0, sizeof(tile_));
    for (int i = 0; i < rows; i++) memcpy(tile_ + i * kTile + column.first, c_ + i * ldc, size_t(column.count) * 4);
  }
  ~Target() {
    if (column_.whole()) return;
    for (int i = 0; i < rows_; i++) {
      memcpy(c_ + i * ldc_, tile_ + i * kTile + column_.first, size_t(column_.count) * 4);
    }
  }
  Columns At(int64_t pairRow) {
    const char* b = column_.b + pairRow * column_.bStride;
    if (column_.whole()) return {b, column_.bStride, c_, ldc_ * 4};
    return {b, column_.bStride, tile_, kTile * 4};
  }

 private:
  const Column& column_;
  float* c_;
  int64_t ldc_;
  int rows_;
  alignas(64) float tile_[2 * kTile * kTile];
};

// C [m] (+)= A [m][k] * B over the given columns of 16. A is rows of bfloat16, aStride bytes apart; an odd k has a zero
// behind it. Steps of 32 values of k, then one for the rest, whatever m and the columns are.
inline void Multiply(const char* a, int64_t aStride, const Column* columns, int columnCount, int64_t m, int64_t k,
                     int64_t ldc, bool accumulate) {
  const int64_t steps = k / (2 * kTilePairs);
  const int rest = int(k % (2 * kTilePairs) + 1) / 2;
  for (int pass = 0; pass < 2; pass++) {
    const int64_t passSteps = pass == 0 ? steps : 1;
    const int pairs = pass == 0 ? kTilePairs : rest;
    const bool add = accumulate || (pass == 1 && steps > 0);
    if (passSteps == 0 || pairs == 0) continue;
    const int64_t pairRow = pass == 0 ? 0 : steps * kTilePairs;
    const auto rowsAt = [&](int64_t i, int lower, int j) {
      const char* ai = a + i * aStride + pairRow * 4;
      const int rows = int(std::min<int64_t>(2 * kTile, m - i));
      Target left(columns[j], ldc, i, rows, add);
      if (j + 1 < columnCount) {
        Target right(columns[j + 1], ldc, i, rows, add);
        if (lower > 0) {
          Block<true, true>(ai, aStride, left.At(pairRow), right.At(pairRow), passSteps, pairs, add);
        } else {
          Block<false, true>(ai, aStride, left.At(pairRow), right.At(pairRow), passSteps, pairs, add);
        }
      } else if (lower > 0) {
        Block<true, false>(ai, aStride, left.At(pairRow), left.At(pairRow), passSteps, pairs, add);
      } else {
        Block<false, false>(ai, aStride, left.At(pairRow), left.At(pairRow), passSteps, pairs, add);
      }
    };
    // Columns are the outer loop: their part of B stays in L1 while the rows pass.
    const int64_t wholeRows = m / (2 * kTile) * (2 * kTile);
    if (wholeRows > 0) {
      Configure(kTile, kTile, pairs);
      for (int j = 0; j < columnCount; j += 2) {
        for (int64_t i = 0; i < wholeRows; i += 2 * kTile) rowsAt(i, kTile, j);
      }
    }
    if (m > wholeRows) {
      const int upper = int(std::min<int64_t>(kTile, m - wholeRows));
      const int lower = int(m - wholeRows) - upper;
      Configure(upper, lower, pairs);
      for (int j = 0; j < columnCount; j += 2) rowsAt(wholeRows, lower, j);
    }
  }
  Release();
}

}  // namespace amx
}  // namespace gemm
}  // namespace mst

#endif  // MST_TWIN_GEMM_AMX_H_
