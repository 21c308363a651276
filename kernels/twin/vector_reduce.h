// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Reductions: a whole tensor to one element (ReduceSum, ReduceMax, ReduceMin), every repeat (WholeReduce*,
// RepeatReduceSum), every block of 32 bytes (BlockReduce*) or every pair (PairReduceSum).
#ifndef MST_TWIN_VECTOR_REDUCE_H_
#define MST_TWIN_VECTOR_REDUCE_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

inline uint64_t LaneCount(int32_t mask) { return static_cast<uint64_t>(mask); }
inline const uint64_t* LaneCount(const uint64_t* mask) { return mask; }

template <typename T>
constexpr int64_t kRepeatElements = ONE_REPEAT_BYTE_SIZE / static_cast<int64_t>(sizeof(T));

template <typename T>
constexpr int64_t RepeatsOf(int64_t count) {
  return (count + kRepeatElements<T> - 1) / kRepeatElements<T>;
}

// In its working memory a reduction keeps, to begin with, one result per repeat: for a maximum or minimum a value and
// an index.
template <typename T>
inline check::Operand WorkOf(const LocalTensor<T>& work, int64_t elements) {
  return check::Tail(elements * static_cast<int64_t>(sizeof(T)), check::OutRun(work, elements));
}

template <typename T, typename Lanes>
inline void IssueReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                           Lanes lanes, int32_t repeat, int32_t srcRep) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "ReduceSum", check::Masked(lanes, repeat),
      [=] { ReduceSumRun<T>(dst.GetPhyAddr(), src.GetPhyAddr(), {1, srcRep}, mask, repeat); }, check::OutRun(dst, 1),
      check::In(src, 1, srcRep), WorkOf(work, repeat));
}

template <ReduceOp op, typename T>
inline void IssueReduceExtreme(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<T>& work, int32_t count, bool withIndex) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, name, check::Count(count),
      [=] { ReduceExtremeRun<op, T>(dst.GetPhyAddr(), src.GetPhyAddr(), withIndex, count); },
      check::OutRun(dst, withIndex ? 2 : 1), check::In(src), WorkOf(work, 2 * RepeatsOf<T>(count)));
}

template <ReduceOp op, typename T, typename Lanes>
inline void IssueReduceExtreme(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<T>& work, Lanes lanes, int32_t repeat, int32_t srcRep,
                               bool withIndex) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] { ReduceExtremeRun<op, T>(dst.GetPhyAddr(), src.GetPhyAddr(), {1, srcRep}, withIndex, mask, repeat); },
      check::OutRun(dst, withIndex ? 2 : 1), check::In(src, 1, srcRep), WorkOf(work, 2 * repeat));
}

template <typename T, typename Lanes>
inline void IssueWholeSum(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes,
                          int32_t repeat, int32_t dstRep, int32_t srcBlk, int32_t srcRep) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] { WholeSum<T>(dst.GetPhyAddr(), dstRep, src.GetPhyAddr(), {srcBlk, srcRep}, mask, repeat); },
      check::OutRun(dst, (repeat - 1) * static_cast<int64_t>(dstRep) + 1), check::In(src, srcBlk, srcRep));
}

// dstRep counts elements, or (value, index) pairs.
template <ReduceOp op, typename T, typename Lanes>
inline void IssueWholeExtreme(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes,
                              int32_t repeat, int32_t dstRep, int32_t srcBlk, int32_t srcRep, ReduceOrder order) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  const int64_t width = order == ReduceOrder::ORDER_ONLY_VALUE   ? 1
                        : order == ReduceOrder::ORDER_ONLY_INDEX ? 4 / static_cast<int64_t>(sizeof(T))
                                                                 : 2;
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] { WholeExtreme<op, T>(dst.GetPhyAddr(), dstRep, src.GetPhyAddr(), {srcBlk, srcRep}, order, mask, repeat); },
      check::OutRun(dst, ((repeat - 1) * static_cast<int64_t>(dstRep) + 1) * width), check::In(src, srcBlk, srcRep));
}

// dstRep counts groups of eight results.
template <ReduceOp op, typename T, typename Lanes>
inline void IssueBlockReduce(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes,
                             int32_t repeat, int32_t dstRep, int32_t srcBlk, int32_t srcRep) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] { BlockReduce<op, T>(dst.GetPhyAddr(), dstRep, src.GetPhyAddr(), {srcBlk, srcRep}, mask, repeat); },
      check::OutRun(dst, ((repeat - 1) * static_cast<int64_t>(dstRep) + 1) * DEFAULT_BLK_NUM),
      check::In(src, srcBlk, srcRep));
}

// dstRep counts groups of as many results as a repeat has pairs.
template <typename T, typename Lanes>
inline void IssuePairSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes, int32_t repeat,
                         int32_t dstRep, int32_t srcBlk, int32_t srcRep) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "PairReduceSum", check::Masked(lanes, repeat),
      [=] { PairSum<T>(dst.GetPhyAddr(), dstRep, src.GetPhyAddr(), {srcBlk, srcRep}, mask, repeat); },
      check::OutRun(dst, ((repeat - 1) * static_cast<int64_t>(dstRep) + 1) * kRepeatElements<T> / 2),
      check::In(src, srcBlk, srcRep));
}

}  // namespace detail

