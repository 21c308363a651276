// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Cast in every pair of types and rounding mode; every half; the two ways to bfloat16 of a CPU that has one of its own.
#include <algorithm>
#include <cmath>

#include "simd.h"
#include "twin_test.h"

#if MST_VECTOR_BYTES == 64
namespace AscendC::detail {
int64_t ConvertPairs(bfloat16_t* dst, const float* src, int64_t count);
int64_t ConvertPairsFast(bfloat16_t* dst, const float* src, int64_t count);
}  // namespace AscendC::detail
#endif

namespace twin_test {
namespace {

double RoundReference(double v, RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return std::floor(v);
    case RoundMode::CAST_CEIL:
      return std::ceil(v);
    case RoundMode::CAST_ROUND:
      return std::round(v);
    case RoundMode::CAST_TRUNC:
      return std::trunc(v);
    default:
      return std::nearbyint(v);
  }
}

template <typename T>
uint16_t& Bits(T& value) {
  return reinterpret_cast<uint16_t&>(value);
}

template <typename T, typename U>
T CastReference(U source, RoundMode mode) {
  const double v = Value(source);
  if constexpr (std::is_same_v<T, float> && std::is_same_v<U, float>) {
    return static_cast<float>(RoundReference(v, mode));
  } else if constexpr (std::is_same_v<T, float>) {
    return Make<T>(v);
  } else if constexpr (kIsFloating<T>) {
    if (v != v || std::isinf(v)) return Make<T>(v);
    // The two neighbours of v, then the one that the mode names.
    T low = Make<T>(v);
    if (Value(low) == v) return low;
    while (std::fabs(Value(low)) > std::fabs(v)) --Bits(low);
    T high = low;
    ++Bits(high);
    switch (mode) {
      case RoundMode::CAST_FLOOR:
        return v < 0 ? high : low;
      case RoundMode::CAST_CEIL:
        return v > 0 ? high : low;
      case RoundMode::CAST_TRUNC:
        return low;
      case RoundMode::CAST_ODD:
        return (Bits(low) & 1) != 0 ? low : high;
      case RoundMode::CAST_ROUND:
        return Value(Make<T>(v)) == Value(high) || v - Value(low) == Value(high) - v ? high : low;
      default:
        return Make<T>(v);
    }
  } else {
    if (v != v) return T{};
    double r = kIsFloating<U> ? RoundReference(v, mode) : v;
    r = std::min(std::max(r, static_cast<double>(std::numeric_limits<T>::min())),
                 static_cast<double>(std::numeric_limits<T>::max()));
    if (sizeof(T) == 8 && r >= 9.2e18) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  }
}

template <typename T, typename U>
void TestCast(const char* what, double low, double high, bool allModes) {
  TPipe pipe;
  LocalTensor<U> a = Tensor<U>(pipe, low, high);
  LocalTensor<T> d = Tensor<T>(pipe, 0, 1);
  if constexpr (kIsFloating<U>) {
    const float special[] = {kInf,          -kInf,          kNan,           0.0f,          0.5f,     1.5f,
                             2.5f,          -0.5f,          -2.5f,          65504.0f,      65520.0f, 65519.0f,
                             6.1e-5f,       5.9e-8f,        3e-8f,          2.9802322e-8f, 1e-40f,   3e38f,
                             2147483648.0f, -2147483648.0f, 1.00048828125f, 1.00390625f};
    uint32_t i = 0;
    for (float s : special) a.SetValue(i++, U(s));
  }
  for (int m = 0; m <= 6; ++m) {
    const RoundMode mode = static_cast<RoundMode>(m);
    if (!allModes && mode != RoundMode::CAST_NONE) continue;
    if (mode == RoundMode::CAST_ODD && !(std::is_same_v<T, half> && std::is_same_v<U, float>)) continue;
    for (int count : {1, 7, 22, 64, 1001}) {
      std::vector<T> ref = Snapshot(d);
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = CastReference<T, U>(a.GetValue(i), mode);
      Cast(d, a, mode, static_cast<uint32_t>(count));
      CheckSame(d, ref, what);
    }
    constexpr int kLanes = 256 / static_cast<int>(std::max(sizeof(T), sizeof(U)));
    for (int trial = 0; trial < 9; ++trial) {
      const Lanes lanes = DrawLanes(kLanes);
      const bool useBits = trial % 3 == 2;
      const UnaryRepeatParams p(Draw({1, 1, 2}), Draw({1, 1, 2}), Draw({8, 16, 4}), Draw({4, 8, 9}));
      std::vector<T> ref = Snapshot(d);
      for (int r = 0; r < 5; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          if (!lanes.Test(useBits, l)) continue;
          ref[static_cast<size_t>(At<T>(r, l, p.dstBlkStride, p.dstRepStride))] =
              CastReference<T, U>(a.GetPhyAddr()[At<U>(r, l, p.srcBlkStride, p.srcRepStride)], mode);
        }
      }
      if (useBits) {
        Cast(d, a, mode, lanes.bits, 5, p);
      } else {
        Cast(d, a, mode, lanes.count, 5, p);
      }
      CheckSame(d, ref, what);
    }
  }
}
#if MST_VECTOR_BYTES == 64
// Every sign, exponent and rounded mantissa (so every infinity, and subnormal numbers of all sizes) with what is below,
// at or above a tie or 0, and random bits: the CPU's conversion, the portable one and the scalar one agree.
void TestConversionsToBFloat16() {
  constexpr uint32_t kBelow[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0, 0};
  constexpr int64_t kCount = 65536 * 8;
  std::vector<float> source(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t bits = i % 8 < 6 ? i / 8 << 16 | kBelow[i % 8] : static_cast<uint32_t>(rng());
    std::memcpy(&source[i], &bits, 4);
  }
  std::vector<bfloat16_t> portable(kCount), fast(kCount);
  Check(AscendC::detail::ConvertPairs(portable.data(), source.data(), kCount) == kCount, "ConvertPairs: count");
  bool ok = true;
  for (size_t i = 0; i < kCount; ++i) ok = ok && SameBits(portable[i], bfloat16_t(source[i]));
  Check(ok, "float to bfloat16, portable pairs");
  if (!__builtin_cpu_supports("avx512bf16")) return;
  Check(AscendC::detail::ConvertPairsFast(fast.data(), source.data(), kCount) == kCount, "ConvertPairsFast: count");
  ok = std::memcmp(fast.data(), portable.data(), kCount * sizeof(bfloat16_t)) == 0;  // NaN too
  Check(ok, "float to bfloat16, pairs by the CPU's own conversion");
}
#endif

