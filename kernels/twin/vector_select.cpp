// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Compare and Select: a bit per element in between.
#include "engine.h"
#include "vector.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using namespace mst::simd;

// Bit i of the result is lane i of a mask of zeros and ones.
MST_INLINE uint32_t BitsOf(VI mask) {
#if MST_VECTOR_BYTES == 64
  return _mm512_movepi32_mask(__m512i(mask));
#elif MST_VECTOR_BYTES == 32 && defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps(__m256(mask)));
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(mask[i] & 1) << i;
  return bits;
#endif
}

MST_INLINE VF BlendBits(uint32_t bits, VF yes, VF no) {
#if MST_VECTOR_BYTES == 64
  return VF(_mm512_mask_blend_ps(static_cast<__mmask16>(bits), __m512(no), __m512(yes)));
#else
  VI weights;
  for (int i = 0; i < kLanes; ++i) weights[i] = 1 << i;
  return Blend((FillInt(static_cast<int32_t>(bits)) & weights) != 0, yes, no);
#endif
}

template <typename V>
MST_INLINE VI CompareLanes(V a, V b, CMPMODE mode) {
  switch (mode) {
    case CMPMODE::LT:
      return VI(a < b);
    case CMPMODE::GT:
      return VI(a > b);
    case CMPMODE::EQ:
      return VI(a == b);
    case CMPMODE::LE:
      return VI(a <= b);
    case CMPMODE::GE:
      return VI(a >= b);
    default:
      return VI(a != b);
  }
}

// Any count; the last byte is filled up with zeros.
template <CMPMODE mode, typename T>
void CompareMode(uint8_t* dst, const T* src0, const T* src1, T scalar, int64_t count) {
  const auto s = Lanes<T>::Fill(scalar);
  constexpr int kStep = 16;  // elements per two bytes
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    uint32_t bits = 0;
#pragma GCC unroll 4
    for (int k = 0; k < kStep; k += kLanes) {
      const auto b = src1 == nullptr ? s : Lanes<T>::Load(src1 + i + k);
      bits |= BitsOf(CompareLanes(Lanes<T>::Load(src0 + i + k), b, mode)) << k;
    }
    const uint16_t two = static_cast<uint16_t>(bits);
    std::memcpy(dst + i / 8, &two, 2);
  }
  if (i == count) return;
  uint32_t bits = 0;
  for (int k = 0; i + k < count; k += kLanes) {
    const int part = static_cast<int>(std::min<int64_t>(kLanes, count - i - k));
    const auto b = src1 == nullptr ? s : LoadTail(src1 + i + k, part);
    const uint32_t valid = (1u << part) - 1;
    bits |= (BitsOf(CompareLanes(LoadTail(src0 + i + k, part), b, mode)) & valid) << k;
  }
  std::memcpy(dst + i / 8, &bits, static_cast<size_t>((count - i + 7) / 8));
}

// kLanes bits from bit `at` on, of which `count` exist.
MST_INLINE uint32_t TakeBits(const uint8_t* bits, int64_t at, int count) {
  uint32_t word = 0;
  const uint8_t* first = bits + at / 8;
  const int shift = static_cast<int>(at % 8);
  if (count == kLanes && shift % kLanes == 0) {
    std::memcpy(&word, first, (kLanes + 7) / 8);
    return word >> shift;
  }
  const int bytes = (shift + count + 7) / 8;
  for (int i = 0; i < bytes; ++i) word |= static_cast<uint32_t>(first[i]) << (8 * i);
  return word >> shift;
}

// Element i is chosen by bit firstBit + i.
template <typename T>
void SelectRange(T* dst, const uint8_t* bits, int64_t firstBit, const T* src0, const T* src1, T scalar, int64_t count) {
  const VF s = Lanes<T>::Fill(scalar);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VF no = src1 == nullptr ? s : Lanes<T>::Load(src1 + i);
    Lanes<T>::Store(dst + i, BlendBits(TakeBits(bits, firstBit + i, kLanes), Lanes<T>::Load(src0 + i), no));
  }
  const int rest = static_cast<int>(count - i);
  if (rest == 0) return;
  const VF no = src1 == nullptr ? s : LoadTail(src1 + i, rest);
  StoreTail(dst + i, BlendBits(TakeBits(bits, firstBit + i, rest), LoadTail(src0 + i, rest), no), rest);
}

}  // namespace

