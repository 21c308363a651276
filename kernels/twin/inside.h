// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The twin's own way into tensors, kept apart so that kernels find no more in them than CANN's have.
#ifndef MST_TWIN_INSIDE_H_
#define MST_TWIN_INSIDE_H_

#include "types.h"

namespace AscendC {

template <typename T>
class GlobalTensor;
template <typename T>
class LocalTensor;

namespace detail {

// A field that makes its tensor be copied field by field. A copy in wider pieces would wait for the stores that have
// just written the fields, and these for all that a copy to global memory has stored before.
template <typename T>
struct CopiedAlone {
  CopiedAlone(T v) : value(v) {}
  CopiedAlone(const CopiedAlone& other) : value(other.value) {}
  CopiedAlone& operator=(const CopiedAlone& other) {
    value = other.value;
    return *this;
  }
  operator T() const { return value; }

  T value;
};

struct Inside {
  template <typename T>
  static LocalTensor<T> Tensor(TPosition position, uint8_t* address, uint8_t* buffer, uint32_t size) {
    return LocalTensor<T>(position, reinterpret_cast<T*>(address), buffer, size);
  }
  template <typename T>
  static uint8_t* Buffer(const LocalTensor<T>& tensor) {
    return tensor.buffer_;
  }
  template <typename T>
  static bool StreamsIn(const GlobalTensor<T>& tensor) {
    return tensor.streamsIn_;
  }
  template <typename T>
  static bool StreamsOut(const GlobalTensor<T>& tensor) {
    return tensor.streamsOut_;
  }
};

}  // namespace detail

}  // namespace AscendC

#endif  // MST_TWIN_INSIDE_H_
