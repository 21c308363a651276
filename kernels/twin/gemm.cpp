// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Layers, from the inside: Tile (registers), MultiplyBlock (one block of A against all panels), Multiply (blocks of k
// and m, conversion of A). Packing and the engines for bfloat16 are beside them.
#include "gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "simd.h"

#if defined(__x86_64__) && MST_VECTOR_BYTES == 64
#include <cpuid.h>

#include "gemm_amx.h"
#define MST_GEMM_PAIRS 1  // engines that multiply pairs of bfloat16
#else
#define MST_GEMM_PAIRS 0
#endif

namespace mst {
namespace gemm {
namespace {

using simd::kLanes;
using simd::VF;
using simd::VH;

// 6 x 4 vectors of C and 4 of B fit 32 registers; AVX2 has 16.
constexpr int kTileVectors = simd::kBytes == 32 ? 2 : 4;
constexpr int kTileRows = 6;
constexpr int kPanelColumns = kTileVectors * kLanes;
constexpr int64_t kBlockK = 512;   // words: a panel's rows of one block stay in L2
constexpr int64_t kBlockM = 192;   // rows of A converted at once: whole tiles of every engine
constexpr int64_t kBlockN = 1024;  // columns of B packed at once when B comes unpacked

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Words from one row of a panel to the next: the last panel is only as wide as it must be.
int64_t PanelStride(int64_t n, int64_t panelBegin) {
  return std::min<int64_t>(kPanelColumns, RoundUp(n - panelBegin, kLanes));
}

// ---------------------------------------------------------------------------------------------------------- scratch

// Memory of the calling thread, kept between calls; one buffer per purpose.
enum Slot { kSlotA, kSlotB, kSlots };

class Scratch {
 public:
  ~Scratch() {
    for (void* p : data_) free(p);
  }
  void* Get(Slot slot, int64_t bytes) {
    if (bytes > bytes_[slot]) {
      free(data_[slot]);
      bytes_[slot] = RoundUp(bytes, 4096);
      data_[slot] = aligned_alloc(4096, size_t(bytes_[slot]));
      if (data_[slot] == nullptr) abort();
    }
    return data_[slot];
  }

 private:
  void* data_[kSlots] = {};
  int64_t bytes_[kSlots] = {};
};

thread_local Scratch scratch;

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

// A as words: element (row, k) is at data + row * rowStride + k * kStride, in bytes.
struct Words {
  const char* data;
  int64_t rowStride;
  int64_t kStride;
};

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
  for (; count > 0; count--) {
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

// ------------------------------------------------------------------------------------------------------- conversion

struct FloatSource {
  static constexpr int kElemBytes = 4;
  static constexpr int kElems = 1;  // elements of one word
  static MST_INLINE VF Get(const void* p) { return simd::Load(p); }
  static MST_INLINE VF GetPart(const void* p, int64_t elems) { return simd::LoadPart(p, int(elems)); }
};

template <bool kIsHalf>
struct Expand16Source {
  static constexpr int kElemBytes = 2;
  static constexpr int kElems = 1;
  static MST_INLINE VF Of(VH v) { return kIsHalf ? simd::FromHalf(v) : simd::FromBFloat16(v); }
  static MST_INLINE VF Get(const void* p) { return Of(simd::Load16(p)); }
  static MST_INLINE VF GetPart(const void* p, int64_t elems) {
    VH v{};
    memcpy(&v, p, size_t(elems) * 2);
    return Of(v);
  }
};
using HalfSource = Expand16Source<true>;
using BFloat16Source = Expand16Source<false>;

struct PairSource {  // along k: two neighbours are a word already
  static constexpr int kElemBytes = 2;
  static constexpr int kElems = 2;
  static MST_INLINE VF Get(const void* p) { return simd::Load(p); }
  static MST_INLINE VF GetPart(const void* p, int64_t elems) {
    VF v{};
    memcpy(&v, p, size_t(elems) * 2);
    return v;
  }
};

// src [rows][k], contiguous in k -> words dst [k][ldd], rows as columns, zero from `rows` up to a multiple of kLanes.
template <class Source>
void TransposeWords(const char* src, int64_t rowBytes, int64_t rows, int64_t k, float* dst, int64_t ldd) {
  constexpr int64_t kStep = kLanes * Source::kElems;
  const int64_t words = CeilDiv(k, Source::kElems);
  for (int64_t r0 = 0; r0 < rows; r0 += kLanes) {
    for (int64_t k0 = 0; k0 < k; k0 += kStep) {
      VF v[kLanes];
      const char* p = src + r0 * rowBytes + k0 * Source::kElemBytes;
      if (r0 + kLanes <= rows && k0 + kStep <= k) {
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; i++) v[i] = Source::Get(p + i * rowBytes);
      } else {
        for (int i = 0; i < kLanes; i++) {
          v[i] = VF{};
          if (r0 + i >= rows) continue;
          v[i] = k0 + kStep <= k ? Source::Get(p + i * rowBytes) : Source::GetPart(p + i * rowBytes, k - k0);
        }
      }
      simd::Transpose(v);
      float* d = dst + k0 / Source::kElems * ldd + r0;
      const int64_t count = std::min<int64_t>(kLanes, words - k0 / Source::kElems);
      if (count == kLanes) {
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; i++) simd::Store(d + i * ldd, v[i]);
      } else {
        for (int i = 0; i < count; i++) simd::Store(d + i * ldd, v[i]);
      }
    }
  }
}

// One row of `columns` words; dst is written up to a multiple of kLanes.
template <class Source>
void CopyWords(const char* src, int64_t columns, float* dst) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) simd::Store(dst + j, Source::Get(src + j * Source::kElemBytes));
  if (j < columns) simd::Store(dst + j, Source::GetPart(src + j * Source::kElemBytes, columns - j));
}

