// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The fast twin against scalar loops: every instruction in its count, strided and bit-mask form, conversions over all
// values, queues and the thread pool. Prints "N passed, 0 failed".
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernel_operator.h"

using namespace AscendC;

namespace {

int passed = 0;
int failed = 0;

void Check(bool ok, const char* what, double detail = 0) {
  if (ok) {
    ++passed;
    return;
  }
  ++failed;
  if (failed < 50) std::printf("FAILED %s (%g)\n", what, detail);
}

std::mt19937 rng(7);

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kSize = 16384;  // elements of a test tensor: enough for any stride used below

template <typename T>
constexpr bool kIsFloating = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

template <typename T>
double Value(T v) {
  if constexpr (kIsFloating<T>) {
    return static_cast<double>(static_cast<float>(v));
  } else {
    return static_cast<double>(v);
  }
}
template <typename T>
T Make(double v) {
  if constexpr (kIsFloating<T>) {
    return T(static_cast<float>(v));
  } else {
    return static_cast<T>(static_cast<int64_t>(v));
  }
}
template <typename T>
bool SameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (Value(a) != Value(a) && Value(b) != Value(b));
}

// A tensor in the UB with values drawn from [low, high].
template <typename T>
LocalTensor<T> Tensor(TPipe& pipe, double low = -8, double high = 8) {
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, kSize * sizeof(T));
  LocalTensor<T> t = buf.Get<T>();
  std::uniform_real_distribution<double> draw(low, high);
  for (uint32_t i = 0; i < kSize; ++i) t.GetPhyAddr()[i] = Make<T>(draw(rng));
  return t;
}
template <typename T>
std::vector<T> Snapshot(const LocalTensor<T>& t) {
  return std::vector<T>(t.GetPhyAddr(), t.GetPhyAddr() + kSize);
}
template <typename T>
void CheckSame(const LocalTensor<T>& t, const std::vector<T>& want, const char* what) {
  for (uint32_t i = 0; i < kSize; ++i) {
    if (!SameBits(t.GetPhyAddr()[i], want[i])) {
      Check(false, what, i);
      return;
    }
  }
  Check(true, what);
}

// Index of lane `lane` of repeat `r` under strides in blocks.
template <typename T>
int64_t At(int r, int lane, int64_t blk, int64_t rep) {
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  return (r * rep + lane / kPerBlock * blk) * kPerBlock + lane % kPerBlock;
}

struct Lanes {
  uint64_t count;
  uint64_t bits[2];
  bool Test(bool useBits, int lane) const {
    return useBits ? (bits[lane / 64] >> (lane % 64) & 1) != 0 : lane < static_cast<int>(count);
  }
};
Lanes DrawLanes(int max) {
  Lanes lanes;
  lanes.count = rng() % 3 == 0 ? static_cast<uint64_t>(max) : 1 + rng() % static_cast<unsigned>(max);
  lanes.bits[0] = (static_cast<uint64_t>(rng()) << 32 | rng()) & (rng() % 2 ? ~0ull : 0xff00ff0f33ull);
  lanes.bits[1] = static_cast<uint64_t>(rng()) << 32 | rng();
  if (rng() % 4 == 0) lanes.bits[0] = lanes.bits[1] = ~0ull;
  if (max <= 64) lanes.bits[1] = 0;
  return lanes;
}
uint8_t Draw(std::initializer_list<int> values) {
  return static_cast<uint8_t>(*(values.begin() + rng() % values.size()));
}

const int kCounts[] = {1, 3, 8, 15, 16, 31, 33, 64, 100, 128, 1000};

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
}

