// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Element types of operator arguments, on the host side.
#ifndef MST_COMMON_DTYPE_H_
#define MST_COMMON_DTYPE_H_

#include <cstdint>

namespace mst {

enum class DType : int32_t {
  kNone,  // of an absent optional argument
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt8,
  kUint8,
  kInt32,
  kInt64,
  kBool,
  kFloat64,  // from here on: types that no operator takes, named in errors
  kInt16,
  kUint16,
  kUint32,
  kUint64,
  kComplex64,
  kComplex128,
  kOther,
};

// Bytes of one element; 0 for a type that no operator takes.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
    default:
      return 0;
  }
}

// "float32", ... as MindSpore spells it, and back; "none" gives kNone and an unknown name kOther.
const char* NameOf(DType dtype);
DType DTypeOf(const char* name);

}  // namespace mst

#endif  // MST_COMMON_DTYPE_H_
