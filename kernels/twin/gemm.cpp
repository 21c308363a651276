// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Layers, from the inside: Tile (registers), MultiplyBlock (one block of A against all panels), Multiply (blocks of k
// and m). Conversion of A and packing of B are in gemm_pack.cpp, the engine for AMX is in gemm_amx.h.
#include "gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gemm_pack.h"
#include "simd.h"

#if MST_GEMM_PAIRS
#include <cpuid.h>

#include "gemm_amx.h"
#endif

namespace mst {
namespace gemm {
namespace {

using simd::kLanes;
using simd::VF;

constexpr int kTileRows = 6;
constexpr int64_t kBlockK = 256;   // words: a panel's rows of one block stay near L1
constexpr int64_t kBlockM = 192;   // rows of A converted at once: whole tiles of every engine
constexpr int64_t kBlockN = 1024;  // columns of B packed at once when B comes unpacked

// ------------------------------------------------------------------------------------------------------------- tile

struct FmaOp {
  static MST_INLINE VF Of(VF c, VF a, VF b) { return c + a * b; }
};
#if MST_GEMM_PAIRS
// Pairs of bfloat16. As assembly text, because this file is compiled for CPUs without the instruction too.
struct DotOp {
  static MST_INLINE VF Of(VF c, VF a, VF b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
};
#endif

// Keeps the compiler from computing 24 addresses before the loop over k and holding them on the stack through it.
template <typename T>
MST_INLINE void Forget(T& value) {
  asm("" : "+r"(value));
}

// C [count * kRows][kVectors * kLanes] (+)= A [count * kRows][k] * B [k][kVectors * kLanes]; kRows rows of C at a time
// in registers.
template <int kRows, int kVectors, class Op>
void Tile(Words a, const float* __restrict b, int64_t ldb, float* __restrict c, int64_t ldc, int64_t k, bool accumulate,
          int64_t count) {
  for (int64_t tile = 0; tile < count; tile++) {
    // What follows this block in the panel is used next: its lines come to L2 under the first tiles.
    const int64_t ahead = tile < kVectors ? k * ldb + tile * kLanes : 0;
    VF sum[kRows][kVectors] = {};
    if (accumulate) {
#pragma GCC unroll 8
      for (int i = 0; i < kRows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; j++) sum[i][j] = simd::Load(c + i * ldc + j * kLanes);
      }
    } else {
      const float* row = c;
#pragma GCC unroll 8
      for (int i = 0; i < kRows; i++, row += ldc) {
        for (int j = 0; j < kVectors * simd::kBytes; j += 64) __builtin_prefetch(row + j / 4, 1);
        Forget(row);
      }
    }
    const char* ak = a.data;
    const float* bk = b;
#pragma GCC unroll 2
    for (int64_t p = 0; p < k; p++) {
      __builtin_prefetch(bk + ahead, 0, 2);
      VF bp[kVectors];
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; j++) bp[j] = simd::Load(bk + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; i++) {
        float value;
        memcpy(&value, ak + i * a.rowStride, 4);
        const VF ap = simd::Fill(value);
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; j++) sum[i][j] = Op::Of(sum[i][j], ap, bp[j]);
      }
      ak += a.kStride;
      bk += ldb;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; i++) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; j++) simd::Store(c + j * kLanes, sum[i][j]);
      c += ldc;
      Forget(c);
    }
    a.data += kRows * a.rowStride;
  }
}

using TileFunction = void (*)(Words a, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t k, bool accumulate,
                              int64_t count);

template <class Op, int kVectors>
TileFunction TileOfRows(int rows) {
  static constexpr TileFunction kTiles[kTileRows] = {Tile<1, kVectors, Op>, Tile<2, kVectors, Op>,
                                                     Tile<3, kVectors, Op>, Tile<4, kVectors, Op>,
                                                     Tile<5, kVectors, Op>, Tile<6, kVectors, Op>};
  return kTiles[rows - 1];
}

template <class Op>
TileFunction TileOf(int rows, int vectors) {
  if constexpr (kTileVectors == 4) {
    if (vectors == 4) return TileOfRows<Op, 4>(rows);
    if (vectors == 3) return TileOfRows<Op, 3>(rows);
  }
  return vectors == 2 ? TileOfRows<Op, 2>(rows) : TileOfRows<Op, 1>(rows);
}