// ---- Cast

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
    while (std::fabs(Value(low)) > std::fabs(v)) --low.bits;
    T high = low;
    ++high.bits;
    switch (mode) {
      case RoundMode::CAST_FLOOR:
        return v < 0 ? high : low;
      case RoundMode::CAST_CEIL:
        return v > 0 ? high : low;
      case RoundMode::CAST_TRUNC:
        return low;
      case RoundMode::CAST_ODD:
        return (low.bits & 1) != 0 ? low : high;
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
#define TEST_CAST(T, U, low, high, allModes) TestCast<T, U>("Cast " #U " to " #T, low, high, allModes)

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

  // Every half, both ways, in scalar and in vector code.
  TPipe pipe;
  TBuf<> buf, wide, back;
  pipe.InitBuffer(buf, 65536 * 2);
  pipe.InitBuffer(wide, 65536 * 4);
  pipe.InitBuffer(back, 65536 * 2);
  LocalTensor<half> h = buf.Get<half>();
  LocalTensor<float> f = wide.Get<float>();
  for (uint32_t i = 0; i < 65536; ++i) h.GetPhyAddr()[i].bits = static_cast<uint16_t>(i);
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

// ---- fills and moves

template <typename T>
void TestMoves(const char* what) {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe), d = Tensor<T>(pipe);
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  const T value = Make<T>(3);
  for (int count : kCounts) {
    std::vector<T> ref = Snapshot(d);
    std::fill(ref.begin(), ref.begin() + count, value);
    Duplicate(d, value, count);
    CheckSame(d, ref, what);
  }
  for (int trial = 0; trial < 20; ++trial) {
    const Lanes lanes = DrawLanes(kLanes);
    const bool useBits = trial % 3 == 2;
    uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
    const uint8_t blk = Draw({1, 2}), rep = Draw({8, 16}), srcBlk = Draw({1, 0, 2}), srcRep = Draw({8, 0, 9});
    std::vector<T> ref = Snapshot(d);
    const auto each = [&](auto write) {
      for (int r = 0; r < 6; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          if (lanes.Test(useBits, l)) ref[static_cast<size_t>(At<T>(r, l, blk, rep))] = write(r, l);
        }
      }
    };
    each([&](int, int) { return value; });
    if (useBits) {
      Duplicate(d, value, bits, 6, blk, rep);
    } else {
      Duplicate(d, value, lanes.count, 6, blk, rep);
    }
    CheckSame(d, ref, what);
    each([&](int r, int l) { return a.GetPhyAddr()[At<T>(r, l, srcBlk, srcRep)]; });
    if (useBits) {
      Copy(d, a, bits, 6, {blk, srcBlk, rep, srcRep});
    } else {
      Copy(d, a, lanes.count, 6, {blk, srcBlk, rep, srcRep});
    }
    CheckSame(d, ref, what);
  }
  std::vector<T> ref = Snapshot(d);
  for (int i = 0; i < 24; ++i) {
    for (int k = 0; k < kPerBlock; ++k)
      ref[static_cast<size_t>((i / 8 * 17 + i % 8 * 2) * kPerBlock + k)] = a.GetValue(i);
  }
  Brcb(d, a, 3, {2, 17});
  CheckSame(d, ref, "Brcb");

  LocalTensor<uint32_t> offset = Tensor<uint32_t>(pipe, 0, 4000);
  for (uint32_t i = 0; i < kSize; ++i) offset.SetValue(i, offset.GetValue(i) * static_cast<uint32_t>(sizeof(T)));
  ref = Snapshot(d);
  for (uint32_t i = 0; i < 77; ++i) ref[i] = a.GetValue(2 + offset.GetValue(i) / static_cast<uint32_t>(sizeof(T)));
  Gather(d, a, offset, static_cast<uint32_t>(2 * sizeof(T)), 77u);
  CheckSame(d, ref, "Gather");
  for (int r = 0; r < 3; ++r) {
    for (int l = 0; l < kLanes - 5; ++l) {
      ref[static_cast<size_t>(At<T>(r, l, 1, 9))] =
          a.GetValue(offset.GetValue(static_cast<uint32_t>(r * kLanes + l)) / static_cast<uint32_t>(sizeof(T)));
    }
  }
  Gather(d, a, offset, 0u, static_cast<uint64_t>(kLanes - 5), 3, 9);
  CheckSame(d, ref, "Gather strided");

  const char* patterns[] = {"", "10", "01", "1000", "0100", "0010", "0001", "1"};
  for (uint8_t pattern = 1; pattern <= 7; ++pattern) {
    for (uint32_t counter : {0u, 5u, 1000u}) {
      const int64_t lanes = counter == 0 ? kLanes : counter;
      ref = Snapshot(d);
      size_t kept = 0;
      const std::string p = patterns[pattern];
      for (int r = 0; r < 2; ++r) {
        for (int64_t i = 0; i < lanes; ++i) {
          if (p[static_cast<size_t>(i) % p.size()] == '1') ref[kept++] = a.GetPhyAddr()[r * 9 * kPerBlock + i];
        }
      }
      uint64_t count = 0;
      GatherMask(d, a, pattern, counter != 0, counter, {1, 2, 9, 0}, count);
      Check(count == kept, "GatherMask count", pattern);
      CheckSame(d, ref, "GatherMask");
    }
  }
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  LocalTensor<Word> bits = Tensor<Word>(pipe, 0, 60000);
  ref = Snapshot(d);
  size_t kept = 0;
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < kLanes; ++i) {
      const int at = r * kPerBlock + i / (8 * static_cast<int>(sizeof(Word)));
      if ((bits.GetValue(static_cast<uint32_t>(at)) >> (i % (8 * sizeof(Word))) & 1) != 0) {
        ref[kept++] = a.GetPhyAddr()[At<T>(r, i, 2, 16)];
      }
    }
  }
  uint64_t count = 0;
  GatherMask(d, a, bits, false, 0u, {2, 3, 16, 1}, count);
  Check(count == kept, "GatherMask count");
  CheckSame(d, ref, "GatherMask with a tensor");
}

