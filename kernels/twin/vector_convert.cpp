// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Cast: between element types, with every rounding mode.
#include "engine.h"
#include "vector.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using namespace mst::simd;

template <typename T>
constexpr bool kIsFloating = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

// kLanes integers of 8 or 16 bits.
template <typename T>
struct Narrow {
  typedef T V __attribute__((vector_size(kLanes * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(kLanes * sizeof(T)), aligned(1), may_alias));
};

MST_INLINE VF RoundToIntegral(VF v, RoundMode mode) {
  const VF a = Abs(v);
  const float kTwo23 = 8388608.0f;  // from here on every float is an integer
  const VF rint = (a + kTwo23) - kTwo23;
  const VF one = Fill(1.0f);
  const VF trunc = rint - Blend(rint > a, one, VF{});
  const VF up = trunc + Blend(trunc < a, one, VF{});
  const VI negative = v < 0.0f;
  VF r;
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      r = Blend(negative, up, trunc);
      break;
    case RoundMode::CAST_CEIL:
      r = Blend(negative, trunc, up);
      break;
    case RoundMode::CAST_ROUND:
      r = Blend(a - trunc >= 0.5f, up, trunc);
      break;
    case RoundMode::CAST_TRUNC:
      r = trunc;
      break;
    default:
      r = rint;
      break;
  }
  const VI sign = Bits(v) & FillInt(static_cast<int32_t>(0x80000000u));
  return Blend(a < kTwo23, Bits(Bits(r) | sign), v);  // NaN and large numbers stay
}

// Saturating; NaN gives 0.
template <typename T>
MST_INLINE VI ToInteger(VF v) {
  v = Blend(v == v, v, VF{});
  if constexpr (sizeof(T) == 4) {
    const VI tooLarge = v >= 2147483648.0f;
    const VI i = __builtin_convertvector(Min(Max(v, Fill(-2147483648.0f)), Fill(2147483520.0f)), VI);
    return (tooLarge & 0x7fffffff) | (~tooLarge & i);
  } else {
    v = Min(Max(v, Fill(static_cast<float>(std::numeric_limits<T>::min()))),
            Fill(static_cast<float>(std::numeric_limits<T>::max())));
    return __builtin_convertvector(v, VI);
  }
}

template <typename T>
MST_INLINE void StoreInteger(T* p, VI v) {
  if constexpr (sizeof(T) == 4) {
    Lanes<int32_t>::Store(p, v);
  } else {
    *reinterpret_cast<typename Narrow<T>::Unaligned*>(p) = __builtin_convertvector(v, typename Narrow<T>::V);
  }
}

