// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Instructions on two tensors, on one, and on one and a scalar: count, strided and bit-mask form.
#include <algorithm>
#include <cmath>
#include <functional>

#include "twin_test.h"

namespace twin_test {
namespace {

// ---- two tensors

template <typename T>
using Scalar2 = std::function<T(T, T)>;

template <typename T, typename CountForm, typename MaskForm, typename BitsForm>
void TestBinary(const char* what, const Scalar2<T>& want, CountForm countForm, MaskForm maskForm, BitsForm bitsForm) {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe), b = Tensor<T>(pipe, 0.5, 9), d = Tensor<T>(pipe);
  for (int count : kCounts) {
    std::vector<T> ref = Snapshot(d);
    for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = want(a.GetValue(i), b.GetValue(i));
    countForm(d, a, b, count);
    CheckSame(d, ref, what);
  }
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (int trial = 0; trial < 60; ++trial) {
    const Lanes lanes = DrawLanes(kLanes);
    const bool useBits = trial % 3 == 2;
    const BinaryRepeatParams p(Draw({1, 1, 2}), Draw({1, 1, 2, 0}), Draw({0, 0, 1, 3}), Draw({8, 16, 9}),
                               Draw({0, 8, 9}), Draw({0, 1, 8}));
    const uint8_t repeat = static_cast<uint8_t>(1 + rng() % 20);
    std::vector<T> ref = Snapshot(d);
    for (int r = 0; r < repeat; ++r) {
      for (int l = 0; l < kLanes; ++l) {
        if (!lanes.Test(useBits, l)) continue;
        ref[static_cast<size_t>(At<T>(r, l, p.dstBlkStride, p.dstRepStride))] =
            want(a.GetPhyAddr()[At<T>(r, l, p.src0BlkStride, p.src0RepStride)],
                 b.GetPhyAddr()[At<T>(r, l, p.src1BlkStride, p.src1RepStride)]);
      }
    }
    uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
    if (useBits) {
      bitsForm(d, a, b, bits, repeat, p);
    } else {
      maskForm(d, a, b, lanes.count, repeat, p);
    }
    CheckSame(d, ref, what);
  }
}

#define TEST_BINARY(Name, T, ...)                                                                                  \
  TestBinary<T>(                                                                                                   \
      #Name " " #T, [](T x, T y) -> T { __VA_ARGS__ }, [](auto& d, auto& a, auto& b, int n) { Name(d, a, b, n); }, \
      [](auto& d, auto& a, auto& b, uint64_t m, uint8_t r, auto& p) { Name(d, a, b, m, r, p); },                   \
      [](auto& d, auto& a, auto& b, uint64_t* m, uint8_t r, auto& p) { Name(d, a, b, m, r, p); })
#define TEST_BINARY_ARITH(Name, OP)                                                      \
  TEST_BINARY(Name, float, return x OP y;);                                              \
  TEST_BINARY(Name, half, return half(static_cast<float>(x) OP static_cast<float>(y));); \
  TEST_BINARY(Name, int32_t, return x OP y;);                                            \
  TEST_BINARY(Name, int16_t, return static_cast<int16_t>(x OP y);)
#define TEST_BINARY_CHOICE(Name, OP)                                                       \
  TEST_BINARY(Name, float, return x OP y ? x : y;);                                        \
  TEST_BINARY(Name, half, return static_cast<float>(x) OP static_cast<float>(y) ? x : y;); \
  TEST_BINARY(Name, int32_t, return x OP y ? x : y;);                                      \
  TEST_BINARY(Name, int16_t, return x OP y ? x : y;)

}  // namespace

void TestBinaries() {
  TEST_BINARY_ARITH(Add, +);
  TEST_BINARY_ARITH(Sub, -);
  TEST_BINARY_ARITH(Mul, *);
  TEST_BINARY(Div, float, return x / y;);
  TEST_BINARY(Div, half, return half(static_cast<float>(x) / static_cast<float>(y)););
  TEST_BINARY_CHOICE(Max, >);
  TEST_BINARY_CHOICE(Min, <);
  TEST_BINARY(And, uint16_t, return x & y;);
  TEST_BINARY(And, int16_t, return x & y;);
  TEST_BINARY(Or, uint16_t, return x | y;);
  TEST_BINARY(Or, int16_t, return x | y;);
}

