// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Instructions within local memory that fill or move elements: Duplicate, Copy, Brcb, CreateVecIndex, Gather,
// GatherMask.
#ifndef MST_TWIN_VECTOR_MOVE_H_
#define MST_TWIN_VECTOR_MOVE_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

struct GatherMaskParams {
  GatherMaskParams() {}
  GatherMaskParams(const uint8_t src0BlockStrideIn, const uint16_t repeatTimesIn, const uint16_t src0RepeatStrideIn,
                   const uint8_t src1RepeatStrideIn)
      : src0BlockStride(src0BlockStrideIn),
        repeatTimes(repeatTimesIn),
        src0RepeatStride(src0RepeatStrideIn),
        src1RepeatStride(src1RepeatStrideIn) {}

  uint8_t src0BlockStride = DEFAULT_BLK_STRIDE;
  uint16_t repeatTimes = 0;
  uint16_t src0RepeatStride = DEFAULT_REPEAT_STRIDE;
  uint8_t src1RepeatStride = DEFAULT_REPEAT_STRIDE;
};

constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V2;

namespace detail {

// Elements as bit patterns of their width.
template <typename T>
using WordOf = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
template <typename T>
WordOf<T>* Words(const LocalTensor<T>& tensor) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "an instruction for elements of 16 or 32 bits");
  return reinterpret_cast<WordOf<T>*>(tensor.GetPhyAddr());
}
template <typename T>
WordOf<T> WordFrom(T value) {
  WordOf<T> word;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <typename T, typename Lanes>
inline void IssueDuplicate(const LocalTensor<T>& dst, T value, Lanes lanes, uint8_t repeat, uint16_t blk, uint8_t rep) {
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Duplicate", check::Masked(lanes, repeat),
      [=] { FillWords(Words(dst), {blk, rep}, WordFrom(value), mask, repeat); }, check::Out(dst, blk, rep));
}

template <typename T, typename Lanes>
inline void IssueCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes, uint8_t repeat,
                      const CopyRepeatParams& p) {
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Copy", check::Masked(lanes, repeat),
      [=] {
        CopyWords<WordOf<T>>(Words(dst), {p.dstStride, p.dstRepeatSize}, Words(src), {p.srcStride, p.srcRepeatSize},
                             mask, repeat);
      },
      check::Out(dst, p.dstStride, p.dstRepeatSize), check::In(src, p.srcStride, p.srcRepeatSize));
}

template <typename T, typename Lanes>
inline void IssueIndex(const LocalTensor<T>& dst, T first, Lanes lanes, uint8_t repeat, uint16_t blk, uint8_t rep) {
  static_assert(kIsOneOf<T, float, half, int32_t, int16_t>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "CreateVecIndex", check::Masked(lanes, repeat),
      [=] { IndexRun<T>(dst.GetPhyAddr(), {blk, rep}, first, mask, repeat); }, check::Out(dst, blk, rep));
}

template <typename T, typename Lanes>
inline void IssueGather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                        uint32_t srcBaseOffset, Lanes lanes, uint8_t repeat, uint16_t dstRepStride) {
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Gather", check::Masked(lanes, repeat),
      [=] {
        GatherWords<WordOf<T>>(Words(dst), dstRepStride, Words(src) + srcBaseOffset / sizeof(T), srcOffset.GetPhyAddr(),
                               mask, repeat);
      },
      check::Out(dst, 1, dstRepStride), check::InRun(src, src.GetSize()),
      check::InRun(srcOffset, static_cast<int64_t>(repeat) * (ONE_REPEAT_BYTE_SIZE / sizeof(T))));
}

}  // namespace detail

