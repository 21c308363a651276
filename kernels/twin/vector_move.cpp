// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Instructions that fill, copy or collect elements without computing on them.
#include "engine.h"
#include "vector.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using mst::simd::Lanes;

typedef uint32_t Block __attribute__((vector_size(32), aligned(1), may_alias));

template <typename Word>
MST_INLINE Block BlockOf(Word value) {
  const uint32_t word = sizeof(Word) == 4 ? value : static_cast<uint32_t>(value) * 0x10001u;
  return word - Block{};
}

// Every second element of src, from `first` on.
template <typename Word>
void TakeAlternate(Word* dst, const Word* src, int first, int64_t count) {
  constexpr int kCount = Lanes<Word>::kCount;
  typename Lanes<Word>::V index;
  for (int i = 0; i < kCount; ++i) index[i] = static_cast<Word>(2 * i + first);
  int64_t i = 0;
  for (; i + kCount <= count; i += kCount) {
    Lanes<Word>::Store(
        dst + i, __builtin_shuffle(Lanes<Word>::Load(src + 2 * i), Lanes<Word>::Load(src + 2 * i + kCount), index));
  }
  for (; i < count; ++i) dst[i] = src[2 * i + first];
}

}  // namespace

template <typename Word>
void FillWords(Word* dst, Word value, int64_t count) {
  constexpr int kCount = Lanes<Word>::kCount;
  const auto v = Lanes<Word>::Fill(value);
  int64_t i = 0;
  for (; i + kCount <= count; i += kCount) Lanes<Word>::Store(dst + i, v);
  for (; i < count; ++i) dst[i] = value;
}

template <typename Word>
void FillWords(Word* dst, Stride dstStride, Word value, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 1>{Walk(dst, dstStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 1>& at, int64_t, int64_t count) {
               FillWords(reinterpret_cast<Word*>(at[0]), value, count);
             });
}

template <typename Word>
void CopyWords(Word* dst, Stride dstStride, const Word* src, Stride srcStride, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 2>{Walk(dst, dstStride), Walk(src, srcStride)}, mask, repeat,
             [](const std::array<uint8_t*, 2>& at, int64_t, int64_t count) {
               std::memmove(at[0], at[1], static_cast<size_t>(count) * sizeof(Word));
             });
}

template <typename Word>
void BroadcastToBlocks(Word* dst, Stride dstStride, const Word* src, int repeat) {
  uint8_t* row = reinterpret_cast<uint8_t*>(dst);
  for (int r = 0; r < repeat; ++r) {
    for (int i = 0; i < DEFAULT_BLK_NUM; ++i) {
      *reinterpret_cast<Block*>(row + i * dstStride.blk * 32) = BlockOf(src[r * DEFAULT_BLK_NUM + i]);
    }
    row += dstStride.rep * 32;
  }
}

template <typename Word>
void GatherWords(Word* dst, const Word* src, const uint32_t* offsets, int64_t count) {
  const uint8_t* base = reinterpret_cast<const uint8_t*>(src);
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i, base + offsets[i], sizeof(Word));
}

template <typename Word>
void GatherWords(Word* dst, int64_t dstRepStride, const Word* src, const uint32_t* offsets, const Mask& mask,
                 int repeat) {
  ForEachRun(std::array<Walk, 1>{Walk(dst, Stride{1, dstRepStride})}, mask, repeat,
             [&](const std::array<uint8_t*, 1>& at, int64_t lane, int64_t count) {
               GatherWords(reinterpret_cast<Word*>(at[0]), src, offsets + lane, count);
             });
}

template <typename Word>
uint64_t GatherMaskWords(Word* dst, const Word* src, Stride srcStride, const uint8_t* pattern, int64_t patternRep,
                         uint8_t fixed, int64_t lanes, int repeat) {
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(Word));
  Word* out = dst;
  for (int r = 0; r < repeat; ++r) {
    const uint8_t* row = reinterpret_cast<const uint8_t*>(src) + r * srcStride.rep * 32;
    if (pattern == nullptr && srcStride.blk == 1 && (fixed == 0x55 || fixed == 0xaa)) {
      const int first = fixed == 0xaa ? 1 : 0;
      const int64_t kept = (lanes + 1 - first) / 2;
      TakeAlternate(out, reinterpret_cast<const Word*>(row), first, kept);
      out += kept;
      continue;
    }
    for (int64_t i = 0; i < lanes; ++i) {
      const uint8_t bits = pattern == nullptr ? fixed : pattern[r * patternRep + i / 8];
      if ((bits >> (i % 8) & 1) == 0) continue;
      std::memcpy(out++, row + i / kPerBlock * srcStride.blk * 32 + i % kPerBlock * sizeof(Word), sizeof(Word));
    }
  }
  return static_cast<uint64_t>(out - dst);
}

