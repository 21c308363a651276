// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Instructions on one tensor (Abs Exp Ln Sqrt Rsqrt Reciprocal Relu Not) or on one tensor and a scalar (Adds Muls Maxs
// Mins ShiftLeft ShiftRight Axpy), in the same three forms as those on two tensors.
#ifndef MST_TWIN_VECTOR_UNARY_H_
#define MST_TWIN_VECTOR_UNARY_H_

#include "check.h"
#include "runtime.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

template <UnaryOp op, typename T>
constexpr bool kHasUnary = op == UnaryOp::kNot    ? kIsOneOf<T, int16_t, uint16_t>
                           : op == UnaryOp::kRelu ? kIsOneOf<T, float, half, int32_t>
                                                  : kIsFloatOrHalf<T>;
template <ScalarOp op, typename T>
constexpr bool kHasScalar =
    op == ScalarOp::kShiftLeft || op == ScalarOp::kShiftRight ? kIsOneOf<T, int16_t, uint16_t, int32_t, uint32_t>
                                                              : kIsOneOf<T, float, half, int32_t, int16_t>;
template <typename T, typename U>
constexpr bool kHasAxpy = kIsFloatOrHalf<T> && (std::is_same_v<T, U> || std::is_same_v<U, half>);

template <UnaryOp op, typename T>
inline void IssueUnary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) {
  static_assert(kHasUnary<op, T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, name, check::Count(count), [=] { Unary<op, T>(dst.GetPhyAddr(), src.GetPhyAddr(), count); },
      check::Out(dst), check::In(src));
}

template <UnaryOp op, typename T, typename Lanes>
inline void IssueUnary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes lanes,
                       uint8_t repeat, const UnaryRepeatParams& p) {
  static_assert(kHasUnary<op, T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] {
        Unary<op, T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src.GetPhyAddr(),
                     {p.srcBlkStride, p.srcRepStride}, mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(src, p.srcBlkStride, p.srcRepStride));
}

template <ScalarOp op, typename T>
inline void IssueScalar(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, T scalar,
                        int32_t count) {
  static_assert(kHasScalar<op, T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, name, check::Count(count), [=] { Scalar<op, T>(dst.GetPhyAddr(), src.GetPhyAddr(), scalar, count); },
      check::Out(dst), check::In(src));
}

template <ScalarOp op, typename T, typename Lanes>
inline void IssueScalar(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, T scalar, Lanes lanes,
                        uint8_t repeat, const UnaryRepeatParams& p) {
  static_assert(kHasScalar<op, T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] {
        Scalar<op, T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src.GetPhyAddr(),
                      {p.srcBlkStride, p.srcRepStride}, scalar, mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(src, p.srcBlkStride, p.srcRepStride));
}

template <typename T, typename U, typename Lanes>
inline void IssueAxpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, U scalar, Lanes lanes, uint8_t repeat,
                      const UnaryRepeatParams& p) {
  static_assert(kHasAxpy<T, U>, "the 910B has no such instruction for these types");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, "Axpy", check::Masked(lanes, repeat),
      [=] {
        AxpyRun<T, U>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src.GetPhyAddr(),
                      {p.srcBlkStride, p.srcRepStride}, scalar, mask, repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(dst, p.dstBlkStride, p.dstRepStride),
      check::In(src, p.srcBlkStride, p.srcRepStride));
}

}  // namespace detail

#define MST_TWIN_UNARY(Name)                                                                                      \
  template <typename T>                                                                                           \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count) {       \
    detail::IssueUnary<detail::UnaryOp::k##Name>(#Name, dst, src, count);                                         \
  }                                                                                                               \
  template <typename T, bool isSetMask = true>                                                                    \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,                \
                              const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                  \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                    \
    detail::IssueUnary<detail::UnaryOp::k##Name>(#Name, dst, src, mask, repeatTime, repeatParams);                \
  }                                                                                                               \
  template <typename T, bool isSetMask = true>                                                                    \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[],              \
                              const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {                  \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                    \
    detail::IssueUnary<detail::UnaryOp::k##Name>(#Name, dst, src, static_cast<const uint64_t*>(mask), repeatTime, \
                                                 repeatParams);                                                   \
  }