template <typename T>
__aicore__ inline void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count) {
  const T value = scalarValue;
  check::Issue(
      PIPE_V, "Duplicate", check::Count(count),
      [=] { detail::FillWords(detail::Words(dst), detail::WordFrom(value), count); }, check::Out(dst));
}
template <typename T, bool isSetMask = true>
__aicore__ inline void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask,
                                 const uint8_t repeatTime, const uint16_t dstBlockStride,
                                 const uint8_t dstRepeatStride) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueDuplicate(dst, scalarValue, mask, repeatTime, dstBlockStride, dstRepeatStride);
}
template <typename T, bool isSetMask = true>
__aicore__ inline void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask[],
                                 const uint8_t repeatTime, const uint16_t dstBlockStride,
                                 const uint8_t dstRepeatStride) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueDuplicate(dst, scalarValue, static_cast<const uint64_t*>(mask), repeatTime, dstBlockStride,
                         dstRepeatStride);
}

template <typename T, bool isSetMask = true>
__aicore__ inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask,
                            const uint8_t repeatTime, const CopyRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueCopy(dst, src, mask, repeatTime, repeatParams);
}
template <typename T, bool isSetMask = true>
__aicore__ inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                            const uint8_t repeatTime, const CopyRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueCopy(dst, src, mask, repeatTime, repeatParams);
}

// Each of the 8 * repeatTime elements of src fills one block of dst.
template <typename T>
__aicore__ inline void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t repeatTime,
                            const BrcbRepeatParams& repeatParams) {
  const detail::Stride stride{repeatParams.dstBlkStride, repeatParams.dstRepStride};
  check::Issue(
      PIPE_V, "Brcb", check::Masked(ONE_REPEAT_BYTE_SIZE / sizeof(T), repeatTime),
      [=] { detail::BroadcastToBlocks<detail::WordOf<T>>(detail::Words(dst), stride, detail::Words(src), repeatTime); },
      check::Out(dst, stride.blk, stride.rep), check::InRun(src, static_cast<int64_t>(repeatTime) * DEFAULT_BLK_NUM));
}

template <typename T>
__aicore__ inline void CreateVecIndex(LocalTensor<T> dst, const T& firstValue, uint32_t count) {
  static_assert(detail::kIsOneOf<T, float, half, int32_t, int16_t>, "the 910B has no such instruction for this type");
  const T first = firstValue;
  check::Issue(
      PIPE_V, "CreateVecIndex", check::Count(count), [=] { detail::IndexRun<T>(dst.GetPhyAddr(), first, count); },
      check::Out(dst));
}
template <typename T>
__aicore__ inline void CreateVecIndex(LocalTensor<T>& dst, const T& firstValue, uint64_t mask, uint8_t repeatTime,
                                      uint16_t dstBlkStride, uint8_t dstRepStride) {
  detail::IssueIndex(dst, firstValue, mask, repeatTime, dstBlkStride, dstRepStride);
}
template <typename T>
__aicore__ inline void CreateVecIndex(LocalTensor<T>& dst, const T& firstValue, uint64_t mask[], uint8_t repeatTime,
                                      uint16_t dstBlkStride, uint8_t dstRepStride) {
  detail::IssueIndex(dst, firstValue, static_cast<const uint64_t*>(mask), repeatTime, dstBlkStride, dstRepStride);
}

// dst[i] = the element srcBaseOffset + srcOffset[i] bytes into src.
template <typename T>
__aicore__ inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseOffset,
                              const uint32_t count) {
  check::Issue(
      PIPE_V, "Gather", check::Count(count),
      [=] {
        detail::GatherWords<detail::WordOf<T>>(detail::Words(dst), detail::Words(src) + srcBaseOffset / sizeof(T),
                                               srcOffset.GetPhyAddr(), count);
      },
      check::Out(dst), check::InRun(src, src.GetSize()), check::InRun(srcOffset, count));
}
template <typename T>
__aicore__ inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseOffset, const uint64_t mask,
                              const uint8_t repeatTime, const uint16_t dstRepStride) {
  detail::IssueGather(dst, src, srcOffset, srcBaseOffset, mask, repeatTime, dstRepStride);
}
template <typename T>
__aicore__ inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseOffset,
                              const uint64_t mask[], const uint8_t repeatTime, const uint16_t dstRepStride) {
  detail::IssueGather(dst, src, srcOffset, srcBaseOffset, mask, repeatTime, dstRepStride);
}

