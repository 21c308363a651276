// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "sort.h"

#include <algorithm>
#include <utility>

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

#if MST_VECTOR_BYTES == 64

constexpr int kShortList = 16;  // records that one vector ranks

constexpr int kGroup = 32;      // elements that a sort takes
constexpr int kPlaceShift = 3;  // bits by which an element moves to leave room for the exponent
constexpr int kGroups = 8;      // groups that are sorted together, one in each 64-bit lane

typedef double VD __attribute__((vector_size(64)));

// Batcher's odd-even merge sort: pairs to be put in order.
struct Network {
  uint8_t first[191] = {}, second[191] = {};
  int size = 0;
  constexpr Network() {
    for (int p = 1; p < kGroup; p *= 2) {
      for (int k = p; k >= 1; k /= 2) {
        for (int j = k % p; j + k < kGroup; j += 2 * k) {
          for (int i = j; i < j + k && i + k < kGroup; ++i) {
            if (i / (2 * p) != (i + k) / (2 * p)) continue;
            first[size] = static_cast<uint8_t>(i);
            second[size++] = static_cast<uint8_t>(i + k);
          }
        }
      }
    }
  }
};
constexpr Network kNetwork;
static_assert(kNetwork.size == 191);

// 8 x 8, in place.
inline void Transpose(VD* rows) {
  typedef int64_t VL __attribute__((vector_size(64)));
  const VL low = {0, 8, 1, 9, 2, 10, 3, 11}, high = {4, 12, 5, 13, 6, 14, 7, 15};
#pragma GCC unroll 3
  for (int step = 0; step < 3; ++step) {
    VD t[kGroups];
#pragma GCC unroll 4
    for (int i = 0; i < kGroups / 2; ++i) {
      t[2 * i] = __builtin_shuffle(rows[i], rows[i + kGroups / 2], low);
      t[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kGroups / 2], high);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kGroups; ++i) rows[i] = t[i];
  }
}

// Puts all pairs in order. In registers: every number of an element is known to the compiler.
template <size_t... pair>
MST_INLINE void SortNetwork(VD* elements, std::index_sequence<pair...>) {
  const auto order = [](VD& first, VD& second) {
    const __m512d a = __m512d(first), b = __m512d(second);
    first = VD(_mm512_max_pd(a, b));
    second = VD(_mm512_min_pd(a, b));
  };
  (order(elements[kNetwork.first[pair]], elements[kNetwork.second[pair]]), ...);
}

// `groups` groups, at most kGroups. An element is a key and, below it, the complement of its place in the group: no two
// are equal, and of equal keys the earlier one is greater. It lies in the middle of the positive doubles, which have
// the order of their bits and, unlike integers of 64 bits, a maximum that takes one step.
void Sort32Floats(uint64_t* dst, const float* scores, const uint32_t* indices, int groups) {
  VD elements[kGroup];
  const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const auto element = [](__m512i bits) {
    return VD(_mm512_add_epi64(_mm512_srai_epi64(bits, kPlaceShift), _mm512_set1_epi64(int64_t{1} << 61)));
  };
  for (int g = 0; g < kGroups; ++g) {
    const float* own = scores + std::min(g, groups - 1) * kGroup;
    for (int half = 0; half < 2; ++half) {
      const __m512i keys = __m512i(KeysOf(mst::simd::Load(own + half * 16)));
      const __m512i below =
          _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(kGroup - 1 - half * 16), places), kPlaceShift);
      elements[half * 16 + g] = element(_mm512_unpacklo_epi32(below, keys));
      elements[half * 16 + kGroups + g] = element(_mm512_unpackhi_epi32(below, keys));
    }
  }
  for (int i = 0; i < kGroup; i += kGroups) Transpose(elements + i);
  SortNetwork(elements, std::make_index_sequence<kNetwork.size>());
  for (int i = 0; i < kGroup; i += kGroups) Transpose(elements + i);
  for (int g = 0; g < groups; ++g) {
    const __m512i score0 = _mm512_loadu_si512(scores + g * kGroup),
                  score1 = _mm512_loadu_si512(scores + g * kGroup + 16);
    const __m512i index0 = _mm512_loadu_si512(indices + g * kGroup);
    const __m512i index1 = _mm512_loadu_si512(indices + g * kGroup + 16);
    for (int i = 0; i < kGroup; i += kGroups) {
      // The place in both halves of each lane; its lowest 5 bits count.
      const __m512i below = _mm512_shuffle_epi32(__m512i(elements[i + g]), static_cast<_MM_PERM_ENUM>(0xa0));
      const __m512i place = _mm512_xor_si512(below, _mm512_set1_epi32(-1));
      const __m512i score = _mm512_permutex2var_epi32(score0, place, score1);
      const __m512i index = _mm512_permutex2var_epi32(index0, place, index1);
      _mm512_storeu_si512(dst + g * kGroup + i, _mm512_mask_blend_epi32(0xaaaa, score, index));
    }
  }
}

