// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The Matmul object. On the card it sends its work to a cube core; here the calling core does it at once.
//
// C [m][n] (+)= A [m][k] * B [k][n] + bias. A in global memory, UB or L1; B in global memory (rearranged on every call)
// or in L1 (rearranged once); C in global memory, fp32. Rows of the operands are as far apart as SetOrgShape says.
#ifndef MST_TWIN_LIB_MATMUL_INTF_H_
#define MST_TWIN_LIB_MATMUL_INTF_H_

#include <type_traits>
#include <utility>

#include "gemm.h"
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"
#include "l1.h"

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };

enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };

// How the cube is scheduled: means nothing on a CPU.
struct MatmulConfig {
  bool doNorm;
  bool doBasicBlock;
  bool doMultiDataLoad;
};
constexpr MatmulConfig CFG_NORM{true, false, false};
constexpr MatmulConfig CFG_MDL{false, false, true};

namespace AscendC {

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct MatmulType {
  constexpr static TPosition pos = POSITION;
  constexpr static CubeFormat format = FORMAT;
  using T = TYPE;
  constexpr static bool isTrans = ISTRANS;
  constexpr static LayoutMode layout = LAYOUT;
  constexpr static bool ibShare = IBSHARE;
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM>
class Matmul {
  using SrcT = typename A_TYPE::T;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;
  static_assert(std::is_same_v<SrcT, typename B_TYPE::T>, "A and B have the same type");
  static_assert(std::is_same_v<DstT, float>, "C is fp32");
  static_assert(A_TYPE::pos == TPosition::TSCM || A_TYPE::format == CubeFormat::ND, "A is ND, or in L1");
  static_assert((B_TYPE::pos == TPosition::TSCM) == (B_TYPE::format == CubeFormat::NZ), "B is ND, or NZ in L1");
  static_assert(C_TYPE::pos == TPosition::GM && C_TYPE::format == CubeFormat::ND, "C is ND in global memory");

 public:
  Matmul() = default;

  void Init(const TCubeTiling* cubeTiling, TPipe* /*tpipe*/ = nullptr) {
    if (cubeTiling == nullptr) return;
    check::NewMatmul(this, *cubeTiling, L1Bytes(*cubeTiling));
    SetOrgShape(cubeTiling->M, cubeTiling->N, cubeTiling->Ka, cubeTiling->Kb);
    SetSingleShape(cubeTiling->singleCoreM, cubeTiling->singleCoreN, cubeTiling->singleCoreK);
  }
  void SetOrgShape(int orgM, int orgN, int orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0) {
    orgM_ = orgM;
    orgN_ = orgN;
    orgKa_ = orgKa;
    orgKb_ = orgKb;
    ldc_ = orgKc != 0 ? orgKc : orgN;
  }
  void SetSingleShape(int singleM, int singleN, int singleK) { SetTail(singleM, singleN, singleK); }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1) {
    if (tailM != -1) m_ = tailM;
    if (tailN != -1) n_ = tailN;
    if (tailK != -1) k_ = tailK;
  }
  void SetTensorA(const GlobalTensor<SrcT>& gm, bool isTransposeA = false) {
    SetA(gm.GetPhyAddr(), nullptr, isTransposeA);
  }
  void SetTensorA(const LocalTensor<SrcT>& leftMatrix, bool isTransposeA = false) {
    SetA(leftMatrix.GetPhyAddr(), A_TYPE::pos == TPosition::TSCM ? detail::Inside::Buffer(leftMatrix) : nullptr,
         isTransposeA);
  }
  void SetTensorB(const GlobalTensor<SrcT>& gm, bool isTransposeB = false) {
    SetB(gm.GetPhyAddr(), nullptr, isTransposeB);
  }
  void SetTensorB(const LocalTensor<SrcT>& rightMatrix, bool isTransposeB = false) {
    static_assert(B_TYPE::pos == TPosition::TSCM, "a local B is in L1");
    SetB(rightMatrix.GetPhyAddr(), detail::Inside::Buffer(rightMatrix), isTransposeB);
  }
  void SetBias(const GlobalTensor<BiasT>& biasGlobal) { bias_ = biasGlobal.GetPhyAddr(); }
  void DisableBias() { bias_ = nullptr; }
  void ClearBias() { bias_ = nullptr; }
  void SetHF32(bool /*enableHF32*/ = false, int32_t /*transMode*/ = 0) {}
  template <class T>
  void SetWorkspace(__gm__ const T* /*addr*/, int /*size*/) {}
  template <class T>
  void SetWorkspace(GlobalTensor<T>& /*addr*/) {}
  void SetLocalWorkspace(const LocalTensor<uint8_t>& /*tmpBuffer*/) {}

  // enAtomic 0 overwrites C, 1 adds to it. Cores that add to the same C on a CPU would race: one core owns a C.
  template <bool sync = true>
  void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool /*enSequentialWrite*/ = false,
                  bool /*waitIterateAll*/ = false, bool /*fakeMsg*/ = false) {
    if (enAtomic > 1) mst::KernelError("IterateAll: enAtomic is 0 or 1");
    check::BeginMatmul(this, m_, n_, k_);
    check::Issue(
        PIPE_M, "IterateAll", check::Count(static_cast<int64_t>(m_) * n_),
        [call = *this, gm, enAtomic] { call.Multiply(const_cast<float*>(gm.GetPhyAddr()), enAtomic == 1); },
        check::AddingIf(enAtomic == 1, check::OutBlocks(gm, m_, n_ * sizeof(DstT), (ldc_ - n_) * sizeof(DstT))),
        In<A_TYPE::pos>(a_, aBuffer_, aTransposed_, m_, k_, aTransposed_ ? orgM_ : orgKa_),
        In<B_TYPE::pos>(b_, bBuffer_, bTransposed_, k_, n_, bTransposed_ ? orgKb_ : orgN_));
    check::EndMatmul(this);
    if constexpr (sync) check::WaitMatmul(this);
  }
  void WaitIterateAll() { check::WaitMatmul(this); }
  void End() {}

