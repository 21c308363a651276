// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Element types, address-space macros and enumerations of Ascend C, with their real names and values.
#ifndef MST_TWIN_TYPES_H_
#define MST_TWIN_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The card has several address spaces and two kinds of functions; a CPU has one of each.
#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define GM_ADDR __gm__ uint8_t*

// 16-bit floats convert explicitly, to and from float only; scalar arithmetic is done in float, as on the card.
struct half {
  half() = default;
  explicit half(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }

 private:
  static uint16_t FromFloat(float value) {
    uint32_t u;
    std::memcpy(&u, &value, 4);
    const uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((u >> 13) & 0x3ffu));  // NaN stays NaN
    if (u >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);                        // rounds to infinity
    if (u < 0x38800000u) {  // subnormal: let the float adder round to a multiple of 2^-24
      float magnitude;
      std::memcpy(&magnitude, &u, 4);
      magnitude += 0.5f;
      std::memcpy(&u, &magnitude, 4);
      return static_cast<uint16_t>(sign | (u - 0x3f000000u));
    }
    u += 0xfffu + ((u >> 13) & 1u);  // round to nearest, ties to even
    return static_cast<uint16_t>(sign | ((u - 0x38000000u) >> 13));
  }
  static float ToFloat(uint16_t bits) {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    uint32_t u;
    if (magnitude >= 0x7c00u) {
      u = sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13);
    } else if (magnitude >= 0x400u) {
      u = sign | ((magnitude << 13) + 0x38000000u);
    } else {
      const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
      std::memcpy(&u, &value, 4);
      u |= sign;
    }
    float value;
    std::memcpy(&value, &u, 4);
    return value;
  }

  uint16_t bits;
};

struct bfloat16_t {
  bfloat16_t() = default;
  explicit bfloat16_t(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }

 private:
  static uint16_t FromFloat(float value) {
    uint32_t u;
    std::memcpy(&u, &value, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);  // NaN stays NaN
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  static float ToFloat(uint16_t bits) {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &u, 4);
    return value;
  }

  uint16_t bits;
};

enum pipe_t { PIPE_S = 0, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX = 10 };

enum event_t { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace AscendC {

constexpr uint16_t ONE_BLK_SIZE = 32;          // bytes of a data block
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;  // bytes that one repeat covers
constexpr int32_t DEFAULT_BLK_NUM = 8;         // blocks of a repeat
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr uint8_t HALF_DEFAULT_REPEAT_STRIDE = 4;

template <typename T, typename U>
struct IsSameType : std::is_same<T, U> {};

namespace detail {

// What each instruction asks of its element types, as on the 910B: anything else must not compile.
template <typename T, typename... Ts>
constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);
template <typename T>
constexpr bool kIsFloatOrHalf = kIsOneOf<T, float, half>;

}  // namespace detail

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX,
};
using QuePosition = TPosition;

namespace detail {

constexpr bool IsL1(TPosition position) {
  return position == TPosition::A1 || position == TPosition::B1 || position == TPosition::C1 ||
         position == TPosition::TSCM;
}

}  // namespace detail

enum class HardEvent : uint8_t {
  // source pipe, destination pipe
  MTE2_MTE1,
  MTE1_MTE2,
  MTE1_M,
  M_MTE1,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  M_V,
  V_M,
  V_V,
  MTE3_MTE1,
  MTE1_MTE3,
  MTE1_V,
  MTE2_M,
  M_MTE2,
  V_MTE1,
  M_FIX,
  FIX_M,
  MTE3_MTE2,
  MTE2_MTE3,
  S_V,
  V_S,
  S_MTE2,
  MTE2_S,
  S_MTE3,
  MTE3_S,
  MTE2_FIX,
  FIX_MTE2,
  FIX_S,
  M_S,
  FIX_MTE3,
  MTE1_FIX,
  FIX_MTE1,
  FIX_FIX,
  MAX,
};

enum class RoundMode : uint8_t {
  CAST_NONE = 0,
  CAST_RINT,   // to nearest, ties to even
  CAST_FLOOR,  // towards minus infinity
  CAST_CEIL,   // towards plus infinity
  CAST_ROUND,  // to nearest, ties away from zero
  CAST_TRUNC,  // towards zero
  CAST_ODD,    // to odd
};

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };

enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };

enum class ReduceOrder : uint8_t {
  ORDER_VALUE_INDEX = 0,
  ORDER_INDEX_VALUE,
  ORDER_ONLY_VALUE,
  ORDER_ONLY_INDEX,
};

enum class CacheMode { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };

enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };

enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 = 1 };

enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };

}  // namespace AscendC

#endif  // MST_TWIN_TYPES_H_
