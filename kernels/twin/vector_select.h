// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Compare, CompareScalar and Select: a comparison writes one bit per element, a selection reads them.
#ifndef MST_TWIN_VECTOR_SELECT_H_
#define MST_TWIN_VECTOR_SELECT_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

template <typename U>
inline uint8_t* BitBytes(const LocalTensor<U>& tensor) {
  static_assert(std::is_same_v<U, uint8_t> || std::is_same_v<U, int8_t>, "compare results are 8-bit integers");
  return reinterpret_cast<uint8_t*>(tensor.GetPhyAddr());
}

template <typename U>
constexpr int64_t BitsIn(int64_t bits) {
  return (bits + 8 * static_cast<int64_t>(sizeof(U)) - 1) / (8 * static_cast<int64_t>(sizeof(U)));
}

// The 910B ignores the mask of a comparison: all lanes of a repeat are compared, and the bits of repeats follow each
// other in dst.
template <typename T, typename U>
inline void IssueCompare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                         CMPMODE mode, uint8_t repeat, const BinaryRepeatParams& p) {
  static_assert(kIsOneOf<T, float, half, int32_t>, "the 910B has no such instruction for this type");
  constexpr uint64_t kLanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  check::Issue(
      PIPE_V, "Compare", check::Masked(kLanes, repeat),
      [=] {
        CompareRun<T>(BitBytes(dst), src0.GetPhyAddr(), {p.src0BlkStride, p.src0RepStride}, src1.GetPhyAddr(),
                      {p.src1BlkStride, p.src1RepStride}, T{}, mode, repeat);
      },
      check::OutRun(dst, BitsIn<U>(static_cast<int64_t>(kLanes) * repeat)),
      check::In(src0, p.src0BlkStride, p.src0RepStride), check::In(src1, p.src1BlkStride, p.src1RepStride));
}

template <typename T, typename U>
inline void IssueCompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src, T scalar, CMPMODE mode,
                               uint8_t repeat, const UnaryRepeatParams& p) {
  static_assert(kIsOneOf<T, float, half, int32_t>, "the 910B has no such instruction for this type");
  constexpr uint64_t kLanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  check::Issue(
      PIPE_V, "CompareScalar", check::Masked(kLanes, repeat),
      [=] {
        const Stride stride{p.srcBlkStride, p.srcRepStride};
        CompareRun<T>(BitBytes(dst), src.GetPhyAddr(), stride, nullptr, stride, scalar, mode, repeat);
      },
      check::OutRun(dst, BitsIn<U>(static_cast<int64_t>(kLanes) * repeat)),
      check::In(src, p.srcBlkStride, p.srcRepStride));
}

template <typename T, typename U, typename Lanes>
inline void IssueSelect(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                        const LocalTensor<T>& src1, SELMODE mode, Lanes lanes, uint8_t repeat,
                        const BinaryRepeatParams& p) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  const bool sameBits = mode == SELMODE::VSEL_CMPMASK_SPR;
  check::Issue(
      PIPE_V, "Select", check::Masked(lanes, repeat),
      [=] {
        SelectRun<T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride},
                     reinterpret_cast<const uint8_t*>(selMask.GetPhyAddr()), sameBits, src0.GetPhyAddr(),
                     {p.src0BlkStride, p.src0RepStride}, src1.GetPhyAddr(), {p.src1BlkStride, p.src1RepStride}, T{},
                     mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride),
      check::InRun(selMask,
                   BitsIn<U>(ONE_REPEAT_BYTE_SIZE / static_cast<int64_t>(sizeof(T)) * (sameBits ? 1 : repeat))),
      check::In(src0, p.src0BlkStride, p.src0RepStride), check::In(src1, p.src1BlkStride, p.src1RepStride));
}

template <typename T, typename U, typename Lanes>
inline void IssueSelectScalar(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              T scalar, Lanes lanes, uint8_t repeat, const BinaryRepeatParams& p) {
  static_assert(kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Select", check::Masked(lanes, repeat),
      [=] {
        const Stride stride{p.src0BlkStride, p.src0RepStride};
        SelectRun<T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride},
                     reinterpret_cast<const uint8_t*>(selMask.GetPhyAddr()), false, src0.GetPhyAddr(), stride, nullptr,
                     stride, scalar, mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride),
      check::InRun(selMask, BitsIn<U>(ONE_REPEAT_BYTE_SIZE / static_cast<int64_t>(sizeof(T)) * repeat)),
      check::In(src0, p.src0BlkStride, p.src0RepStride));
}

}  // namespace detail