template <typename T>
MST_INLINE VI LoadInteger(const T* p) {
  if constexpr (sizeof(T) == 4) {
    return Lanes<int32_t>::Load(p);
#if MST_VECTOR_BYTES == 64  // GCC 12 widens bytes in many steps
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return VI(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return VI(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return VI(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return VI(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#endif
  } else {
    return __builtin_convertvector(
        static_cast<typename Narrow<T>::V>(*reinterpret_cast<const typename Narrow<T>::Unaligned*>(p)), VI);
  }
}

inline uint16_t& BitsOf(half& value) { return reinterpret_cast<uint16_t&>(value); }
inline uint16_t& BitsOf(bfloat16_t& value) { return reinterpret_cast<uint16_t&>(value); }

// float -> 16 bits in the modes that no instruction offers: from the neighbour towards zero and the one away from it.
template <typename T>
T RoundTo16(float v, RoundMode mode) {
  T towardsZero(v);
  if (v != v) return towardsZero;
  if (std::fabs(static_cast<float>(towardsZero)) > std::fabs(v)) --BitsOf(towardsZero);
  const float low = static_cast<float>(towardsZero);
  if (low == v) return towardsZero;
  T away = towardsZero;
  ++BitsOf(away);
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return v < 0.0f ? away : towardsZero;
    case RoundMode::CAST_CEIL:
      return v > 0.0f ? away : towardsZero;
    case RoundMode::CAST_ODD:
      return (BitsOf(towardsZero) & 1) != 0 ? towardsZero : away;
    case RoundMode::CAST_ROUND: {
      const T nearest(v);  // differs from ties-away only in a tie
      const double high = static_cast<float>(away);
      const double middle = 0.5 * (static_cast<double>(low) + high);
      return static_cast<double>(v) == middle ? away : nearest;
    }
    default:
      return towardsZero;
  }
}

template <typename T>
T Saturate64(double v) {
  if (v != v) return 0;
  if (v >= 9223372036854775808.0) return std::numeric_limits<T>::max();
  if (v < -9223372036854775808.0) return std::numeric_limits<T>::min();
  return static_cast<T>(v);
}

// Exactly kLanes elements.
template <typename T, typename U>
MST_INLINE void ConvertVector(T* dst, const U* src, RoundMode mode) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<U, float>) {
    Store(dst, RoundToIntegral(Load(src), mode));
  } else if constexpr (kIsFloating<T> && kIsFloating<U>) {
    if (sizeof(T) == 4 || mode == RoundMode::CAST_RINT || mode == RoundMode::CAST_NONE) {
      Lanes<T>::Store(dst, Lanes<U>::Load(src));
    } else if constexpr (sizeof(T) == 2) {
      for (int i = 0; i < kLanes; ++i) dst[i] = RoundTo16<T>(src[i], mode);
    }
  } else if constexpr (sizeof(T) == 8) {
    for (int i = 0; i < kLanes; ++i) {
      if constexpr (kIsFloating<U>) {
        dst[i] = Saturate64<T>(static_cast<double>(src[i]));
      } else {
        dst[i] = src[i];
      }
    }
  } else if constexpr (sizeof(U) == 8) {
    for (int i = 0; i < kLanes; ++i) {
      if constexpr (kIsFloating<T>) {
        dst[i] = static_cast<T>(src[i]);
      } else {
        dst[i] = static_cast<T>(std::min<int64_t>(std::max<int64_t>(src[i], INT32_MIN), INT32_MAX));
      }
    }
  } else if constexpr (kIsFloating<U>) {
    StoreInteger(dst, ToInteger<T>(RoundToIntegral(Lanes<U>::Load(src), mode)));
  } else if constexpr (kIsFloating<T>) {
    Lanes<T>::Store(dst, __builtin_convertvector(LoadInteger(src), VF));
  } else {  // int32 -> int16, saturating
    VI v = LoadInteger(src);
    const VI low = FillInt(std::numeric_limits<T>::min());
    const VI high = FillInt(std::numeric_limits<T>::max());
    v = v < low ? low : v;
    v = v > high ? high : v;
    StoreInteger(dst, v);
  }
}

}  // namespace

#if MST_VECTOR_BYTES == 64
// To nearest even, the upper halves of the result rounded; NaN stays NaN.
MST_INLINE __m512i RoundForBFloat16(__m512i v) {
  const __mmask16 odd = _mm512_test_epi32_mask(v, _mm512_set1_epi32(0x10000));
  __m512i rounded = _mm512_add_epi32(v, _mm512_set1_epi32(0x7fff));
  rounded = _mm512_mask_add_epi32(rounded, odd, rounded, _mm512_set1_epi32(1));
  // Quiet and signalling NaN, the two lowest digits of the table, become the quiet NaN of v.
  return __m512i(_mm512_fixupimm_ps(__m512(rounded), __m512(v), _mm512_set1_epi32(0x22), 0));
}

// A pair of vectors, whose halves one shuffle brings together.
MST_INLINE __m512i PairToBFloat16(__m512i low, __m512i high) {
  alignas(64) static constexpr struct Upper {
    uint16_t index[32] = {};
    constexpr Upper() {
      for (int i = 0; i < 32; ++i) index[i] = static_cast<uint16_t>(2 * i + 1);
    }
  } kUpper;
  return _mm512_permutex2var_epi16(RoundForBFloat16(low), _mm512_load_si512(kUpper.index), RoundForBFloat16(high));
}

// Both convert whole pairs of vectors and return how many elements these are; tests hold one against the other.
int64_t ConvertPairs(bfloat16_t* dst, const float* src, int64_t count) {
  int64_t i = 0;
#pragma GCC unroll 2
  for (; i + 32 <= count; i += 32) {
    _mm512_storeu_si512(dst + i, PairToBFloat16(_mm512_loadu_si512(src + i), _mm512_loadu_si512(src + i + 16)));
  }
  return i;
}

