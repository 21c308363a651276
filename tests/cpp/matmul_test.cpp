// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The twin's Matmul object and softmax functions, used as a kernel uses them, against float64.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace {

using namespace AscendC;

int passed = 0;
int failed = 0;

void Check(bool ok, const char* what, const char* detail) {
  (ok ? passed : failed)++;
  if (!ok && failed < 20) printf("FAILED %s: %s\n", what, detail);
}

std::mt19937 rng(11);
int Uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); }
float Value() { return float(Uniform(-31, 31)) / 16; }  // exact in every type

template <typename T>
std::vector<T> Random(size_t count) {
  std::vector<T> v(count);
  for (T& x : v) x = T(Value());
  return v;
}
template <typename T>
GlobalTensor<T> Global(std::vector<T>& v) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(v.data(), v.size());
  return t;
}

// C (+)= op(A) * op(rows of a block in L1); A in global memory or UB.
template <typename T, bool kTransA, bool kTransB, TPosition kPosA>
void TestL1(const char* name) {
  constexpr int kC0 = 32 / sizeof(T);
  const int rows = Uniform(20, 150), columns = Uniform(1, 90), ld = columns + Uniform(0, 8);
  const int part = Uniform(1, rows), rowBegin = Uniform(0, rows - part), m = Uniform(1, 40);
  const int n = kTransB ? part : columns, k = kTransB ? columns : part;
  const int lda = (kTransA ? m : k) + Uniform(0, 9), ldc = n + Uniform(0, 3);
  std::vector<T> b = Random<T>(size_t(rows) * ld), a = Random<T>(size_t(lda) * (kTransA ? k : m));
  std::vector<float> c = Random<float>(size_t(ldc) * m), before = c;
  const bool add = Uniform(0, 1) != 0;

  TPipe pipe;
  TSCM<TPosition::GM, 1> l1;
  const int nzRows = (rows + 15) / 16 * 16;
  pipe.InitBuffer(l1, 1, uint32_t(nzRows * ((columns + kC0 - 1) / kC0 * kC0) * sizeof(T)));
  LocalTensor<T> block = l1.template AllocTensor<T>();
  DataCopy(block, Global(b),
           Nd2NzParams(1, uint16_t(rows), uint16_t(columns), 0, uint16_t(ld), uint16_t(nzRows), 1, 0));
  l1.EnQue(block);
  block = l1.template DeQue<T>();
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, uint32_t(a.size() * sizeof(T) + 64));
  LocalTensor<T> aUb = ub.Get<T>();
  for (size_t i = 0; i < a.size(); i++) aUb.SetValue(uint32_t(i), a[i]);

  matmul::Matmul<matmul::MatmulType<kPosA, CubeFormat::ND, T, kTransA>,
                 matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, T, kTransB>,
                 matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  TCubeTiling tiling;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
  mm.SetOrgShape(kTransA ? lda : m, kTransB ? rows : columns, lda, kTransB ? columns : rows, ldc);
  mm.SetSingleShape(m, n, k);
  for (int turn = 0; turn < 2; turn++) {  // packs in the first turn only
    c = before;
    if constexpr (kPosA == TPosition::GM) {
      mm.SetTensorA(Global(a), kTransA);
    } else {
      mm.SetTensorA(aUb, kTransA);
    }
    mm.SetTensorB(block[uint32_t(rowBegin * kC0)], kTransB);
    mm.IterateAll(Global(c), add ? 1 : 0);
    mm.WaitIterateAll();
    mm.End();
    bool ok = true;
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < n; j++) {
        double sum = add ? before[size_t(i) * ldc + j] : 0;
        for (int p = 0; p < k; p++) {
          const float x = float(kTransA ? a[size_t(p) * lda + i] : a[size_t(i) * lda + p]);
          const float y = float(kTransB ? b[size_t(rowBegin + j) * ld + p] : b[size_t(rowBegin + p) * ld + j]);
          sum += double(x) * y;
        }
        ok = ok && std::fabs(c[size_t(i) * ldc + j] - sum) < 1e-3;
      }
      for (int j = n; j < ldc; j++) ok = ok && c[size_t(i) * ldc + j] == before[size_t(i) * ldc + j];
    }
    char detail[160];
    snprintf(detail, sizeof(detail), "%s transA=%d transB=%d m=%d n=%d k=%d rows=%d from %d columns=%d", name, kTransA,
             kTransB, m, n, k, rows, rowBegin, columns);
    Check(ok, "product with L1", detail);
  }
  l1.FreeTensor(block);
}

template <typename T>
void TestTypes(const char* name) {
  for (int i = 0; i < 40; i++) {
    TestL1<T, false, false, TPosition::GM>(name);
    TestL1<T, false, true, TPosition::VECCALC>(name);
    TestL1<T, true, false, TPosition::VECCALC>(name);
    TestL1<T, true, true, TPosition::GM>(name);
  }
}

