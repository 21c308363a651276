// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Reductions. Sums run in float and in an order that depends on the operands' sizes alone.
#include "engine.h"
#include "vector.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using namespace mst::simd;

struct MinOp {
  static MST_INLINE VF Of(VF a, VF b) { return Min(a, b); }
};

template <ReduceOp op>
using VectorOp =
    std::conditional_t<op == ReduceOp::kSum, AddOp, std::conditional_t<op == ReduceOp::kMax, MaxOp, MinOp>>;

template <ReduceOp op>
constexpr float kNeutral = op == ReduceOp::kSum   ? 0.0f
                           : op == ReduceOp::kMax ? -std::numeric_limits<float>::infinity()
                                                  : std::numeric_limits<float>::infinity();

template <typename T>
MST_INLINE VF LoadRest(const T* p, int count, float rest) {
  alignas(64) float t[kLanes];
  Store(t, Fill(rest));
  for (int i = 0; i < count; ++i) t[i] = static_cast<float>(p[i]);
  return Load(t);
}
#if MST_VECTOR_BYTES == 64
template <>
MST_INLINE VF LoadRest<float>(const float* p, int count, float rest) {
  return LoadPart(p, count, rest);
}
#endif

// kLanes partial results of a run.
template <ReduceOp op, typename T>
MST_INLINE VF Partial(const T* p, int64_t count) {
  using Op = VectorOp<op>;
  VF a = Fill(kNeutral<op>), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    a = Op::Of(a, Lanes<T>::Load(p + i));
    b = Op::Of(b, Lanes<T>::Load(p + i + kLanes));
    c = Op::Of(c, Lanes<T>::Load(p + i + 2 * kLanes));
    d = Op::Of(d, Lanes<T>::Load(p + i + 3 * kLanes));
  }
  for (; i + kLanes <= count; i += kLanes) a = Op::Of(a, Lanes<T>::Load(p + i));
  if (i < count) b = Op::Of(b, LoadRest(p + i, static_cast<int>(count - i), kNeutral<op>));
  return Op::Of(Op::Of(a, b), Op::Of(c, d));
}

template <ReduceOp op>
MST_INLINE float Across(VF v) {
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
    VI rotated;
    for (int i = 0; i < kLanes; ++i) rotated[i] = (i + width) % kLanes;
    v = VectorOp<op>::Of(v, __builtin_shuffle(v, rotated));
  }
  return v[0];
}

template <typename T>
void PutValue(T* dst, float value) {
  *dst = static_cast<T>(value);
}
// An index is stored as bits, in the width of T.
template <typename T>
void PutIndex(T* dst, int64_t index) {
  const uint32_t word = static_cast<uint32_t>(index);
  const uint16_t narrow = static_cast<uint16_t>(index);
  if constexpr (sizeof(T) == 4) {
    std::memcpy(static_cast<void*>(dst), &word, 4);
  } else {
    std::memcpy(static_cast<void*>(dst), &narrow, 2);
  }
}

// The first element of the run that equals `value`, or -1.
template <typename T>
int64_t FirstEqual(const T* p, float value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<float>(p[i]) == value) return i;
  }
  return -1;
}

// The extreme value over the masked lanes, and the number of the first lane that holds it.
template <ReduceOp op, typename T>
struct Extreme {
  float value = kNeutral<op>;
  int64_t index = 0;
  bool any = false;

  void Take(const T* p, int64_t lane, int64_t count) {
    const float best = Across<op>(Partial<op>(p, count));
    if (any && !(op == ReduceOp::kMax ? best > value : best < value)) return;
    const int64_t at = FirstEqual(p, best, count);
    if (at < 0) return;  // all NaN
    any = true;
    value = best;
    index = lane + at;
  }
};

// One result per repeat where all lanes of a row are contiguous: a transpose per kLanes rows.
template <ReduceOp op, typename T>
void RowsToElements(T* dst, int64_t dstRep, const T* src, int64_t rowBytes, int count, int repeat) {
  alignas(64) float rows[kLanes * kLanes];
  const uint8_t* row = reinterpret_cast<const uint8_t*>(src);
  for (int first = 0; first < repeat; first += kLanes) {
    const int n = std::min(kLanes, repeat - first);
    for (int i = 0; i < n; ++i) {
      Store(rows + i * kLanes, Partial<op>(reinterpret_cast<const T*>(row), count));
      row += rowBytes;
    }
    for (int i = n; i < kLanes; ++i) Store(rows + i * kLanes, VF{});
    const VF result = ReduceRows<VectorOp<op>>(rows);
    if (dstRep == 1) {
      if (n == kLanes) {
        Lanes<T>::Store(dst + first, result);
      } else {
        StoreTail(dst + first, result, n);
      }
    } else {
      for (int i = 0; i < n; ++i) PutValue(dst + (first + i) * dstRep, result[i]);
    }
  }
}

