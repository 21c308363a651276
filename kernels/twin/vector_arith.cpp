// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic: binary, unary and tensor-with-scalar instructions.
#include <utility>

#include "engine.h"
#include "vector.h"
#include "vector_math.h"

namespace AscendC {
namespace detail {

namespace {

using mst::simd::Lanes;
using mst::simd::LoadTail;
using mst::simd::StoreTail;

// dst[i] = f(src[i]...): whole vectors, then the tail through a vector that touches nothing outside.
template <typename T, typename F, typename... U>
MST_INLINE void Map(const F& f, int64_t count, T* dst, const U*... src) {
  constexpr int kCount = Lanes<T>::kCount;
  constexpr int kRepeat = ONE_REPEAT_BYTE_SIZE / static_cast<int>(sizeof(T));
  if (count == kRepeat) {  // one of many short runs
#pragma GCC unroll 16
    for (int i = 0; i < kRepeat; i += kCount) Lanes<T>::Store(dst + i, f(Lanes<U>::Load(src + i)...));
    return;
  }
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + kCount <= count; i += kCount) Lanes<T>::Store(dst + i, f(Lanes<U>::Load(src + i)...));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) StoreTail(dst + i, f(LoadTail(src + i, rest)...), rest);
}

// Vectors that hold the 32-byte block at p over and over: vector k of a row is blocks[k % kBlockVectors].
template <typename T>
constexpr int kBlockVectors =
    Lanes<T>::kCount * static_cast<int>(sizeof(T)) >= 32 ? 1 : 32 / (Lanes<T>::kCount * static_cast<int>(sizeof(T)));

template <typename T>
MST_INLINE void LoadBlock(const T* p, typename Lanes<T>::V* blocks) {
#if MST_VECTOR_BYTES == 64
  if constexpr (Lanes<T>::kCount * sizeof(T) == 64) {
    const __m512i twice = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    blocks[0] = (typename Lanes<T>::V)(twice);
    return;
  }
#endif
  for (int k = 0; k < kBlockVectors<T>; ++k) blocks[k] = Lanes<T>::Load(p + k * Lanes<T>::kCount);
}

// Rows with one block for each, as Brcb makes them of one number per row: dst[i] = f(block, rows[i]...).
template <typename T, typename F, typename... Row>
MST_INLINE void MapRows(const F& f, const Mask& mask, int repeat, T* dst, Stride dstStride, const T* block,
                        Stride blockStride, std::pair<const Row*, Stride>... rows) {
  constexpr int kCount = Lanes<T>::kCount;
  constexpr int kLanes = ONE_REPEAT_BYTE_SIZE / static_cast<int>(sizeof(T));
  constexpr int64_t kBlock = 32 / sizeof(T);
  const int count = std::min(mask.count, kLanes);
  for (int64_t r = 0; r < repeat; ++r) {
    typename Lanes<T>::V blocks[kBlockVectors<T>];
    LoadBlock(block + r * blockStride.rep * kBlock, blocks);
    T* d = dst + r * dstStride.rep * kBlock;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i += kCount) {
      const auto v = blocks[i / kCount % kBlockVectors<T>];
      if (i + kCount <= count) {
        Lanes<T>::Store(d + i, f(v, Lanes<T>::Load(rows.first + r * rows.second.rep * kBlock + i)...));
      } else {
        if (i < count)
          StoreTail(d + i, f(v, LoadTail(rows.first + r * rows.second.rep * kBlock + i, count - i)...), count - i);
        break;
      }
    }
  }
}

template <BinaryOp op, typename V>
MST_INLINE V Apply(V a, V b) {
  if constexpr (op == BinaryOp::kAdd) return a + b;
  if constexpr (op == BinaryOp::kSub) return a - b;
  if constexpr (op == BinaryOp::kMul) return a * b;
  if constexpr (op == BinaryOp::kDiv) return a / b;
  if constexpr (op == BinaryOp::kAnd) return a & b;
  if constexpr (op == BinaryOp::kOr) return a | b;
  if constexpr (op == BinaryOp::kMax || op == BinaryOp::kMin) {
    constexpr bool kMax = op == BinaryOp::kMax;
    if constexpr (std::is_same_v<V, mst::simd::VF>) {
      return kMax ? mst::simd::Max(a, b) : mst::simd::Min(a, b);
    } else {
      return (kMax ? a > b : a < b) ? a : b;
    }
  }
}