VF PairsOf(VH even, VH odd) { return VF(simd::Widen(even) | (simd::Widen(odd) << 16)); }

// Two rows of bfloat16 -> one row of pairs (odd == nullptr: zeros), up to a multiple of kLanes.
void InterleavePairs(const char* even, const char* odd, int64_t columns, float* dst) {
  for (int64_t j = 0; j < columns; j += kLanes) {
    VH a{}, b{};
    if (j + kLanes <= columns) {
      a = simd::Load16(even + j * 2);
      if (odd != nullptr) b = simd::Load16(odd + j * 2);
    } else {
      memcpy(&a, even + j * 2, size_t(columns - j) * 2);
      if (odd != nullptr) memcpy(&b, odd + j * 2, size_t(columns - j) * 2);
    }
    simd::Store(dst + j, PairsOf(a, b));
  }
}

bool IsPairs(Elem elem) { return elem == Elem::kBFloat16 && BFloat16Engine() != Engine::kExpand; }
int64_t ElemBytes(Elem elem) { return elem == Elem::kFloat ? 4 : 2; }
int64_t WordsOf(Elem elem, int64_t k) { return IsPairs(elem) ? (k + 1) / 2 : k; }

template <class F>
void WithSource(Elem elem, bool pairs, F f) {
  if (elem == Elem::kFloat) return f(FloatSource());
  if (elem == Elem::kHalf) return f(HalfSource());
  return pairs ? f(PairSource()) : f(BFloat16Source());
}

const char* At(Elem elem, const Matrix& x, int64_t row, int64_t col) {
  return static_cast<const char*>(x.data) + (row * x.rowStride + col * x.colStride) * ElemBytes(elem);
}

// Rows [kBegin, kBegin + k) and columns [nBegin, nBegin + n) of B into panels.
void PackBlock(Elem elem, const Matrix& b, int64_t kBegin, int64_t nBegin, int64_t k, int64_t n, float* dst) {
  const int64_t panelWords = WordsOf(elem, k) * kPanelColumns;
  const bool pairs = IsPairs(elem);
  for (int64_t j = 0; j < n; j += kPanelColumns, dst += panelWords) {
    const int64_t columns = std::min<int64_t>(kPanelColumns, n - j);
    const int64_t ldd = PanelStride(n, j);
    const char* src = At(elem, b, kBegin, nBegin + j);
    if (b.rowStride == 1) {
      WithSource(elem, pairs, [&](auto source) {
        TransposeWords<decltype(source)>(src, b.colStride * ElemBytes(elem), columns, k, dst, ldd);
      });
      continue;
    }
    const int64_t rowBytes = b.rowStride * ElemBytes(elem);
    for (int64_t i = 0; pairs && i < k; i += 2) {
      InterleavePairs(src + i * rowBytes, i + 1 < k ? src + (i + 1) * rowBytes : nullptr, columns, dst + i / 2 * ldd);
    }
    if (pairs) continue;
    WithSource(elem, false, [&](auto source) {
      for (int64_t i = 0; i < k; i++) CopyWords<decltype(source)>(src + i * rowBytes, columns, dst + i * ldd);
    });
  }
}

