// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Element types as vector lanes, and the elementary functions, for the instruction code (kernels/twin/*.cpp) only.
#ifndef MST_TWIN_VECTOR_MATH_H_
#define MST_TWIN_VECTOR_MATH_H_

#include <cmath>
#include <limits>

#include "simd.h"
#include "types.h"

namespace mst {
namespace simd {

MST_INLINE VI FillInt(int32_t s) { return s - VI{}; }
MST_INLINE VF Bits(VI v) { return VF(v); }
MST_INLINE VI Bits(VF v) { return VI(v); }
MST_INLINE VF Blend(VI mask, VF yes, VF no) { return Bits((mask & Bits(yes)) | (~mask & Bits(no))); }

// As Max: x86 gives the second operand when one is NaN.
MST_INLINE VF Min(VF a, VF b) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_min_ps(__m512(a), __m512(b)));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  return VF(_mm256_min_ps(__m256(a), __m256(b)));
#elif defined(__aarch64__)
  return VF(vminq_f32(float32x4_t(a), float32x4_t(b)));
#else
  return a < b ? a : b;
#endif
}

MST_INLINE VF Sqrt(VF v) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_sqrt_ps(__m512(v)));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  return VF(_mm256_sqrt_ps(__m256(v)));
#elif defined(__aarch64__)
  return VF(vsqrtq_f32(float32x4_t(v)));
#else
#error "no square root at this level"
#endif
}

MST_INLINE VF Abs(VF v) { return Bits(Bits(v) & 0x7fffffff); }

// To the nearest integer, ties to even; right for |v| < 2^22.
MST_INLINE VF RoundSmall(VF v) {
  const float kMagic = 12582912.0f;  // 1.5 * 2^23
  return (v + kMagic) - kMagic;
}