template <typename T>
void IndexRun(T* dst, T first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, half>) {
      dst[i] = half(static_cast<float>(first) + static_cast<float>(i));
    } else {
      dst[i] = static_cast<T>(first + static_cast<T>(i));
    }
  }
}

template <typename T>
void IndexRun(T* dst, Stride dstStride, T first, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 1>{Walk(dst, dstStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 1>& at, int64_t lane, int64_t count) {
               T start = first;
               if constexpr (std::is_same_v<T, half>) {
                 start = half(static_cast<float>(first) + static_cast<float>(lane));
               } else {
                 start = static_cast<T>(first + static_cast<T>(lane));
               }
               IndexRun(reinterpret_cast<T*>(at[0]), start, count);
             });
}

#define MST_MOVE(Word)                                                                             \
  template void FillWords<Word>(Word*, Word, int64_t);                                             \
  template void FillWords<Word>(Word*, Stride, Word, const Mask&, int);                            \
  template void CopyWords<Word>(Word*, Stride, const Word*, Stride, const Mask&, int);             \
  template void BroadcastToBlocks<Word>(Word*, Stride, const Word*, int);                          \
  template void GatherWords<Word>(Word*, const Word*, const uint32_t*, int64_t);                   \
  template void GatherWords<Word>(Word*, int64_t, const Word*, const uint32_t*, const Mask&, int); \
  template uint64_t GatherMaskWords<Word>(Word*, const Word*, Stride, const uint8_t*, int64_t, uint8_t, int64_t, int)
MST_MOVE(uint16_t);
MST_MOVE(uint32_t);

#define MST_INDEX(T)                         \
  template void IndexRun<T>(T*, T, int64_t); \
  template void IndexRun<T>(T*, Stride, T, const Mask&, int)
MST_INDEX(float);
MST_INDEX(half);
MST_INDEX(int32_t);
MST_INDEX(int16_t);

void StreamIn(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks) {
  constexpr int64_t kLine = 64;
  uint8_t* d = static_cast<uint8_t*>(dst);
  const uint8_t* s = static_cast<const uint8_t*>(src);
  const int64_t ahead = srcStep * blocks;
  for (int64_t i = 0; i < blocks; ++i) {
    int64_t at = 0;
    for (; at + kLine <= bytes; at += kLine) {
      __builtin_prefetch(s + at + ahead, 0, 2);
      std::memcpy(d + at, s + at, kLine);
    }
    std::memcpy(d + at, s + at, static_cast<size_t>(bytes - at));
    d += dstStep;
    s += srcStep;
  }
}

void StreamOut(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks) {
#if defined(__AVX__)
#if defined(__AVX512F__)
  constexpr int64_t kLine = 64;
#else
  constexpr int64_t kLine = 32;
#endif
  for (int64_t i = 0; i < blocks; ++i) {
    uint8_t* d = static_cast<uint8_t*>(dst) + i * dstStep;
    const uint8_t* s = static_cast<const uint8_t*>(src) + i * srcStep;
    const int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(d) & (kLine - 1));
    std::memcpy(d, s, static_cast<size_t>(head));
    int64_t at = head;
    for (; at + kLine <= bytes; at += kLine) {
#if defined(__AVX512F__)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(d + at), _mm512_loadu_si512(s + at));
#else
      _mm256_stream_si256(reinterpret_cast<__m256i*>(d + at),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + at)));
#endif
    }
    std::memcpy(d + at, s + at, static_cast<size_t>(bytes - at));
  }
#else
  for (int64_t i = 0; i < blocks; ++i) {
    std::memcpy(static_cast<uint8_t*>(dst) + i * dstStep, static_cast<const uint8_t*>(src) + i * srcStep,
                static_cast<size_t>(bytes));
  }
#endif
}

void StreamFence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

}  // namespace detail
}  // namespace AscendC
