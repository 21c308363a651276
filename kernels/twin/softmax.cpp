// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Rows go through in strips of as many rows as a vector has lanes: a strip stays in L1 between its passes, and the row
// results of a strip come from one transpose.
#include "softmax.h"

#include <algorithm>
#include <limits>

#include "simd.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {
namespace {

using mst::simd::AddOp;
using mst::simd::ExpNonPositive;
using mst::simd::Fill;
using mst::simd::kLanes;
using mst::simd::Load;
using mst::simd::LoadPart;
using mst::simd::MaxOp;
using mst::simd::ReduceRows;
using mst::simd::Store;
using mst::simd::StorePart;
using mst::simd::VF;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One vector per row of the strip; rows beyond `rows` stay zero.
struct Strip {
  alignas(64) float lanes[kLanes * kLanes] = {};
  void Set(int row, VF v) { Store(lanes + row * kLanes, v); }
  template <class Op>
  VF Reduce() const {
    return ReduceRows<Op>(lanes);
  }
};

// Row statistics are data blocks of one value.
constexpr int kBlock = 8;
VF LoadStatistics(const float* p, int rows) {
  float t[kLanes] = {};
  for (int i = 0; i < rows; ++i) t[i] = p[i * kBlock];
  return Load(t);
}
void StoreStatistics(float* p, VF v, int rows) {
  float t[kLanes];
  Store(t, v);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < kBlock; ++j) p[i * kBlock + j] = t[i];
  }
}

VF RowMax(const float* p, int64_t columns) {
  VF a = Fill(-kInfinity), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes) {
    a = mst::simd::Max(a, Load(p + i));
    b = mst::simd::Max(b, Load(p + i + kLanes));
    c = mst::simd::Max(c, Load(p + i + 2 * kLanes));
    d = mst::simd::Max(d, Load(p + i + 3 * kLanes));
  }
  for (; i + kLanes <= columns; i += kLanes) a = mst::simd::Max(a, Load(p + i));
  if (i < columns) b = mst::simd::Max(b, LoadPart(p + i, int(columns - i), -kInfinity));
  return mst::simd::Max(mst::simd::Max(a, b), mst::simd::Max(c, d));
}

// dst = exp(src - max); returns lane sums.
VF RowExp(float* dst, const float* src, float max, int64_t columns) {
  const VF m = Fill(max);
  VF s0{}, s1{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= columns; i += 2 * kLanes) {
    const VF x = ExpNonPositive(Load(src + i) - m);
    const VF y = ExpNonPositive(Load(src + i + kLanes) - m);
    s0 += x;
    s1 += y;
    Store(dst + i, x);
    Store(dst + i + kLanes, y);
  }
  for (; i + kLanes <= columns; i += kLanes) {
    const VF x = ExpNonPositive(Load(src + i) - m);
    s0 += x;
    Store(dst + i, x);
  }
  if (i < columns) {
    const VF x = ExpNonPositive(LoadPart(src + i, int(columns - i), -kInfinity) - m);
    s1 += x;
    StorePart(dst + i, x, int(columns - i));
  }
  return s0 + s1;
}

}  // namespace

void SoftmaxFlashRows(float* dst, float* sum, float* max, const float* src, float* expMax, const float* inSum,
                      const float* inMax, const RowShape& shape) {
  Strip strip;
  for (int64_t r0 = 0; r0 < shape.rows; r0 += kLanes) {
    const int rows = int(std::min<int64_t>(kLanes, shape.rows - r0));
    const float* s = src + r0 * shape.stride;
    float* d = dst + r0 * shape.stride;
    for (int r = 0; r < rows; ++r) strip.Set(r, RowMax(s + r * shape.stride, shape.columns));
    VF m = strip.Reduce<MaxOp>(), scale{}, old{};
    if (inMax != nullptr) {
      const VF before = LoadStatistics(inMax + r0 * kBlock, rows);
      old = LoadStatistics(inSum + r0 * kBlock, rows);
      m = mst::simd::Max(before, m);
      scale = ExpNonPositive(before - m);
      StoreStatistics(expMax + r0 * kBlock, scale, rows);
    }
    StoreStatistics(max + r0 * kBlock, m, rows);
    alignas(64) float maxOf[kLanes];
    Store(maxOf, m);
    for (int r = 0; r < rows; ++r) {
      strip.Set(r, RowExp(d + r * shape.stride, s + r * shape.stride, maxOf[r], shape.columns));
    }
    VF total = strip.Reduce<AddOp>();
    if (inMax != nullptr) total = old * scale + total;
    StoreStatistics(sum + r0 * kBlock, total, rows);
  }
}

