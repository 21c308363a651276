// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The instruction code on plain addresses: declared here, compiled once per instruction level in vector_*.cpp. The API
// headers are thin templates over it.
#ifndef MST_TWIN_VECTOR_H_
#define MST_TWIN_VECTOR_H_

#include "repeat.h"

namespace AscendC {
namespace detail {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMax, kMin, kAnd, kOr };
enum class UnaryOp { kAbs, kExp, kLn, kSqrt, kRsqrt, kReciprocal, kRelu, kNot, kTanh, kSigmoid };
enum class ScalarOp { kAdds, kMuls, kMaxs, kMins, kShiftLeft, kShiftRight };
enum class ReduceOp { kSum, kMax, kMin };

template <BinaryOp op, typename T>
void Binary(T* dst, const T* src0, const T* src1, int64_t count);
template <BinaryOp op, typename T>
void Binary(T* dst, Stride dstStride, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride,
            const Mask& mask, int repeat);

template <UnaryOp op, typename T>
void Unary(T* dst, const T* src, int64_t count);
template <UnaryOp op, typename T>
void Unary(T* dst, Stride dstStride, const T* src, Stride srcStride, const Mask& mask, int repeat);

template <ScalarOp op, typename T>
void Scalar(T* dst, const T* src, T scalar, int64_t count);
template <ScalarOp op, typename T>
void Scalar(T* dst, Stride dstStride, const T* src, Stride srcStride, T scalar, const Mask& mask, int repeat);

// dst += src * scalar; dst += src0 * src1; dst = src0 * dst + src1.
template <typename T, typename U>
void AxpyRun(T* dst, const U* src, U scalar, int64_t count);
template <typename T, typename U>
void AxpyRun(T* dst, Stride dstStride, const U* src, Stride srcStride, U scalar, const Mask& mask, int repeat);
template <typename T, typename U>
void MulAddDstRun(T* dst, const U* src0, const U* src1, int64_t count);
template <typename T, typename U>
void MulAddDstRun(T* dst, Stride dstStride, const U* src0, Stride src0Stride, const U* src1, Stride src1Stride,
                  const Mask& mask, int repeat);
template <typename T>
void FusedMulAddRun(T* dst, const T* src0, const T* src1, int64_t count);
template <typename T>
void FusedMulAddRun(T* dst, Stride dstStride, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride,
                    const Mask& mask, int repeat);

// dst = src0 * src1 * sigmoid(beta * src1).
template <typename T>
void SwiGLURun(T* dst, const T* src0, const T* src1, float beta, int64_t count);

template <typename T, typename U>
void Convert(T* dst, const U* src, RoundMode mode, int64_t count);
template <typename T, typename U>
void Convert(T* dst, Stride dstStride, const U* src, Stride srcStride, RoundMode mode, const Mask& mask, int repeat);

// Copies of `blocks` runs of `bytes` bytes, from start to start `dstStep` and `srcStep` bytes: from memory that is read
// once (the same runs of the copy that probably follows are fetched meanwhile), and to memory that is not read soon
// (whole lines are written without being fetched first). After StreamFence other threads see the latter.
void StreamIn(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks);
void StreamOut(void* dst, int64_t dstStep, const void* src, int64_t srcStep, int64_t bytes, int64_t blocks);
void StreamFence();

// Bit patterns: instructions that only move elements know their width alone.
template <typename Word>
void FillWords(Word* dst, Word value, int64_t count);
template <typename Word>
void FillWords(Word* dst, Stride dstStride, Word value, const Mask& mask, int repeat);
template <typename Word>
void CopyWords(Word* dst, Stride dstStride, const Word* src, Stride srcStride, const Mask& mask, int repeat);
template <typename Word>
void BroadcastToBlocks(Word* dst, Stride dstStride, const Word* src, int repeat);
template <typename Word>
void GatherWords(Word* dst, const Word* src, const uint32_t* offsets, int64_t count);
template <typename Word>
void GatherWords(Word* dst, int64_t dstRepStride, const Word* src, const uint32_t* offsets, const Mask& mask,
                 int repeat);
// Returns how many elements were kept. `pattern` has a bit per element and moves on by patternRep bytes per repeat;
// without it the bits of `fixed` are used over and over. `lanes` elements of each repeat take part.
template <typename Word>
uint64_t GatherMaskWords(Word* dst, const Word* src, Stride srcStride, const uint8_t* pattern, int64_t patternRep,
                         uint8_t fixed, int64_t lanes, int repeat);

template <typename T>
void IndexRun(T* dst, T first, int64_t count);
template <typename T>
void IndexRun(T* dst, Stride dstStride, T first, const Mask& mask, int repeat);

// Bit i of dst = src0[i] <mode> src1[i]; src1 == nullptr compares with the scalar.
template <typename T>
void CompareRun(uint8_t* dst, const T* src0, const T* src1, T scalar, CMPMODE mode, int64_t count);
template <typename T>
void CompareRun(uint8_t* dst, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride, T scalar,
                CMPMODE mode, int repeat);

// dst[i] = bit i of `bits` ? src0[i] : src1[i], or the scalar when src1 == nullptr. sameBits: every repeat starts at
// the first bit again.
template <typename T>
void SelectRun(T* dst, const uint8_t* bits, bool sameBits, const T* src0, const T* src1, T scalar, int64_t count);
template <typename T>
void SelectRun(T* dst, Stride dstStride, const uint8_t* bits, bool sameBits, const T* src0, Stride src0Stride,
               const T* src1, Stride src1Stride, T scalar, const Mask& mask, int repeat);

// The whole of src to one element: a sum in a fixed order, or the extreme value and, if asked for, where it is first.
template <typename T>
void ReduceSumRun(T* dst, const T* src, int64_t count);
template <typename T>
void ReduceSumRun(T* dst, const T* src, Stride srcStride, const Mask& mask, int repeat);
template <ReduceOp op, typename T>
void ReduceExtremeRun(T* dst, const T* src, bool withIndex, int64_t count);
template <ReduceOp op, typename T>
void ReduceExtremeRun(T* dst, const T* src, Stride srcStride, bool withIndex, const Mask& mask, int repeat);

// Each repeat, block or pair to one element.
template <typename T>
void WholeSum(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat);
template <ReduceOp op, typename T>
void WholeExtreme(T* dst, int64_t dstRep, const T* src, Stride srcStride, ReduceOrder order, const Mask& mask,
                  int repeat);
template <ReduceOp op, typename T>
void BlockReduce(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat);
template <typename T>
void PairSum(T* dst, int64_t dstRep, const T* src, Stride srcStride, const Mask& mask, int repeat);

}  // namespace detail
}  // namespace AscendC

#endif  // MST_TWIN_VECTOR_H_
