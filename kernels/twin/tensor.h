// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// GlobalTensor and LocalTensor: an address, a size and, for local memory, where it lies.
#ifndef MST_TWIN_TENSOR_H_
#define MST_TWIN_TENSOR_H_

#include "check.h"
#include "inside.h"
#include "types.h"

namespace AscendC {

using TEventID = int8_t;

template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  GlobalTensor() = default;

  void SetGlobalBuffer(__gm__ T* buffer, uint64_t bufferSize) {
    address_ = buffer;
    size_ = bufferSize;
  }
  void SetGlobalBuffer(__gm__ T* buffer) {
    address_ = buffer;
    size_ = 0;  // not known
  }
  const __gm__ T* GetPhyAddr() const { return address_; }
  __gm__ T* GetPhyAddr(const uint64_t offset) const { return address_ + offset; }
  T GetValue(const uint64_t offset) const {
    check::ScalarRead(*this, offset);
    return address_[offset];
  }
  __gm__ T& operator()(const uint64_t offset) const {
    check::ScalarWrite(*this, offset);
    return address_[offset];
  }
  void SetValue(const uint64_t offset, T value) {
    check::ScalarWrite(*this, offset);
    address_[offset] = value;
  }
  uint64_t GetSize() const { return size_; }
  GlobalTensor operator[](const uint64_t offset) const {
    GlobalTensor tensor(*this);
    tensor.address_ += offset;
    if (size_ != 0) tensor.size_ = size_ > offset ? size_ - offset : 0;
    return tensor;
  }
  // Without the cache: copies from here fetch what follows ahead of time, copies to here go past the caches.
  template <CacheRwMode rwMode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode mode) {
    const bool streams = mode == CacheMode::CACHE_MODE_DISABLE;
    if (rwMode != CacheRwMode::WRITE) streamsIn_ = streams;
    if (rwMode != CacheRwMode::READ) streamsOut_ = streams;
  }

 private:
  friend struct detail::Inside;
  __gm__ T* address_ = nullptr;
  detail::CopiedAlone<uint64_t> size_ = 0;  // elements
  bool streamsIn_ = false;
  bool streamsOut_ = false;
};

template <typename T>
class LocalTensor {
 public:
  using PrimType = T;

  LocalTensor() = default;

  T* GetPhyAddr() const { return address_; }
  T* GetPhyAddr(const uint32_t offset) const { return address_ + offset; }
  T GetValue(const uint32_t offset) const {
    check::ScalarRead(*this, offset);
    return address_[offset];
  }
  T& operator()(const uint32_t offset) const {
    check::ScalarWrite(*this, offset);
    return address_[offset];
  }
  template <typename S>
  void SetValue(const uint32_t index, const S value) const {
    static_assert(!(std::is_same_v<T, half> && sizeof(S) == 8), "a half is not made of 64 bits");
    check::ScalarWrite(*this, index);
    address_[index] = static_cast<T>(value);
  }
  LocalTensor operator[](const uint32_t offset) const {
    return LocalTensor(position_, address_ + offset, buffer_, size_ > offset ? size_ - offset : 0);
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    return LocalTensor<U>(position_, reinterpret_cast<U*>(address_), buffer_,
                          static_cast<uint32_t>(size_ * sizeof(T) / sizeof(U)));
  }
  int32_t GetPosition() const { return static_cast<int32_t>(position_); }
  void SetSize(const uint32_t size) { size_ = size; }
  uint32_t GetSize() const { return size_; }

 private:
  friend struct detail::Inside;
  template <typename U>
  friend class LocalTensor;

  // `buffer` is the start of the allocation that `address` lies in.
  LocalTensor(TPosition position, T* address, uint8_t* buffer, uint32_t size)
      : address_(address), buffer_(buffer), size_(size), position_(position) {}

  T* address_ = nullptr;
  uint8_t* buffer_ = nullptr;
  detail::CopiedAlone<uint32_t> size_ = 0;  // elements
  TPosition position_ = TPosition::VECCALC;
};

}  // namespace AscendC

#endif  // MST_TWIN_TENSOR_H_