template <typename T, typename U>
__aicore__ inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                               CMPMODE cmpMode, uint32_t count) {
  static_assert(detail::kIsOneOf<T, float, half, int32_t>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "Compare", check::Count(count),
      [=] { detail::CompareRun<T>(detail::BitBytes(dst), src0.GetPhyAddr(), src1.GetPhyAddr(), T{}, cmpMode, count); },
      check::OutRun(dst, detail::BitsIn<U>(count)), check::In(src0), check::In(src1));
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                               CMPMODE cmpMode, const uint64_t /*mask*/, uint8_t repeatTime,
                               const BinaryRepeatParams& repeatParams) {
  detail::IssueCompare(dst, src0, src1, cmpMode, repeatTime, repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                               CMPMODE cmpMode, const uint64_t /*mask*/[], uint8_t repeatTime,
                               const BinaryRepeatParams& repeatParams) {
  detail::IssueCompare(dst, src0, src1, cmpMode, repeatTime, repeatParams);
}

template <typename T, typename U>
__aicore__ inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar,
                                     CMPMODE cmpMode, uint32_t count) {
  static_assert(detail::kIsOneOf<T, float, half, int32_t>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "CompareScalar", check::Count(count),
      [=] { detail::CompareRun<T>(detail::BitBytes(dst), src0.GetPhyAddr(), nullptr, src1Scalar, cmpMode, count); },
      check::OutRun(dst, detail::BitsIn<U>(count)), check::In(src0));
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar,
                                     CMPMODE cmpMode, const uint64_t /*mask*/, uint8_t repeatTime,
                                     const UnaryRepeatParams& repeatParams) {
  detail::IssueCompareScalar(dst, src0, src1Scalar, cmpMode, repeatTime, repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar,
                                     CMPMODE cmpMode, const uint64_t /*mask*/[], uint8_t repeatTime,
                                     const UnaryRepeatParams& repeatParams) {
  detail::IssueCompareScalar(dst, src0, src1Scalar, cmpMode, repeatTime, repeatParams);
}

// A set bit takes the element of src0, a clear one that of src1. VSEL_CMPMASK_SPR uses the first bits of selMask again
// for every 256 bytes; the other modes go on.
template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              const LocalTensor<T>& src1, SELMODE selMode, uint32_t count) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const bool sameBits = selMode == SELMODE::VSEL_CMPMASK_SPR;
  check::Issue(
      PIPE_V, "Select", check::Count(count),
      [=] {
        detail::SelectRun<T>(dst.GetPhyAddr(), reinterpret_cast<const uint8_t*>(selMask.GetPhyAddr()), sameBits,
                             src0.GetPhyAddr(), src1.GetPhyAddr(), T{}, count);
      },
      check::Out(dst),
      check::InRun(selMask, detail::BitsIn<U>(sameBits ? ONE_REPEAT_BYTE_SIZE / static_cast<int64_t>(sizeof(T))
                                                       : static_cast<int64_t>(count))),
      check::In(src0), check::In(src1));
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask, uint8_t repeatTime,
                              const BinaryRepeatParams& repeatParams) {
  detail::IssueSelect(dst, selMask, src0, src1, selMode, mask, repeatTime, repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask[], uint8_t repeatTime,
                              const BinaryRepeatParams& repeatParams) {
  detail::IssueSelect(dst, selMask, src0, src1, selMode, static_cast<const uint64_t*>(mask), repeatTime, repeatParams);
}
template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              T src1, SELMODE /*selMode*/, uint32_t count) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "Select", check::Count(count),
      [=] {
        detail::SelectRun<T>(dst.GetPhyAddr(), reinterpret_cast<const uint8_t*>(selMask.GetPhyAddr()), false,
                             src0.GetPhyAddr(), nullptr, src1, count);
      },
      check::Out(dst), check::InRun(selMask, detail::BitsIn<U>(count)), check::In(src0));
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              T src1, SELMODE /*selMode*/, uint64_t mask, uint8_t repeatTime,
                              const BinaryRepeatParams& repeatParams) {
  detail::IssueSelectScalar(dst, selMask, src0, src1, mask, repeatTime, repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                              T src1, SELMODE /*selMode*/, uint64_t mask[], uint8_t repeatTime,
                              const BinaryRepeatParams& repeatParams) {
  detail::IssueSelectScalar(dst, selMask, src0, src1, static_cast<const uint64_t*>(mask), repeatTime, repeatParams);
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_SELECT_H_