namespace {

// ---- one tensor, or one and a scalar

template <typename T, typename CountForm, typename MaskForm, typename BitsForm>
void TestUnary(const char* what, double low, double high, double ulps, const std::function<double(double)>& want,
               CountForm countForm, MaskForm maskForm, BitsForm bitsForm) {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, low, high), d = Tensor<T>(pipe);
  const auto near = [&](T got, T source) {
    const double exact = want(Value(source));
    const T rounded = Make<T>(exact);
    if (SameBits(got, rounded)) return true;
    if constexpr (kIsFloating<T>) {
      const double scale = std::is_same_v<T, float> ? std::ldexp(1.0, -23) : std::ldexp(1.0, -10);
      const double smallest = std::is_same_v<T, float> ? std::ldexp(1.0, -126) : std::ldexp(1.0, -14);
      const double ulp = scale * std::exp2(std::floor(std::log2(std::max(std::fabs(exact), smallest))));
      return std::fabs(Value(got) - exact) <= ulps * ulp;
    }
    return false;
  };
  for (int count : kCounts) {
    const std::vector<T> before = Snapshot(d);
    countForm(d, a, count);
    bool ok = true;
    for (int i = 0; i < count; ++i) {
      if (!near(d.GetValue(i), a.GetValue(i))) {
        std::printf("%s(%.9g) = %.9g, want %.9g\n", what, Value(a.GetValue(i)), Value(d.GetValue(i)),
                    want(Value(a.GetValue(i))));
        ok = false;
        break;
      }
    }
    for (uint32_t i = static_cast<uint32_t>(count); i < kSize; ++i) ok = ok && SameBits(d.GetValue(i), before[i]);
    Check(ok, what, count);
  }
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (int trial = 0; trial < 30; ++trial) {
    const Lanes lanes = DrawLanes(kLanes);
    const bool useBits = trial % 3 == 2;
    const uint8_t blk = Draw({1, 1, 2});  // repeats of dst must not overlap
    const UnaryRepeatParams p(blk, Draw({1, 1, 0, 2}), static_cast<uint8_t>(8 * blk + rng() % 2), Draw({0, 8, 9}));
    const uint8_t repeat = static_cast<uint8_t>(1 + rng() % 20);
    const std::vector<T> before = Snapshot(d);
    uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
    if (useBits) {
      bitsForm(d, a, bits, repeat, p);
    } else {
      maskForm(d, a, lanes.count, repeat, p);
    }
    std::vector<bool> written(kSize, false);
    bool ok = true;
    for (int r = 0; r < repeat; ++r) {
      for (int l = 0; l < kLanes; ++l) {
        if (!lanes.Test(useBits, l)) continue;
        const int64_t i = At<T>(r, l, p.dstBlkStride, p.dstRepStride);
        written[static_cast<size_t>(i)] = true;
        ok = ok && near(d.GetPhyAddr()[i], a.GetPhyAddr()[At<T>(r, l, p.srcBlkStride, p.srcRepStride)]);
      }
    }
    for (uint32_t i = 0; i < kSize; ++i) ok = ok && (written[i] || SameBits(d.GetPhyAddr()[i], before[i]));
    Check(ok, what, trial);
  }
}

#define TEST_UNARY(Name, T, low, high, ulps, expr)                                   \
  TestUnary<T>(                                                                      \
      #Name " " #T, low, high, ulps, [](double x) -> double { return expr; },        \
      [](auto& d, auto& a, int n) { Name(d, a, n); },                                \
      [](auto& d, auto& a, uint64_t m, uint8_t r, auto& p) { Name(d, a, m, r, p); }, \
      [](auto& d, auto& a, uint64_t* m, uint8_t r, auto& p) { Name(d, a, m, r, p); })
