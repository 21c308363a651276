// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Softmax functions of the high-level API, on fp32 rows [m][k]. Row statistics are [m][8]: a data block per row that
// holds the value eight times.
#ifndef MST_TWIN_SOFTMAX_H_
#define MST_TWIN_SOFTMAX_H_

#include "check.h"
#include "kernel_tiling/kernel_tiling.h"
#include "runtime.h"
#include "tensor.h"

namespace AscendC {

enum class SoftmaxMode {
  SOFTMAX_NORMAL = 0,
  SOFTMAX_OUTPUT_WITHOUT_BRC = 1,
};

struct SoftmaxConfig {
  constexpr SoftmaxConfig(const bool isCheckTilingIn) : isCheckTiling(isCheckTilingIn) {}
  constexpr SoftmaxConfig(const bool isCheckTilingIn, const uint32_t oriSrcMIn, const uint32_t oriSrcKIn)
      : isCheckTiling(isCheckTilingIn), oriSrcM(oriSrcMIn), oriSrcK(oriSrcKIn) {}
  constexpr SoftmaxConfig(const bool isCheckTilingIn, const uint32_t oriSrcMIn, const uint32_t oriSrcKIn,
                          const SoftmaxMode modeIn)
      : isCheckTiling(isCheckTilingIn), oriSrcM(oriSrcMIn), oriSrcK(oriSrcKIn), mode(modeIn) {}
  bool isCheckTiling = true;
  uint32_t oriSrcM = 0;
  uint32_t oriSrcK = 0;
  SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};
constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

// src [srcM][srcK]; of that, oriSrcM rows of oriSrcK columns count.
struct SoftMaxShapeInfo {
  uint32_t srcM{0};
  uint32_t srcK{0};
  uint32_t oriSrcM{0};
  uint32_t oriSrcK{0};
};

namespace detail {

struct RowShape {
  int64_t rows;
  int64_t columns;
  int64_t stride;  // elements from row to row
};

inline RowShape RowShapeOf(const SoftMaxTiling& tiling, const SoftMaxShapeInfo& info) {
  if (info.srcM == 0) return {tiling.srcM, tiling.srcK, tiling.srcK};
  return {info.oriSrcM, info.oriSrcK, info.srcK};
}

// Row statistics have 8 floats per row. inMax == nullptr: no update of earlier statistics.
void SoftmaxFlashRows(float* dst, float* sum, float* max, const float* src, float* expMax, const float* inSum,
                      const float* inMax, const RowShape& shape);
void SoftmaxRows(float* dst, float* sum, float* max, const float* src, const RowShape& shape);
void SimpleSoftmaxRows(float* dst, const float* sum, const float* max, const float* src, const RowShape& shape);
void SoftmaxGradFrontRows(float* dst, const float* grad, const float* src, const RowShape& shape);

}  // namespace detail

// Not updating: max = rowmax(src), dst = exp(src - max), sum = rowsum(dst).
// Updating: max = max(rowmax(src), inMax), dst = exp(src - max), expMax = exp(inMax - max),
// sum = expMax * inSum + rowsum(dst). dst may be src, and the statistics may be updated in place.
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& expSumTensor,
                           const LocalTensor<T>& maxTensor, const LocalTensor<T>& srcTensor,
                           const LocalTensor<T>& expMaxTensor, const LocalTensor<T>& inExpSumTensor,
                           const LocalTensor<T>& inMaxTensor, const SoftMaxTiling& tiling,
                           const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(std::is_same_v<T, float> && !isDataFormatNZ, "the twin's SoftmaxFlashV2 takes fp32 ND");
  const detail::RowShape shape = detail::RowShapeOf(tiling, softmaxShapeInfo);
  if (isBasicBlock && (shape.rows % 8 != 0 || shape.stride % 64 != 0 || shape.stride >= 2048)) {
    mst::KernelError("SoftmaxFlashV2: a basic block has a multiple of 8 rows and of 64 columns, fewer than 2048");
  }
  const int64_t elements = shape.rows * shape.stride, statistics = shape.rows * 8;
  const auto work = [=] {
    detail::SoftmaxFlashRows(dstTensor.GetPhyAddr(), expSumTensor.GetPhyAddr(), maxTensor.GetPhyAddr(),
                             srcTensor.GetPhyAddr(), isUpdate ? expMaxTensor.GetPhyAddr() : nullptr,
                             isUpdate ? inExpSumTensor.GetPhyAddr() : nullptr,
                             isUpdate ? inMaxTensor.GetPhyAddr() : nullptr, shape);
  };
  if constexpr (isUpdate) {
    check::Issue(PIPE_V, "SoftmaxFlashV2", check::Count(elements), work, check::OutRun(dstTensor, elements),
                 check::OutRun(expSumTensor, statistics), check::OutRun(maxTensor, statistics),
                 check::OutRun(expMaxTensor, statistics), check::InRun(srcTensor, elements),
                 check::InRun(inExpSumTensor, statistics), check::InRun(inMaxTensor, statistics));
  } else {
    check::Issue(PIPE_V, "SoftmaxFlashV2", check::Count(elements), work, check::OutRun(dstTensor, elements),
                 check::OutRun(expSumTensor, statistics), check::OutRun(maxTensor, statistics),
                 check::InRun(srcTensor, elements));
  }
}