template <UnaryOp op, typename V>
MST_INLINE V Apply(V v) {
  using namespace mst::simd;
  if constexpr (op == UnaryOp::kAbs) return Abs(v);
  if constexpr (op == UnaryOp::kExp) return Exp(v);
  if constexpr (op == UnaryOp::kLn) return Ln(v);
  if constexpr (op == UnaryOp::kSqrt) return Sqrt(v);
  if constexpr (op == UnaryOp::kRsqrt) return 1.0f / Sqrt(v);
  if constexpr (op == UnaryOp::kReciprocal) return 1.0f / v;
  if constexpr (op == UnaryOp::kTanh) return Tanh(v);
  if constexpr (op == UnaryOp::kSigmoid) return Sigmoid(v);
  if constexpr (op == UnaryOp::kNot) return ~v;
  if constexpr (op == UnaryOp::kRelu) {
    if constexpr (std::is_same_v<V, VF>) {
      return Max(V{}, v);  // in this order NaN stays NaN
    } else {
      return v > 0 ? v : V{};
    }
  }
}

template <ScalarOp op, typename T>
struct WithScalar {
  using V = typename Lanes<T>::V;
  explicit WithScalar(T s) : scalar(s), vector(Lanes<T>::Fill(s)) {}
  MST_INLINE V operator()(V v) const {
    if constexpr (op == ScalarOp::kAdds) return v + vector;
    if constexpr (op == ScalarOp::kMuls) return v * vector;
    if constexpr (op == ScalarOp::kMaxs) return Apply<BinaryOp::kMax>(vector, v);  // in this order NaN stays NaN
    if constexpr (op == ScalarOp::kMins) return Apply<BinaryOp::kMin>(vector, v);
    if constexpr (op == ScalarOp::kShiftLeft) return v << static_cast<int>(scalar);
    if constexpr (op == ScalarOp::kShiftRight) return v >> static_cast<int>(scalar);
  }
  T scalar;
  V vector;
};

template <typename T>
T* At(const std::array<uint8_t*, 2>& at, int i) {
  return reinterpret_cast<T*>(at[static_cast<size_t>(i)]);
}
template <typename T>
T* At(const std::array<uint8_t*, 3>& at, int i) {
  return reinterpret_cast<T*>(at[static_cast<size_t>(i)]);
}

}  // namespace

template <BinaryOp op, typename T>
void Binary(T* dst, const T* src0, const T* src1, int64_t count) {
  Map([](auto a, auto b) { return Apply<op>(a, b); }, count, dst, src0, src1);
}

template <BinaryOp op, typename T>
void Binary(T* dst, Stride dstStride, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride,
            const Mask& mask, int repeat) {
  if (dstStride.blk == 1 && src0Stride.blk == 1 && src1Stride.blk == 0 && mask.count >= 0) {
    MapRows<T>([](auto block, auto a) { return Apply<op>(a, block); }, mask, repeat, dst, dstStride, src1, src1Stride,
               std::pair(src0, src0Stride));
    return;
  }
  ForEachRun(std::array<Walk, 3>{Walk(dst, dstStride), Walk(src0, src0Stride), Walk(src1, src1Stride)}, mask, repeat,
             [](const std::array<uint8_t*, 3>& at, int64_t, int64_t count) {
               Map([](auto a, auto b) { return Apply<op>(a, b); }, count, At<T>(at, 0),
                   static_cast<const T*>(At<T>(at, 1)), static_cast<const T*>(At<T>(at, 2)));
             });
}

template <UnaryOp op, typename T>
void Unary(T* dst, const T* src, int64_t count) {
  Map([](auto v) { return Apply<op>(v); }, count, dst, src);
}

