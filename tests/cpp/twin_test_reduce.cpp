// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Reductions of a tensor, of repeats, of blocks and of pairs.
#include <algorithm>
#include <cmath>

#include "twin_test.h"

namespace twin_test {
namespace {

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

}  // namespace

void TestReductions() {
  TestReduce<float>();
  TestReduce<half>();
}

}  // namespace twin_test