template <typename T>
void TestIndex() {
  TPipe pipe;
  LocalTensor<T> d = Tensor<T>(pipe);
  std::vector<T> ref = Snapshot(d);
  for (int i = 0; i < 77; ++i) ref[static_cast<size_t>(i)] = Make<T>(5 + i);
  CreateVecIndex(d, Make<T>(5), 77u);
  CheckSame(d, ref, "CreateVecIndex");
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (int r = 0; r < 3; ++r) {
    for (int l = 0; l < kLanes - 3; ++l) ref[static_cast<size_t>(At<T>(r, l, 2, 17))] = Make<T>(r * kLanes + l);
  }
  CreateVecIndex(d, Make<T>(0), static_cast<uint64_t>(kLanes - 3), 3, 2, 17);
  CheckSame(d, ref, "CreateVecIndex strided");
}

// ---- compare and select

template <typename T>
void TestSelect() {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, -3, 3), b = Tensor<T>(pipe, -3, 3), d = Tensor<T>(pipe);
  LocalTensor<uint8_t> m = Tensor<uint8_t>(pipe, 0, 255);
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (uint32_t i = 0; i < kSize; i += 3) b.SetValue(i, a.GetValue(i));
  for (uint32_t i = 5; i < kSize && kIsFloating<T>; i += 50) a.SetValue(i, Make<T>(kNan));
  const T scalar = Make<T>(1);
  for (int mode = 0; mode < 6; ++mode) {
    const CMPMODE cmp = static_cast<CMPMODE>(mode);
    const auto holds = [&](double x, double y) {
      switch (cmp) {
        case CMPMODE::LT:
          return x < y;
        case CMPMODE::GT:
          return x > y;
        case CMPMODE::EQ:
          return x == y;
        case CMPMODE::LE:
          return x <= y;
        case CMPMODE::GE:
          return x >= y;
        default:
          return x != y;
      }
    };
    const auto bit = [&](int i) { return (m.GetValue(static_cast<uint32_t>(i / 8)) >> (i % 8) & 1) != 0; };
    for (int count : {1, 8, 9, 16, 23, 64, 1000}) {
      Compare(m, a, b, cmp, static_cast<uint32_t>(count));
      bool ok = true;
      for (int i = 0; i < count; ++i) ok = ok && bit(i) == holds(Value(a.GetValue(i)), Value(b.GetValue(i)));
      Check(ok, "Compare", mode);
      CompareScalar(m, a, scalar, cmp, static_cast<uint32_t>(count));
      ok = true;
      for (int i = 0; i < count; ++i) ok = ok && bit(i) == holds(Value(a.GetValue(i)), Value(scalar));
      Check(ok, "CompareScalar", mode);
    }
    for (int blk : {1, 2}) {
      const BinaryRepeatParams p(1, static_cast<uint8_t>(blk), 1, 8, 16, 8);
      Compare(m, a, b, cmp, static_cast<uint64_t>(kLanes), 5, p);
      bool ok = true;
      for (int i = 0; i < 5 * kLanes; ++i) {
        const int r = i / kLanes, l = i % kLanes;
        ok = ok &&
             bit(i) == holds(Value(a.GetPhyAddr()[At<T>(r, l, blk, 16)]), Value(b.GetPhyAddr()[At<T>(r, l, 1, 8)]));
      }
      Check(ok, "Compare strided", blk);
    }
  }
  if constexpr (kIsFloating<T>) {
    for (uint32_t i = 0; i < kSize; ++i) m.SetValue(i, static_cast<uint8_t>(rng()));
    const auto bit = [&](int i) { return (m.GetValue(static_cast<uint32_t>(i / 8)) >> (i % 8) & 1) != 0; };
    for (int count : kCounts) {
      std::vector<T> ref = Snapshot(d);
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i) ? a.GetValue(i) : b.GetValue(i);
      Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select tensor");
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i) ? a.GetValue(i) : scalar;
      Select(d, m, a, scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select scalar");
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i % kLanes) ? a.GetValue(i) : b.GetValue(i);
      Select(d, m, a, b, SELMODE::VSEL_CMPMASK_SPR, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select with the same bits");
    }
    for (int trial = 0; trial < 30; ++trial) {
      const Lanes lanes = DrawLanes(kLanes);
      const bool useBits = trial % 3 == 2, same = trial % 2 == 0;
      uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
      const BinaryRepeatParams p(Draw({1, 2}), Draw({1, 2}), Draw({1, 0}), Draw({8, 16}), Draw({8, 0}), Draw({0, 8}));
      const SELMODE mode = same ? SELMODE::VSEL_CMPMASK_SPR : SELMODE::VSEL_TENSOR_TENSOR_MODE;
      std::vector<T> ref = Snapshot(d);
      for (int r = 0; r < 5; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          if (!lanes.Test(useBits, l)) continue;
          ref[static_cast<size_t>(At<T>(r, l, p.dstBlkStride, p.dstRepStride))] =
              bit(l + (same ? 0 : r * kLanes)) ? a.GetPhyAddr()[At<T>(r, l, p.src0BlkStride, p.src0RepStride)]
                                               : b.GetPhyAddr()[At<T>(r, l, p.src1BlkStride, p.src1RepStride)];
        }
      }
      if (useBits) {
        Select(d, m, a, b, mode, bits, 5, p);
      } else {
        Select(d, m, a, b, mode, lanes.count, 5, p);
      }
      CheckSame(d, ref, "Select strided");
    }
  }
}