template <typename T, bool isSetMask = true>
__aicore__ inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<T>& sharedTmpBuffer, const int32_t count) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "ReduceSum", check::Count(count),
      [=] { detail::ReduceSumRun<T>(dst.GetPhyAddr(), src.GetPhyAddr(), count); }, check::OutRun(dst, 1),
      check::In(src), detail::WorkOf(sharedTmpBuffer, detail::RepeatsOf<T>(count)));
}
template <typename T>
__aicore__ inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<T>& sharedTmpBuffer, const int32_t mask, const int32_t repeatTime,
                                 const int32_t srcRepStride) {
  detail::IssueReduceSum(dst, src, sharedTmpBuffer, detail::LaneCount(mask), repeatTime, srcRepStride);
}
template <typename T>
__aicore__ inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<T>& sharedTmpBuffer, const uint64_t mask[], const int32_t repeatTime,
                                 const int32_t srcRepStride) {
  detail::IssueReduceSum(dst, src, sharedTmpBuffer, mask, repeatTime, srcRepStride);
}

#define MST_TWIN_REDUCE(Name)                                                                                          \
  template <typename T>                                                                                                \
  __aicore__ inline void Reduce##Name(const LocalTensor<T>& dst, const LocalTensor<T>& src,                            \
                                      const LocalTensor<T>& sharedTmpBuffer, const int32_t count, bool calIndex = 0) { \
    detail::IssueReduceExtreme<detail::ReduceOp::k##Name>("Reduce" #Name, dst, src, sharedTmpBuffer, count, calIndex); \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  __aicore__ inline void Reduce##Name(const LocalTensor<T>& dst, const LocalTensor<T>& src,                            \
                                      const LocalTensor<T>& sharedTmpBuffer, const int32_t mask,                       \
                                      const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0) {       \
    detail::IssueReduceExtreme<detail::ReduceOp::k##Name>(                                                             \
        "Reduce" #Name, dst, src, sharedTmpBuffer, detail::LaneCount(mask), repeatTime, srcRepStride, calIndex);       \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  __aicore__ inline void Reduce##Name(const LocalTensor<T>& dst, const LocalTensor<T>& src,                            \
                                      const LocalTensor<T>& sharedTmpBuffer, const uint64_t mask[],                    \
                                      const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0) {       \
    detail::IssueReduceExtreme<detail::ReduceOp::k##Name>("Reduce" #Name, dst, src, sharedTmpBuffer, mask, repeatTime, \
                                                          srcRepStride, calIndex);                                     \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  __aicore__ inline void WholeReduce##Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,   \
                                           const int32_t repeatTime, const int32_t dstRepStride,                       \
                                           const int32_t srcBlkStride, const int32_t srcRepStride,                     \
                                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {                       \
    detail::IssueWholeExtreme<detail::ReduceOp::k##Name>("WholeReduce" #Name, dst, src, detail::LaneCount(mask),       \
                                                         repeatTime, dstRepStride, srcBlkStride, srcRepStride, order); \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  __aicore__ inline void WholeReduce##Name(                                                                            \
      const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const int32_t repeatTime,           \
      const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                              \
      ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {                                                            \
    detail::IssueWholeExtreme<detail::ReduceOp::k##Name>("WholeReduce" #Name, dst, src, mask, repeatTime,              \
                                                         dstRepStride, srcBlkStride, srcRepStride, order);             \
  }
MST_TWIN_REDUCE(Max)
MST_TWIN_REDUCE(Min)
#undef MST_TWIN_REDUCE

#define MST_TWIN_BLOCK_REDUCE(Name)                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  __aicore__ inline void BlockReduce##Name(const LocalTensor<T>& dst, const LocalTensor<T>& src,                       \
                                           const int32_t repeatTime, const int32_t mask, const int32_t dstRepStride,   \
                                           const int32_t srcBlkStride, const int32_t srcRepStride) {                   \
    detail::IssueBlockReduce<detail::ReduceOp::k##Name>("BlockReduce" #Name, dst, src, detail::LaneCount(mask),        \
                                                        repeatTime, dstRepStride, srcBlkStride, srcRepStride);         \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  __aicore__ inline void BlockReduce##Name(                                                                            \
      const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, const uint64_t mask[],           \
      const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {                            \
    detail::IssueBlockReduce<detail::ReduceOp::k##Name>("BlockReduce" #Name, dst, src, mask, repeatTime, dstRepStride, \
                                                        srcBlkStride, srcRepStride);                                   \
  }
MST_TWIN_BLOCK_REDUCE(Sum)
MST_TWIN_BLOCK_REDUCE(Max)
MST_TWIN_BLOCK_REDUCE(Min)
#undef MST_TWIN_BLOCK_REDUCE

template <typename T, bool isSetMask = true>
__aicore__ inline void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
  detail::IssueWholeSum("WholeReduceSum", dst, src, detail::LaneCount(mask), repeatTime, dstRepStride, srcBlkStride,
                        srcRepStride);
}
template <typename T, bool isSetMask = true>
__aicore__ inline void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
  detail::IssueWholeSum("WholeReduceSum", dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}

template <typename T, bool isSetMask = true>
__aicore__ inline void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,
                                       const int32_t mask, const int32_t /*dstBlkStride*/, const int32_t srcBlkStride,
                                       const int32_t dstRepStride, const int32_t srcRepStride) {
  detail::IssueWholeSum("RepeatReduceSum", dst, src, detail::LaneCount(mask), repeatTime, dstRepStride, srcBlkStride,
                        srcRepStride);
}

template <typename T, bool isSetMask = true>
__aicore__ inline void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,
                                     const int32_t mask, const int32_t dstRepStride, const int32_t srcBlkStride,
                                     const int32_t srcRepStride) {
  detail::IssuePairSum(dst, src, detail::LaneCount(mask), repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}
template <typename T, bool isSetMask = true>
__aicore__ inline void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,
                                     const uint64_t mask[], const int32_t dstRepStride, const int32_t srcBlkStride,
                                     const int32_t srcRepStride) {
  detail::IssuePairSum(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_REDUCE_H_
