// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "sort.h"

#include <algorithm>

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

inline VI KeysOf(mst::simd::VF score) {
  const VI bits = mst::simd::Bits(score);
  const VI key = (bits ^ ((bits >> 31) & 0x7fffffff)) & ~(score == 0.0f);
  const VI isNan = score != score;
  return (isNan & INT32_MAX) | (~isNan & key);
}

// For kLanes of the 32 keys, from `first` on: how many of all come before them, that is where they belong.
inline VI RanksOf(const int32_t* keys, int first) {
  const VI key = mst::simd::Lanes<int32_t>::Load(keys + first);
  VI rank{};
#if MST_VECTOR_BYTES == 64
  const __m512i own = __m512i(key), one = _mm512_set1_epi32(1);
  __m512i count = __m512i(rank);
#pragma GCC unroll 32
  for (int j = 0; j < 32; ++j) {
    const __m512i other = _mm512_set1_epi32(keys[j]);
    const int before = std::min(std::max(j + 1 - first, 0), kLanes);
    const uint32_t later = 0xffffu << before;  // the lanes after j
    const __mmask16 tied = _mm512_mask_cmpeq_epi32_mask(static_cast<__mmask16>(later), other, own);
    count = _mm512_mask_add_epi32(count, _kor_mask16(_mm512_cmpgt_epi32_mask(other, own), tied), count, one);
  }
  rank = VI(count);
#else
  VI lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = first + i;
  for (int j = 0; j < 32; ++j) rank -= (keys[j] > key) | ((keys[j] == key) & (lane > j));
#endif
  return rank;
}

template <typename T>
inline T ScoreOf(uint64_t record) {
  T score;
  std::memcpy(&score, &record, sizeof(T));
  return score;
}

template <typename T>
inline uint64_t RecordOf(T score, uint32_t index) {
  std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t> word;
  std::memcpy(&word, &score, sizeof(T));
  return static_cast<uint64_t>(index) << 32 | word;
}

}  // namespace

template <typename T>
void Sort32Run(uint64_t* dst, const T* scores, const uint32_t* indices, int repeat) {
  constexpr int kCount = 32;
  for (int r = 0; r < repeat; ++r) {
    alignas(64) int32_t keys[kCount];
    alignas(64) int32_t ranks[kCount];
    for (int i = 0; i < kCount; i += kLanes) {
      mst::simd::Lanes<int32_t>::Store(keys + i, KeysOf(mst::simd::Lanes<T>::Load(scores + i)));
    }
    for (int first = 0; first < kCount; first += kLanes) {
      mst::simd::Lanes<int32_t>::Store(ranks + first, RanksOf(keys, first));
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

#define MST_SORT(T)                                                                                             \
  template void Sort32Run<T>(uint64_t*, const T*, const uint32_t*, int);                                        \
  template void MergeRecords<T>(uint64_t*, const uint64_t* const*, const uint16_t*, uint16_t, bool, uint16_t*); \
  template void ExtractRun<T>(T*, uint32_t*, const uint64_t*, int64_t)
MST_SORT(float);
MST_SORT(half);

}  // namespace detail
}  // namespace AscendC
