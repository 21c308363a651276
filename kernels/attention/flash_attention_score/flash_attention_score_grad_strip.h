// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// A strip of the gradient in UB: from products query key^T and dy value^T to probabilities and score gradients.
//
// P = exp(S - max) / sum, delta = rowsum(dy * y) - dlse, dS = P * (dP * keep - delta), then back through softcap and
// scale. UB: two strips, what FlashScoreStrip and FlashDropout need, and by need a strip for the slope of the softcap
// and one for the factors of dropout; maximum, sum and delta [qRows, 8] of the query block.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_STRIP_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_STRIP_H_

#include "attention/flash_attention_score/flash_attention_score_dropout.h"
#include "common/row_ops.h"

namespace mst {

// What the gradient reads besides the inputs of the forward. dlse: gradient of max + ln(sum), laid out as softmax_max,
// in the first of its eight copies.
struct FlashGradInputs {
  GM_ADDR dy;
  GM_ADDR attentionIn;
  GM_ADDR softmaxMax;
  GM_ADDR softmaxSum;
  GM_ADDR dlse;
};

template <typename T>
class FlashGradStrip {
  using InQue = AscendC::TQue<AscendC::TPosition::VECIN, 1>;
  using OutQue = AscendC::TQue<AscendC::TPosition::VECOUT, 1>;

 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles, const FlashGradInputs& inputs, GM_ADDR realShift,
                              GM_ADDR slopes, GM_ADDR attnMask, GM_ADDR dropMask, GM_ADDR seedOffset, GM_ADDR dpse) {
    shape_ = shape;
    tiles_ = tiles;
    hasDlse_ = inputs.dlse != nullptr;
    strip_.Init(pipe, shape, tiles, realShift, slopes, attnMask);
    dropout_.Init(pipe, shape, tiles, dropMask, seedOffset);
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(inputs.dy));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(inputs.attentionIn));
    maxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.softmaxMax));
    sumGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.softmaxSum));
    dlseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.dlse));
    dpseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(dpse));
    const uint32_t stripBytes = tiles->stripFloats * sizeof(float);
    pipe->InitBuffer(scoresQue_, 1, stripBytes);
    pipe->InitBuffer(dprobsQue_, 1, stripBytes);
    pipe->InitBuffer(outQue_, 2, tiles->stripFloats * sizeof(T));
    if (shape->softcap > 0.0f) pipe->InitBuffer(capBuf_, stripBytes);
    if (shape->dropKind != 0) pipe->InitBuffer(factorBuf_, stripBytes);
    statFloats_ = (tiles->qRows + kFlashSpareRows) * kFlashStatCopies;
    pipe->InitBuffer(statBuf_, 4 * statFloats_ * sizeof(float));
    stats_ = statBuf_.Get<float>();
  }

  __aicore__ inline AscendC::LocalTensor<float> Max(int64_t r) { return Stat(0, r); }
  __aicore__ inline AscendC::LocalTensor<float> Sum(int64_t r) { return Stat(1, r); }
  __aicore__ inline AscendC::LocalTensor<float> Delta(int64_t r) { return Stat(2, r); }
  __aicore__ inline AscendC::LocalTensor<float> SpareStat() { return Stat(3, 0); }
  // The buffer of a strip, free between two calls of Compute.
  __aicore__ inline InQue& scoresQue() { return scoresQue_; }
  __aicore__ inline AscendC::LocalTensor<float> Work() { return strip_.Work(); }

  // Maximum, sum and delta of the `rows` rows from `row` on. The scalar unit has waited for the readers of the block
  // before, and LoadDelta makes the vector pipe wait for all copies.
  __aicore__ inline void LoadRows(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rows) {
    const int64_t stat =
        sequence.index * shape_->statBatch + head * shape_->statHead + (sequence.rowBase + row) * shape_->statRow;
    CopyRowsIn(Max(0), maxGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    CopyRowsIn(Sum(0), sumGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    const int64_t pieceRows = MinOf(kDeltaRows, tiles_->stripFloats / tiles_->dvPad);
    const int64_t y =
        sequence.index * shape_->outBatch + head * shape_->outHead + (sequence.rowBase + row) * shape_->outRow;
    for (int64_t r = 0; r < rows; r += pieceRows) {
      LoadDelta(r, MinOf(pieceRows, rows - r), y + r * shape_->outRow, stat + r * shape_->statRow);
    }
  }

  // Rows [r, r + rows) of the block that starts at `row`. Gives P (with dropout) and the gradient of the products
  // query key^T, or of the biased scores for `wantsBiased`; the caller gives both back with Free. `hides`: hidden pairs
  // become exactly 0 whatever the operands are. `storesPse`: writes dpse of these pairs.
  __aicore__ inline void Compute(const AscendC::GlobalTensor<float>& scoresGm,
                                 const AscendC::GlobalTensor<float>& dprobsGm, const FlashSequence& sequence,
                                 const FlashTile& tile, int64_t row, int64_t r, int64_t rows, bool wantsBiased,
                                 bool hides, bool storesPse) {
    probs_ = Load(scoresQue_, scoresGm, tile, r, rows);
    dscores_ = Load(dprobsQue_, dprobsGm, tile, r, rows);
    const int32_t count = static_cast<int32_t>(rows * tile.colsPad);
    const bool hasCap = shape_->softcap > 0.0f;
    strip_.Score(probs_, sequence, tile, row + r, rows, hasCap, hasCap ? capBuf_.Get<float>() : probs_);
    if (hides) {
      AscendC::CompareScalar(strip_.Bits(), probs_, kFlashHidden, AscendC::CMPMODE::NE,
                             static_cast<uint32_t>(RoundUpOf(count, kFlashCompareUnit)));
      AscendC::PipeBarrier<PIPE_V>();
    }
    Differentiate(sequence, tile, row, r, rows);
    if (hides) Hide(probs_, count);
    if (hides) Hide(dscores_, count);
    if (storesPse && shape_->pseType == 0) StorePse(sequence, tile, row + r, rows);
    if (wantsBiased) return;
    if (hasCap) {
      AscendC::Mul(dscores_, dscores_, capBuf_.Get<float>(), count);
      AscendC::PipeBarrier<PIPE_V>();
      if (hides) Hide(dscores_, count);
    }
    if (shape_->scale != 1.0f) {
      AscendC::Muls(dscores_, dscores_, shape_->scale, count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    if (storesPse && shape_->pseType == 1) StorePse(sequence, tile, row + r, rows);
  }

  // After Compute with `hides`: whether element `pair` of the strip is visible.
  __aicore__ inline bool IsVisible(uint32_t pair) { return (strip_.Bits().GetValue(pair / 8) >> pair % 8 & 1) != 0; }
  __aicore__ inline const AscendC::LocalTensor<float>& probs() const { return probs_; }
  __aicore__ inline const AscendC::LocalTensor<float>& dscores() const { return dscores_; }
  __aicore__ inline void Free() {
    scoresQue_.FreeTensor(probs_);
    dprobsQue_.FreeTensor(dscores_);
  }

  // A strip of what Compute gave to GM in T, rows `gmPitch` apart.
  __aicore__ inline void StoreStrip(const AscendC::GlobalTensor<T>& gm, const AscendC::LocalTensor<float>& strip,
                                    int64_t rows, int64_t cols, int64_t pitch, int64_t gmPitch) {
    // The caller may change the strip afterwards.
    if constexpr (std::is_same_v<T, float>) {
      WaitPipe<AscendC::HardEvent::V_MTE3>();
      CopyRowsOut(gm, strip, rows, cols, gmPitch, pitch);
      WaitPipe<AscendC::HardEvent::MTE3_V>();
    } else {
      AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
      AscendC::Cast(out, strip, AscendC::RoundMode::CAST_RINT, static_cast<int32_t>(rows * pitch));
      AscendC::PipeBarrier<PIPE_V>();
      outQue_.EnQue(out);
      out = outQue_.template DeQue<T>();
      CopyRowsOut(gm, out, rows, cols, gmPitch, pitch);
      outQue_.FreeTensor(out);
    }
  }

 private:
  static constexpr int64_t kDeltaRows = 64;  // rows of dy and y in UB at a time

  __aicore__ inline AscendC::LocalTensor<float> Stat(int32_t which, int64_t r) {
    return stats_[static_cast<uint32_t>(which * statFloats_ + r * kFlashStatCopies)];
  }

  __aicore__ inline AscendC::LocalTensor<float> Load(InQue& que, const AscendC::GlobalTensor<float>& gm,
                                                     const FlashTile& tile, int64_t r, int64_t rows) {
    AscendC::LocalTensor<float> strip = que.template AllocTensor<float>();
    CopyRowsIn(strip, gm[r * tiles_->scoreRow], rows, tile.cols, tiles_->scoreRow, tile.colsPad);
    que.EnQue(strip);
    return que.template DeQue<float>();
  }

  // Scores to P (with dropout), dP to P * (dP * keep - delta).
  __aicore__ inline void Differentiate(const FlashSequence& sequence, const FlashTile& tile, int64_t row, int64_t r,
                                       int64_t rows) {
    const int32_t count = static_cast<int32_t>(rows * tile.colsPad);
    const uint32_t m = static_cast<uint32_t>(rows);
    const uint32_t k = static_cast<uint32_t>(tile.colsPad);
    AscendC::SimpleSoftMax<float>(probs_, Sum(r), Max(r), probs_, Work().template ReinterpretCast<uint8_t>(),
                                  SoftMaxTiling{}, AscendC::SoftMaxShapeInfo{m, k, m, k});
    const bool drops = shape_->dropKind != 0;
    if (drops) {
      const AscendC::LocalTensor<float> factor = factorBuf_.Get<float>();
      AscendC::Duplicate(factor, 1.0f / shape_->keepProb, count);
      AscendC::PipeBarrier<PIPE_V>();
      dropout_.Apply(factor, Work(), sequence, tile, row + r, rows);
      AscendC::Mul(dscores_, dscores_, factor, count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    RowSubSpread(dscores_, dscores_, Delta(r), rows, tile.colsPad, tile.colsPad);
    AscendC::Mul(dscores_, dscores_, probs_, count);
    AscendC::PipeBarrier<PIPE_V>();
    if (!drops) return;
    AscendC::Mul(probs_, probs_, factorBuf_.Get<float>(), count);
    AscendC::PipeBarrier<PIPE_V>();
  }

  // delta of `rows` rows from row `r` of the block on. `y`, `stat`: offsets of the first in dy and y, and in dlse.
  __aicore__ inline void LoadDelta(int64_t r, int64_t rows, int64_t y, int64_t stat) {
    const int64_t pitch = tiles_->dvPad;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    const AscendC::LocalTensor<float> product = LoadFloats(scoresQue_, dyGm_[y], rows);
    const AscendC::LocalTensor<float> other = LoadFloats(dprobsQue_, yGm_[y], rows);
    AscendC::Mul(product, product, other, count);
    AscendC::PipeBarrier<PIPE_V>();
    const AscendC::LocalTensor<float> sums = SpareStat();
    const AscendC::LocalTensor<float> lse = sums[kDeltaRows];
    RowSum(sums, product, Work(), rows, shape_->Dv, pitch);
    if (hasDlse_) {
      const AscendC::LocalTensor<float> copies = Work();
      WaitPipe<AscendC::HardEvent::V_MTE2>();
      CopyRowsIn(copies, dlseGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
      WaitPipe<AscendC::HardEvent::MTE2_V>();
      RowFirst(lse, copies, rows, kFlashStatCopies);
      AscendC::Sub(sums, sums, lse, static_cast<int32_t>(rows));
      AscendC::PipeBarrier<PIPE_V>();
    }
    SpreadRows(Delta(r), sums, rows);
    FreeFloats(scoresQue_, product);
    FreeFloats(dprobsQue_, other);
  }

  // Rows of dy or y as floats, in a strip; 16-bit elements arrive in its upper half.
  __aicore__ inline AscendC::LocalTensor<float> LoadFloats(InQue& que, const AscendC::GlobalTensor<T>& gm,
                                                           int64_t rows) {
    AscendC::LocalTensor<T> raw = que.template AllocTensor<T>();
    const int64_t pitch = tiles_->dvPad;
    const uint32_t upper = std::is_same_v<T, float> ? 0 : static_cast<uint32_t>(tiles_->stripFloats);
    CopyRowsIn(raw[upper], gm, rows, shape_->Dv, shape_->outRow, pitch);
    que.EnQue(raw);
    raw = que.template DeQue<T>();
    const AscendC::LocalTensor<float> wide = raw.template ReinterpretCast<float>();
    if constexpr (!std::is_same_v<T, float>) {
      const int32_t count = static_cast<int32_t>(rows * pitch);
      AscendC::Cast(Work(), raw[upper], AscendC::RoundMode::CAST_NONE, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Adds(wide, Work(), 0.0f, count);
      AscendC::PipeBarrier<PIPE_V>();
    }
    return wide;
  }
  __aicore__ inline void FreeFloats(InQue& que, const AscendC::LocalTensor<float>& wide) {
    AscendC::LocalTensor<float> tensor = wide;
    que.FreeTensor(tensor);
  }

  __aicore__ inline void Hide(const AscendC::LocalTensor<float>& strip, int32_t count) {
    AscendC::Select(strip, strip_.Bits(), strip, 0.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                    static_cast<uint32_t>(RoundUpOf(count, kFlashCompareUnit)));
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void StorePse(const FlashSequence& sequence, const FlashTile& tile, int64_t row, int64_t rows) {
    int64_t pitch = MaxOf(shape_->pseRow, tile.cols);  // one row of queries has no distance
    int64_t offset = sequence.index * shape_->pseBatch + tile.head * shape_->pseHead + row * pitch + tile.key;
    if (shape_->packed != 0) {
      pitch = sequence.keys;
      offset = shape_->N * sequence.pairBase + (tile.head * sequence.rows + row) * pitch + tile.key;
    }
    StoreStrip(dpseGm_[offset], dscores_, rows, tile.cols, tile.colsPad, pitch);
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  bool hasDlse_;
  int64_t statFloats_;
  FlashScoreStrip<T> strip_;
  FlashDropout dropout_;
  InQue scoresQue_;
  InQue dprobsQue_;
  OutQue outQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> capBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> factorBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> statBuf_;
  AscendC::LocalTensor<float> stats_;
  AscendC::LocalTensor<float> probs_;
  AscendC::LocalTensor<float> dscores_;
  AscendC::GlobalTensor<T> dyGm_;
  AscendC::GlobalTensor<T> yGm_;
  AscendC::GlobalTensor<T> dpseGm_;
  AscendC::GlobalTensor<float> maxGm_;
  AscendC::GlobalTensor<float> sumGm_;
  AscendC::GlobalTensor<float> dlseGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_STRIP_H_