template <typename T>
void CompareRun(uint8_t* dst, const T* src0, const T* src1, T scalar, CMPMODE mode, int64_t count) {
  switch (mode) {
    case CMPMODE::LT:
      return CompareMode<CMPMODE::LT>(dst, src0, src1, scalar, count);
    case CMPMODE::GT:
      return CompareMode<CMPMODE::GT>(dst, src0, src1, scalar, count);
    case CMPMODE::EQ:
      return CompareMode<CMPMODE::EQ>(dst, src0, src1, scalar, count);
    case CMPMODE::LE:
      return CompareMode<CMPMODE::LE>(dst, src0, src1, scalar, count);
    case CMPMODE::GE:
      return CompareMode<CMPMODE::GE>(dst, src0, src1, scalar, count);
    case CMPMODE::NE:
      return CompareMode<CMPMODE::NE>(dst, src0, src1, scalar, count);
  }
}

template <typename T>
void CompareRun(uint8_t* dst, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride, T scalar,
                CMPMODE mode, int repeat) {
  constexpr uint64_t kRepeatLanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  // Runs are whole blocks, that is whole bytes of dst.
  ForEachRun(std::array<Walk, 2>{Walk(src0, src0Stride), Walk(src1 == nullptr ? src0 : src1, src1Stride)},
             Mask(kRepeatLanes), repeat, [&](const std::array<uint8_t*, 2>& at, int64_t lane, int64_t count) {
               CompareRun(dst + lane / 8, reinterpret_cast<const T*>(at[0]),
                          src1 == nullptr ? nullptr : reinterpret_cast<const T*>(at[1]), scalar, mode, count);
             });
}

template <typename T>
void SelectRun(T* dst, const uint8_t* bits, bool sameBits, const T* src0, const T* src1, T scalar, int64_t count) {
  constexpr int64_t kRepeatLanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  const int64_t step = sameBits ? kRepeatLanes : count;
  for (int64_t i = 0; i < count; i += step) {
    SelectRange(dst + i, bits, 0, src0 + i, src1 == nullptr ? nullptr : src1 + i, scalar, std::min(step, count - i));
  }
}

template <typename T>
void SelectRun(T* dst, Stride dstStride, const uint8_t* bits, bool sameBits, const T* src0, Stride src0Stride,
               const T* src1, Stride src1Stride, T scalar, const Mask& mask, int repeat) {
  constexpr int64_t kRepeatLanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  const T* const second = src1 == nullptr ? src0 : src1;
  const Stride secondStride = src1 == nullptr ? src0Stride : src1Stride;
  for (int r = 0; r < repeat; ++r) {
    const auto row = [r](auto* p, Stride s) { return p + r * s.rep * 32 / static_cast<int64_t>(sizeof(T)); };
    ForEachRun(std::array<Walk, 3>{Walk(row(dst, dstStride), dstStride), Walk(row(src0, src0Stride), src0Stride),
                                   Walk(row(second, secondStride), secondStride)},
               mask, 1, [&](const std::array<uint8_t*, 3>& at, int64_t lane, int64_t count) {
                 SelectRange(reinterpret_cast<T*>(at[0]), bits, lane + (sameBits ? 0 : r * kRepeatLanes),
                             reinterpret_cast<const T*>(at[1]),
                             src1 == nullptr ? nullptr : reinterpret_cast<const T*>(at[2]), scalar, count);
               });
  }
}

#define MST_COMPARE(T)                                                            \
  template void CompareRun<T>(uint8_t*, const T*, const T*, T, CMPMODE, int64_t); \
  template void CompareRun<T>(uint8_t*, const T*, Stride, const T*, Stride, T, CMPMODE, int)
MST_COMPARE(float);
MST_COMPARE(half);
MST_COMPARE(int32_t);

#define MST_SELECT(T)                                                                   \
  template void SelectRun<T>(T*, const uint8_t*, bool, const T*, const T*, T, int64_t); \
  template void SelectRun<T>(T*, Stride, const uint8_t*, bool, const T*, Stride, const T*, Stride, T, const Mask&, int)
MST_SELECT(float);
MST_SELECT(half);

}  // namespace detail
}  // namespace AscendC
