// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Instructions on two tensors: Add Sub Mul Div Max Min And Or MulAddDst FusedMulAdd, each on the first `count`
// elements, or strided with a number of lanes or a lane mask.
#ifndef MST_TWIN_VECTOR_BINARY_H_
#define MST_TWIN_VECTOR_BINARY_H_

#include "check.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

template <BinaryOp op, typename T>
constexpr bool kHasBinary = op == BinaryOp::kAnd || op == BinaryOp::kOr ? kIsOneOf<T, int16_t, uint16_t>
                            : op == BinaryOp::kDiv                      ? kIsFloatOrHalf<T>
                                                                        : kIsOneOf<T, float, half, int32_t, int16_t>;
template <typename T, typename U>
constexpr bool kHasMulAdd = kIsFloatOrHalf<T> && (std::is_same_v<T, U> || std::is_same_v<U, half>);

template <BinaryOp op, typename T>
inline void IssueBinary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                        const LocalTensor<T>& src1, int32_t count) {
  static_assert(kHasBinary<op, T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, name, check::Count(count),
      [=] { Binary<op, T>(dst.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(), count); }, check::Out(dst),
      check::In(src0), check::In(src1));
}

template <BinaryOp op, typename T, typename Lanes>
inline void IssueBinary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                        const LocalTensor<T>& src1, Lanes lanes, uint8_t repeat, const BinaryRepeatParams& p) {
  static_assert(kHasBinary<op, T>, "the 910B has no such instruction for this type");
  const Mask mask(lanes);
  check::Issue(
      PIPE_V, name, check::Masked(lanes, repeat),
      [=] {
        Binary<op, T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src0.GetPhyAddr(),
                      {p.src0BlkStride, p.src0RepStride}, src1.GetPhyAddr(), {p.src1BlkStride, p.src1RepStride}, mask,
                      repeat);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(src0, p.src0BlkStride, p.src0RepStride),
      check::In(src1, p.src1BlkStride, p.src1RepStride));
}

}  // namespace detail

#define MST_TWIN_BINARY(Name)                                                                                      \
  template <typename T>                                                                                            \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
                              const int32_t& count) {                                                              \
    detail::IssueBinary<detail::BinaryOp::k##Name>(#Name, dst, src0, src1, count);                                 \
  }                                                                                                                \
  template <typename T, bool isSetMask = true>                                                                     \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
                              uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {   \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                     \
    detail::IssueBinary<detail::BinaryOp::k##Name>(#Name, dst, src0, src1, mask, repeatTime, repeatParams);        \
  }                                                                                                                \
  template <typename T, bool isSetMask = true>                                                                     \
  __aicore__ inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,   \
                              uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) { \
    static_assert(isSetMask, "the twin has no SetVectorMask");                                                     \
    detail::IssueBinary<detail::BinaryOp::k##Name>(#Name, dst, src0, src1, static_cast<const uint64_t*>(mask),     \
                                                   repeatTime, repeatParams);                                      \
  }
MST_TWIN_BINARY(Add)
MST_TWIN_BINARY(Sub)
MST_TWIN_BINARY(Mul)
MST_TWIN_BINARY(Div)
MST_TWIN_BINARY(Max)
MST_TWIN_BINARY(Min)
MST_TWIN_BINARY(And)
MST_TWIN_BINARY(Or)
#undef MST_TWIN_BINARY

// dst += src0 * src1
template <typename T, typename U>
__aicore__ inline void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                                 const int32_t& count) {
  static_assert(detail::kHasMulAdd<T, U>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "MulAddDst", check::Count(count),
      [=] { detail::MulAddDstRun<T, U>(dst.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(), count); },
      check::Out(dst), check::In(dst), check::In(src0), check::In(src1));
}

template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                                 uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {
  static_assert(detail::kHasMulAdd<T, U>, "the 910B has no such instruction for this type");
  static_assert(isSetMask, "the twin has no SetVectorMask");
  const BinaryRepeatParams& p = repeatParams;
  check::Issue(
      PIPE_V, "MulAddDst", check::Masked(mask, repeatTime),
      [=] {
        detail::MulAddDstRun<T, U>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src0.GetPhyAddr(),
                                   {p.src0BlkStride, p.src0RepStride}, src1.GetPhyAddr(),
                                   {p.src1BlkStride, p.src1RepStride}, detail::Mask(mask), repeatTime);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(dst, p.dstBlkStride, p.dstRepStride),
      check::In(src0, p.src0BlkStride, p.src0RepStride), check::In(src1, p.src1BlkStride, p.src1RepStride));
}

// dst = src0 * dst + src1
template <typename T>
__aicore__ inline void FusedMulAdd(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                                   const int32_t& count) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  check::Issue(
      PIPE_V, "FusedMulAdd", check::Count(count),
      [=] { detail::FusedMulAddRun<T>(dst.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(), count); },
      check::Out(dst), check::In(dst), check::In(src0), check::In(src1));
}

template <typename T, bool isSetMask = true>
__aicore__ inline void FusedMulAdd(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                                   uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  static_assert(isSetMask, "the twin has no SetVectorMask");
  const BinaryRepeatParams& p = repeatParams;
  check::Issue(
      PIPE_V, "FusedMulAdd", check::Masked(mask, repeatTime),
      [=] {
        detail::FusedMulAddRun<T>(dst.GetPhyAddr(), {p.dstBlkStride, p.dstRepStride}, src0.GetPhyAddr(),
                                  {p.src0BlkStride, p.src0RepStride}, src1.GetPhyAddr(),
                                  {p.src1BlkStride, p.src1RepStride}, detail::Mask(mask), repeatTime);
      },
      check::Out(dst, p.dstBlkStride, p.dstRepStride), check::In(dst, p.dstBlkStride, p.dstRepStride),
      check::In(src0, p.src0BlkStride, p.src0RepStride), check::In(src1, p.src1BlkStride, p.src1RepStride));
}

}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_BINARY_H_