#define TEST_CAST(T, U, low, high, allModes) TestCast<T, U>("Cast " #U " to " #T, low, high, allModes)

}  // namespace

void TestCasts() {
  TEST_CAST(float, float, -100, 100, true);
  TEST_CAST(half, float, -100, 100, true);
  TEST_CAST(bfloat16_t, float, -100, 100, true);
  TEST_CAST(int16_t, float, -40000, 40000, true);
  TEST_CAST(int32_t, float, -3e9, 3e9, true);
  TEST_CAST(int64_t, float, -1e6, 1e6, true);
  TEST_CAST(float, half, -100, 100, false);
  TEST_CAST(int8_t, half, -300, 300, true);
  TEST_CAST(uint8_t, half, -100, 300, true);
  TEST_CAST(int16_t, half, -1000, 1000, true);
  TEST_CAST(int32_t, half, -1000, 1000, true);
  TEST_CAST(float, bfloat16_t, -100, 100, false);
  TEST_CAST(int32_t, bfloat16_t, -1000, 1000, true);
  TEST_CAST(half, int8_t, -128, 127, false);
  TEST_CAST(half, uint8_t, 0, 255, false);
  TEST_CAST(half, int16_t, -30000, 30000, false);
  TEST_CAST(float, int16_t, -30000, 30000, false);
  TEST_CAST(float, int32_t, -2e9, 2e9, false);
  TEST_CAST(int16_t, int32_t, -50000, 50000, false);
  TEST_CAST(int64_t, int32_t, -2e9, 2e9, false);
  TEST_CAST(int32_t, int64_t, -3e9, 3e9, false);
  TEST_CAST(float, int64_t, -1e15, 1e15, false);

#if MST_VECTOR_BYTES == 64
  TestConversionsToBFloat16();
#endif

  // Every half, both ways, in scalar and in vector code.
  TPipe pipe;
  TBuf<> buf, wide, back;
  pipe.InitBuffer(buf, 65536 * 2);
  pipe.InitBuffer(wide, 65536 * 4);
  pipe.InitBuffer(back, 65536 * 2);
  LocalTensor<half> h = buf.Get<half>();
  LocalTensor<float> f = wide.Get<float>();
  for (uint32_t i = 0; i < 65536; ++i) Bits(h.GetPhyAddr()[i]) = static_cast<uint16_t>(i);
  Cast(f, h, RoundMode::CAST_NONE, 65536);
  Cast(back.Get<half>(), f, RoundMode::CAST_RINT, 65536);
  bool scalarOk = true, vectorOk = true;
  for (uint32_t i = 0; i < 65536; ++i) {
    const half original = h.GetValue(i);
    scalarOk = scalarOk && SameBits(f.GetValue(i), static_cast<float>(original)) &&
               SameBits(half(static_cast<float>(original)), original);
    vectorOk = vectorOk && SameBits(back.Get<half>().GetValue(i), original);
  }
  Check(scalarOk, "half to float and back, scalar");
  Check(vectorOk, "half to float and back, vector");
  // Scalar and vector rounding agree on any float.
  for (uint32_t i = 0; i < 65536; ++i) {
    uint32_t bits = static_cast<uint32_t>(rng());
    if (i % 2 == 0) bits = (bits & 0x8fffffffu) | 0x38000000u;  // within the range of half
    std::memcpy(f.GetPhyAddr() + i, &bits, 4);
  }
  Cast(h, f, RoundMode::CAST_RINT, 65536);
  bool ok = true;
  for (uint32_t i = 0; i < 65536; ++i) ok = ok && SameBits(h.GetValue(i), half(f.GetValue(i)));
  Check(ok, "float to half, scalar against vector");
  LocalTensor<bfloat16_t> bf = back.Get<bfloat16_t>();
  Cast(bf, f, RoundMode::CAST_RINT, 65536);
  ok = true;
  for (uint32_t i = 0; i < 65536; ++i) ok = ok && SameBits(bf.GetValue(i), bfloat16_t(f.GetValue(i)));
  Check(ok, "float to bfloat16, scalar against vector");
}

}  // namespace twin_test