// ---- reductions

template <typename T>
uint32_t IndexBits(T v) {
  uint32_t index = 0;
  std::memcpy(&index, &v, sizeof(T));
  return index;
}

template <typename T>
void TestReduce() {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, -3, 3), d = Tensor<T>(pipe), work = Tensor<T>(pipe);
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  const double eps = std::is_same_v<T, float> ? 1e-6 : 1e-3;
  for (int count : kCounts) {
    double sum = 0, size = 0, best = -1e9, least = 1e9;
    int at = 0, atLeast = 0;
    for (int i = 0; i < count; ++i) {
      const double v = Value(a.GetValue(i));
      sum += v;
      size += std::fabs(v);
      if (v > best) best = v, at = i;
      if (v < least) least = v, atLeast = i;
    }
    ReduceSum(d, a, work, count);
    Check(std::fabs(Value(d.GetValue(0)) - sum) <= eps * size, "ReduceSum", count);
    ReduceMax(d, a, work, count, true);
    Check(Value(d.GetValue(0)) == best && IndexBits(d.GetValue(1)) == static_cast<uint32_t>(at), "ReduceMax", count);
    ReduceMin(d, a, work, count, true);
    Check(Value(d.GetValue(0)) == least && IndexBits(d.GetValue(1)) == static_cast<uint32_t>(atLeast), "ReduceMin",
          count);
    ReduceMax(d, a, work, count);
    Check(Value(d.GetValue(0)) == best, "ReduceMax without index", count);
  }
  for (int trial = 0; trial < 60; ++trial) {
    Lanes lanes = DrawLanes(kLanes);
    const bool useBits = trial % 3 == 2;
    lanes.bits[0] |= 2;
    const int repeat = 1 + static_cast<int>(rng() % 40), blk = trial % 2 ? 1 : 2, rep = blk * 8 + 1;
    const int32_t mask = static_cast<int32_t>(lanes.count);
    std::vector<double> sums, sizes, best, least;
    std::vector<uint32_t> at;
    for (int r = 0; r < repeat; ++r) {
      double s = 0, size = 0, m = -1e9, n = 1e9;
      uint32_t where = 0;
      for (int l = 0; l < kLanes; ++l) {
        if (!lanes.Test(useBits, l)) continue;
        const double v = Value(a.GetPhyAddr()[At<T>(r, l, blk, rep)]);
        s += v;
        size += std::fabs(v);
        if (v > m) m = v, where = static_cast<uint32_t>(l);
        n = std::min(n, v);
      }
      sums.push_back(s);
      sizes.push_back(size);
      best.push_back(m);
      least.push_back(n);
      at.push_back(where);
    }
    const int dstRep = trial % 4 == 0 ? 3 : 1;
    bool ok = true;
    if (useBits) {
      WholeReduceSum(d, a, lanes.bits, repeat, dstRep, blk, rep);
    } else {
      WholeReduceSum(d, a, mask, repeat, dstRep, blk, rep);
    }
    for (int r = 0; r < repeat; ++r) {
      const size_t i = static_cast<size_t>(r);
      ok = ok && std::fabs(Value(d.GetValue(static_cast<uint32_t>(r * dstRep))) - sums[i]) <= eps * sizes[i] + 1e-9;
    }
    Check(ok, "WholeReduceSum", trial);
    const auto whole = [&](ReduceOrder order) {
      if (useBits) {
        WholeReduceMax(d, a, lanes.bits, repeat, dstRep, blk, rep, order);
      } else {
        WholeReduceMax(d, a, mask, repeat, dstRep, blk, rep, order);
      }
    };
    whole(ReduceOrder::ORDER_ONLY_VALUE);
    ok = true;
    for (int r = 0; r < repeat; ++r) ok = ok && Value(d.GetPhyAddr()[r * dstRep]) == best[static_cast<size_t>(r)];
    Check(ok, "WholeReduceMax value", trial);
    whole(ReduceOrder::ORDER_VALUE_INDEX);
    ok = true;
    for (int r = 0; r < repeat; ++r) {
      ok = ok && Value(d.GetPhyAddr()[r * dstRep * 2]) == best[static_cast<size_t>(r)] &&
           IndexBits(d.GetPhyAddr()[r * dstRep * 2 + 1]) == at[static_cast<size_t>(r)];
    }
    Check(ok, "WholeReduceMax value, index", trial);
    whole(ReduceOrder::ORDER_ONLY_INDEX);
    ok = true;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(d.GetPhyAddr());
    for (int r = 0; r < repeat; ++r) ok = ok && words[r * dstRep] == at[static_cast<size_t>(r)];
    Check(ok, "WholeReduceMax index", trial);
    if (!useBits) {
      WholeReduceMin(d, a, mask, repeat, dstRep, blk, rep, ReduceOrder::ORDER_ONLY_VALUE);
      ok = true;
      for (int r = 0; r < repeat; ++r) ok = ok && Value(d.GetPhyAddr()[r * dstRep]) == least[static_cast<size_t>(r)];
      Check(ok, "WholeReduceMin value", trial);
    }
    std::vector<T> before = Snapshot(d);
    if (useBits) {
      BlockReduceMax(d, a, repeat, lanes.bits, dstRep, blk, rep);
    } else {
      BlockReduceMax(d, a, repeat, mask, dstRep, blk, rep);
    }
    ok = true;
    for (int r = 0; r < repeat; ++r) {
      for (int b = 0; b < 8; ++b) {
        double m = -1e9;
        for (int l = b * kPerBlock; l < (b + 1) * kPerBlock; ++l) {
          if (lanes.Test(useBits, l)) m = std::max(m, Value(a.GetPhyAddr()[At<T>(r, l, blk, rep)]));
        }
        const size_t i = static_cast<size_t>(r * dstRep * 8 + b);
        ok = ok && Value(d.GetPhyAddr()[i]) == (m == -1e9 ? Value(before[i]) : m);
      }
    }
    Check(ok, "BlockReduceMax", trial);
    PairReduceSum(d, a, repeat, mask, 1, blk, rep);
    ok = true;
    for (int r = 0; r < repeat; ++r) {
      for (int l = 0; l + 1 < mask; l += 2) {
        const double s =
            Value(a.GetPhyAddr()[At<T>(r, l, blk, rep)]) + Value(a.GetPhyAddr()[At<T>(r, l + 1, blk, rep)]);
        ok = ok && SameBits(d.GetPhyAddr()[r * kLanes / 2 + l / 2], Make<T>(s));
      }
    }
    Check(ok, "PairReduceSum", trial);
    double sum = 0, size = 0;
    double top = -1e9;
    for (int r = 0; r < repeat; ++r) {
      for (int l = 0; l < mask; ++l) {
        const double v = Value(a.GetPhyAddr()[At<T>(r, l, 1, 9)]);
        sum += v;
        size += std::fabs(v);
        top = std::max(top, v);
      }
    }
    ReduceSum(d, a, work, mask, repeat, 9);
    Check(std::fabs(Value(d.GetValue(0)) - sum) <= eps * size + 1e-9, "ReduceSum strided", trial);
    ReduceMax(d, a, work, mask, repeat, 9);
    Check(Value(d.GetValue(0)) == top, "ReduceMax strided", trial);
  }
}