template <UnaryOp op, typename T>
void Unary(T* dst, Stride dstStride, const T* src, Stride srcStride, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 2>{Walk(dst, dstStride), Walk(src, srcStride)}, mask, repeat,
             [](const std::array<uint8_t*, 2>& at, int64_t, int64_t count) {
               Map([](auto v) { return Apply<op>(v); }, count, At<T>(at, 0), static_cast<const T*>(At<T>(at, 1)));
             });
}

template <ScalarOp op, typename T>
void Scalar(T* dst, const T* src, T scalar, int64_t count) {
  Map(WithScalar<op, T>(scalar), count, dst, src);
}

template <ScalarOp op, typename T>
void Scalar(T* dst, Stride dstStride, const T* src, Stride srcStride, T scalar, const Mask& mask, int repeat) {
  const WithScalar<op, T> f(scalar);
  ForEachRun(std::array<Walk, 2>{Walk(dst, dstStride), Walk(src, srcStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 2>& at, int64_t, int64_t count) {
               Map(f, count, At<T>(at, 0), static_cast<const T*>(At<T>(at, 1)));
             });
}

template <typename T, typename U>
void AxpyRun(T* dst, const U* src, U scalar, int64_t count) {
  const auto s = Lanes<U>::Fill(scalar);
  Map([&](auto x, auto y) { return x * s + y; }, count, dst, src, static_cast<const T*>(dst));
}

template <typename T, typename U>
void AxpyRun(T* dst, Stride dstStride, const U* src, Stride srcStride, U scalar, const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 2>{Walk(dst, dstStride), Walk(src, srcStride)}, mask, repeat,
             [&](const std::array<uint8_t*, 2>& at, int64_t, int64_t count) {
               AxpyRun<T, U>(At<T>(at, 0), At<U>(at, 1), scalar, count);
             });
}

template <typename T, typename U>
void MulAddDstRun(T* dst, const U* src0, const U* src1, int64_t count) {
  Map([](auto a, auto b, auto y) { return a * b + y; }, count, dst, src0, src1, static_cast<const T*>(dst));
}

template <typename T, typename U>
void MulAddDstRun(T* dst, Stride dstStride, const U* src0, Stride src0Stride, const U* src1, Stride src1Stride,
                  const Mask& mask, int repeat) {
  ForEachRun(std::array<Walk, 3>{Walk(dst, dstStride), Walk(src0, src0Stride), Walk(src1, src1Stride)}, mask, repeat,
             [](const std::array<uint8_t*, 3>& at, int64_t, int64_t count) {
               MulAddDstRun<T, U>(At<T>(at, 0), At<U>(at, 1), At<U>(at, 2), count);
             });
}

template <typename T>
void FusedMulAddRun(T* dst, const T* src0, const T* src1, int64_t count) {
  Map([](auto a, auto b, auto y) { return a * y + b; }, count, dst, src0, src1, static_cast<const T*>(dst));
}

template <typename T>
void FusedMulAddRun(T* dst, Stride dstStride, const T* src0, Stride src0Stride, const T* src1, Stride src1Stride,
                    const Mask& mask, int repeat) {
  if (dstStride.blk == 1 && src0Stride.blk == 0 && src1Stride.blk == 1 && mask.count >= 0) {
    MapRows<T>([](auto block, auto b, auto y) { return block * y + b; }, mask, repeat, dst, dstStride, src0, src0Stride,
               std::pair(src1, src1Stride), std::pair(static_cast<const T*>(dst), dstStride));
    return;
  }
  ForEachRun(std::array<Walk, 3>{Walk(dst, dstStride), Walk(src0, src0Stride), Walk(src1, src1Stride)}, mask, repeat,
             [](const std::array<uint8_t*, 3>& at, int64_t, int64_t count) {
               FusedMulAddRun<T>(At<T>(at, 0), At<T>(at, 1), At<T>(at, 2), count);
             });
}
template void FusedMulAddRun<float>(float*, const float*, const float*, int64_t);
template void FusedMulAddRun<float>(float*, Stride, const float*, Stride, const float*, Stride, const Mask&, int);
template void FusedMulAddRun<half>(half*, const half*, const half*, int64_t);
template void FusedMulAddRun<half>(half*, Stride, const half*, Stride, const half*, Stride, const Mask&, int);

