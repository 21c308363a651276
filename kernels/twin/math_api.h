// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// High-level elementwise functions: Tanh, Sigmoid, SwiGLU. A shared temporary buffer is for the card; the checked build
// only counts what it held as lost.
#ifndef MST_TWIN_MATH_API_H_
#define MST_TWIN_MATH_API_H_

#include "vector_unary.h"

namespace AscendC {

template <typename T, bool isReuseSource = false>
__aicore__ inline void Tanh(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {
  check::Scratch("Tanh", sharedTmpBuffer);
  detail::IssueUnary<detail::UnaryOp::kTanh>("Tanh", dstTensor, srcTensor, static_cast<int32_t>(calCount));
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void Sigmoid(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                               const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {
  check::Scratch("Sigmoid", sharedTmpBuffer);
  detail::IssueUnary<detail::UnaryOp::kSigmoid>("Sigmoid", dstTensor, srcTensor, static_cast<int32_t>(calCount));
}

// dst = src0 * src1 * sigmoid(scalarValue * src1)
template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                              const LocalTensor<T>& srcTensor1, const float& scalarValue, const uint32_t calCount) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  const LocalTensor<T> dst = dstTensor;
  check::Issue(
      PIPE_V, "SwiGLU", check::Count(calCount),
      [=] {
        detail::SwiGLURun<T>(dst.GetPhyAddr(), srcTensor0.GetPhyAddr(), srcTensor1.GetPhyAddr(), scalarValue, calCount);
      },
      check::Out(dst), check::In(srcTensor0), check::In(srcTensor1));
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor0,
                              const LocalTensor<T>& srcTensor1, const float& scalarValue,
                              const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B has no such instruction for this type");
  check::Scratch("SwiGLU", sharedTmpBuffer);
  SwiGLU(dstTensor, srcTensor0, srcTensor1, scalarValue, calCount);
}

}  // namespace AscendC

#endif  // MST_TWIN_MATH_API_H_
