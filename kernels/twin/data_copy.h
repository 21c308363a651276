// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Copies between global and local memory, and within local memory.
#ifndef MST_TWIN_DATA_COPY_H_
#define MST_TWIN_DATA_COPY_H_

#include "check.h"
#include "runtime.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

struct DataCopyParams {
  DataCopyParams() {}
  DataCopyParams(const uint16_t count, const uint16_t len, const uint16_t srcStrideIn, const uint16_t dstStrideIn)
      : blockCount(count), blockLen(len), srcStride(srcStrideIn), dstStride(dstStrideIn) {}

  // Lengths and gaps in blocks of 32 bytes.
  uint16_t blockCount = 1;
  uint16_t blockLen = 0;
  uint16_t srcStride = 0;
  uint16_t dstStride = 0;
};

struct DataCopyExtParams {
  DataCopyExtParams() {}
  DataCopyExtParams(const uint16_t count, const uint32_t len, const uint32_t srcStrideIn, const uint32_t dstStrideIn,
                    const uint32_t rsvIn)
      : blockCount(count), blockLen(len), srcStride(srcStrideIn), dstStride(dstStrideIn), rsv(rsvIn) {}

  // Lengths in bytes; gaps in bytes on the global side and in blocks of 32 bytes on the local side.
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  uint32_t srcStride = 0;
  uint32_t dstStride = 0;
  uint32_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() {}
  DataCopyPadExtParams(const bool isPadValue, const uint8_t leftPadValue, const uint8_t rightPadValue, T padValue)
      : isPad(isPadValue), leftPadding(leftPadValue), rightPadding(rightPadValue), paddingValue(padValue) {}

  bool isPad = false;
  uint8_t leftPadding = 0;   // elements
  uint8_t rightPadding = 0;  // elements
  T paddingValue = T{};
};

namespace detail {

// `blocks` runs of `bytes` bytes, from start to start `dstStep` and `srcStep` bytes.
inline void CopyBlocks(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks) {
  uint8_t* d = static_cast<uint8_t*>(dst);
  const uint8_t* s = static_cast<const uint8_t*>(src);
  if (dstStep == bytes && srcStep == bytes) {
    std::memcpy(d, s, static_cast<size_t>(bytes * blocks));
    return;
  }
  for (int64_t i = 0; i < blocks; ++i) {
    std::memcpy(d, s, static_cast<size_t>(bytes));
    d += dstStep;
    s += srcStep;
  }
}

inline void CopyIn(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks,
                   bool streams) {
  if (streams) {
    StreamIn(dst, dstStep, src, srcStep, bytes, blocks);
  } else {
    CopyBlocks(dst, dstStep, src, srcStep, bytes, blocks);
  }
}

// Local to global memory, adding if SetAtomicAdd was in force when the copy was issued.
template <typename T>
inline void CopyOut(T* dst, int64_t dstStep, const T* src, int64_t srcStep, int64_t bytes, int64_t blocks, bool add,
                    bool streams) {
  if (!add && streams) {
    StreamOut(dst, dstStep, src, srcStep, bytes, blocks);
    return;
  }
  if (!add) {
    CopyBlocks(dst, dstStep, src, srcStep, bytes, blocks);
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    uint8_t* d = reinterpret_cast<uint8_t*>(dst);
    const uint8_t* s = reinterpret_cast<const uint8_t*>(src);
    for (int64_t i = 0; i < blocks; ++i) {
      float* sum = reinterpret_cast<float*>(d + i * dstStep);
      Binary<BinaryOp::kAdd, float>(sum, sum, reinterpret_cast<const float*>(s + i * srcStep), bytes / 4);
    }
  } else {
    mst::KernelError("DataCopy: SetAtomicAdd<float> is in force, but the elements are not float");
  }
}

inline int64_t RoundToBlock(int64_t bytes) { return (bytes + 31) / 32 * 32; }

}  // namespace detail

// Global to local memory.
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count) {
  const int64_t bytes = static_cast<int64_t>(count) * sizeof(T);
  check::Issue(
      PIPE_MTE2, "DataCopy", check::Count(count),
      [=] {
        detail::CopyIn(dst.GetPhyAddr(), bytes, src.GetPhyAddr(), bytes, bytes, 1, detail::Inside::StreamsIn(src));
      },
      check::OutBlocks(dst, 1, bytes, 0), check::InBlocks(src, 1, bytes, 0));
}
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                                const DataCopyParams& repeatParams) {
  const int64_t bytes = repeatParams.blockLen * 32, blocks = repeatParams.blockCount;
  const int64_t srcGap = repeatParams.srcStride * 32, dstGap = repeatParams.dstStride * 32;
  check::Issue(
      PIPE_MTE2, "DataCopy", check::Count(bytes * blocks / static_cast<int64_t>(sizeof(T))),
      [=] {
        detail::CopyIn(dst.GetPhyAddr(), bytes + dstGap, src.GetPhyAddr(), bytes + srcGap, bytes, blocks,
                       detail::Inside::StreamsIn(src));
      },
      check::OutBlocks(dst, blocks, bytes, dstGap), check::InBlocks(src, blocks, bytes, srcGap));
}