void SoftmaxRows(float* dst, float* sum, float* max, const float* src, const RowShape& shape) {
  for (int64_t r0 = 0; r0 < shape.rows; r0 += kLanes) {
    const RowShape part = {std::min<int64_t>(kLanes, shape.rows - r0), shape.columns, shape.stride};
    float* d = dst + r0 * shape.stride;
    SoftmaxFlashRows(d, sum + r0 * kBlock, max + r0 * kBlock, src + r0 * shape.stride, nullptr, nullptr, nullptr, part);
    for (int64_t r = 0; r < part.rows; ++r) {
      float* row = d + r * shape.stride;
      const float total = sum[(r0 + r) * kBlock];
      int64_t i = 0;
      for (; i + kLanes <= shape.columns; i += kLanes) Store(row + i, Load(row + i) / total);
      if (i < shape.columns) {
        const int rest = int(shape.columns - i);
        StorePart(row + i, LoadPart(row + i, rest) / total, rest);
      }
    }
  }
}

void SimpleSoftmaxRows(float* dst, const float* sum, const float* max, const float* src, const RowShape& shape) {
  for (int64_t r = 0; r < shape.rows; ++r) {
    const float* s = src + r * shape.stride;
    float* d = dst + r * shape.stride;
    const VF m = Fill(max[r * kBlock]), scale = Fill(1.0f / sum[r * kBlock]);
    int64_t i = 0;
    for (; i + 2 * kLanes <= shape.columns; i += 2 * kLanes) {
      const VF x = mst::simd::Exp(Load(s + i) - m) * scale;
      const VF y = mst::simd::Exp(Load(s + i + kLanes) - m) * scale;
      Store(d + i, x);
      Store(d + i + kLanes, y);
    }
    for (; i < shape.columns; i += kLanes) {
      const int count = int(std::min<int64_t>(kLanes, shape.columns - i));
      if (count == kLanes) {
        Store(d + i, mst::simd::Exp(Load(s + i) - m) * scale);
      } else {
        StorePart(d + i, mst::simd::Exp(LoadPart(s + i, count) - m) * scale, count);
      }
    }
  }
}

void SoftmaxGradFrontRows(float* dst, const float* grad, const float* src, const RowShape& shape) {
  Strip strip;
  for (int64_t r0 = 0; r0 < shape.rows; r0 += kLanes) {
    const int rows = int(std::min<int64_t>(kLanes, shape.rows - r0));
    for (int r = 0; r < rows; ++r) {
      const float* g = grad + (r0 + r) * shape.stride;
      const float* s = src + (r0 + r) * shape.stride;
      VF a{}, b{};
      int64_t i = 0;
      for (; i + 2 * kLanes <= shape.columns; i += 2 * kLanes) {
        a += Load(g + i) * Load(s + i);
        b += Load(g + i + kLanes) * Load(s + i + kLanes);
      }
      for (; i + kLanes <= shape.columns; i += kLanes) a += Load(g + i) * Load(s + i);
      if (i < shape.columns) {
        const int rest = int(shape.columns - i);
        b += LoadPart(g + i, rest) * LoadPart(s + i, rest);
      }
      strip.Set(r, a + b);
    }
    StoreStatistics(dst + r0 * kBlock, strip.Reduce<AddOp>(), rows);
  }
}

}  // namespace detail
}  // namespace AscendC