// ---- sorting

template <typename T>
void TestSort() {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, -3, 3), d = Tensor<T>(pipe), e = Tensor<T>(pipe), v = Tensor<T>(pipe);
  LocalTensor<uint32_t> index = Tensor<uint32_t>(pipe, 0, 1), out = Tensor<uint32_t>(pipe, 0, 1);
  constexpr uint32_t kWidth = 8 / sizeof(T);
  for (uint32_t i = 0; i < 256; ++i) index.SetValue(i, i);
  for (uint32_t i = 0; i < 256; i += 3) a.SetValue(i, Make<T>(static_cast<double>(rng() % 4)));  // ties
  a.SetValue(40, Make<T>(-kInf));
  Sort32(d, a, index, 8);
  const auto ordered = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first; i + 1 < first + count; ++i) {
      const double x = Value(v.GetValue(i)), y = Value(v.GetValue(i + 1));
      if (x < y || (x == y && out.GetValue(i) > out.GetValue(i + 1))) return false;
    }
    for (uint32_t i = first; i < first + count; ++i) {
      if (!SameBits(a.GetValue(out.GetValue(i)), v.GetValue(i))) return false;
    }
    return true;
  };
  Extract(v, out, d, 8);
  for (uint32_t r = 0; r < 8; ++r) Check(ordered(r * 32, 32), "Sort32", r);
  const uint16_t lengths[4] = {32, 32, 32, 32};
  MrgSort(e, MrgSortSrcList<T>(d[0], d[32 * kWidth], d[64 * kWidth], d[96 * kWidth]),
          MrgSort4Info(lengths, false, 15, 2));
  Extract(v, out, e, 8);
  Check(ordered(0, 128) && ordered(128, 128), "MrgSort of four lists, repeated");
  const uint16_t two[4] = {128, 128, 0, 0};
  MrgSort(d, MrgSortSrcList<T>(e[0], e[128 * kWidth], e[0], e[0]), MrgSort4Info(two, false, 3, 1));
  Extract(v, out, d, 8);
  Check(ordered(0, 256), "MrgSort of two lists");
  MrgSort(d, MrgSortSrcList<T>(e[0], e[128 * kWidth], e[0], e[0]), MrgSort4Info(two, true, 3, 1));
  uint16_t n1, n2, n3, n4;
  GetMrgSortResult(n1, n2, n3, n4);
  Check((n1 == 128) != (n2 == 128) && n3 == 0 && n4 == 0, "MrgSort stops when a list ends");
}

