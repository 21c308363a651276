// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Small device-side pieces that every kernel needs.
#ifndef MST_COMMON_KERNEL_UTIL_H_
#define MST_COMMON_KERNEL_UTIL_H_

#include "kernel_operator.h"

namespace mst {

constexpr int32_t kUbBlockBytes = 32;     // unit of the unified buffer
constexpr int32_t kBlockFloats = 8;       // floats of a block
constexpr int32_t kRepeatFloats = 64;     // floats that one repeat of a vector instruction covers
constexpr int64_t kMaxCopyPieces = 4095;  // pieces of one copy
constexpr int32_t kMaxRepeat = 255;       // repeats of one instruction, and blocks between two of them

__aicore__ inline int64_t MinOf(int64_t a, int64_t b) { return a < b ? a : b; }
__aicore__ inline int64_t MaxOf(int64_t a, int64_t b) { return a > b ? a : b; }
__aicore__ inline int64_t CeilDivOf(int64_t a, int64_t b) { return (a + b - 1) / b; }
__aicore__ inline int64_t RoundUpOf(int64_t a, int64_t unit) { return CeilDivOf(a, unit) * unit; }

// Makes the second pipe of `kEvent` wait for what the first has been given so far.
template <AscendC::HardEvent kEvent>
__aicore__ inline void WaitPipe() {
  const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
  AscendC::SetFlag<kEvent>(id);
  AscendC::WaitFlag<kEvent>(id);
}

// Large results go past the caches, and what they are made of is read once.
template <typename T>
__aicore__ inline void SetStreaming(AscendC::GlobalTensor<T>& tensor, bool streams) {
  if (streams) tensor.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);
}

// `rows` pieces of `cols` elements, `gmPitch` elements apart in GM, to rows `pitch` elements apart in UB, and back.
// `pitch` is a multiple of a block; what lies between the rows in UB is undefined afterwards. Rows that touch on both
// sides are one piece.
template <typename T>
__aicore__ inline void CopyRowsIn(const AscendC::LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, int64_t rows,
                                  int64_t cols, int64_t gmPitch, int64_t pitch) {
  if (cols == gmPitch && cols == pitch) {
    cols *= rows;
    gmPitch = pitch = cols;
    rows = 1;
  }
  const int64_t usedBlocks = CeilDivOf(cols * sizeof(T), kUbBlockBytes);
  const AscendC::DataCopyExtParams copy(static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)),
                                        static_cast<uint32_t>((gmPitch - cols) * sizeof(T)),
                                        static_cast<uint32_t>(pitch * sizeof(T) / kUbBlockBytes - usedBlocks), 0);
  AscendC::DataCopyPad(dst, src, copy, AscendC::DataCopyPadExtParams<T>());
}

template <typename T>
__aicore__ inline void CopyRowsOut(const AscendC::GlobalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                                   int64_t rows, int64_t cols, int64_t gmPitch, int64_t pitch) {
  if (cols == gmPitch && cols == pitch) {
    cols *= rows;
    gmPitch = pitch = cols;
    rows = 1;
  }
  const int64_t usedBlocks = CeilDivOf(cols * sizeof(T), kUbBlockBytes);
  const AscendC::DataCopyExtParams copy(static_cast<uint16_t>(rows), static_cast<uint32_t>(cols * sizeof(T)),
                                        static_cast<uint32_t>(pitch * sizeof(T) / kUbBlockBytes - usedBlocks),
                                        static_cast<uint32_t>((gmPitch - cols) * sizeof(T)), 0);
  AscendC::DataCopyPad(dst, src, copy);
}

}  // namespace mst

#endif  // MST_COMMON_KERNEL_UTIL_H_
