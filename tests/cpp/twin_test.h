// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the parts of twin_test share: checks, tensors with drawn values, drawn masks and strides.
#ifndef MST_TESTS_TWIN_TEST_H_
#define MST_TESTS_TWIN_TEST_H_

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernel_operator.h"

namespace twin_test {

using namespace AscendC;

inline int passed = 0;
inline int failed = 0;

inline void Check(bool ok, const char* what, double detail = 0) {
  if (ok) {
    ++passed;
    return;
  }
  ++failed;
  if (failed < 50) std::printf("FAILED %s (%g)\n", what, detail);
}

inline std::mt19937 rng(7);

constexpr float kInf = std::numeric_limits<float>::infinity();
inline const float kNan = std::numeric_limits<float>::quiet_NaN();
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
inline Lanes DrawLanes(int max) {
  Lanes lanes;
  lanes.count = rng() % 3 == 0 ? static_cast<uint64_t>(max) : 1 + rng() % static_cast<unsigned>(max);
  lanes.bits[0] = (static_cast<uint64_t>(rng()) << 32 | rng()) & (rng() % 2 ? ~0ull : 0xff00ff0f33ull);
  lanes.bits[1] = static_cast<uint64_t>(rng()) << 32 | rng();
  if (rng() % 4 == 0) lanes.bits[0] = lanes.bits[1] = ~0ull;
  if (max <= 64) lanes.bits[1] = 0;
  return lanes;
}
inline uint8_t Draw(std::initializer_list<int> values) {
  return static_cast<uint8_t>(*(values.begin() + rng() % values.size()));
}

constexpr int kCounts[] = {1, 3, 8, 15, 16, 31, 33, 64, 100, 128, 1000};

// The parts, in the order in which they run.
void TestBinaries();           // twin_test_arith.cpp
void TestUnaries();            // twin_test_arith.cpp
void TestCasts();              // twin_test_cast.cpp
void TestFillsAndMoves();      // twin_test_move.cpp
void TestSelects();            // twin_test_select.cpp
void TestReductions();         // twin_test_reduce.cpp
void TestSorts();              // twin_test_sort.cpp
void TestCopies();             // twin_test_move.cpp
void TestQueues();             // twin_test_runtime.cpp
void TestCrossCoreFlags();     // twin_test_runtime.cpp
void TestPool(bool withFork);  // twin_test_runtime.cpp

}  // namespace twin_test

#endif  // MST_TESTS_TWIN_TEST_H_
