// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "sort.h"

#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using mst::simd::kLanes;
using mst::simd::VI;

// Integers in the order of the scores: -0 equals 0, NaN is above everything.
inline int32_t KeyOf(float score) {
  if (score != score) return INT32_MAX;
  if (score == 0.0f) return 0;
  int32_t bits;
  std::memcpy(&bits, &score, 4);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

template <typename T>
inline T ScoreOf(uint64_t record) {
  T score;
  std::memcpy(&score, &record, sizeof(T));
  return score;
}

template <typename T>
inline uint64_t RecordOf(T score, uint32_t index) {
  uint64_t record = static_cast<uint64_t>(index) << 32;
  std::memcpy(&record, &score, sizeof(T));
  return record;
}

}  // namespace

template <typename T>
void Sort32Run(uint64_t* dst, const T* scores, const uint32_t* indices, int repeat) {
  constexpr int kCount = 32;
  for (int r = 0; r < repeat; ++r) {
    alignas(64) int32_t keys[kCount];
    alignas(64) int32_t ranks[kCount];
    for (int i = 0; i < kCount; ++i) keys[i] = KeyOf(static_cast<float>(scores[i]));
    // The place of an element is the number of elements that come before it.
    for (int first = 0; first < kCount; first += kLanes) {
      const VI key = mst::simd::Lanes<int32_t>::Load(keys + first);
      VI lane;
      for (int i = 0; i < kLanes; ++i) lane[i] = first + i;
      VI rank{};
      for (int j = 0; j < kCount; ++j) rank -= (keys[j] > key) | ((keys[j] == key) & (lane > j));
      mst::simd::Lanes<int32_t>::Store(ranks + first, rank);
    }
    for (int i = 0; i < kCount; ++i) dst[ranks[i]] = RecordOf(scores[i], indices[i]);
    dst += kCount;
    scores += kCount;
    indices += kCount;
  }
}

template <typename T>
void MergeRecords(uint64_t* dst, const uint64_t* const* lists, const uint16_t* lengths, uint16_t validBit,
                  bool stopWhenOneEnds, uint16_t* consumed) {
  int32_t heads[MRG_SORT_ELEMENT_LEN];  // keys of the next record of each list
  int open = 0;                         // bit per list that has records left
  for (int i = 0; i < MRG_SORT_ELEMENT_LEN; ++i) {
    consumed[i] = 0;
    if ((validBit >> i & 1) == 0 || lengths[i] == 0) continue;
    open |= 1 << i;
    heads[i] = KeyOf(static_cast<float>(ScoreOf<T>(lists[i][0])));
  }
  while (open != 0) {
    int best = -1;
    for (int i = 0; i < MRG_SORT_ELEMENT_LEN; ++i) {
      if ((open >> i & 1) != 0 && (best < 0 || heads[i] > heads[best])) best = i;
    }
    *dst++ = lists[best][consumed[best]++];
    if (consumed[best] == lengths[best]) {
      open &= ~(1 << best);
      if (stopWhenOneEnds) return;
    } else {
      heads[best] = KeyOf(static_cast<float>(ScoreOf<T>(lists[best][consumed[best]])));
    }
  }
}

template <typename T>
void ExtractRun(T* values, uint32_t* indices, const uint64_t* records, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t record = records[i];
    values[i] = ScoreOf<T>(record);
    indices[i] = static_cast<uint32_t>(record >> 32);
  }
}

MergeResult& LastMerge() {
  thread_local MergeResult result;
  return result;
}

#define MST_SORT(T)                                                                                              \
  template void Sort32Run<T>(uint64_t*, const T*, const uint32_t*, int);                                         \
  template void MergeRecords<T>(uint64_t*, const uint64_t* const*, const uint16_t*, uint16_t, bool, uint16_t*);  \
  template void ExtractRun<T>(T*, uint32_t*, const uint64_t*, int64_t)
MST_SORT(float);
MST_SORT(half);

}  // namespace detail
}  // namespace AscendC
