// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// kernels/twin/gemm against float64 on odd sizes, every type and layout, in place (sub-blocks of panels) and packed on
// the way. Memory outside the operands is unreadable behind their end, and holds NaN or a pattern elsewhere.
#include "gemm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace {

using mst::gemm::Elem;
using mst::gemm::Matrix;

int passed = 0;
int failed = 0;

void Check(bool ok, const char* what, const char* detail) {
  (ok ? passed : failed)++;
  if (!ok && failed < 20) printf("FAILED %s: %s\n", what, detail);
}

// Ends at an unreadable page.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    mapped_ = (bytes + page - 1) / page * page + page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = base_ + mapped_ - page - bytes;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data() { return data_; }

 private:
  char* base_;
  char* data_;
  size_t mapped_;
};

uint16_t ToBits16(Elem elem, float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  if (elem == Elem::kBFloat16) return uint16_t(u >> 16);
  // Values here are multiples of 2^-8 below 4: exact in half.
  if (x == 0) return 0;
  return uint16_t((u >> 16 & 0x8000) | ((u >> 23 & 0xff) - 112) << 10 | (u >> 13 & 0x3ff));
}

std::mt19937 rng(7);

int Uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); }

// rows x cols values, stored with rows of `ld` elements (or columns, if transposed); NaN between.
struct Operand {
  Operand(Elem elem, int rows, int cols, bool transposed)
      : values(size_t(rows) * cols),
        ld((transposed ? rows : cols) + Uniform(0, 5)),
        memory((size_t(ld) * ((transposed ? cols : rows) - 1) + (transposed ? rows : cols)) * Size(elem)) {
    const size_t count = size_t(ld) * ((transposed ? cols : rows) - 1) + (transposed ? rows : cols);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (size_t i = 0; i < count; i++) {
      if (elem == Elem::kFloat) {
        memcpy(memory.data() + i * 4, &nan, 4);
      } else {
        memset(memory.data() + i * 2, 0x7f, 2);
      }
    }
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < cols; j++) {
        float x = float(Uniform(-511, 511)) / 256;
        if (elem == Elem::kBFloat16) {
          const uint32_t u = uint32_t(ToBits16(elem, x)) << 16;
          memcpy(&x, &u, 4);
        }
        values[size_t(i) * cols + j] = x;
        const size_t at = transposed ? size_t(j) * ld + i : size_t(i) * ld + j;
        if (elem == Elem::kFloat) {
          memcpy(memory.data() + at * 4, &x, 4);
        } else {
          const uint16_t h = ToBits16(elem, x);
          memcpy(memory.data() + at * 2, &h, 2);
        }
      }
    }
    matrix = transposed ? Matrix{memory.data(), 1, ld} : Matrix{memory.data(), ld, 1};
  }
  static size_t Size(Elem elem) { return elem == Elem::kFloat ? 4 : 2; }

  std::vector<float> values;
  int ld;
  Guarded memory;
  Matrix matrix;
};

// C with guard elements between rows.
struct Result {
  Result(int m_, int n_) : m(m_), n(n_), ldc(n_ + Uniform(0, 3)), memory((size_t(ldc) * (m - 1) + n) * 4) {
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < (i + 1 < m ? ldc : n); j++) At(i, j) = j < n ? Start(i, j) : kGuard;
    }
  }
  float& At(int i, int j) { return reinterpret_cast<float*>(memory.data())[size_t(i) * ldc + j]; }
  float* data() { return &At(0, 0); }
  static float Start(int i, int j) { return float((i * 7 + j * 3) % 11) - 5; }
  bool GuardsIntact() {
    for (int i = 0; i + 1 < m; i++) {
      for (int j = n; j < ldc; j++) {
        if (At(i, j) != kGuard) return false;
      }
    }
    return true;
  }
  // Rows [kBegin, kBegin + k) and columns from nBegin of b, whose rows have bn values.
  bool Matches(const Operand& a, const Operand& b, int kBegin, int nBegin, int bn, int k, bool accumulate) {
    const int step = m * n > 5000 ? 37 : 1;  // a large product is checked in samples
    for (int i = 0; i < m; i++) {
      for (int j = i % step; j < n; j += step) {
        double sum = accumulate ? Start(i, j) : 0, size = std::fabs(sum);
        for (int p = 0; p < k; p++) {
          const double x = double(a.values[size_t(i) * k + p]) * b.values[size_t(kBegin + p) * bn + nBegin + j];
          sum += x;
          size += std::fabs(x);
        }
        if (!(std::fabs(At(i, j) - sum) <= size * (k + 1) * 0x1p-24)) return false;
      }
    }
    return GuardsIntact();
  }

  static constexpr float kGuard = 12345.0f;
  int m, n, ldc;
  Guarded memory;
};