MST_TWIN_UNARY(Abs)
MST_TWIN_UNARY(Exp)
MST_TWIN_UNARY(Ln)
MST_TWIN_UNARY(Sqrt)
MST_TWIN_UNARY(Rsqrt)
MST_TWIN_UNARY(Reciprocal)
MST_TWIN_UNARY(Relu)
MST_TWIN_UNARY(Not)
#undef MST_TWIN_UNARY

#define MST_TWIN_SCALAR_COUNT(Name)                                                                       \
  template <typename T, bool isSetMask = true>                                                            \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, \
                              const int32_t& count) {                                                     \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                            \
    detail::IssueScalar<detail::ScalarOp::k##Name>(#Name, dst, src, scalarValue, count);                  \
  }
#define MST_TWIN_SCALAR(Name)                                                                                        \
  MST_TWIN_SCALAR_COUNT(Name)                                                                                        \
  template <typename T, bool isSetMask = true>                                                                       \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,            \
                              uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {      \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                       \
    detail::IssueScalar<detail::ScalarOp::k##Name>(#Name, dst, src, scalarValue, mask, repeatTime, repeatParams);    \
  }                                                                                                                  \
  template <typename T, bool isSetMask = true>                                                                       \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,            \
                              uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {    \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                       \
    detail::IssueScalar<detail::ScalarOp::k##Name>(#Name, dst, src, scalarValue, static_cast<const uint64_t*>(mask), \
                                                   repeatTime, repeatParams);                                        \
  }
MST_TWIN_SCALAR(Adds)
MST_TWIN_SCALAR(Muls)
MST_TWIN_SCALAR(Maxs)
MST_TWIN_SCALAR(Mins)
MST_TWIN_SCALAR(ShiftLeft)
MST_TWIN_SCALAR_COUNT(ShiftRight)
#undef MST_TWIN_SCALAR
#undef MST_TWIN_SCALAR_COUNT

template <typename T, bool isSetMask = true>
__aicore__ inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                                  uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,
                                  bool roundEn = false) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  if (roundEn) mst::KernelError("ShiftRight: the twin does not round");
  detail::IssueScalar<detail::ScalarOp::kShiftRight>("ShiftRight", dst, src, scalarValue, mask, repeatTime,
                                                     repeatParams);
}
template <typename T, bool isSetMask = true>
__aicore__ inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,
                                  uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams& repeatParams,
                                  bool roundEn = false) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  if (roundEn) mst::KernelError("ShiftRight: the twin does not round");
  detail::IssueScalar<detail::ScalarOp::kShiftRight>("ShiftRight", dst, src, scalarValue,
                                                     static_cast<const uint64_t*>(mask), repeatTime, repeatParams);
}

// dst += src * scalarValue
template <typename T, typename U>
__aicore__ inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue,
                            const int32_t& count) {
  static_assert(detail::kHasAxpy<T, U>, "the 910B has no such instruction for these types");
  check::Issue(
      PIPE_V, "Axpy", check::Count(count),
      [=] { detail::AxpyRun<T, U>(dst.GetPhyAddr(), src.GetPhyAddr(), scalarValue, count); }, check::Out(dst),
      check::In(dst), check::In(src));
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask,
                            const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueAxpy(dst, src, scalarValue, mask, repeatTime, repeatParams);
}
template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask[],
                            const uint8_t repeatTime, const UnaryRepeatParams& repeatParams) {
  static_assert(isSetMask, "the twin has no SetVectorMask");
  detail::IssueAxpy(dst, src, scalarValue, static_cast<const uint64_t*>(mask), repeatTime, repeatParams);
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_UNARY_H_
