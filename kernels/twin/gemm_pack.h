// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Matrices as words: what packing (gemm_pack.cpp) and products (gemm.cpp) share, for these two only.
#ifndef MST_TWIN_GEMM_PACK_H_
#define MST_TWIN_GEMM_PACK_H_

#include <algorithm>
#include <cstdint>

#include "common/tiling_math.h"
#include "gemm.h"
#include "simd.h"

#if defined(__x86_64__) && MST_VECTOR_BYTES == 64
#define MST_GEMM_PAIRS 1  // engines that multiply pairs of bfloat16
#else
#define MST_GEMM_PAIRS 0
#endif

namespace mst {
namespace gemm {

// 6 x 4 vectors of C and 4 of B fit 32 registers; AVX2 has 16.
constexpr int kTileVectors = simd::kBytes == 32 ? 2 : 4;
constexpr int kPanelColumns = kTileVectors * simd::kLanes;

// Words from one row of a panel to the next: the last panel is only as wide as it must be.
inline int64_t PanelStride(int64_t n, int64_t panelBegin) {
  return std::min<int64_t>(kPanelColumns, RoundUp(n - panelBegin, simd::kLanes));
}

inline bool IsPairs(Elem elem) { return elem == Elem::kBFloat16 && BFloat16Engine() != Engine::kExpand; }
inline int64_t ElemBytes(Elem elem) { return elem == Elem::kFloat ? 4 : 2; }
inline int64_t WordsOf(Elem elem, int64_t k) { return IsPairs(elem) ? (k + 1) / 2 : k; }

inline const char* At(Elem elem, const Matrix& x, int64_t row, int64_t col) {
  return static_cast<const char*>(x.data) + (row * x.rowStride + col * x.colStride) * ElemBytes(elem);
}

// Memory of the calling thread, kept between calls; one buffer per purpose.
enum Slot { kSlotA, kSlotB, kSlots };
void* ScratchOf(Slot slot, int64_t bytes);

// A as words: element (row, k) is at data + row * rowStride + k * kStride, in bytes.
struct Words {
  const char* data;
  int64_t rowStride;
  int64_t kStride;
};

// Block of A as words, in place where its memory already is words, else converted into scratch.
Words WordsOfA(Elem elem, const Matrix& a, int64_t mBegin, int64_t kBegin, int64_t m, int64_t k);

// Rows [kBegin, kBegin + k) and columns [nBegin, nBegin + n) of B into panels.
void PackBlock(Elem elem, const Matrix& b, int64_t kBegin, int64_t nBegin, int64_t k, int64_t n, float* dst);

}  // namespace gemm
}  // namespace mst

#endif  // MST_TWIN_GEMM_PACK_H_
