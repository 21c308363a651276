// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Cast between the element types of the 910B.
#ifndef MST_TWIN_VECTOR_CAST_H_
#define MST_TWIN_VECTOR_CAST_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

// From U to T.
template <typename T, typename U>
constexpr bool kHasCast = std::is_same_v<U, float>  ? kIsOneOf<T, float, half, bfloat16_t, int16_t, int32_t, int64_t>
                          : std::is_same_v<U, half> ? kIsOneOf<T, float, int8_t, uint8_t, int16_t, int32_t>
                          : std::is_same_v<U, bfloat16_t> ? kIsOneOf<T, float, int32_t>
                          : kIsOneOf<U, int8_t, uint8_t>  ? std::is_same_v<T, half>
                          : std::is_same_v<U, int16_t>    ? kIsFloatOrHalf<T>
                          : std::is_same_v<U, int32_t>    ? kIsOneOf<T, float, int16_t, int64_t>
                          : std::is_same_v<U, int64_t>    ? kIsOneOf<T, float, int32_t>
                                                          : false;

template <typename T, typename U, typename Lanes>
inline void IssueCast(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode, Lanes lanes, uint8_t repeat,
                      const UnaryRepeatParams& p) {
  static_assert(kHasCast<T, U>, "the 910B has no such conversion");
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
  static_assert(detail::kHasCast<T, U>, "the 910B has no such conversion");
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