 private:
  static constexpr mst::gemm::Elem kElem = detail::ElemOf<SrcT>();
  static constexpr int64_t kC0 = ONE_BLK_SIZE / sizeof(SrcT);  // elements of a row in one fractal

  void SetA(const SrcT* data, uint8_t* buffer, bool transposed) {
    if (transposed && !A_TYPE::isTrans) mst::KernelError("SetTensorA: the type of A does not allow a transpose");
    a_ = data;
    aBuffer_ = buffer;
    aTransposed_ = transposed;
  }
  void SetB(const SrcT* data, uint8_t* buffer, bool transposed) {
    if (transposed && !B_TYPE::isTrans) mst::KernelError("SetTensorB: the type of B does not allow a transpose");
    b_ = data;
    bBuffer_ = buffer;
    bTransposed_ = transposed;
  }

  static int64_t L1Bytes(const TCubeTiling& t) {
    const int64_t a = A_TYPE::pos == TPosition::TSCM ? 0 : int64_t{t.depthA1} * t.baseM * t.baseK;
    const int64_t b = B_TYPE::pos == TPosition::TSCM ? 0 : int64_t{t.depthB1} * t.baseN * t.baseK;
    return (a + b) * static_cast<int64_t>(sizeof(SrcT));
  }

  // What the product reads of an operand: `rows` x `cols`, or the other way round if it is transposed. `pitch`:
  // elements from row to row, outside L1.
  template <TPosition position>
  static check::Operand In(const SrcT* data, uint8_t* buffer, bool transposed, int64_t rows, int64_t cols,
                           int64_t pitch) {
    if (transposed) std::swap(rows, cols);
    SrcT* address = const_cast<SrcT*>(data);
    if constexpr (position == TPosition::TSCM) {  // a column of fractals after the other
      const auto l1 = detail::Inside::Tensor<SrcT>(position, reinterpret_cast<uint8_t*>(address), buffer, 0);
      const int64_t nzRows = detail::L1Matrix::Of(buffer).nzRows;
      return check::InBlocks(l1, (cols + kC0 - 1) / kC0, rows * ONE_BLK_SIZE, (nzRows - rows) * ONE_BLK_SIZE);
    } else {
      GlobalTensor<SrcT> gm;
      gm.SetGlobalBuffer(address);
      const bool isInGm = position == TPosition::GM;
      return check::InBlocks(gm, isInGm ? rows : 0, cols * sizeof(SrcT), (pitch - cols) * sizeof(SrcT));
    }
  }

  // The place of an element of an L1 buffer in the matrix that was brought into it.
  static void PlaceInL1(const detail::L1Matrix& matrix, const SrcT* data, const uint8_t* buffer, int64_t* row,
                        int64_t* column) {
    if (matrix.state == detail::L1Matrix::kEmpty) mst::KernelError("Matmul: an operand in L1 was never copied there");
    const int64_t offset = data - reinterpret_cast<const SrcT*>(buffer);
    *row = offset / kC0 % matrix.nzRows;
    *column = offset / kC0 / matrix.nzRows * kC0;
  }

  static mst::gemm::Matrix View(const SrcT* data, int64_t rowStride, bool transposed) {
    return transposed ? mst::gemm::Matrix{data, 1, rowStride} : mst::gemm::Matrix{data, rowStride, 1};
  }