// float -> 16 bits, to nearest even; NaN stays NaN, too large becomes infinity.
MST_INLINE VH ToBFloat16(VF v) {
  const VU u = VU(v);
  VU rounded = u + 0x7fff + ((u >> 16) & 1);
#if MST_VECTOR_BYTES == 64
  const __mmask16 isNan = _mm512_cmp_ps_mask(__m512(v), __m512(v), _CMP_UNORD_Q);
  rounded = VU(_mm512_mask_or_epi32(__m512i(rounded), isNan, __m512i(u), _mm512_set1_epi32(0x400000)));
  return VH(_mm512_cvtepi32_epi16(_mm512_srli_epi32(__m512i(rounded), 16)));
#else
  const VU isNan = VU(v != v);
  rounded = ((isNan & (u | 0x400000)) | (~isNan & rounded)) >> 16;
#if defined(__aarch64__)
  return VH(vmovn_u32(uint32x4_t(rounded)));
#else
  return __builtin_convertvector(rounded, VH);
#endif
#endif
}
MST_INLINE VH ToHalf(VF v) {
#if MST_VECTOR_BYTES == 64
  return VH(_mm512_cvtps_ph(__m512(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif MST_VECTOR_BYTES == 32 && defined(__F16C__)
  return VH(_mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__aarch64__)
  return VH(vcvt_f16_f32(float32x4_t(v)));
#else
#error "no half conversion at this level"
#endif
}

// p * 2^n for |n| up to 252, in two steps so that the result may be subnormal or overflow.
MST_INLINE VF ScaleByPower(VF p, VI n) {
  const VI first = n >> 1;
  const VI second = n - first;
  return p * Bits((first + 127) << 23) * Bits((second + 127) << 23);
}

// e^x below 1 ulp for every x: overflow gives infinity, -infinity 0, NaN stays NaN.
MST_INLINE VF Exp(VF x) {
  const VF clamped = Min(Fill(89.0f), Max(Fill(-104.0f), x));  // in this order NaN, the second operand, goes through
  const VF n = RoundSmall(clamped * 1.44269504f);
  VF r = clamped - n * 0.693359375f;  // ln 2 in two parts; the product with the first is exact
  r = r + n * 2.12194440e-4f;
  VF p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_scalef_ps(__m512(p), __m512(n)));
#else
  return ScaleByPower(p, __builtin_convertvector(n, VI));
#endif
}

// 1 / (1 + e^-x), about 2 ulp. The avx512 form is there for its speed: a division takes as long as all of it.
MST_INLINE VF Sigmoid(VF x) {
#if MST_VECTOR_BYTES == 64
  const float kLimit = 87.3f;  // within it e^-x and its reciprocal are normal numbers; below it the result is 0
  const VF z = Min(Fill(kLimit), Max(Fill(-kLimit), x));  // in this order NaN, the second operand, goes through
  const VF e = ExpReduced(-z);
  const VF v = 1.0f + e;
  const VF r = VF(_mm512_rcp14_ps(__m512(v)));
  const __mmask16 isLarge = _mm512_cmp_ps_mask(__m512(x), __m512(Fill(-kLimit)), _CMP_NLT_UQ);
  return VF(_mm512_maskz_mov_ps(isLarge, __m512(r + r * (1.0f - v * r))));
#else
  return 1.0f / (1.0f + Exp(-x));
#endif
}

// Natural logarithm, about 1 ulp: 0 gives -infinity, a negative number NaN.
MST_INLINE VF Ln(VF x) {
  const VI subnormal = x < 1.17549435e-38f;
  const VI bits = Bits(Blend(subnormal, x * 8388608.0f, x));  // 2^23
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const VI shifted = bits - 0x3f3504f3;
  const VI e = (shifted >> 23) - (subnormal & 23);
  const VF m = Bits((shifted & 0x7fffff) + 0x3f3504f3);
  const VF f = m - 1.0f;
  const VF z = f * f;
  VF p = 7.0376836292e-2f * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const VF ef = __builtin_convertvector(e, VF);
  VF y = p * f * z;
  y = y + ef * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = (f + y) + ef * 0.693359375f;
  const float kInf = std::numeric_limits<float>::infinity();
  y = Blend(x == 0.0f, Fill(-kInf), y);
  y = Blend(x == kInf, Fill(kInf), y);
  const VI valid = x >= 0.0f;  // false for NaN
  return Blend(valid, y, Fill(std::numeric_limits<float>::quiet_NaN()));
}

MST_INLINE VF Tanh(VF x) {
  const VF a = Abs(x);
  const VF z = x * x;
  VF p = -5.70498872745e-3f * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const VF small = p * z * x + x;
  const VF large = 1.0f - 2.0f / (Exp(2.0f * a) + 1.0f);
  const VI sign = Bits(x) & FillInt(static_cast<int32_t>(0x80000000u));
  const VI isSmall = a < 0.625f;
  return Blend(isSmall, small, Bits(Bits(large) | sign));
}

// How elements of T lie in a vector: kCount of them; 16-bit floats are computed in float, and rounded on the way back.
template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  using V = VF;
  static constexpr int kCount = kLanes;
  static MST_INLINE V Load(const float* p) { return simd::Load(p); }
  static MST_INLINE void Store(float* p, V v) { simd::Store(p, v); }
  static MST_INLINE V Fill(float s) { return simd::Fill(s); }
};

template <>
struct Lanes<half> {
  using V = VF;
  static constexpr int kCount = kLanes;
  static MST_INLINE V Load(const half* p) { return FromHalf(Load16(p)); }
  static MST_INLINE void Store(half* p, V v) { Store16(p, ToHalf(v)); }
  static MST_INLINE V Fill(half s) { return simd::Fill(static_cast<float>(s)); }
};

template <>
struct Lanes<bfloat16_t> {
  using V = VF;
  static constexpr int kCount = kLanes;
  static MST_INLINE V Load(const bfloat16_t* p) { return FromBFloat16(Load16(p)); }
  static MST_INLINE void Store(bfloat16_t* p, V v) { Store16(p, ToBFloat16(v)); }
};

template <typename T>
struct IntegerLanes {
  typedef T V __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(1), may_alias));
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(T));
  static MST_INLINE V Load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static MST_INLINE void Store(T* p, V v) { *reinterpret_cast<Unaligned*>(p) = v; }
  static MST_INLINE V Fill(T s) { return s - V{}; }
};
template <>
struct Lanes<int32_t> : IntegerLanes<int32_t> {};
template <>
struct Lanes<uint32_t> : IntegerLanes<uint32_t> {};
template <>
struct Lanes<int16_t> : IntegerLanes<int16_t> {};
template <>
struct Lanes<uint16_t> : IntegerLanes<uint16_t> {};

// The first `count` lanes, 0 < count < kCount; the rest of the vector is zero, memory outside is not touched.
template <typename T>
MST_INLINE typename Lanes<T>::V LoadTail(const T* p, int count) {
  T t[Lanes<T>::kCount];
  std::memset(t, 0, sizeof(t));
  std::memcpy(t, p, static_cast<size_t>(count) * sizeof(T));
  return Lanes<T>::Load(t);
}
template <typename T>
MST_INLINE void StoreTail(T* p, typename Lanes<T>::V v, int count) {
  T t[Lanes<T>::kCount];
  Lanes<T>::Store(t, v);
  std::memcpy(p, t, static_cast<size_t>(count) * sizeof(T));
}
#if MST_VECTOR_BYTES == 64
template <>
MST_INLINE VF LoadTail<float>(const float* p, int count) {
  return LoadPart(p, count);
}
template <>
MST_INLINE void StoreTail<float>(float* p, VF v, int count) {
  StorePart(p, v, count);
}
#endif

}  // namespace simd
}  // namespace mst

#endif  // MST_TWIN_VECTOR_MATH_H_
