// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Vectors of one width per instruction level: 64 bytes (avx512), 32 (avx2), 16 (neon). The GCC vector extension does
// the arithmetic; intrinsics appear only where it has no good word for an instruction.
#ifndef MST_TWIN_SIMD_H_
#define MST_TWIN_SIMD_H_

#include <cstdint>
#include <cstring>

// GCC 12 warns about its own intrinsics (undefined vectors), and Arm's header wants the name of a type of ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define bfloat16_t arm_bfloat16_t
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#undef bfloat16_t
#pragma GCC diagnostic pop

#ifndef MST_VECTOR_BYTES
#if defined(__AVX512F__)
#define MST_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define MST_VECTOR_BYTES 32
#else
#define MST_VECTOR_BYTES 16
#endif
#endif

#define MST_INLINE inline __attribute__((always_inline))

namespace mst {
namespace simd {

constexpr int kBytes = MST_VECTOR_BYTES;
constexpr int kLanes = kBytes / 4;  // 32-bit lanes

typedef float VF __attribute__((vector_size(kBytes)));
typedef int32_t VI __attribute__((vector_size(kBytes)));
typedef uint32_t VU __attribute__((vector_size(kBytes)));
typedef uint16_t VH __attribute__((vector_size(kBytes / 2)));  // as many 16-bit lanes as VF has floats
typedef float UnalignedVF __attribute__((vector_size(kBytes), aligned(1), may_alias));
typedef uint16_t UnalignedVH __attribute__((vector_size(kBytes / 2), aligned(1), may_alias));

MST_INLINE VF Load(const void* p) { return *static_cast<const UnalignedVF*>(p); }
MST_INLINE VH Load16(const void* p) { return *static_cast<const UnalignedVH*>(p); }
MST_INLINE void Store(void* p, VF v) { *static_cast<UnalignedVF*>(p) = v; }
MST_INLINE void Store16(void* p, VH v) { *static_cast<UnalignedVH*>(p) = v; }
MST_INLINE VF Fill(float s) { return s - VF{}; }

// The first `count` lanes, the others are `rest`; nothing outside is touched. 0 <= count < kLanes.
MST_INLINE VF LoadPart(const void* p, int count, float rest = 0.0f) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_mask_loadu_ps(_mm512_set1_ps(rest), static_cast<__mmask16>((1u << count) - 1), p));
#else
  float t[kLanes];
  Store(t, Fill(rest));
  memcpy(t, p, size_t(count) * 4);
  return Load(t);
#endif
}
MST_INLINE void StorePart(void* p, VF v, int count) {
#if MST_VECTOR_BYTES == 64
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), __m512(v));
#else
  float t[kLanes];
  Store(t, v);
  memcpy(p, t, size_t(count) * 4);
#endif
}

// x86 gives the second operand when one is NaN.
MST_INLINE VF Max(VF a, VF b) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_max_ps(__m512(a), __m512(b)));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  return VF(_mm256_max_ps(__m256(a), __m256(b)));
#elif defined(__aarch64__)
  return VF(vmaxq_f32(float32x4_t(a), float32x4_t(b)));
#else
  return a > b ? a : b;
#endif
}

// By intrinsics: GCC makes several shuffles of __builtin_convertvector here.
MST_INLINE VU Widen(VH v) {
#if MST_VECTOR_BYTES == 64
  return VU(_mm512_cvtepu16_epi32(__m256i(v)));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  return VU(_mm256_cvtepu16_epi32(__m128i(v)));
#elif defined(__aarch64__)
  return VU(vmovl_u16(uint16x4_t(v)));
#else
  return __builtin_convertvector(v, VU);
#endif
}

// bfloat16 and half, as bits.
MST_INLINE VF FromBFloat16(VH v) { return VF(Widen(v) << 16); }
MST_INLINE VF FromHalf(VH v) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_maskz_cvtph_ps(0xffff, __m256i(v)));
#elif MST_VECTOR_BYTES == 32 && defined(__F16C__)
  return VF(_mm256_cvtph_ps(__m128i(v)));
#elif defined(__aarch64__)
  return VF(vcvt_f32_f16(float16x4_t(v)));
#else
#error "no half conversion at this level"
#endif
}

// kLanes x kLanes transpose of 32-bit lanes, in place.
MST_INLINE void Transpose(VF* rows) {
  VI low, high;
  for (int i = 0; i < kLanes; i++) {
    low[i] = i / 2 + (i & 1) * kLanes;
    high[i] = kLanes / 2 + i / 2 + (i & 1) * kLanes;
  }
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    VF t[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes / 2; i++) {
      t[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      t[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++) rows[i] = t[i];
  }
}

constexpr float kExpMagic = 12583039.0f;  // 1.5 * 2^23 rounds to an integer in the low bits; + 127: exponent bias

// e^r 2^n, with n in the low bits of t.
MST_INLINE VF ExpOfParts(VF r, VF t) {
  VF p = 0.0013836638f * r + 0.008374981f;
  p = p * r + 0.041668238f;
  p = p * r + 0.16666418f;
  p = p * r + 0.49999992f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * VF(VU(t) << 23);
}

// e^x below 1 ulp where the result is a normal number; NaN stays NaN.
MST_INLINE VF ExpReduced(VF x) {
  const VF t = x * 1.44269504f + kExpMagic;
  const VF n = t - kExpMagic;
  const VF r = x - n * 0.693145752f;
  return ExpOfParts(r - n * 1.42860677e-6f, t);
}

// e^x for x <= 0, to 7e-8 - 3e-9 x; exactly 0 from -88 down; NaN stays NaN.
MST_INLINE VF ExpNonPositive(VF x) {
  x = Max(Fill(-88.0f), x);  // in this order: NaN is the second operand
  const VF t = x * 1.44269504f + kExpMagic;
  return ExpOfParts(x - (t - kExpMagic) * 0.693147182f, t);
}

struct MaxOp {
  static MST_INLINE VF Of(VF a, VF b) { return Max(a, b); }
};
struct AddOp {
  static MST_INLINE VF Of(VF a, VF b) { return a + b; }
};

// kLanes vectors at `rows` -> one vector whose lane i is the reduction of vector i. One transpose and vertical steps
// cost a fraction of kLanes horizontal reductions.
template <class Op>
MST_INLINE VF ReduceRows(const float* rows) {
  VF r[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++) r[i] = Load(rows + i * kLanes);
  Transpose(r);
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < width; i++) r[i] = Op::Of(r[i], r[i + width]);
  }
  return r[0];
}

}  // namespace simd
}  // namespace mst

#endif  // MST_TWIN_SIMD_H_