  void Multiply(float* c, bool accumulate) const {
    if (m_ <= 0 || n_ <= 0) return;
    if (bias_ != nullptr) {
      for (int64_t i = 0; i < m_; ++i) {
        for (int64_t j = 0; j < n_; ++j) {
          const float bias = static_cast<float>(bias_[j]);
          c[i * ldc_ + j] = accumulate ? c[i * ldc_ + j] + bias : bias;
        }
      }
      accumulate = true;
    }
    mst::gemm::Matrix a = View(a_, aTransposed_ ? orgM_ : orgKa_, aTransposed_);
    if (aBuffer_ != nullptr) {
      const detail::L1Matrix& l1 = detail::L1Matrix::Of(aBuffer_);
      int64_t row, column;
      PlaceInL1(l1, a_, aBuffer_, &row, &column);
      a = View(static_cast<const SrcT*>(l1.source) + row * l1.rowStride + column, l1.rowStride, aTransposed_);
    }
    if (bBuffer_ == nullptr) {
      const mst::gemm::Matrix b = View(b_, bTransposed_ ? orgKb_ : orgN_, bTransposed_);
      mst::gemm::Multiply(kElem, a, b, m_, n_, k_, c, ldc_, accumulate);
      return;
    }
    detail::L1Matrix& l1 = detail::L1Matrix::Of(bBuffer_);
    int64_t row, column;
    PlaceInL1(l1, b_, bBuffer_, &row, &column);
    const SrcT* source = static_cast<const SrcT*>(l1.source);
    const auto packed = bTransposed_ ? detail::L1Matrix::kPanelsOfTransposed : detail::L1Matrix::kPanelsOfRows;
    const mst::gemm::Panels panels = {bBuffer_, bTransposed_ ? l1.columns : l1.rows,
                                      bTransposed_ ? l1.rows : l1.columns};
    const int64_t kBegin = bTransposed_ ? column : row, nBegin = bTransposed_ ? row : column;
    if (kBegin + k_ > panels.k || nBegin + n_ > panels.n) mst::KernelError("Matmul: B reaches beyond its rows in L1");
    if (!mst::gemm::CanMultiply(kElem, panels, kBegin, k_)) {
      const mst::gemm::Matrix b = View(source + row * l1.rowStride + column, l1.rowStride, bTransposed_);
      mst::gemm::Multiply(kElem, a, b, m_, n_, k_, c, ldc_, accumulate);
      return;
    }
    if (l1.state != packed) {
      const int64_t nzColumns = (l1.columns + kC0 - 1) / kC0 * kC0;
      const size_t room = detail::L1Room(static_cast<size_t>(l1.nzRows * nzColumns) * sizeof(SrcT));
      if (static_cast<size_t>(mst::gemm::PanelBytes(kElem, panels.k, panels.n)) > room) {
        mst::KernelError("Matmul: B is too wide for its buffer in L1 once rearranged");
      }
      mst::gemm::Pack(kElem, View(source, l1.rowStride, bTransposed_), panels.k, panels.n, bBuffer_);
      l1.state = packed;
    }
    mst::gemm::Multiply(kElem, a, panels, kBegin, nBegin, m_, n_, k_, c, ldc_, accumulate);
  }

  const SrcT* a_ = nullptr;
  const SrcT* b_ = nullptr;
  const BiasT* bias_ = nullptr;
  uint8_t* aBuffer_ = nullptr;  // of an operand in L1
  uint8_t* bBuffer_ = nullptr;
  bool aTransposed_ = false;
  bool bTransposed_ = false;
  int32_t m_ = 0, n_ = 0, k_ = 0;                        // of this product
  int32_t orgM_ = 0, orgN_ = 0, orgKa_ = 0, orgKb_ = 0;  // of the whole matrices
  int32_t ldc_ = 0;
};

namespace detail {

inline void RegisterMatmul(TPipe* /*tpipe*/) {}
template <class M>
inline void RegisterMatmul(TPipe* /*tpipe*/, M& /*matmul*/) {}
template <class M, class... Rest>
inline void RegisterMatmul(TPipe* tpipe, M& matmul, const TCubeTiling* tiling, Rest&&... rest) {
  matmul.Init(tiling, tpipe);
  RegisterMatmul(tpipe, rest...);
}

}  // namespace detail

// The whole workspace is the user's.
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }

}  // namespace AscendC

namespace matmul = AscendC;

// The cube's message area, which a CPU does not need.
inline GM_ADDR GetSysWorkSpacePtr() { return nullptr; }

#define REGIST_MATMUL_OBJ(tpipe, workspace, ...) AscendC::detail::RegisterMatmul(tpipe, __VA_ARGS__)

#endif  // MST_TWIN_LIB_MATMUL_INTF_H_