const char* Name(Elem elem) { return elem == Elem::kFloat ? "float" : elem == Elem::kHalf ? "half" : "bfloat16"; }

struct Case {
  Elem elem;
  bool transA, transB, accumulate;
  int m, n, k;
};

void TestPlain(const Case& t, const char* detail) {
  Operand a(t.elem, t.m, t.k, t.transA), b(t.elem, t.k, t.n, t.transB);
  Result c(t.m, t.n);
  mst::gemm::Multiply(t.elem, a.matrix, b.matrix, t.m, t.n, t.k, c.data(), c.ldc, t.accumulate);
  Check(c.Matches(a, b, 0, 0, t.n, t.k, t.accumulate), "plain", detail);
}

void TestSubBlock(const Case& t, const char* detail) {
  const int bk = t.k + Uniform(0, 40), bn = t.n + Uniform(0, 90);
  int kBegin = Uniform(0, bk - t.k), nBegin = Uniform(0, bn - t.n);
  Operand a(t.elem, t.m, t.k, t.transA), b(t.elem, bk, bn, t.transB);
  const size_t bytes = size_t(mst::gemm::PanelBytes(t.elem, bk, bn));
  Guarded memory(bytes);
  memset(memory.data(), 0x7f, bytes);
  mst::gemm::Pack(t.elem, b.matrix, bk, bn, memory.data());
  const mst::gemm::Panels panels = {memory.data(), bk, bn};
  if (!mst::gemm::CanMultiply(t.elem, panels, kBegin, t.k)) kBegin = bk - t.k;
  if (!mst::gemm::CanMultiply(t.elem, panels, kBegin, t.k)) return;
  Result c(t.m, t.n);
  mst::gemm::Multiply(t.elem, a.matrix, panels, kBegin, nBegin, t.m, t.n, t.k, c.data(), c.ldc, t.accumulate);
  Check(c.Matches(a, b, kBegin, nBegin, bn, t.k, t.accumulate), "sub-block", detail);
  // The same bits when m and n are cut differently.
  Result d(t.m, t.n);
  const int mCut = Uniform(0, t.m), nCut = Uniform(0, t.n);
  for (const auto& [m0, m1] : {std::pair(0, mCut), std::pair(mCut, t.m)}) {
    for (const auto& [n0, n1] : {std::pair(0, nCut), std::pair(nCut, t.n)}) {
      if (m0 == m1 || n0 == n1) continue;
      Matrix rows = a.matrix;
      rows.data = static_cast<const char*>(rows.data) + m0 * rows.rowStride * int64_t(Operand::Size(t.elem));
      mst::gemm::Multiply(t.elem, rows, panels, kBegin, nBegin + n0, m1 - m0, n1 - n0, t.k, &d.At(m0, n0), d.ldc,
                          t.accumulate);
    }
  }
  bool same = true;
  for (int i = 0; i < t.m; i++) same = same && memcmp(&c.At(i, 0), &d.At(i, 0), size_t(t.n) * 4) == 0;
  Check(same, "bits of a cut product", detail);
}

}  // namespace

int main() {
  for (int i = 0; i < 400; i++) {
    Case t;
    t.elem = Elem(i % 3);
    t.transA = Uniform(0, 1);
    t.transB = Uniform(0, 1);
    t.accumulate = Uniform(0, 1);
    const bool large = i % 80 < 3;
    const bool deep = i % 80 > 77;
    t.m = large ? Uniform(180, 220) : Uniform(1, 70);
    t.n = large ? Uniform(100, 400) : Uniform(1, 70);
    t.k = deep ? Uniform(1020, 1100) : large ? Uniform(100, 200) : Uniform(1, 70);
    if (i % 7 == 0) t.n = t.n / 16 * 16 + 16;
    if (i % 5 == 0) t.k = t.k / 32 * 32 + 32;
    char detail[160];
    snprintf(detail, sizeof(detail), "%s m=%d n=%d k=%d transA=%d transB=%d accumulate=%d", Name(t.elem), t.m, t.n, t.k,
             t.transA, t.transB, t.accumulate);
    TestPlain(t, detail);
    TestSubBlock(t, detail);
  }
  printf("bfloat16 engine: %s\n", NameOf(mst::gemm::BFloat16Engine()));
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
