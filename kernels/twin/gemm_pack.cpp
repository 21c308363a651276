// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Layers, from the inside: sources (elements to words), rows and transposed blocks of words, B into panels and A into
// words.
#include "gemm_pack.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mst {
namespace gemm {
namespace {

using simd::kLanes;
using simd::VF;
using simd::VH;

// ---------------------------------------------------------------------------------------------------------- scratch

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

template <class F>
void WithSource(Elem elem, bool pairs, F f) {
  if (elem == Elem::kFloat) return f(FloatSource());
  if (elem == Elem::kHalf) return f(HalfSource());
  return pairs ? f(PairSource()) : f(BFloat16Source());
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

}  // namespace

void* ScratchOf(Slot slot, int64_t bytes) { return scratch.Get(slot, bytes); }

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

Words WordsOfA(Elem elem, const Matrix& a, int64_t mBegin, int64_t kBegin, int64_t m, int64_t k) {
  const char* src = At(elem, a, mBegin, kBegin);
  const bool pairs = IsPairs(elem);
  const int64_t rowBytes = a.rowStride * ElemBytes(elem), colBytes = a.colStride * ElemBytes(elem);
  if (elem == Elem::kFloat) return {src, rowBytes, colBytes};
  if (pairs && a.colStride == 1 && k % 2 == 0) return {src, rowBytes, 4};
  const int64_t words = WordsOf(elem, k);
  if (a.colStride == 1) {
    const int64_t ld = RoundUp(words, kLanes);
    float* dst = static_cast<float*>(ScratchOf(kSlotA, m * ld * 4));
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
    float* dst = static_cast<float*>(ScratchOf(kSlotA, m * rowWords * 4));
    TransposePairs(src, colBytes, m, k, dst, rowWords);
    return {reinterpret_cast<const char*>(dst), rowWords * 4, 4};
  }
#endif
  // Transposed: rows of the memory run along m, and stay so.
  const int64_t ld = RoundUp(m, kLanes);
  float* dst = static_cast<float*>(ScratchOf(kSlotA, words * ld * 4));
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

int64_t PanelBytes(Elem elem, int64_t k, int64_t n) { return RoundUp(n, kLanes) * WordsOf(elem, k) * 4; }

void Pack(Elem elem, const Matrix& b, int64_t k, int64_t n, void* panels) {
  PackBlock(elem, b, 0, 0, k, n, static_cast<float*>(panels));
}

bool CanMultiply(Elem elem, const Panels& b, int64_t kBegin, int64_t k) {
  return !IsPairs(elem) || (kBegin % 2 == 0 && (k % 2 == 0 || kBegin + k == b.k));
}

}  // namespace gemm
}  // namespace mst