namespace detail {

// How many elements GatherMask keeps: the checked twin must know before it runs.
inline int64_t KeptBy(const uint8_t* pattern, int64_t patternRep, uint8_t fixed, int64_t lanes, int64_t repeat) {
  int64_t kept = 0;
  for (int64_t r = 0; r < repeat; ++r) {
    for (int64_t i = 0; i < lanes; ++i) {
      kept += (pattern == nullptr ? fixed : pattern[r * patternRep + i / 8]) >> (i % 8) & 1;
    }
  }
  return kept;
}

// A single repeat with a count may go beyond 256 bytes.
inline check::Range GatherMaskRange(bool reduceMode, int64_t lanes, const GatherMaskParams& p) {
  if (reduceMode && p.repeatTimes == 1 && p.src0BlockStride == 1) return check::Count(lanes);
  return check::Masked(static_cast<uint64_t>(lanes), p.repeatTimes);
}

}  // namespace detail

// Packs the elements whose pattern bit is set. reduceMode: `mask` elements of every repeat take part, otherwise all.
// The count that comes back needs no synchronisation: the card reads it in the scalar unit, in order.
template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
__aicore__ inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                                  const LocalTensor<U>& src1Pattern, const bool reduceMode, const uint32_t mask,
                                  const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt) {
  static_assert(sizeof(U) == sizeof(T) && std::is_unsigned_v<U>, "the pattern is unsigned and as wide as the elements");
  const int64_t lanes = reduceMode ? mask : ONE_REPEAT_BYTE_SIZE / sizeof(T);
  const GatherMaskParams p = gatherMaskParams;
  uint64_t* kept = &rsvdCnt;
  check::Issue(
      PIPE_V, "GatherMask", detail::GatherMaskRange(reduceMode, lanes, p),
      [=] {
        *kept = detail::GatherMaskWords<detail::WordOf<T>>(detail::Words(dst), detail::Words(src0),
                                                           {p.src0BlockStride, p.src0RepeatStride},
                                                           reinterpret_cast<const uint8_t*>(src1Pattern.GetPhyAddr()),
                                                           p.src1RepeatStride * 32, 0, lanes, p.repeatTimes);
      },
      check::OutRun(dst, detail::KeptBy(reinterpret_cast<const uint8_t*>(src1Pattern.GetPhyAddr()),
                                        p.src1RepeatStride * 32, 0, lanes, p.repeatTimes)),
      check::In(src0, p.src0BlockStride, p.src0RepeatStride),
      check::InRun(src1Pattern,
                   (lanes + 8 * static_cast<int64_t>(sizeof(U)) - 1) / (8 * static_cast<int64_t>(sizeof(U)))));
}
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
__aicore__ inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const uint8_t src1Pattern,
                                  const bool reduceMode, const uint32_t mask, const GatherMaskParams& gatherMaskParams,
                                  uint64_t& rsvdCnt) {
  constexpr uint8_t kPatterns[8] = {0, 0x55, 0xaa, 0x11, 0x22, 0x44, 0x88, 0xff};
  const int64_t lanes = reduceMode ? mask : ONE_REPEAT_BYTE_SIZE / sizeof(T);
  const uint8_t fixed = kPatterns[src1Pattern & 7];
  const GatherMaskParams p = gatherMaskParams;
  uint64_t* kept = &rsvdCnt;
  check::Issue(
      PIPE_V, "GatherMask", detail::GatherMaskRange(reduceMode, lanes, p),
      [=] {
        *kept = detail::GatherMaskWords<detail::WordOf<T>>(detail::Words(dst), detail::Words(src0),
                                                           {p.src0BlockStride, p.src0RepeatStride}, nullptr, 0, fixed,
                                                           lanes, p.repeatTimes);
      },
      check::OutRun(dst, detail::KeptBy(nullptr, 0, fixed, lanes, p.repeatTimes)),
      check::In(src0, p.src0BlockStride, p.src0RepeatStride));
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_MOVE_H_