template <ReduceOp op, typename T>
void WholeValue(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  constexpr int kRepeatLanes = ONE_REPEAT_BYTE_SIZE / static_cast<int>(sizeof(T));
  if (srcStride.blk == 1 && mask.count >= 0) {
    RowsToElements<op>(dst, dstRep, src, srcStride.rep * 32, std::min(mask.count, kRepeatLanes), repeat);
    return;
  }
  for (int r = 0; r < repeat; ++r) {
    VF sum = Fill(kNeutral<op>);
    ForEachRun(std::array<Walk, 1>{Walk(src + r * srcStride.rep * 32 / static_cast<int64_t>(sizeof(T)), srcStride)},
               mask, 1, [&](const std::array<uint8_t*, 1>& at, int64_t, int64_t count) {
                 sum = VectorOp<op>::Of(sum, Partial<op>(reinterpret_cast<const T*>(at[0]), count));
               });
    PutValue(dst + r * dstRep, Across<op>(sum));
  }
}

}  // namespace

template <typename T>
void ReduceSumRun(T* dst, const T* src, int64_t count) {
  if (count <= 0) return;
  PutValue(dst, Across<ReduceOp::kSum>(Partial<ReduceOp::kSum>(src, count)));
}

template <typename T>
void ReduceSumRun(T* dst, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  VF sum{};
  ForEachRun(std::array<Walk, 1>{Walk(src, srcStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 1>& at, int64_t, int64_t count) {
               sum += Partial<ReduceOp::kSum>(reinterpret_cast<const T*>(at[0]), count);
             });
  if (repeat > 0) PutValue(dst, Across<ReduceOp::kSum>(sum));
}

template <ReduceOp op, typename T>
void ReduceExtremeRun(T* dst, const T* src, bool withIndex, int64_t count) {
  if (count <= 0) return;
  if (!withIndex) {
    PutValue(dst, Across<op>(Partial<op>(src, count)));
    return;
  }
  Extreme<op, T> extreme;
  extreme.Take(src, 0, count);
  PutValue(dst, extreme.value);
  PutIndex(dst + 1, extreme.index);
}

template <ReduceOp op, typename T>
void ReduceExtremeRun(T* dst, const T* src, Stride srcStride, bool withIndex, const Mask& mask, int repeat) {
  if (repeat <= 0) return;
  Extreme<op, T> extreme;
  ForEachRun(std::array<Walk, 1>{Walk(src, srcStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 1>& at, int64_t lane, int64_t count) {
               extreme.Take(reinterpret_cast<const T*>(at[0]), lane, count);
             });
  PutValue(dst, extreme.value);
  if (withIndex) PutIndex(dst + 1, extreme.index);
}

template <typename T>
void WholeSum(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  WholeValue<ReduceOp::kSum>(dst, dstRep, src, srcStride, mask, repeat);
}

template <ReduceOp op, typename T>
void WholeExtreme(T* dst, int64_t dstRep, const T* src, Stride srcStride, ReduceOrder order, const Mask& mask,
                  int repeat) {
  if (order == ReduceOrder::ORDER_ONLY_VALUE) {
    WholeValue<op>(dst, dstRep, src, srcStride, mask, repeat);
    return;
  }
  for (int r = 0; r < repeat; ++r) {
    Extreme<op, T> extreme;
    ForEachRun(std::array<Walk, 1>{Walk(src + r * srcStride.rep * 32 / static_cast<int64_t>(sizeof(T)), srcStride)},
               mask, 1, [&](const std::array<uint8_t*, 1>& at, int64_t lane, int64_t count) {
                 extreme.Take(reinterpret_cast<const T*>(at[0]), lane, count);
               });
    if (order == ReduceOrder::ORDER_ONLY_INDEX) {  // 32 bits, whatever T is
      const uint32_t index = static_cast<uint32_t>(extreme.index);
      std::memcpy(reinterpret_cast<uint8_t*>(dst) + r * dstRep * 4, &index, 4);
      continue;
    }
    T* pair = dst + r * dstRep * 2;
    const bool valueFirst = order == ReduceOrder::ORDER_VALUE_INDEX;
    PutValue(pair + (valueFirst ? 0 : 1), extreme.value);
    PutIndex(pair + (valueFirst ? 1 : 0), extreme.index);
  }
}

namespace {

// Lane i of the result is lane i ^ width. The table is a constant; computed in place, the compiler makes it anew.
template <int width>
MST_INLINE VF SwapLanes(VF v) {
  struct Table {
    alignas(kBytes) int32_t lane[kLanes];
    constexpr Table() : lane() {
      for (int i = 0; i < kLanes; ++i) lane[i] = i ^ width;
    }
  };
  static constexpr Table kTable;
  return __builtin_shuffle(v, VI(Load(kTable.lane)));
}

// All eight blocks of a repeat, every lane of them.
template <ReduceOp op, typename T>
MST_INLINE void ReduceBlocks(T* dst, const uint8_t* row, int64_t blkBytes) {
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  if constexpr (kLanes > kPerBlock) {  // two blocks in a vector, which adjoin here
    for (int block = 0; block < DEFAULT_BLK_NUM; block += 2) {
      VF v = Lanes<T>::Load(reinterpret_cast<const T*>(row + block * 32));
      v = VectorOp<op>::Of(v, SwapLanes<1>(v));
      v = VectorOp<op>::Of(v, SwapLanes<2>(v));
      v = VectorOp<op>::Of(v, SwapLanes<4>(v));
      PutValue(dst + block, v[0]);
      PutValue(dst + block + 1, v[kLanes / 2]);
    }
  } else {
    alignas(64) float rows[kLanes * kLanes];
    constexpr int kBlocks = std::min(kLanes, static_cast<int>(DEFAULT_BLK_NUM));  // at once
    for (int i = kBlocks; i < kLanes; ++i) Store(rows + i * kLanes, VF{});
    for (int first = 0; first < DEFAULT_BLK_NUM; first += kBlocks) {
      for (int i = 0; i < kBlocks; ++i) {
        const T* p = reinterpret_cast<const T*>(row + (first + i) * blkBytes);
        VF v = Lanes<T>::Load(p);
        for (int lane = kLanes; lane < kPerBlock; lane += kLanes) v = VectorOp<op>::Of(v, Lanes<T>::Load(p + lane));
        Store(rows + i * kLanes, v);
      }
      const VF result = ReduceRows<VectorOp<op>>(rows);
      if constexpr (kBlocks == kLanes) {
        Lanes<T>::Store(dst + first, result);
      } else {
        StoreTail(dst + first, result, kBlocks);
      }
    }
  }
}

}  // namespace

template <ReduceOp op, typename T>
void BlockReduce(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  for (int r = 0; r < repeat; ++r) {
    const uint8_t* row = reinterpret_cast<const uint8_t*>(src) + r * srcStride.rep * 32;
    if (mask.count >= kPerBlock * DEFAULT_BLK_NUM && (srcStride.blk == 1 || kLanes <= kPerBlock)) {
      ReduceBlocks<op>(dst + r * dstRep * DEFAULT_BLK_NUM, row, srcStride.blk * 32);
      continue;
    }
    for (int block = 0; block < DEFAULT_BLK_NUM; ++block) {
      const T* p = reinterpret_cast<const T*>(row + block * srcStride.blk * 32);
      float values[kPerBlock];
      bool any = false;
      for (int i = 0; i < kPerBlock; ++i) {
        const bool on = mask.Test(block * kPerBlock + i);
        values[i] = on ? static_cast<float>(p[i]) : kNeutral<op>;
        any = any || on;
      }
      if (!any) continue;  // the element in dst stays
      for (int width = kPerBlock / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) {  // neighbours first
          const float a = values[2 * i], b = values[2 * i + 1];
          values[i] = op == ReduceOp::kSum ? a + b : op == ReduceOp::kMax ? (a > b ? a : b) : (a < b ? a : b);
        }
      }
      PutValue(dst + r * dstRep * DEFAULT_BLK_NUM + block, values[0]);
    }
  }
}

template <typename T>
void PairSum(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  constexpr int kPairs = ONE_REPEAT_BYTE_SIZE / static_cast<int>(sizeof(T)) / 2;
  for (int r = 0; r < repeat; ++r) {
    const uint8_t* row = reinterpret_cast<const uint8_t*>(src) + r * srcStride.rep * 32;
    for (int pair = 0; pair < kPairs; ++pair) {
      const int lane = 2 * pair;
      const bool first = mask.Test(lane), second = mask.Test(lane + 1);
      if (!first && !second) continue;  // the element in dst stays
      const T* p = reinterpret_cast<const T*>(row + lane / kPerBlock * srcStride.blk * 32) + lane % kPerBlock;
      PutValue(dst + r * dstRep * kPairs + pair,
               (first ? static_cast<float>(p[0]) : 0.0f) + (second ? static_cast<float>(p[1]) : 0.0f));
    }
  }
}

#define MST_REDUCE_EXTREME(op, T)                                                                \
  template void ReduceExtremeRun<ReduceOp::op, T>(T*, const T*, bool, int64_t);                  \
  template void ReduceExtremeRun<ReduceOp::op, T>(T*, const T*, Stride, bool, const Mask&, int); \
  template void WholeExtreme<ReduceOp::op, T>(T*, int64_t, const T*, Stride, ReduceOrder, const Mask&, int)
#define MST_REDUCE(T)                                                                            \
  template void ReduceSumRun<T>(T*, const T*, int64_t);                                          \
  template void ReduceSumRun<T>(T*, const T*, Stride, const Mask&, int);                         \
  template void WholeSum<T>(T*, int64_t, const T*, Stride, const Mask&, int);                    \
  template void PairSum<T>(T*, int64_t, const T*, Stride, const Mask&, int);                     \
  template void BlockReduce<ReduceOp::kSum, T>(T*, int64_t, const T*, Stride, const Mask&, int); \
  template void BlockReduce<ReduceOp::kMax, T>(T*, int64_t, const T*, Stride, const Mask&, int); \
  template void BlockReduce<ReduceOp::kMin, T>(T*, int64_t, const T*, Stride, const Mask&, int); \
  MST_REDUCE_EXTREME(kMax, T);                                                                   \
  MST_REDUCE_EXTREME(kMin, T)
MST_REDUCE(float);
MST_REDUCE(half);

}  // namespace detail
}  // namespace AscendC
