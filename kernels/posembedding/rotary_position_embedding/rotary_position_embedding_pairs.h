// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The map R that rope multiplies by the sines, in its two modes: half R(x) = [-x2, x1] of the halves of a row,
// interleave R(x)[2i] = -x[2i+1], R(x)[2i+1] = x[2i]. It is kept as partner(x) * sign: the partner is the other element
// of the pair, sign is -1 for the first of a pair and 1 for the second.
//
// Rows in UB. Half: each half is rounded up to whole blocks, so that both begin at one. Interleave: as in GM, rounded
// up to whole blocks; the partner is chosen between the next and the previous element, which are two more copies from
// GM, shifted by one.
#ifndef MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_PAIRS_H_
#define MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_PAIRS_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "posembedding/rotary_position_embedding/rotary_position_embedding_tiling.h"

namespace mst {

using namespace AscendC;

struct RopeRows {
  int64_t D;
  int64_t pitch;
  bool isHalf;

  template <typename T>
  __aicore__ inline void CopyIn(const LocalTensor<T>& dst, const GlobalTensor<T>& src, int64_t rows) const {
    if (isHalf) {
      CopyRowsIn(dst, src, 2 * rows, D / 2, D / 2, pitch / 2);
    } else {
      CopyRowsIn(dst, src, rows, D, D, pitch);
    }
  }

  template <typename T>
  __aicore__ inline void CopyOut(const GlobalTensor<T>& dst, const LocalTensor<T>& src, int64_t rows) const {
    if (isHalf) {
      CopyRowsOut(dst, src, 2 * rows, D / 2, D / 2, pitch / 2);
    } else {
      CopyRowsOut(dst, src, rows, D, D, pitch);
    }
  }

  // Mode half: the halves of each row change places.
  template <typename T>
  __aicore__ inline void CopyPartnersIn(const LocalTensor<T>& dst, const GlobalTensor<T>& src, int64_t rows) const {
    CopyRowsIn(dst, src[D / 2], rows, D / 2, D, pitch);
    CopyRowsIn(dst[pitch / 2], src, rows, D / 2, D, pitch);
  }

  // Mode interleave: the element after each one, and the one before. The last and the first have none.
  template <typename T>
  __aicore__ inline void CopyNeighboursIn(const LocalTensor<T>& next, const LocalTensor<T>& previous,
                                          const GlobalTensor<T>& src, int64_t rows) const {
    int64_t cols = D;
    int64_t ubPitch = pitch;
    if (D == pitch) {  // what crosses the end of a row is never chosen
      cols = ubPitch = rows * D;
      rows = 1;
    }
    const int64_t gap = ubPitch * sizeof(T) / kUbBlockBytes;
    const uint32_t bytes = static_cast<uint32_t>((cols - 1) * sizeof(T));
    DataCopyExtParams copy(static_cast<uint16_t>(rows), bytes, sizeof(T),
                           static_cast<uint32_t>(gap - CeilDivOf(bytes, kUbBlockBytes)), 0);
    DataCopyPad(next, src[1], copy, DataCopyPadExtParams<T>());
    DataCopyPadExtParams<T> shift;
    shift.isPad = true;
    shift.leftPadding = 1;
    copy.dstStride = static_cast<uint32_t>(gap - CeilDivOf(cols * sizeof(T), kUbBlockBytes));
    DataCopyPad(previous, src, copy, shift);
  }

  // Mode interleave: bits for Choose over `count` elements.
  __aicore__ inline void FillEvenBits(const LocalTensor<uint8_t>& bits, int64_t count) const {
    const uint16_t evens = 0x5555;
    Duplicate(bits.ReinterpretCast<uint16_t>(), evens, static_cast<int32_t>(CeilDivOf(count, 16)));
    PipeBarrier<PIPE_V>();
  }

  // next = the partner: the next element where the index is even, the previous one where it is odd.
  template <typename T>
  __aicore__ inline void Choose(const LocalTensor<T>& next, const LocalTensor<T>& previous,
                                const LocalTensor<uint8_t>& bits, int64_t count) const {
    if constexpr (sizeof(T) == sizeof(half)) {
      const LocalTensor<half> nextBits = next.template ReinterpretCast<half>();
      Select(nextBits, bits, nextBits, previous.template ReinterpretCast<half>(), SELMODE::VSEL_TENSOR_TENSOR_MODE,
             static_cast<uint32_t>(count));
    } else {
      Select(next, bits, next, previous, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
    }
    PipeBarrier<PIPE_V>();
  }

  // sign[0, pitch) = first for the first element of a pair, -first for the second. `work`: pitch floats.
  __aicore__ inline void FillSign(const LocalTensor<float>& sign, const LocalTensor<float>& work,
                                  const LocalTensor<uint8_t>& bits, float first) const {
    if (isHalf) {
      Duplicate(sign, first, static_cast<int32_t>(pitch / 2));
      Duplicate(sign[pitch / 2], -first, static_cast<int32_t>(pitch / 2));
      PipeBarrier<PIPE_V>();
    } else {
      Duplicate(sign, first, static_cast<int32_t>(pitch));
      Duplicate(work, -first, static_cast<int32_t>(pitch));
      PipeBarrier<PIPE_V>();
      Choose(sign, work, bits, pitch);
    }
  }

  // Mode half: dst += partner(x) * factor, row by row; factorPitch as in RowsWithRow.
  __aicore__ inline void MulAddPartner(const LocalTensor<float>& dst, const LocalTensor<float>& x,
                                       const LocalTensor<float>& factor, int64_t rows, int64_t factorPitch) const {
    const int64_t h = pitch / 2;
    RowMulAdd(dst, x[h], factor, rows, h, pitch, factorPitch);
    RowMulAdd(dst[h], x, factor[h], rows, h, pitch, factorPitch);
  }
};

template <typename T>
__aicore__ inline LocalTensor<float> RopeFloat(const LocalTensor<T>& tensor, const LocalTensor<float>& copy,
                                               int64_t count) {
  if constexpr (IsSameType<T, float>::value) {
    return tensor;
  } else {
    Cast(copy, tensor, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
    return copy;
  }
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_PAIRS_H_