// ---- copies

template <typename T>
void TestCopies() {
  TPipe pipe;
  LocalTensor<T> l = Tensor<T>(pipe), m = Tensor<T>(pipe);
  std::vector<T> memory(kSize), ref;
  for (T& x : memory) x = Make<T>(static_cast<double>(rng() % 100));
  GlobalTensor<T> g;
  g.SetGlobalBuffer(memory.data(), kSize);
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));

  ref = Snapshot(l);
  std::copy_n(memory.begin() + 3, 128, ref.begin());
  DataCopy(l, g[3], 128);
  CheckSame(l, ref, "DataCopy in");
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 2 * kPerBlock; ++i) {
      ref[static_cast<size_t>(b * 6 * kPerBlock + i)] = memory[static_cast<size_t>(b * 3 * kPerBlock + i)];
    }
  }
  DataCopy(l, g, DataCopyParams(3, 2, 1, 4));
  CheckSame(l, ref, "DataCopy in, strided");
  ref = Snapshot(m);
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 2 * kPerBlock; ++i) {
      ref[static_cast<size_t>(b * 3 * kPerBlock + i)] = l.GetPhyAddr()[b * 6 * kPerBlock + i];
    }
  }
  DataCopy(m, l, DataCopyParams(3, 2, 4, 1));
  CheckSame(m, ref, "DataCopy within UB, strided");

  for (uint32_t n : {1u, 5u, 16u, 33u}) {
    for (int pad = 0; pad < 2; ++pad) {
      const uint8_t left = static_cast<uint8_t>(pad ? 2 : 0), right = static_cast<uint8_t>(pad ? 1 : 0);
      const uint32_t bytes = n * sizeof(T);
      const uint32_t padded = (bytes + (left + right) * static_cast<uint32_t>(sizeof(T)) + 31) / 32 * 32 / sizeof(T);
      const T value = Make<T>(7);
      ref = Snapshot(l);
      for (uint32_t b = 0; b < 3; ++b) {
        const T* s = memory.data() + 1 + b * (n + 2);
        T* d = ref.data() + b * (padded + 2 * kPerBlock);
        for (uint32_t i = 0; i < padded; ++i) {
          const bool inside = i >= left && i < left + n;
          d[i] = inside ? s[i - left] : pad ? value : s[0];
        }
      }
      DataCopyPad(l, g[1], DataCopyExtParams(3, bytes, 2 * sizeof(T), 2, 0),
                  DataCopyPadExtParams<T>(pad != 0, left, right, value));
      CheckSame(l, ref, "DataCopyPad in");
    }
    const uint32_t bytes = n * sizeof(T), step = (bytes + 31) / 32 * 32 / sizeof(T) + kPerBlock;
    std::vector<T> want = memory;
    for (uint32_t b = 0; b < 3; ++b) {
      for (uint32_t i = 0; i < n; ++i) want[5 + b * (n + 1) + i] = m.GetValue(b * step + i);
    }
    DataCopyPad(g[5], m, DataCopyExtParams(3, bytes, 1, sizeof(T), 0));
    Check(std::memcmp(want.data(), memory.data(), kSize * sizeof(T)) == 0, "DataCopyPad out", n);
  }
  std::vector<T> want = memory;
  for (int i = 0; i < 64; ++i) want[static_cast<size_t>(7 + i)] = m.GetValue(i);
  DataCopy(g[7], m, 64);
  Check(std::memcmp(want.data(), memory.data(), kSize * sizeof(T)) == 0, "DataCopy out");
  if constexpr (std::is_same_v<T, float>) {
    SetAtomicAdd<float>();
    for (int i = 0; i < 64; ++i) want[static_cast<size_t>(7 + i)] += m.GetValue(i);
    DataCopy(g[7], m, 64);
    for (int i = 0; i < 3; ++i) want[static_cast<size_t>(2 + i)] += m.GetValue(i);
    DataCopyPad(g[2], m, DataCopyExtParams(1, 12, 0, 0, 0));
    SetAtomicNone();
    Check(want == memory, "atomic add");
  }
}

