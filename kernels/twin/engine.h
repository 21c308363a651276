// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The mask/repeat/stride engine that every strided vector instruction runs on. For the instruction code only.
#ifndef MST_TWIN_ENGINE_H_
#define MST_TWIN_ENGINE_H_

#include <algorithm>
#include <array>

#include "repeat.h"
#include "simd.h"

namespace AscendC {
namespace detail {

// An operand: address, bytes of an element, strides.
struct Walk {
  template <typename T>
  Walk(const T* address, Stride stride)
      : base(reinterpret_cast<uint8_t*>(const_cast<T*>(address))),
        elementBytes(sizeof(T)),
        blk(stride.blk * 32),
        rep(stride.rep * 32) {}

  uint8_t* base;
  int elementBytes;
  int64_t blk;  // bytes between blocks
  int64_t rep;  // bytes between repeats
};

// Calls run(addresses, lane, count) for runs of lanes that are contiguous in every operand and take part, in order;
// `lane` is the number of the first lane of the run, counted over all repeats.
template <size_t kOperands, typename Run>
MST_INLINE void ForEachRun(const std::array<Walk, kOperands>& operands, const Mask& mask, int repeat, const Run& run) {
  int widest = 1;
  bool dense = true;   // blocks adjoin in every operand
  bool onerun = true;  // and so do repeats
  for (const Walk& w : operands) widest = std::max(widest, w.elementBytes);
  const int lanes = ONE_REPEAT_BYTE_SIZE / widest;
  for (const Walk& w : operands) {
    dense = dense && w.blk == 32;
    onerun = onerun && w.rep == static_cast<int64_t>(lanes) * w.elementBytes;
  }
  std::array<uint8_t*, kOperands> at;
  for (size_t i = 0; i < kOperands; ++i) at[i] = operands[i].base;
  if (dense && mask.count >= 0) {
    const int count = std::min(mask.count, lanes);
    if (onerun && count == lanes) {
      run(at, 0, static_cast<int64_t>(lanes) * repeat);
      return;
    }
    for (int r = 0; r < repeat; ++r) {
      run(at, r * lanes, static_cast<int64_t>(count));
      for (size_t i = 0; i < kOperands; ++i) at[i] += operands[i].rep;
    }
    return;
  }
  const int group = 32 / widest;  // lanes that are contiguous whatever the block strides are
  for (int r = 0; r < repeat; ++r) {
    for (int first = 0; first < lanes; first += group) {
      int lane = first;
      while (lane < first + group) {
        if (!mask.Test(lane)) {
          ++lane;
          continue;
        }
        int end = lane + 1;
        while (end < first + group && mask.Test(end)) ++end;
        for (size_t i = 0; i < kOperands; ++i) {
          const Walk& w = operands[i];
          const int perBlock = 32 / w.elementBytes;
          at[i] = w.base + r * w.rep + lane / perBlock * w.blk + lane % perBlock * w.elementBytes;
        }
        run(at, r * lanes + lane, static_cast<int64_t>(end - lane));
        lane = end;
      }
    }
  }
}

}  // namespace detail
}  // namespace AscendC

#endif  // MST_TWIN_ENGINE_H_