// Merges up to four lists of at most 16 records: a record's place is its place in its list and what goes before it in
// the others, of equal ones the earlier list.
void MergeShort(uint64_t* dst, const uint64_t* const* lists, const int* lengths) {
  alignas(64) int32_t keys[MRG_SORT_ELEMENT_LEN][kShortList];
  alignas(64) int32_t ranks[kShortList];
  const __m512i scores = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i one = _mm512_set1_epi32(1);
  for (int list = 0; list < MRG_SORT_ELEMENT_LEN; ++list) {
    if (lengths[list] == 0) continue;
    const unsigned bits = (1u << lengths[list]) - 1;
    const __m512i low = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(bits), lists[list]);
    const __m512i high = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(bits >> 8), lists[list] + 8);
    _mm512_store_si512(keys[list], __m512i(KeysOf(mst::simd::VF(_mm512_permutex2var_epi32(low, scores, high)))));
  }
  for (int list = 0; list < MRG_SORT_ELEMENT_LEN; ++list) {
    if (lengths[list] == 0) continue;
    const __m512i own = _mm512_load_si512(keys[list]);
    __m512i rank = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int other = 0; other < list; ++other) {
      for (int j = 0; j < lengths[other]; ++j) {
        const __mmask16 before = _mm512_cmp_epi32_mask(_mm512_set1_epi32(keys[other][j]), own, _MM_CMPINT_NLT);
        rank = _mm512_mask_add_epi32(rank, before, rank, one);
      }
    }
    for (int other = list + 1; other < MRG_SORT_ELEMENT_LEN; ++other) {
      for (int j = 0; j < lengths[other]; ++j) {
        const __mmask16 before = _mm512_cmp_epi32_mask(_mm512_set1_epi32(keys[other][j]), own, _MM_CMPINT_NLE);
        rank = _mm512_mask_add_epi32(rank, before, rank, one);
      }
    }
    _mm512_store_si512(ranks, rank);
    for (int i = 0; i < lengths[list]; ++i) dst[ranks[i]] = lists[list][i];
  }
}

#endif

}  // namespace

template <typename T>
void Sort32Run(uint64_t* dst, const T* scores, const uint32_t* indices, int repeat) {
  constexpr int kCount = 32;
#if MST_VECTOR_BYTES == 64
  if constexpr (std::is_same_v<T, float>) {
    for (int r = 0; r < repeat; r += kGroups) {
      Sort32Floats(dst + r * kCount, scores + r * kCount, indices + r * kCount, std::min(kGroups, repeat - r));
    }
    return;
  }
#endif
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
#if MST_VECTOR_BYTES == 64
  if constexpr (std::is_same_v<T, float>) {
    int used[MRG_SORT_ELEMENT_LEN];
    bool areShort = !stopWhenOneEnds;
    for (int i = 0; i < MRG_SORT_ELEMENT_LEN; ++i) {
      used[i] = (validBit >> i & 1) != 0 ? lengths[i] : 0;
      areShort = areShort && used[i] <= kShortList;
    }
    if (areShort) {
      MergeShort(dst, lists, used);
      for (int i = 0; i < MRG_SORT_ELEMENT_LEN; ++i) consumed[i] = static_cast<uint16_t>(used[i]);
      return;
    }
  }
#endif
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
  int64_t i = 0;
#if MST_VECTOR_BYTES == 64
  if constexpr (std::is_same_v<T, float>) {
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
    for (; i + 16 <= count; i += 16) {
      const __m512i low = _mm512_loadu_si512(records + i), high = _mm512_loadu_si512(records + i + 8);
      _mm512_storeu_si512(values + i, _mm512_permutex2var_epi32(low, evens, high));
      _mm512_storeu_si512(indices + i, _mm512_permutex2var_epi32(low, odds, high));
    }
  }
#endif
  for (; i < count; ++i) {
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