// ---- queues

void TestQueues() {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> queue;
  pipe.InitBuffer(queue, 2, 128);
  LocalTensor<float> a = queue.AllocTensor<float>(), b = queue.AllocTensor<float>();
  Check(a.GetSize() == 32 && a.GetPhyAddr() != b.GetPhyAddr(), "two buffers");
  Check(reinterpret_cast<uintptr_t>(a.GetPhyAddr()) % 64 == 0, "buffers are aligned");
  const auto throws = [](auto f) {
    try {
      f();
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  };
  Check(throws([&] { queue.AllocTensor<float>(); }), "no third buffer");
  Check(throws([&] { queue.DeQue<float>(); }), "nothing to take");
  queue.EnQue(b);
  queue.EnQue(a);
  LocalTensor<float> first = queue.DeQue<float>();
  Check(first.GetPhyAddr() == b.GetPhyAddr() && queue.HasTensorInQue(), "first in, first out");
  queue.FreeTensor(first);
  Check(queue.AllocTensor<float>().GetPhyAddr() == b.GetPhyAddr(), "a freed buffer comes back");
  const TEventID id = pipe.AllocEventID<HardEvent::MTE2_V>();
  Check(pipe.FetchEventID(HardEvent::MTE2_V) != id, "event ids differ");
  pipe.ReleaseEventID<HardEvent::MTE2_V>(id);
  Check(pipe.FetchEventID(HardEvent::MTE2_V) == id, "a released event id comes back");
}

// ---- the pool

struct Counter {
  std::atomic<int> runs{0};
  std::atomic<int> seen[64] = {};
};

void CountCore(void* ctx, int core) {
  Counter* counter = static_cast<Counter*>(ctx);
  if (GetBlockIdx() == core) ++counter->seen[core];
  ++counter->runs;
}

bool LaunchAll(int cores) {
  Counter counter;
  mst::LaunchKernel(cores, CountCore, &counter);
  for (int i = 0; i < cores; ++i) {
    if (counter.seen[i] != 1) return false;
  }
  return counter.runs == cores;
}

template <typename Error>
bool LaunchThrows(int cores, void (*fn)(void*, int), const char* text) {
  try {
    mst::LaunchKernel(cores, fn, nullptr);
  } catch (const Error& error) {
    return std::string(error.what()).find(text) != std::string::npos;
  }
  return false;
}

void TestPool(bool withFork) {
  mst::SetPoolThreads(4);
  bool ok = true;
  for (int i = 0; i < 500; ++i) ok = ok && LaunchAll(i % 64);
  Check(ok, "every core once");
  Counter counter;
  for (int i = 0; i < 200; ++i) {
    mst::LaunchKernel(
        4,
        [](void* ctx, int) {
          Counter* c = static_cast<Counter*>(ctx);
          ++c->runs;
          SyncAll();
          if (c->runs % 4 == 0) ++c->seen[0];
          SyncAll();
        },
        &counter);
  }
  Check(counter.seen[0] == 800, "SyncAll waits for all", counter.seen[0]);
  Check(LaunchThrows<std::logic_error>(5, [](void*, int) { SyncAll(); }, "4 threads"), "SyncAll with too many cores");
  Check(LaunchThrows<std::runtime_error>(
            4,
            [](void*, int core) {
              if (core == 2) throw std::runtime_error("core 2");
              SyncAll();
            },
            "core 2"),
        "an exception comes through");
  Check(LaunchThrows<std::logic_error>(
            4,
            [](void*, int core) {
              if (core != 2) SyncAll();
            },
            "ended without"),
        "a core that misses SyncAll");
  Check(LaunchAll(8), "the pool works after errors");
  std::atomic<bool> all{true};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        mst::Scratch scratch(1000 * (i % 7));
        if (scratch.data() != nullptr) scratch.data()[0] = 1;
        if (!LaunchAll(6)) all = false;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  Check(all, "launches from several threads");
  if (withFork) {
    const pid_t child = fork();
    if (child == 0) _exit(LaunchAll(7) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    Check(status == 0, "a forked child has a pool of its own");
  }
  mst::SetPoolThreads(0);
  setenv("MS_OPS_NUM_THREADS", "3", 1);
  Check(mst::PoolThreads() == 3, "MS_OPS_NUM_THREADS");
  mst::SetPoolThreads(0);
  setenv("MS_OPS_NUM_THREADS", "many", 1);
  bool refused = false;
  try {
    mst::PoolThreads();
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  Check(refused, "MS_OPS_NUM_THREADS that is no number");
  // Buffers given out stay valid while the arena grows, and a second kernel of the same size finds one piece.
  mst::Arena arena;
  for (int round = 0; round < 3; ++round) {
    arena.Reset();
    std::vector<uint8_t*> buffers;
    for (int i = 0; i < 20; ++i) {
      buffers.push_back(arena.Alloc(600 * 1024));
      *buffers.back() = static_cast<uint8_t>(i);
    }
    for (int i = 0; i < 20; ++i) ok = ok && *buffers[static_cast<size_t>(i)] == i;
  }
  Check(ok, "arena");
}

}  // namespace

// --no-fork: for emulators that cannot fork a process with threads.
int main(int argc, char** argv) {
  const bool withFork = argc < 2 || std::string(argv[1]) != "--no-fork";
  TestBinaries();
  TestUnaries();
  TestCasts();
  TestMoves<float>("moves of float");
  TestMoves<half>("moves of half");
  TestMoves<bfloat16_t>("moves of bfloat16");
  TestMoves<int32_t>("moves of int32");
  TestMoves<int16_t>("moves of int16");
  TestIndex<float>();
  TestIndex<half>();
  TestIndex<int32_t>();
  TestIndex<int16_t>();
  TestSelect<float>();
  TestSelect<half>();
  TestSelect<int32_t>();
  TestReduce<float>();
  TestReduce<half>();
  TestSort<float>();
  TestSort<half>();
  TestCopies<float>();
  TestCopies<half>();
  TestCopies<int32_t>();
  TestCopies<int64_t>();
  TestCopies<uint8_t>();
  TestQueues();
  TestPool(withFork);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
