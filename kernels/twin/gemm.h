// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Matrix products of the twin's cube: C [m][n] (+)= A [m][k] * B [k][n], C in fp32, A and B in one of three types.
//
// B is multiplied from panels of some 64 columns: [panel][k][column] words, zero padded to whole vectors; the last
// panel is only as wide as it must be. A word is one float, or for bfloat16 on CPUs that multiply it natively a pair
// (k, k + 1) of values, so that such a panel has ceil(k / 2) rows. half is always expanded to fp32; bfloat16 too where
// the CPU has no fast product for it.
//
// Bits: for one engine a row of C depends on its row of A, on B and on k alone, not on how m and n are cut into calls
// nor on the thread. Accumulating continues the sum of the same order.
#ifndef MST_TWIN_GEMM_H_
#define MST_TWIN_GEMM_H_

#include <cstdint>

namespace mst {
namespace gemm {

enum class Elem : int32_t { kFloat, kHalf, kBFloat16 };

// How bfloat16 is multiplied. Chosen once, by the CPU; MS_OPS_BF16_ENGINE=amx|dot|expand overrides where possible.
enum class Engine : int32_t { kExpand, kDot, kAmx };
Engine BFloat16Engine();
const char* NameOf(Engine engine);

// Element (row, col) is at data[row * rowStride + col * colStride]; strides in elements. One of a B's strides is 1.
struct Matrix {
  const void* data;
  int64_t rowStride;
  int64_t colStride;
};

struct Panels {
  const void* data;  // 64-byte aligned
  int64_t k;         // rows of B that were packed
  int64_t n;
};

int64_t PanelBytes(Elem elem, int64_t k, int64_t n);
void Pack(Elem elem, const Matrix& b, int64_t k, int64_t n, void* panels);

// Whether rows [kBegin, kBegin + k) of packed B can be multiplied in place: pairs must not be cut.
bool CanMultiply(Elem elem, const Panels& b, int64_t kBegin, int64_t k);

// B is rows [kBegin, kBegin + k) and columns [nBegin, nBegin + n) of the panels.
void Multiply(Elem elem, const Matrix& a, const Panels& b, int64_t kBegin, int64_t nBegin, int64_t m, int64_t n,
              int64_t k, float* c, int64_t ldc, bool accumulate);
// B is packed on the way, into scratch memory of the calling thread.
void Multiply(Elem elem, const Matrix& a, const Matrix& b, int64_t m, int64_t n, int64_t k, float* c, int64_t ldc,
              bool accumulate);

}  // namespace gemm
}  // namespace mst

#endif  // MST_TWIN_GEMM_H_