// A and B are rows of one block in L1: A from row 3, B transposed from row 8.
void TestBothInL1() {
  const int rows = 40, k = 24, m = 7, n = 16;
  std::vector<float> x = Random<float>(rows * k), c(m * n);
  TPipe pipe;
  TSCM<TPosition::GM, 1> l1;
  pipe.InitBuffer(l1, 1, uint32_t(rows * k * 4));
  LocalTensor<float> block = l1.AllocTensor<float>();
  DataCopy(block, Global(x), Nd2NzParams(1, uint16_t(rows), uint16_t(k), 0, uint16_t(k), uint16_t(rows), 1, 0));
  l1.EnQue(block);
  block = l1.DeQue<float>();
  matmul::Matmul<matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, float>,
                 matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, float, true>,
                 matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  mm.SetOrgShape(rows, rows, k, k, n);
  mm.SetSingleShape(m, n, k);
  mm.SetTensorA(block[3 * 8]);
  mm.SetTensorB(block[8 * 8], true);
  mm.IterateAll(Global(c));
  bool ok = true;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int p = 0; p < k; p++) sum += double(x[(3 + i) * k + p]) * x[(8 + j) * k + p];
      ok = ok && std::fabs(c[i * n + j] - sum) < 1e-4;
    }
  }
  Check(ok, "product of two operands in L1", "");
  l1.FreeTensor(block);
}

void TestGlobalWithBias() {
  const int m = 9, n = 21, k = 33;
  std::vector<float> a = Random<float>(m * k), b = Random<float>(n * k), bias = Random<float>(n), c(m * n);
  matmul::Matmul<matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>,
                 matmul::MatmulType<TPosition::GM, CubeFormat::ND, float, true>,
                 matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  TCubeTiling tiling;
  tiling.M = tiling.singleCoreM = m;
  tiling.N = tiling.singleCoreN = n;
  tiling.Ka = tiling.Kb = tiling.singleCoreK = k;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
  mm.SetTensorA(Global(a));
  mm.SetTensorB(Global(b), true);
  mm.SetBias(Global(bias));
  mm.IterateAll(Global(c));
  bool ok = true;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double sum = bias[j];
      for (int p = 0; p < k; p++) sum += double(a[i * k + p]) * b[j * k + p];
      ok = ok && std::fabs(c[i * n + j] - sum) < 1e-4;
    }
  }
  Check(ok, "product from global memory with bias", "");
}

bool Near(double x, double expected) {
  if (std::isnan(expected)) return std::isnan(x);
  return std::fabs(x - expected) <= 1e-6 * std::fabs(expected) + 1e-30;
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two blocks of a row, the second updating the first, as flash attention does; `special` is put into some elements.
void TestFlash(int rows, int columns, float special, const char* name) {
  const int ld = (columns + 7) / 8 * 8;
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, uint32_t((rows * ld * 2 + rows * 8 * 3 + 64) * 4));
  LocalTensor<float> all = buffer.Get<float>();
  LocalTensor<float> src = all, dst = all[uint32_t(rows * ld)], sum = all[uint32_t(rows * ld * 2)],
                     max = sum[uint32_t(rows * 8)], scale = max[uint32_t(rows * 8)];
  std::vector<double> sum64(rows, 0.0), max64(rows, double(-std::numeric_limits<float>::max()));
  for (uint32_t i = 0; i < uint32_t(rows * 8); i++) {
    sum.SetValue(i, 0.0f);
    max.SetValue(i, -std::numeric_limits<float>::max());
  }
  for (int block = 0; block < 2; block++) {
    bool ok = true;
    for (int i = 0; i < rows * ld; i++) {
      const bool masked = special == -kInf ? i / ld % 3 == 0 || Uniform(0, 3) == 0 : i / ld % 3 == 0 && i % ld == 5;
      src.SetValue(uint32_t(i), masked ? special : Value() * 9);
    }
    SoftmaxFlashV2<float, true>(dst, sum, max, src, scale, sum, max, LocalTensor<uint8_t>(), SoftMaxTiling{},
                                SoftMaxShapeInfo{uint32_t(rows), uint32_t(ld), uint32_t(rows), uint32_t(columns)});
    for (int r = 0; r < rows; r++) {
      double m = max64[r], total = 0;
      for (int j = 0; j < columns; j++) {
        const double x = src.GetValue(uint32_t(r * ld + j));
        if (x > m) m = x;
      }
      for (int j = 0; j < columns; j++) {
        const double x = src.GetValue(uint32_t(r * ld + j));
        const double e = std::exp(x - m);
        total += e;
        // A NaN may also be taken for the maximum; then the whole row is NaN.
        const float y = dst.GetValue(uint32_t(r * ld + j));
        ok = ok && (Near(y, e < 1e-37 ? 0 : e) || y < 1e-37 || (std::isnan(special) && std::isnan(y)));
      }
      const double factor = std::exp(max64[r] - m);
      sum64[r] = sum64[r] * factor + total;
      max64[r] = m;
      for (int j = 0; j < 8; j++) {
        ok = ok && Near(sum.GetValue(uint32_t(r * 8 + j)), sum64[r]);
        if (!std::isnan(sum64[r])) {
          ok = ok && max.GetValue(uint32_t(r * 8 + j)) == float(m);
          ok = ok && (Near(scale.GetValue(uint32_t(r * 8 + j)), factor) || factor < 1e-37);
        }
      }
    }
    char detail[80];
    snprintf(detail, sizeof(detail), "%s rows=%d columns=%d block=%d", name, rows, columns, block);
    Check(ok, "SoftmaxFlashV2", detail);
    if (std::isnan(special) || special == kInf) return;
  }
  // The same probabilities from the saved statistics.
  SimpleSoftMax<float>(dst, sum, max, src, LocalTensor<uint8_t>(), SoftMaxTiling{},
                       SoftMaxShapeInfo{uint32_t(rows), uint32_t(ld), uint32_t(rows), uint32_t(columns)});
  bool ok = true;
  for (int r = 0; r < rows; r++) {
    for (int j = 0; j < columns; j++) {
      const double e = std::exp(double(src.GetValue(uint32_t(r * ld + j))) - max64[r]) / sum64[r];
      const float y = dst.GetValue(uint32_t(r * ld + j));
      ok = ok && (Near(y, e) || std::fabs(y - e) < 1e-37 || (std::isnan(y) && sum64[r] == 0));
    }
  }
  Check(ok, "SimpleSoftMax", name);
}