// By the CPU's own conversion, which takes subnormal numbers for zero: what has become zero is done again.
__attribute__((target("avx512bf16"))) int64_t ConvertPairsFast(bfloat16_t* dst, const float* src, int64_t count) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512i low = _mm512_loadu_si512(src + i), high = _mm512_loadu_si512(src + i + 16);
    __m512i pair = __m512i(_mm512_cvtne2ps_pbh(__m512(high), __m512(low)));
    if (_mm512_testn_epi16_mask(pair, _mm512_set1_epi16(0x7f80)) != 0) pair = PairToBFloat16(low, high);
    _mm512_storeu_si512(dst + i, pair);
  }
  return i;
}

const bool kConvertsFast = __builtin_cpu_supports("avx512bf16");
#endif

template <typename T, typename U>
void Convert(T* dst, const U* src, RoundMode mode, int64_t count) {
  if constexpr (std::is_same_v<U, float> && sizeof(T) == 8) {  // the scalar code below truncates
    if (mode != RoundMode::CAST_TRUNC) {
      float rounded[kLanes];
      for (int64_t i = 0; i < count; i += kLanes) {
        const int part = static_cast<int>(std::min<int64_t>(kLanes, count - i));
        Convert<float, float>(rounded, src + i, mode, part);
        Convert<T, float>(dst + i, rounded, RoundMode::CAST_TRUNC, part);
      }
      return;
    }
  }
  int64_t i = 0;
#if MST_VECTOR_BYTES == 64
  if constexpr (std::is_same_v<T, bfloat16_t> && std::is_same_v<U, float>) {
    if (mode == RoundMode::CAST_RINT)
      i = kConvertsFast ? ConvertPairsFast(dst, src, count) : ConvertPairs(dst, src, count);
  }
#endif
#pragma GCC unroll 2
  for (; i + kLanes <= count; i += kLanes) ConvertVector(dst + i, src + i, mode);
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    U in[kLanes];
    T out[kLanes];
    std::memset(static_cast<void*>(in), 0, sizeof(in));
    std::memcpy(static_cast<void*>(in), src + i, rest * sizeof(U));
    ConvertVector(out, in, mode);
    std::memcpy(static_cast<void*>(dst + i), out, rest * sizeof(T));
  }
}

template <typename T, typename U>
void Convert(T* dst, Stride dstStride, const U* src, Stride srcStride, RoundMode mode, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 2>{Walk(dst, dstStride), Walk(src, srcStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 2>& at, int64_t, int64_t count) {
               Convert<T, U>(reinterpret_cast<T*>(at[0]), reinterpret_cast<const U*>(at[1]), mode, count);
             });
}

// The pairs of the 910B.
#define MST_CONVERT(T, U)                                        \
  template void Convert<T, U>(T*, const U*, RoundMode, int64_t); \
  template void Convert<T, U>(T*, Stride, const U*, Stride, RoundMode, const Mask&, int)
MST_CONVERT(float, float);
MST_CONVERT(half, float);
MST_CONVERT(bfloat16_t, float);
MST_CONVERT(int16_t, float);
MST_CONVERT(int32_t, float);
MST_CONVERT(int64_t, float);
MST_CONVERT(float, half);
MST_CONVERT(int8_t, half);
MST_CONVERT(uint8_t, half);
MST_CONVERT(int16_t, half);
MST_CONVERT(int32_t, half);
MST_CONVERT(float, bfloat16_t);
MST_CONVERT(int32_t, bfloat16_t);
MST_CONVERT(half, int8_t);
MST_CONVERT(half, uint8_t);
MST_CONVERT(half, int16_t);
MST_CONVERT(float, int16_t);
MST_CONVERT(float, int32_t);
MST_CONVERT(int16_t, int32_t);
MST_CONVERT(int64_t, int32_t);
MST_CONVERT(float, int64_t);
MST_CONVERT(int32_t, int64_t);

}  // namespace detail
}  // namespace AscendC