template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& expSumTensor,
                           const LocalTensor<T>& maxTensor, const LocalTensor<T>& srcTensor,
                           const LocalTensor<T>& expMaxTensor, const LocalTensor<T>& inExpSumTensor,
                           const LocalTensor<T>& inMaxTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                           const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  check::Scratch("SoftmaxFlashV2", sharedTmpBuffer);
  SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
      dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor, tiling,
      softmaxShapeInfo);
}

// dst = exp(src - inMax) / inSum
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SimpleSoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& inSumTensor,
                          const LocalTensor<T>& inMaxTensor, const LocalTensor<T>& srcTensor,
                          const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(std::is_same_v<T, float> && !isDataFormatNZ, "the twin's SimpleSoftMax takes fp32 ND");
  const detail::RowShape shape = detail::RowShapeOf(tiling, softmaxShapeInfo);
  const int64_t elements = shape.rows * shape.stride, statistics = shape.rows * 8;
  check::Issue(
      PIPE_V, "SimpleSoftMax", check::Count(elements),
      [=] {
        detail::SimpleSoftmaxRows(dstTensor.GetPhyAddr(), inSumTensor.GetPhyAddr(), inMaxTensor.GetPhyAddr(),
                                  srcTensor.GetPhyAddr(), shape);
      },
      check::OutRun(dstTensor, elements), check::InRun(inSumTensor, statistics), check::InRun(inMaxTensor, statistics),
      check::InRun(srcTensor, elements));
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SimpleSoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& inSumTensor,
                          const LocalTensor<T>& inMaxTensor, const LocalTensor<T>& srcTensor,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                          const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  check::Scratch("SimpleSoftMax", sharedTmpBuffer);
  SimpleSoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(dstTensor, inSumTensor, inMaxTensor, srcTensor,
                                                                        tiling, softmaxShapeInfo);
}

// max = rowmax(src), sum = rowsum(exp(src - max)), dst = exp(src - max) / sum
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& sumTensor, const LocalTensor<T>& maxTensor,
                    const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(std::is_same_v<T, float> && !isDataFormatNZ, "the twin's SoftMax takes fp32 ND");
  const detail::RowShape shape = detail::RowShapeOf(tiling, softmaxShapeInfo);
  const int64_t elements = shape.rows * shape.stride, statistics = shape.rows * 8;
  check::Issue(
      PIPE_V, "SoftMax", check::Count(elements),
      [=] {
        detail::SoftmaxRows(dstTensor.GetPhyAddr(), sumTensor.GetPhyAddr(), maxTensor.GetPhyAddr(),
                            srcTensor.GetPhyAddr(), shape);
      },
      check::OutRun(dstTensor, elements), check::OutRun(sumTensor, statistics), check::OutRun(maxTensor, statistics),
      check::InRun(srcTensor, elements));
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& sumTensor, const LocalTensor<T>& maxTensor,
                    const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  check::Scratch("SoftMax", sharedTmpBuffer);
  SoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(dstTensor, sumTensor, maxTensor, srcTensor, tiling,
                                                                  softmaxShapeInfo);
}

// dst [m][8] = rowsum(grad * src)
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                             const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  static_assert(std::is_same_v<T, float> && !isDataFormatNZ, "the twin's SoftmaxGradFront takes fp32 ND");
  const detail::RowShape shape = detail::RowShapeOf(tiling, softmaxShapeInfo);
  const int64_t elements = shape.rows * shape.stride;
  check::Issue(
      PIPE_V, "SoftmaxGradFront", check::Count(elements),
      [=] {
        detail::SoftmaxGradFrontRows(dstTensor.GetPhyAddr(), gradTensor.GetPhyAddr(), srcTensor.GetPhyAddr(), shape);
      },
      check::OutRun(dstTensor, shape.rows * 8), check::InRun(gradTensor, elements), check::InRun(srcTensor, elements));
}

template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                             const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}) {
  check::Scratch("SoftmaxGradFront", sharedTmpBuffer);
  SoftmaxGradFront<T, isBasicBlock, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, tiling, softmaxShapeInfo);
}

}  // namespace AscendC

#endif  // MST_TWIN_SOFTMAX_H_
