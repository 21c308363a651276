// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Rows of query, key or value (or, in the gradient, dy) in L1 as an operand of a Matmul, the Matmul, and its cube
// tiling.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_OPERAND_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_OPERAND_H_

#include "attention/flash_attention_score/flash_attention_score_units.h"
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"

namespace mst {

// A super-block of rows of one kv head. Loading the one that is there already does nothing, so that a core packs each
// once however many units use it.
template <typename T>
class FlashOperand {
 public:
  // `width`: elements of a row, `widthPad` of them in L1; `pitch`: elements from one row to the next in GM.
  // `dense`: room for superRows x width elements, used if the pitch is more than a copy into L1 can have.
  __aicore__ inline void Init(AscendC::TPipe* pipe, GM_ADDR gm, GM_ADDR dense, int64_t superRows, int64_t width,
                              int64_t widthPad, int64_t pitch) {
    gm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gm));
    superRows_ = superRows;
    width_ = width;
    widthPad_ = widthPad;
    pitch_ = pitch;
    if (pitch > kFlashMaxPitch) {
      denseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(dense));
      pipe->InitBuffer(denseQue_, 1, kFlashDenseBytes);
    }
    pipe->InitBuffer(que_, 1, static_cast<uint32_t>(superRows * widthPad * sizeof(T)));
    super_ = -1;
    isAwaited_ = false;
  }

  // Keys from `super` on. `offset`: of the head's first row of the batch element, without the sequence's keyBase.
  __aicore__ inline void Load(const FlashSequence& sequence, int64_t kvHead, int64_t super, int64_t offset) {
    if (super_ == super && kvHead_ == kvHead && sequence_ == sequence.index) return;
    Release();
    super_ = super;
    kvHead_ = kvHead;
    sequence_ = sequence.index;
    const int64_t rows = MinOf(superRows_, sequence.keys - super);
    rows_ = RoundUpOf(rows, kFlashFractalRows);
    AscendC::GlobalTensor<T> source = gm_[offset + (sequence.keyBase + super) * pitch_];
    if (pitch_ > kFlashMaxPitch) {
      Densify(source, rows);
      source = denseGm_;
    }
    AscendC::Nd2NzParams copy;
    copy.ndNum = 1;
    copy.nValue = static_cast<uint16_t>(rows);
    copy.dValue = static_cast<uint16_t>(width_);
    copy.srcNdMatrixStride = 0;
    copy.srcDValue = static_cast<uint16_t>(pitch_ > kFlashMaxPitch ? width_ : pitch_);
    copy.dstNzC0Stride = static_cast<uint16_t>(rows_);
    copy.dstNzNStride = 1;
    copy.dstNzMatrixStride = 0;
    tensor_ = que_.template AllocTensor<T>();
    AscendC::DataCopy(tensor_, source, copy);
    que_.EnQue(tensor_);
    isAwaited_ = true;
  }

  // Its place in L1 is free as soon as the products begun so far are done.
  __aicore__ inline void Release() {
    if (super_ >= 0) {
      Rows(0);
      que_.FreeTensor(tensor_);
    }
    super_ = -1;
  }

  // Rows in L1, rounded up to the fractal.
  __aicore__ inline int64_t rows() const { return rows_; }
  // From row `row` of the super-block on. What comes after the first call waits for the copy.
  __aicore__ inline AscendC::LocalTensor<T> Rows(int64_t row) {
    if (isAwaited_) tensor_ = que_.template DeQue<T>();
    isAwaited_ = false;
    return tensor_[static_cast<uint32_t>(row * (kUbBlockBytes / static_cast<int32_t>(sizeof(T))))];
  }

 private:
  // Rows next to each other in the workspace, by way of UB.
  __aicore__ inline void Densify(const AscendC::GlobalTensor<T>& source, int64_t rows) {
    const int64_t pieceRows = kFlashDenseBytes / (widthPad_ * static_cast<int64_t>(sizeof(T)));
    for (int64_t r = 0; r < rows; r += pieceRows) {
      const int64_t piece = MinOf(pieceRows, rows - r);
      AscendC::LocalTensor<T> tensor = denseQue_.template AllocTensor<T>();
      // One by one: the distance of two rows may be too much for this copy as well.
      for (int64_t i = 0; i < piece; ++i) {
        CopyRowsIn(tensor[static_cast<uint32_t>(i * widthPad_)], source[(r + i) * pitch_], 1, width_, width_,
                   widthPad_);
      }
      denseQue_.EnQue(tensor);
      tensor = denseQue_.template DeQue<T>();
      CopyRowsOut(denseGm_[r * width_], tensor, piece, width_, width_, widthPad_);
      denseQue_.FreeTensor(tensor);
    }
    WaitPipe<AscendC::HardEvent::MTE3_S>();  // which sends for the copy
  }

  AscendC::GlobalTensor<T> gm_;
  AscendC::GlobalTensor<T> denseGm_;
  AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> denseQue_;
  AscendC::TSCM<AscendC::TPosition::GM, 1> que_;
  AscendC::LocalTensor<T> tensor_;
  bool isAwaited_;
  int64_t superRows_;
  int64_t width_;
  int64_t widthPad_;
  int64_t pitch_;
  int64_t super_;
  int64_t kvHead_;
  int64_t sequence_;
  int64_t rows_;
};

// A Matmul. Of an object only one product is under way: a card counts what it waits for.
template <typename Matmul>
class FlashCubeWork {
 public:
  Matmul matmul;  // registered by the entry function

  __aicore__ inline void Await() {
    if (isBusy_) matmul.WaitIterateAll();
    isBusy_ = false;
  }
  __aicore__ inline void Start(const AscendC::GlobalTensor<float>& out, bool adds) {
    matmul.template IterateAll<false>(out, adds, false, true);
    isBusy_ = true;
  }

 private:
  bool isBusy_ = false;
};

// Tiling of a Matmul of at most M x N x K on one core, in blocks of at most `rows` rows. B is in L1, C goes to GM.
__aicore__ inline TCubeTiling FlashCubeTiling(int64_t M, int64_t N, int64_t K, int32_t rows, int64_t elementBytes,
                                              int32_t stepKa = 1) {
  TCubeTiling t;
  t.usedCoreNum = 1;
  t.M = t.singleCoreM = static_cast<int32_t>(M);
  t.N = t.singleCoreN = static_cast<int32_t>(N);
  t.Ka = t.Kb = t.singleCoreK = static_cast<int32_t>(K);
  t.baseM = FlashCubeSide(M, rows);
  t.baseN = FlashCubeSide(N, kFlashCubeCols);
  t.baseK = FlashCubeDepth(K, elementBytes);
  t.stepM = t.stepN = 1;
  t.stepKa = stepKa;
  t.depthA1 = FlashCubeLeftBuffers(M, K, rows, elementBytes) * stepKa;
  t.stepKb = t.depthB1 = static_cast<int32_t>(CeilDivOf(K, t.baseK));
  t.dbL0A = t.dbL0B = t.dbL0C = 2;
  t.batchM = t.batchN = t.singleBatchM = t.singleBatchN = 1;
  t.shareL1Size = 0;
  t.shareL0CSize = t.baseM * t.baseN * 4;
  return t;
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_OPERAND_H_