// Local to global memory.
template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count) {
  const int64_t bytes = static_cast<int64_t>(count) * sizeof(T);
  const bool add = mst::ThisCore().atomicAdd;
  check::Issue(
      PIPE_MTE3, "DataCopy", check::Count(count),
      [=] {
        detail::CopyOut<T>(dst.GetPhyAddr(0), bytes, src.GetPhyAddr(), bytes, bytes, 1, add,
                           detail::Inside::StreamsOut(dst));
      },
      check::AddingIf(add, check::OutBlocks(dst, 1, bytes, 0)), check::InBlocks(src, 1, bytes, 0));
}
template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                const DataCopyParams& repeatParams) {
  const int64_t bytes = repeatParams.blockLen * 32, blocks = repeatParams.blockCount;
  const int64_t srcGap = repeatParams.srcStride * 32, dstGap = repeatParams.dstStride * 32;
  const bool add = mst::ThisCore().atomicAdd;
  check::Issue(
      PIPE_MTE3, "DataCopy", check::Count(bytes * blocks / static_cast<int64_t>(sizeof(T))),
      [=] {
        detail::CopyOut<T>(dst.GetPhyAddr(0), bytes + dstGap, src.GetPhyAddr(), bytes + srcGap, bytes, blocks, add,
                           detail::Inside::StreamsOut(dst));
      },
      check::AddingIf(add, check::OutBlocks(dst, blocks, bytes, dstGap)), check::InBlocks(src, blocks, bytes, srcGap));
}

// Within local memory.
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count) {
  const int64_t bytes = static_cast<int64_t>(count) * sizeof(T);
  check::Issue(
      PIPE_V, "DataCopy", check::Count(count),
      [=] { detail::CopyBlocks(dst.GetPhyAddr(), bytes, src.GetPhyAddr(), bytes, bytes, 1); },
      check::OutBlocks(dst, 1, bytes, 0), check::InBlocks(src, 1, bytes, 0));
}
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                const DataCopyParams& repeatParams) {
  const int64_t bytes = repeatParams.blockLen * 32, blocks = repeatParams.blockCount;
  const int64_t srcGap = repeatParams.srcStride * 32, dstGap = repeatParams.dstStride * 32;
  check::Issue(
      PIPE_V, "DataCopy", check::Count(bytes * blocks / static_cast<int64_t>(sizeof(T))),
      [=] { detail::CopyBlocks(dst.GetPhyAddr(), bytes + dstGap, src.GetPhyAddr(), bytes + srcGap, bytes, blocks); },
      check::OutBlocks(dst, blocks, bytes, dstGap), check::InBlocks(src, blocks, bytes, srcGap));
}

// Any number of bytes per block. On the local side blocks begin at multiples of 32 bytes; what lies between the padding
// and that boundary is filled with the padding value, or without padding with the block's first element.
template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                                   const DataCopyExtParams& dataCopyParams, const DataCopyPadExtParams<T>& padParams) {
  const int64_t bytes = dataCopyParams.blockLen, blocks = dataCopyParams.blockCount;
  if (bytes == 0 || blocks == 0) return;
  const int64_t srcGap = dataCopyParams.srcStride;
  const int64_t left = padParams.leftPadding * static_cast<int64_t>(sizeof(T));
  const int64_t right = padParams.rightPadding * static_cast<int64_t>(sizeof(T));
  const int64_t padded = detail::RoundToBlock(left + bytes + right);
  const int64_t dstGap = dataCopyParams.dstStride * INT64_C(32);
  const bool usesValue = padParams.isPad && left + right > 0;
  const T paddingValue = padParams.paddingValue;
  check::Issue(
      PIPE_MTE2, "DataCopyPad", check::Count(padded * blocks / static_cast<int64_t>(sizeof(T))),
      [=] {
        uint8_t* d = reinterpret_cast<uint8_t*>(dst.GetPhyAddr());
        const uint8_t* s = reinterpret_cast<const uint8_t*>(src.GetPhyAddr());
        const int64_t dstStep = padded + dstGap, srcStep = bytes + srcGap;
        detail::CopyIn(d + left, dstStep, s, srcStep, bytes, blocks, detail::Inside::StreamsIn(src));
        if (padded == bytes) return;
        for (int64_t i = 0; i < blocks; ++i) {
          T value = paddingValue;
          if (!usesValue) std::memcpy(&value, s + i * srcStep, sizeof(T));
          uint8_t* block = d + i * dstStep;
          for (int64_t at = 0; at < left; at += sizeof(T)) std::memcpy(block + at, &value, sizeof(T));
          for (int64_t at = left + bytes; at < padded; at += sizeof(T)) std::memcpy(block + at, &value, sizeof(T));
        }
      },
      check::Tail(usesValue ? 0 : padded - bytes, check::OutBlocks(dst, blocks, padded, dstGap)),
      check::InBlocks(src, blocks, bytes, srcGap));
}
template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                   const DataCopyExtParams& dataCopyParams) {
  const int64_t bytes = dataCopyParams.blockLen, blocks = dataCopyParams.blockCount;
  if (bytes == 0 || blocks == 0) return;
  const int64_t srcGap = detail::RoundToBlock(bytes) - bytes + dataCopyParams.srcStride * INT64_C(32);
  const int64_t dstGap = dataCopyParams.dstStride;
  const bool add = mst::ThisCore().atomicAdd;
  check::Issue(
      PIPE_MTE3, "DataCopyPad", check::Count(bytes * blocks / static_cast<int64_t>(sizeof(T))),
      [=] {
        detail::CopyOut<T>(dst.GetPhyAddr(0), bytes + dstGap, src.GetPhyAddr(), bytes + srcGap, bytes, blocks, add,
                           detail::Inside::StreamsOut(dst));
      },
      check::AddingIf(add, check::OutBlocks(dst, blocks, bytes, dstGap)), check::InBlocks(src, blocks, bytes, srcGap));
}

}  // namespace AscendC

#endif  // MST_TWIN_DATA_COPY_H_
