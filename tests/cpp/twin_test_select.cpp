// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Compare and Select in every form.
#include "twin_test.h"

namespace twin_test {
namespace {

template <typename T>
void TestSelect() {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, -3, 3), b = Tensor<T>(pipe, -3, 3), d = Tensor<T>(pipe);
  LocalTensor<uint8_t> m = Tensor<uint8_t>(pipe, 0, 255);
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (uint32_t i = 0; i < kSize; i += 3) b.SetValue(i, a.GetValue(i));
  for (uint32_t i = 5; i < kSize && kIsFloating<T>; i += 50) a.SetValue(i, Make<T>(kNan));
  const T scalar = Make<T>(1);
  for (int mode = 0; mode < 6; ++mode) {
    const CMPMODE cmp = static_cast<CMPMODE>(mode);
    const auto holds = [&](double x, double y) {
      switch (cmp) {
        case CMPMODE::LT:
          return x < y;
        case CMPMODE::GT:
          return x > y;
        case CMPMODE::EQ:
          return x == y;
        case CMPMODE::LE:
          return x <= y;
        case CMPMODE::GE:
          return x >= y;
        default:
          return x != y;
      }
    };
    const auto bit = [&](int i) { return (m.GetValue(static_cast<uint32_t>(i / 8)) >> (i % 8) & 1) != 0; };
    for (int count : {1, 8, 9, 16, 23, 64, 1000}) {
      Compare(m, a, b, cmp, static_cast<uint32_t>(count));
      bool ok = true;
      for (int i = 0; i < count; ++i) ok = ok && bit(i) == holds(Value(a.GetValue(i)), Value(b.GetValue(i)));
      Check(ok, "Compare", mode);
      CompareScalar(m, a, scalar, cmp, static_cast<uint32_t>(count));
      ok = true;
      for (int i = 0; i < count; ++i) ok = ok && bit(i) == holds(Value(a.GetValue(i)), Value(scalar));
      Check(ok, "CompareScalar", mode);
    }
    for (int blk : {1, 2}) {
      const BinaryRepeatParams p(1, static_cast<uint8_t>(blk), 1, 8, 16, 8);
      Compare(m, a, b, cmp, static_cast<uint64_t>(kLanes), 5, p);
      bool ok = true;
      for (int i = 0; i < 5 * kLanes; ++i) {
        const int r = i / kLanes, l = i % kLanes;
        ok = ok &&
             bit(i) == holds(Value(a.GetPhyAddr()[At<T>(r, l, blk, 16)]), Value(b.GetPhyAddr()[At<T>(r, l, 1, 8)]));
      }
      Check(ok, "Compare strided", blk);
    }
  }
  if constexpr (kIsFloating<T>) {
    for (uint32_t i = 0; i < kSize; ++i) m.SetValue(i, static_cast<uint8_t>(rng()));
    const auto bit = [&](int i) { return (m.GetValue(static_cast<uint32_t>(i / 8)) >> (i % 8) & 1) != 0; };
    for (int count : kCounts) {
      std::vector<T> ref = Snapshot(d);
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i) ? a.GetValue(i) : b.GetValue(i);
      Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select tensor");
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i) ? a.GetValue(i) : scalar;
      Select(d, m, a, scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select scalar");
      for (int i = 0; i < count; ++i) ref[static_cast<size_t>(i)] = bit(i % kLanes) ? a.GetValue(i) : b.GetValue(i);
      Select(d, m, a, b, SELMODE::VSEL_CMPMASK_SPR, static_cast<uint32_t>(count));
      CheckSame(d, ref, "Select with the same bits");
    }
    for (int trial = 0; trial < 30; ++trial) {
      const Lanes lanes = DrawLanes(kLanes);
      const bool useBits = trial % 3 == 2, same = trial % 2 == 0;
      uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
      const BinaryRepeatParams p(Draw({1, 2}), Draw({1, 2}), Draw({1, 0}), Draw({8, 16}), Draw({8, 0}), Draw({0, 8}));
      const SELMODE mode = same ? SELMODE::VSEL_CMPMASK_SPR : SELMODE::VSEL_TENSOR_TENSOR_MODE;
      std::vector<T> ref = Snapshot(d);
      for (int r = 0; r < 5; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          if (!lanes.Test(useBits, l)) continue;
          ref[static_cast<size_t>(At<T>(r, l, p.dstBlkStride, p.dstRepStride))] =
              bit(l + (same ? 0 : r * kLanes)) ? a.GetPhyAddr()[At<T>(r, l, p.src0BlkStride, p.src0RepStride)]
                                               : b.GetPhyAddr()[At<T>(r, l, p.src1BlkStride, p.src1RepStride)];
        }
      }
      if (useBits) {
        Select(d, m, a, b, mode, bits, 5, p);
      } else {
        Select(d, m, a, b, mode, lanes.count, 5, p);
      }
      CheckSame(d, ref, "Select strided");
    }
  }
}

}  // namespace

void TestSelects() {
  TestSelect<float>();
  TestSelect<half>();
  TestSelect<int32_t>();
}

}  // namespace twin_test
