// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Sort32, MrgSort and Extract.
#include <cmath>

#include "twin_test.h"

namespace twin_test {
namespace {

template <typename T>
void TestSort() {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe, -3, 3), d = Tensor<T>(pipe), e = Tensor<T>(pipe), v = Tensor<T>(pipe);
  LocalTensor<uint32_t> index = Tensor<uint32_t>(pipe, 0, 1), out = Tensor<uint32_t>(pipe, 0, 1);
  constexpr uint32_t kWidth = 8 / sizeof(T);
  for (uint32_t i = 0; i < 256; ++i) index.SetValue(i, i);
  for (uint32_t i = 0; i < 256; i += 3) a.SetValue(i, Make<T>(static_cast<double>(rng() % 4)));  // ties
  a.SetValue(40, Make<T>(-kInf));
  const double special[] = {-kInf, -6e-8, -0.0, 0.0, 6e-8, 65504, kInf, std::nan("")};
  for (uint32_t i = 0; i < 8; ++i) a.SetValue(64 + i, Make<T>(special[i]));
  Sort32(d, a, index, 8);
  const auto ordered = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = first; i + 1 < first + count; ++i) {
      const double x = Value(v.GetValue(i)), y = Value(v.GetValue(i + 1));
      if (x < y || (x == y && out.GetValue(i) > out.GetValue(i + 1))) return false;
    }
    for (uint32_t i = first; i < first + count; ++i) {
      if (!SameBits(a.GetValue(out.GetValue(i)), v.GetValue(i))) return false;
    }
    return true;
  };
  Extract(v, out, d, 8);
  for (uint32_t r = 0; r < 8; ++r) Check(ordered(r * 32, 32), "Sort32", r);
  Check(out.GetValue(64) == 71 && out.GetValue(65) == 70 && out.GetValue(95) == 64, "Sort32: NaN and infinities");
  const uint16_t lengths[4] = {32, 32, 32, 32};
  MrgSort(e, MrgSortSrcList<T>(d[0], d[32 * kWidth], d[64 * kWidth], d[96 * kWidth]),
          MrgSort4Info(lengths, false, 15, 2));
  Extract(v, out, e, 8);
  Check(ordered(0, 128) && ordered(128, 128), "MrgSort of four lists, repeated");
  const uint16_t two[4] = {128, 128, 0, 0};
  MrgSort(d, MrgSortSrcList<T>(e[0], e[128 * kWidth], e[0], e[0]), MrgSort4Info(two, false, 3, 1));
  Extract(v, out, d, 8);
  Check(ordered(0, 256), "MrgSort of two lists");
  MrgSort(d, MrgSortSrcList<T>(e[0], e[128 * kWidth], e[0], e[0]), MrgSort4Info(two, true, 3, 1));
  uint16_t n1, n2, n3, n4;
  GetMrgSortResult(n1, n2, n3, n4);
  Check((n1 == 128) != (n2 == 128) && n3 == 0 && n4 == 0, "MrgSort stops when a list ends");
}

}  // namespace

void TestSorts() {
  TestSort<float>();
  TestSort<half>();
}

}  // namespace twin_test