void TestWholeRows(int rows, int columns) {
  const int ld = (columns + 7) / 8 * 8;
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, uint32_t((rows * ld * 2 + rows * 8 * 2 + 64) * 4));
  LocalTensor<float> all = buffer.Get<float>();
  LocalTensor<float> src = all, dst = all[uint32_t(rows * ld)], sum = all[uint32_t(rows * ld * 2)],
                     max = sum[uint32_t(rows * 8)];
  for (int i = 0; i < rows * ld; i++) src.SetValue(uint32_t(i), Value() * 3);
  const SoftMaxShapeInfo info = {uint32_t(rows), uint32_t(ld), uint32_t(rows), uint32_t(columns)};
  SoftMax<float>(dst, sum, max, src, SoftMaxTiling{}, info);
  bool ok = true;
  for (int r = 0; r < rows; r++) {
    double m = -1e30, total = 0;
    for (int j = 0; j < columns; j++) m = std::max(m, double(src.GetValue(uint32_t(r * ld + j))));
    for (int j = 0; j < columns; j++) total += std::exp(src.GetValue(uint32_t(r * ld + j)) - m);
    for (int j = 0; j < columns; j++) {
      ok = ok && Near(dst.GetValue(uint32_t(r * ld + j)), std::exp(src.GetValue(uint32_t(r * ld + j)) - m) / total);
    }
    ok = ok && Near(sum.GetValue(uint32_t(r * 8 + 7)), total) && max.GetValue(uint32_t(r * 8)) == float(m);
  }
  Check(ok, "SoftMax", "");

  SoftmaxGradFront<float>(sum, src, dst, SoftMaxTiling{}, info);
  ok = true;
  for (int r = 0; r < rows; r++) {
    double total = 0, size = 0;
    for (int j = 0; j < columns; j++) {
      const double x = double(src.GetValue(uint32_t(r * ld + j))) * dst.GetValue(uint32_t(r * ld + j));
      total += x;
      size += std::fabs(x);
    }
    for (int j = 0; j < 8; j++) ok = ok && std::fabs(sum.GetValue(uint32_t(r * 8 + j)) - total) <= 1e-6 * size;
  }
  Check(ok, "SoftmaxGradFront", "");
}

}  // namespace

int main() {
  TestTypes<float>("float");
  TestTypes<half>("half");
  TestTypes<bfloat16_t>("bfloat16");
  TestBothInL1();
  TestGlobalWithBias();
  for (int i = 0; i < 30; i++) {
    const int rows = Uniform(1, 40), columns = Uniform(6, 140);
    TestFlash(rows, columns, 0.5f, "finite");
    TestFlash(rows, columns, -kInf, "masked");
    TestFlash(rows, columns, kInf, "+inf");
    TestFlash(rows, columns, kNan, "NaN");
    TestWholeRows(rows, columns);
  }
  printf("bfloat16 engine: %s\n", NameOf(mst::gemm::BFloat16Engine()));
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