// The next tiles: their rows, and how many of them. A remainder above 6 goes in two halves (7 = 4 + 3, 8 = 4 + 4).
int NextTiles(int64_t rest, int64_t* count) {
  *count = 1;
  if (rest % kTileRows == 0 || rest >= 2 * kTileRows) {
    *count = rest % kTileRows == 0 ? rest / kTileRows : rest / kTileRows - 1;
    return kTileRows;
  }
  return int(rest > kTileRows ? (rest + 1) / 2 : rest);
}

// Columns [first, first + columns) of one panel's product, for a tile that is not whole vectors from the panel's start:
// through a tile of our own.
template <class Op>
void PartialTile(int rows, Words a, const float* b, int64_t ldb, int first, int columns, float* c, int64_t ldc,
                 int64_t k, bool accumulate) {
  alignas(64) float tile[kTileRows * kPanelColumns];
  const int vectors = int(CeilDiv(first + columns, kLanes));
  if (accumulate) {
    memset(tile, 0, sizeof(tile));
    for (int i = 0; i < rows; i++) memcpy(tile + i * kPanelColumns + first, c + i * ldc, size_t(columns) * 4);
  }
  TileOf<Op>(rows, vectors)(a, b, ldb, tile, kPanelColumns, k, accumulate, 1);
  for (int i = 0; i < rows; i++) memcpy(c + i * ldc, tile + i * kPanelColumns + first, size_t(columns) * 4);
}

// One block of A against one panel; `first` is the panel column of c's first column.
template <class Op>
void MultiplyPanel(Words a, const float* b, int64_t ldb, int first, int columns, int64_t m, int64_t k, float* c,
                   int64_t ldc, bool accumulate) {
  const bool whole = first == 0 && columns % kLanes == 0;
  for (int64_t i = 0; i < m;) {
    int64_t count;
    const int rows = NextTiles(m - i, &count);
    const Words ai = {a.data + i * a.rowStride, a.rowStride, a.kStride};
    if (whole) {
      TileOf<Op>(rows, columns / kLanes)(ai, b, ldb, c + i * ldc, ldc, k, accumulate, count);
      i += rows * count;
    } else {
      PartialTile<Op>(rows, ai, b, ldb, first, columns, c + i * ldc, ldc, k, accumulate);
      i += rows;
    }
  }
}

// x86 takes some hundred cycles for an instruction that meets a subnormal number, and probabilities far from the
// maximum are such: while one of these lives they count as 0, as they do in tiles and products of pairs anyway.
class FlushSubnormals {
#ifdef __SSE2__
 public:
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }  // flush results, operands are zero
  ~FlushSubnormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
 public:
  FlushSubnormals() {}
#endif
};

// ----------------------------------------------------------------------------------------------------------- engine

#if MST_GEMM_PAIRS
struct CpuidRegisters {
  uint32_t eax, ebx, ecx, edx;
};
CpuidRegisters Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters r = {};
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}
bool HasDot() { return (Cpuid(7, 1).eax >> 5 & 1) != 0; }
// On Intel the dot product runs at half the rate of an fp32 FMA: no gain over expanding.
bool IsDotFast() { return HasDot() && Cpuid(0, 0).ebx == signature_AMD_ebx; }
bool EnableAmx() {
  constexpr uint32_t kTileAndBFloat16 = 1u << 24 | 1u << 22;
  constexpr uint32_t kXsaveTiles = 1u << 17 | 1u << 18;
  if ((Cpuid(7, 0).edx & kTileAndBFloat16) != kTileAndBFloat16) return false;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kXsaveTiles) == kXsaveTiles && amx::RequestPermission();
}
#else
bool HasDot() { return false; }
bool IsDotFast() { return false; }
bool EnableAmx() { return false; }
#endif

Engine ChooseEngine() {
  const char* wish = getenv("MS_OPS_BF16_ENGINE");
  const bool any = wish == nullptr || *wish == '\0';
  if ((any || strcmp(wish, "amx") == 0) && EnableAmx()) return Engine::kAmx;
  if (any ? IsDotFast() : strcmp(wish, "dot") == 0 && HasDot()) return Engine::kDot;
  return Engine::kExpand;
}

// One block of k and m: A as words against rows [kWord, kWord + k) of all panels that columns [nBegin, nBegin + n)
// touch.
template <class Op>
void MultiplyBlock(Words a, const Panels& b, int64_t panelWords, int64_t kWord, int64_t nBegin, int64_t m, int64_t n,
                   int64_t k, float* c, int64_t ldc, bool accumulate) {
  for (int64_t j = 0; j < n;) {
    const int64_t panel = (nBegin + j) / kPanelColumns;
    const int first = int((nBegin + j) % kPanelColumns);
    const int columns = int(std::min<int64_t>(kPanelColumns - first, n - j));
    const int64_t ldb = PanelStride(b.n, panel * kPanelColumns);
    const float* data = static_cast<const float*>(b.data) + panel * panelWords + kWord * ldb;
    MultiplyPanel<Op>(a, data, ldb, first, columns, m, k, c + j, ldc, accumulate);
    j += columns;
  }
}