#if MST_GEMM_PAIRS
// src [k][m] bfloat16, contiguous in m -> dst [m][ldd] words, pairs of k.
void TransposePairs(const char* src, int64_t rowBytes, int64_t m, int64_t k, float* dst, int64_t ldd) {
  const int64_t words = (k + 1) / 2;
  for (int64_t m0 = 0; m0 < m; m0 += kLanes) {
    const int64_t rows = std::min<int64_t>(kLanes, m - m0);
    for (int64_t w0 = 0; w0 < words; w0 += kLanes) {
      const char* first = src + 2 * w0 * rowBytes + m0 * 2;
      float* d = dst + m0 * ldd + w0;
      VF v[kLanes];
      if (rows == kLanes && 2 * (w0 + kLanes) <= k) {
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; i++) {
          const char* even = first + 2 * i * rowBytes;
          v[i] = PairsOf(simd::Load16(even), simd::Load16(even + rowBytes));
        }
        simd::Transpose(v);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; i++) simd::Store(d + i * ldd, v[i]);
        continue;
      }
      for (int i = 0; i < kLanes; i++) {
        v[i] = VF{};
        if (w0 + i >= words) continue;
        const char* even = first + 2 * i * rowBytes;
        float pairs[kLanes];
        InterleavePairs(even, 2 * (w0 + i) + 1 < k ? even + rowBytes : nullptr, rows, pairs);
        v[i] = simd::Load(pairs);
      }
      simd::Transpose(v);
      for (int i = 0; i < rows; i++) simd::Store(d + i * ldd, v[i]);
    }
  }
}
#endif

// Block of A as words, in place where its memory already is words, else converted into scratch.
Words WordsOfA(Elem elem, const Matrix& a, int64_t mBegin, int64_t kBegin, int64_t m, int64_t k) {
  const char* src = At(elem, a, mBegin, kBegin);
  const bool pairs = IsPairs(elem);
  const int64_t rowBytes = a.rowStride * ElemBytes(elem), colBytes = a.colStride * ElemBytes(elem);
  if (elem == Elem::kFloat) return {src, rowBytes, colBytes};
  if (pairs && a.colStride == 1 && k % 2 == 0) return {src, rowBytes, 4};
  const int64_t words = WordsOf(elem, k);
  if (a.colStride == 1) {
    const int64_t ld = RoundUp(words, kLanes);
    float* dst = static_cast<float*>(scratch.Get(kSlotA, m * ld * 4));
    for (int64_t i = 0; i < m; i++) {
      if (pairs) {
        memset(dst + i * ld + words - 1, 0, 4);
        memcpy(dst + i * ld, src + i * rowBytes, size_t(k) * 2);
      } else if (elem == Elem::kHalf) {
        CopyWords<HalfSource>(src + i * rowBytes, k, dst + i * ld);
      } else {
        CopyWords<BFloat16Source>(src + i * rowBytes, k, dst + i * ld);
      }
    }
    return {reinterpret_cast<const char*>(dst), ld * 4, 4};
  }
#if MST_GEMM_PAIRS
  if (pairs && BFloat16Engine() == Engine::kAmx) {  // wants rows
    const int64_t rowWords = RoundUp(words, kLanes);
    float* dst = static_cast<float*>(scratch.Get(kSlotA, m * rowWords * 4));
    TransposePairs(src, colBytes, m, k, dst, rowWords);
    return {reinterpret_cast<const char*>(dst), rowWords * 4, 4};
  }
#endif
  // Transposed: rows of the memory run along m, and stay so.
  const int64_t ld = RoundUp(m, kLanes);
  float* dst = static_cast<float*>(scratch.Get(kSlotA, words * ld * 4));
  for (int64_t i = 0; i < words; i++) {
    if (pairs) {
      InterleavePairs(src + 2 * i * colBytes, 2 * i + 1 < k ? src + (2 * i + 1) * colBytes : nullptr, m, dst + i * ld);
    } else if (elem == Elem::kHalf) {
      CopyWords<HalfSource>(src + i * colBytes, m, dst + i * ld);
    } else {
      CopyWords<BFloat16Source>(src + i * colBytes, m, dst + i * ld);
    }
  }
  return {reinterpret_cast<const char*>(dst), 4, ld * 4};
}

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

int64_t PanelBytes(Elem elem, int64_t k, int64_t n) { return RoundUp(n, kLanes) * WordsOf(elem, k) * 4; }

void Pack(Elem elem, const Matrix& b, int64_t k, int64_t n, void* panels) {
  PackBlock(elem, b, 0, 0, k, n, static_cast<float*>(panels));
}

bool CanMultiply(Elem elem, const Panels& b, int64_t kBegin, int64_t k) {
  return !IsPairs(elem) || (kBegin % 2 == 0 && (k % 2 == 0 || kBegin + k == b.k));
}

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
      void* panels = scratch.Get(kSlotB, PanelBytes(elem, kc, nc));
      PackBlock(elem, b, k0, n0, kc, nc, static_cast<float*>(panels));
      const Matrix ak = {At(elem, a, 0, k0), a.rowStride, a.colStride};
      Multiply(elem, ak, Panels{panels, kc, nc}, 0, 0, m, nc, kc, c + n0, ldc, accumulate || k0 > 0);
    }
  }
}

}  // namespace gemm
}  // namespace mst
