// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Operands of the cube in L1. DataCopy with Nd2NzParams only notes where the rows lie in global memory: the first
// Matmul that uses the buffer rearranges them into panels, since only it knows whether they are B or B transposed.
// The source must stay as it is until then; a kernel never writes its inputs.
#ifndef MST_TWIN_L1_H_
#define MST_TWIN_L1_H_

#include "gemm.h"
#include "pipe.h"
#include "tensor.h"

namespace AscendC {

struct Nd2NzParams {
  Nd2NzParams() = default;
  Nd2NzParams(const uint16_t ndNumIn, const uint16_t nValueIn, const uint16_t dValueIn,
              const uint16_t srcNdMatrixStrideIn, const uint16_t srcDValueIn, const uint16_t dstNzC0StrideIn,
              const uint16_t dstNzNStrideIn, const uint16_t dstNzMatrixStrideIn)
      : ndNum(ndNumIn),
        nValue(nValueIn),
        dValue(dValueIn),
        srcNdMatrixStride(srcNdMatrixStrideIn),
        srcDValue(srcDValueIn),
        dstNzC0Stride(dstNzC0StrideIn),
        dstNzNStride(dstNzNStrideIn),
        dstNzMatrixStride(dstNzMatrixStrideIn) {}

  uint16_t ndNum = 0;
  uint16_t nValue = 0;             // rows
  uint16_t dValue = 0;             // columns
  uint16_t srcNdMatrixStride = 0;  // elements
  uint16_t srcDValue = 0;          // elements from row to row of the source
  uint16_t dstNzC0Stride = 0;      // rows of a fractal column
  uint16_t dstNzNStride = 0;
  uint16_t dstNzMatrixStride = 0;
};

namespace detail {

template <typename T>
constexpr mst::gemm::Elem ElemOf() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>,
                "the twin's cube multiplies float, half and bfloat16");
  return std::is_same_v<T, float>  ? mst::gemm::Elem::kFloat
         : std::is_same_v<T, half> ? mst::gemm::Elem::kHalf
                                   : mst::gemm::Elem::kBFloat16;
}

// What an L1 buffer holds; lies in the header before it.
struct L1Matrix {
  enum State : int32_t { kEmpty = 0, kSource, kPanelsOfRows, kPanelsOfTransposed };

  const void* source;
  int64_t rowStride;  // elements, of the source
  int32_t rows;
  int32_t columns;
  int32_t nzRows;  // rows of a fractal column of the destination
  State state;

  static L1Matrix& Of(uint8_t* buffer) { return *reinterpret_cast<L1Matrix*>(buffer - kL1HeaderBytes); }
};
static_assert(sizeof(L1Matrix) <= kL1HeaderBytes, "the header before an L1 buffer is too small");

}  // namespace detail

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& params) {
  if (!detail::IsL1(static_cast<TPosition>(dst.GetPosition()))) {
    mst::KernelError("DataCopy with Nd2NzParams: the destination is not in L1");
  }
  if (params.ndNum != 1 || params.dstNzNStride != 1 || params.dstNzC0Stride < params.nValue) {
    mst::KernelError("DataCopy with Nd2NzParams: only one matrix with rows that adjoin is supported");
  }
  if (reinterpret_cast<uint8_t*>(dst.GetPhyAddr()) != detail::Inside::Buffer(dst)) {
    mst::KernelError("DataCopy with Nd2NzParams: the destination is not the start of its buffer");
  }
  check::Issue(
      PIPE_MTE2, "DataCopy", check::Count(static_cast<int64_t>(params.nValue) * params.dValue),
      [=] {
        detail::L1Matrix::Of(detail::Inside::Buffer(dst)) = {src.GetPhyAddr(),     params.srcDValue,
                                                             params.nValue,        params.dValue,
                                                             params.dstNzC0Stride, detail::L1Matrix::kSource};
      },
      check::OutBlocks(dst, (params.dValue * int64_t{sizeof(T)} + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE,
                       params.nValue * int64_t{ONE_BLK_SIZE},
                       (params.dstNzC0Stride - params.nValue) * int64_t{ONE_BLK_SIZE}),
      check::InBlocks(src, params.nValue, params.dValue * sizeof(T), (params.srcDValue - params.dValue) * sizeof(T)));
}

}  // namespace AscendC

#endif  // MST_TWIN_L1_H_