#if MST_GEMM_PAIRS
// As MultiplyBlock, on tiles of 16 columns; k in elements.
void MultiplyBlockOnTiles(Words a, const Panels& b, int64_t panelWords, int64_t kWord, int64_t nBegin, int64_t m,
                          int64_t n, int64_t k, float* c, int64_t ldc, bool accumulate) {
  constexpr int kMaxColumns = 64;
  amx::Column columns[kMaxColumns];
  int count = 0;
  for (int64_t j = 0; j < n;) {
    const int64_t panel = (nBegin + j) / kPanelColumns;
    const int64_t inPanel = (nBegin + j) % kPanelColumns;
    const int first = int(inPanel % amx::kTile);
    const int64_t ldb = PanelStride(b.n, panel * kPanelColumns);
    const float* data = static_cast<const float*>(b.data) + panel * panelWords + kWord * ldb + inPanel - first;
    const int width = int(std::min<int64_t>(amx::kTile - first, n - j));
    columns[count++] = {reinterpret_cast<const char*>(data), ldb * 4, c + j, first, width};
    j += width;
    if (count == kMaxColumns || j == n) {
      amx::Multiply(a.data, a.rowStride, columns, count, m, k, ldc, accumulate);
      count = 0;
    }
  }
}
#endif

}  // namespace

Engine BFloat16Engine() {
  static const Engine kEngine = ChooseEngine();
  return kEngine;
}

const char* NameOf(Engine engine) { return engine == Engine::kAmx ? "amx" : engine == Engine::kDot ? "dot" : "expand"; }

void Multiply(Elem elem, const Matrix& a, const Panels& b, int64_t kBegin, int64_t nBegin, int64_t m, int64_t n,
              int64_t k, float* c, int64_t ldc, bool accumulate) {
  const FlushSubnormals flush;
  const int64_t panelWords = WordsOf(elem, b.k) * kPanelColumns;
  const int64_t blockK = kBlockK * (IsPairs(elem) ? 2 : 1);
  const int64_t blockM = elem == Elem::kFloat ? m : kBlockM;
  for (int64_t k0 = 0; k0 < k || k0 == 0; k0 += blockK) {
    const int64_t kc = std::min(blockK, k - k0);
    for (int64_t i0 = 0; i0 < m; i0 += blockM) {
      const int64_t mc = std::min(blockM, m - i0);
      const Words words = WordsOfA(elem, a, i0, k0, mc, kc);
      const auto block = [&](auto op) {
        MultiplyBlock<decltype(op)>(words, b, panelWords, WordsOf(elem, kBegin + k0), nBegin, mc, n, WordsOf(elem, kc),
                                    c + i0 * ldc, ldc, accumulate || k0 > 0);
      };
#if MST_GEMM_PAIRS
      if (IsPairs(elem)) {
        if (BFloat16Engine() == Engine::kAmx && k > 0) {
          MultiplyBlockOnTiles(words, b, panelWords, WordsOf(elem, kBegin + k0), nBegin, mc, n, kc, c + i0 * ldc, ldc,
                               accumulate || k0 > 0);
        } else {
          block(DotOp());
        }
        continue;
      }
#endif
      block(FmaOp());
    }
  }
}

void Multiply(Elem elem, const Matrix& a, const Matrix& b, int64_t m, int64_t n, int64_t k, float* c, int64_t ldc,
              bool accumulate) {
  const int64_t blockK = kBlockK * (IsPairs(elem) ? 2 : 1);
  for (int64_t n0 = 0; n0 < n; n0 += kBlockN) {
    const int64_t nc = std::min(kBlockN, n - n0);
    for (int64_t k0 = 0; k0 < k || k0 == 0; k0 += blockK) {
      const int64_t kc = std::min(blockK, k - k0);
      void* panels = ScratchOf(kSlotB, PanelBytes(elem, kc, nc));
      PackBlock(elem, b, k0, n0, kc, nc, static_cast<float*>(panels));
      const Matrix ak = {At(elem, a, 0, k0), a.rowStride, a.colStride};
      Multiply(elem, ak, Panels{panels, kc, nc}, 0, 0, m, nc, kc, c + n0, ldc, accumulate || k0 > 0);
    }
  }
}

}  // namespace gemm
}  // namespace mst
