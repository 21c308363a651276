// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Cast between the element types of the 910B.
#ifndef MST_TWIN_VECTOR_CAST_H_
#define MST_TWIN_VECTOR_CAST_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

template <typename T, typename U, typename Lanes>
inline void IssueCast(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode, Lanes lanes, uint8_t repeat,
                      const UnaryRepeatParams& p) {
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Cast", check::Masked(lanes, repeat),
      [=] {
        Convert<T, U>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src.GetPhyAddr(),
                      {p.srcBlkStride, p.srcRepStride}, mode, mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(src, p.srcBlkStride, p.srcRepStride));
}

}  // namespace detail

template <typename T, typename U>
__aicore__ inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                            const uint32_t count) {
  const RoundMode mode = roundMode;
  check::Issue(
      PIPE_V, "Cast", check::Count(count),
      [=] { detail::Convert<T, U>(dst.GetPhyAddr(), src.GetPhyAddr(), mode, count); }, check::Out(dst), check::In(src));
}

// A repeat has as many lanes as the wider of the two types allows.
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                            const uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueCast(dst, src, roundMode, mask, repeatTime, repeatParams);
}

template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                            const uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueCast(dst, src, roundMode, static_cast<const uint64_t*>(mask), repeatTime, repeatParams);
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_CAST_H_