template <typename T>
void SwiGLURun(T* dst, const T* src0, const T* src1, float beta, int64_t count) {
  Map([&](auto a, auto b) { return a * (b * mst::simd::Sigmoid(b * beta)); }, count, dst, src0, src1);
}
template void SwiGLURun<float>(float*, const float*, const float*, float, int64_t);
template void SwiGLURun<half>(half*, const half*, const half*, float, int64_t);

// What the 910B has, and nothing else.
#define MST_BINARY(op, T)                                                 \
  template void Binary<BinaryOp::op, T>(T*, const T*, const T*, int64_t); \
  template void Binary<BinaryOp::op, T>(T*, Stride, const T*, Stride, const T*, Stride, const Mask&, int)
#define MST_BINARY_ARITH(op) \
  MST_BINARY(op, float);     \
  MST_BINARY(op, half);      \
  MST_BINARY(op, int32_t);   \
  MST_BINARY(op, int16_t)
MST_BINARY_ARITH(kAdd);
MST_BINARY_ARITH(kSub);
MST_BINARY_ARITH(kMul);
MST_BINARY_ARITH(kMax);
MST_BINARY_ARITH(kMin);
MST_BINARY(kDiv, float);
MST_BINARY(kDiv, half);
MST_BINARY(kAnd, uint16_t);
MST_BINARY(kAnd, int16_t);
MST_BINARY(kOr, uint16_t);
MST_BINARY(kOr, int16_t);

#define MST_UNARY(op, T)                                      \
  template void Unary<UnaryOp::op, T>(T*, const T*, int64_t); \
  template void Unary<UnaryOp::op, T>(T*, Stride, const T*, Stride, const Mask&, int)
#define MST_UNARY_FLOAT(op) \
  MST_UNARY(op, float);     \
  MST_UNARY(op, half)
MST_UNARY_FLOAT(kAbs);
MST_UNARY_FLOAT(kExp);
MST_UNARY_FLOAT(kLn);
MST_UNARY_FLOAT(kSqrt);
MST_UNARY_FLOAT(kRsqrt);
MST_UNARY_FLOAT(kReciprocal);
MST_UNARY_FLOAT(kRelu);
MST_UNARY(kRelu, int32_t);
MST_UNARY_FLOAT(kTanh);
MST_UNARY_FLOAT(kSigmoid);
MST_UNARY(kNot, uint16_t);
MST_UNARY(kNot, int16_t);

#define MST_SCALAR(op, T)                                          \
  template void Scalar<ScalarOp::op, T>(T*, const T*, T, int64_t); \
  template void Scalar<ScalarOp::op, T>(T*, Stride, const T*, Stride, T, const Mask&, int)
#define MST_SCALAR_ARITH(op) \
  MST_SCALAR(op, float);     \
  MST_SCALAR(op, half);      \
  MST_SCALAR(op, int32_t);   \
  MST_SCALAR(op, int16_t)
#define MST_SCALAR_SHIFT(op) \
  MST_SCALAR(op, int32_t);   \
  MST_SCALAR(op, uint32_t);  \
  MST_SCALAR(op, int16_t);   \
  MST_SCALAR(op, uint16_t)
MST_SCALAR_ARITH(kAdds);
MST_SCALAR_ARITH(kMuls);
MST_SCALAR_ARITH(kMaxs);
MST_SCALAR_ARITH(kMins);
MST_SCALAR_SHIFT(kShiftLeft);
MST_SCALAR_SHIFT(kShiftRight);

#define MST_MULADD(T, U)                                                          \
  template void AxpyRun<T, U>(T*, const U*, U, int64_t);                          \
  template void AxpyRun<T, U>(T*, Stride, const U*, Stride, U, const Mask&, int); \
  template void MulAddDstRun<T, U>(T*, const U*, const U*, int64_t);              \
  template void MulAddDstRun<T, U>(T*, Stride, const U*, Stride, const U*, Stride, const Mask&, int)
MST_MULADD(float, float);
MST_MULADD(half, half);
MST_MULADD(float, half);

}  // namespace detail
}  // namespace AscendC