#define TEST_SCALAR(Name, T, scalar, ulps, expr)                                             \
  TestUnary<T>(                                                                              \
      #Name " " #T, -8, 8, ulps, [](double x) -> double { return expr; },                    \
      [](auto& d, auto& a, int n) { Name(d, a, scalar, n); },                                \
      [](auto& d, auto& a, uint64_t m, uint8_t r, auto& p) { Name(d, a, scalar, m, r, p); }, \
      [](auto& d, auto& a, uint64_t* m, uint8_t r, auto& p) { Name(d, a, scalar, m, r, p); })
#define TEST_UNARY_FLOAT(Name, low, high, ulps, expr) \
  TEST_UNARY(Name, float, low, high, ulps, expr);     \
  TEST_UNARY(Name, half, low, high, 0.51, expr)

}  // namespace

void TestUnaries() {
  TEST_UNARY_FLOAT(Abs, -8, 8, 0, std::fabs(x));
  TEST_UNARY_FLOAT(Exp, -20, 11, 1, std::exp(x));
  TEST_UNARY(Exp, float, -104, 88.7, 1, std::exp(x));
  TEST_UNARY_FLOAT(Ln, 1e-3, 100, 1.2, std::log(x));
  TEST_UNARY(Ln, float, 0.9, 1.1, 1.2, std::log(x));
  TEST_UNARY_FLOAT(Sqrt, 0, 100, 0.51, std::sqrt(x));
  TEST_UNARY_FLOAT(Rsqrt, 0.01, 100, 1.5, 1 / std::sqrt(x));
  TEST_UNARY_FLOAT(Reciprocal, 0.01, 100, 0.51, 1 / x);
  TEST_UNARY_FLOAT(Relu, -8, 8, 0, x > 0 ? x : 0);
  TEST_UNARY(Relu, int32_t, -8, 8, 0, x > 0 ? x : 0);
  TEST_UNARY(Not, uint16_t, 0, 60000, 0, static_cast<double>(static_cast<uint16_t>(~static_cast<int>(x))));
  TEST_UNARY(Not, int16_t, -30000, 30000, 0, static_cast<double>(~static_cast<int>(x)));
  TEST_SCALAR(Adds, float, 1.5f, 0.51, x + 1.5);
  TEST_SCALAR(Adds, half, half(1.5f), 0.51, x + 1.5);
  TEST_SCALAR(Adds, int32_t, 7, 0, x + 7);
  TEST_SCALAR(Muls, float, 1.7f, 0.51, x* static_cast<double>(1.7f));
  TEST_SCALAR(Muls, half, half(1.5f), 0.51, x * 1.5);
  TEST_SCALAR(Muls, int32_t, -3, 0, x * -3);
  TEST_SCALAR(Muls, int16_t, static_cast<int16_t>(-3), 0, x * -3);
  TEST_SCALAR(Maxs, float, 1.5f, 0, std::max(x, 1.5));
  TEST_SCALAR(Mins, half, half(1.5f), 0, std::min(x, 1.5));
  TEST_SCALAR(Maxs, int32_t, 2, 0, std::max(x, 2.0));
  TEST_SCALAR(ShiftLeft, int32_t, 3, 0, x * 8);
  TEST_SCALAR(ShiftRight, int32_t, 1, 0, std::floor(x / 2));
  TEST_SCALAR(ShiftRight, int16_t, static_cast<int16_t>(1), 0, std::floor(x / 2));

  TPipe pipe;
  LocalTensor<float> a = Tensor<float>(pipe), d = Tensor<float>(pipe);
  LocalTensor<uint8_t> tmp = Tensor<uint8_t>(pipe, 0, 1);
  const float special[] = {kInf, -kInf, kNan, 0.0f, -0.0f, 1e-40f, 89.0f, 200.0f, -104.0f, -200.0f, -1.0f, 3e38f};
  constexpr int kSpecial = sizeof(special) / sizeof(special[0]);
  for (int i = 0; i < kSpecial; ++i) a.SetValue(static_cast<uint32_t>(i), special[i]);
  const auto specials = [&](const char* what, float (*want)(float), double limit) {
    for (int i = 0; i < kSpecial; ++i) {
      const float w = want(special[i]), g = d.GetValue(static_cast<uint32_t>(i));
      Check(SameBits(g, w) || g == w || std::fabs(g - w) <= limit * std::fabs(w), what, special[i]);
    }
  };
  Exp(d, a, kSpecial);
  specials("Exp of special values", [](float x) { return std::exp(x); }, 2e-7);
  Ln(d, a, kSpecial);
  specials("Ln of special values", [](float x) { return std::log(x); }, 2e-7);
  Tanh<float>(d, a, tmp, kSpecial);
  specials("Tanh of special values", [](float x) { return std::tanh(x); }, 2e-7);
  Sigmoid<float>(d, a, tmp, kSpecial);
  specials("Sigmoid of special values", [](float x) { return 1 / (1 + std::exp(-x)); }, 2e-7);
  Relu(d, a, kSpecial);
  specials("Relu of special values", [](float x) { return x != x ? x : x > 0 ? x : 0; }, 0);
  a = Tensor<float>(pipe, -6, 6);
  LocalTensor<float> b = Tensor<float>(pipe, -6, 6);
  Tanh<float>(d, a, tmp, 5000);
  double worst = 0;
  for (uint32_t i = 0; i < 5000; ++i) {
    const double w = std::tanh(Value(a.GetValue(i)));
    worst = std::max(worst, std::fabs(Value(d.GetValue(i)) - w) / std::fabs(w));
  }
  Check(worst < 2.5e-7, "Tanh", worst);
  SwiGLU<float>(d, a, b, 1.5f, tmp, 5000);
  worst = 0;
  for (uint32_t i = 0; i < 5000; ++i) {
    const double x = Value(a.GetValue(i)), y = Value(b.GetValue(i)), w = x * y / (1 + std::exp(-1.5 * y));
    worst = std::max(worst, std::fabs(Value(d.GetValue(i)) - w) / std::fabs(w));
  }
  Check(worst < 1e-6, "SwiGLU", worst);
  std::vector<float> ref = Snapshot(d);
  for (uint32_t i = 0; i < 77; ++i) ref[i] = std::fma(a.GetValue(i), 2.5f, ref[i]);
  Axpy(d, a, 2.5f, 77);
  CheckSame(d, ref, "Axpy");
  for (uint32_t i = 0; i < 77; ++i) ref[i] = std::fma(a.GetValue(i), b.GetValue(i), ref[i]);
  MulAddDst(d, a, b, 77);
  CheckSame(d, ref, "MulAddDst");
  for (uint32_t i = 0; i < 77; ++i) ref[i] = std::fma(a.GetValue(i), ref[i], b.GetValue(i));
  FusedMulAdd(d, a, b, 77);
  CheckSame(d, ref, "FusedMulAdd");
  for (uint32_t r = 0; r < 5; ++r) {  // rows of 61 lanes 72 apart, one block of src0 for each
    for (uint32_t i = 0; i < 61; ++i) {
      ref[72 * r + i] = std::fma(a.GetValue(8 * r + i % 8), ref[72 * r + i], b.GetValue(72 * r + i));
    }
  }
  FusedMulAdd(d, a, b, uint64_t{61}, 5, BinaryRepeatParams(1, 0, 1, 9, 1, 9));
  CheckSame(d, ref, "FusedMulAdd with one block for each row");
  for (uint32_t r = 0; r < 5; ++r) {
    for (uint32_t i = 0; i < 61; ++i) ref[72 * r + i] = b.GetValue(72 * r + i) * a.GetValue(8 * r + i % 8);
  }
  Mul(d, b, a, uint64_t{61}, 5, BinaryRepeatParams(1, 1, 0, 9, 9, 1));
  CheckSame(d, ref, "Mul with one block for each row");
}

}  // namespace twin_test
