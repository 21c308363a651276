// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "common/dtype.h"

#include <cstring>
#include <iterator>

namespace mst {
namespace {

// In the order of DType.
constexpr const char* kNames[] = {"none",   "float32", "float16",   "bfloat16",   "int8",        "uint8",
                                  "int32",  "int64",   "bool",      "float64",    "int16",       "uint16",
                                  "uint32", "uint64",  "complex64", "complex128", "another type"};

}  // namespace

const char* NameOf(DType dtype) { return kNames[static_cast<int32_t>(dtype)]; }

DType DTypeOf(const char* name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (std::strcmp(kNames[i], name) == 0) return static_cast<DType>(i);
  }
  return DType::kOther;
}

}  // namespace mst
