// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// A strip of the gradient in UB: from products query key^T and dy value^T to probabilities and score gradients.
//
// P = exp(S - max) / sum, delta = rowsum(dy * y) - dlse, dS = P * (dP * keep - delta), then back through softcap and
// scale. UB: two strips, with depth 1 twice, what FlashScoreStrip and FlashDropout need, and by need a strip for the
// slope of the softcap and one for the factors of dropout; maximum, sum and delta [qRows, 8] of the query block, with
// depth 1 of the next one as well. Workspace: delta [deltaRows, 8].
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
  static constexpr int64_t kPieceRows = 64;  // rows of dy and y, or of sums, in UB at a time

  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles, const FlashGradInputs& inputs, GM_ADDR realShift,
                              GM_ADDR slopes, GM_ADDR attnMask, GM_ADDR dropMask, GM_ADDR seedOffset, GM_ADDR dpse,
                              GM_ADDR delta) {
    shape_ = shape;
    tiles_ = tiles;
    hasDlse_ = inputs.dlse != nullptr;
    strip_.Init(pipe, shape, tiles, kFlashWorkBytes, realShift, slopes, attnMask);
    dropout_.Init(pipe, shape, tiles, dropMask, seedOffset);
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(inputs.dy));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(inputs.attentionIn));
    maxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.softmaxMax));
    sumGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.softmaxSum));
    dlseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(inputs.dlse));
    dpseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(dpse));
    deltaGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(delta));
    const uint32_t stripBytes = tiles->stripFloats * sizeof(float);
    const uint8_t buffers = static_cast<uint8_t>(tiles->depth + 1);
    pipe->InitBuffer(scoresQue_, buffers, stripBytes);
    pipe->InitBuffer(dprobsQue_, buffers, stripBytes);
    pipe->InitBuffer(outQue_, 2, tiles->stripFloats * sizeof(T));
    if (shape->softcap > 0.0f) pipe->InitBuffer(capBuf_, stripBytes);
    if (shape->dropKind != 0) pipe->InitBuffer(factorBuf_, stripBytes);
    statFloats_ = tiles->qRows * kFlashStatCopies;
    pipe->InitBuffer(statQue_, buffers, 3 * statFloats_ * sizeof(float));
    pipe->InitBuffer(spareBuf_, (tiles->qRows + kFlashSpareRows) * kFlashStatCopies * sizeof(float));
    hasRows_ = false;
  }

  __aicore__ inline AscendC::LocalTensor<float> Max(int64_t r) { return Stat(0, r); }
  __aicore__ inline AscendC::LocalTensor<float> Sum(int64_t r) { return Stat(1, r); }
  __aicore__ inline AscendC::LocalTensor<float> Delta(int64_t r) { return Stat(2, r); }
  // Room for a statistic of a block, at least three times for kPieceRows values.
  __aicore__ inline AscendC::LocalTensor<float> SpareStat() { return spareBuf_.Get<float>(); }
  // The buffers of strips, free between two calls of Compute.
  __aicore__ inline InQue& scoresQue() { return scoresQue_; }
  __aicore__ inline InQue& dprobsQue() { return dprobsQue_; }
  __aicore__ inline AscendC::LocalTensor<float> Work() { return strip_.Work(); }

  // delta of the `rows` rows from row `row` on, to the workspace from row `at` on. The vector pipe may read it as soon
  // as the copies out are done.
  __aicore__ inline void PrepareRows(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rows,
                                     int64_t at) {
    const int64_t pieceRows = MinOf(kPieceRows, tiles_->stripFloats / 2 / tiles_->dvPad);
    const int64_t stat = StatOffset(sequence, head, row);
    const int64_t y =
        sequence.index * shape_->outBatch + head * shape_->outHead + (sequence.rowBase + row) * shape_->outRow;
    for (int64_t r = 0; r < rows; r += pieceRows) {
      PrepareDelta(at + r, MinOf(pieceRows, rows - r), y + r * shape_->outRow, stat + r * shape_->statRow);
    }
    WaitPipe<AscendC::HardEvent::MTE3_MTE2>();
  }

  // Maximum, sum and delta of the `rows` rows from row `row` on, in the place of those before; delta from the
  // workspace.
  __aicore__ inline void LoadRows(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rows, int64_t at) {
    if (hasRows_) statQue_.FreeTensor(stats_);
    hasRows_ = true;
    stats_ = statQue_.template AllocTensor<float>();
    const int64_t stat = StatOffset(sequence, head, row);
    CopyRowsIn(Max(0), maxGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    CopyRowsIn(Sum(0), sumGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    CopyRowsIn(Delta(0), deltaGm_[at * kFlashStatCopies], rows, kFlashStatCopies, kFlashStatCopies, kFlashStatCopies);
    statQue_.EnQue(stats_);
    stats_ = statQue_.template DeQue<float>();
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
  __aicore__ inline int64_t StatOffset(const FlashSequence& sequence, int64_t head, int64_t row) const {
    return sequence.index * shape_->statBatch + head * shape_->statHead + (sequence.rowBase + row) * shape_->statRow;
  }

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

  // delta of `rows` rows to the workspace from row `at` on. `y`, `stat`: offsets of the first in dy and y, and in dlse.
  __aicore__ inline void PrepareDelta(int64_t at, int64_t rows, int64_t y, int64_t stat) {
    const int64_t pitch = tiles_->dvPad;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    AscendC::LocalTensor<T> raw = scoresQue_.template AllocTensor<T>();  // dy, then y
    CopyRowsIn(raw, dyGm_[y], rows, shape_->Dv, shape_->outRow, pitch);
    CopyRowsIn(raw[count], yGm_[y], rows, shape_->Dv, shape_->outRow, pitch);
    scoresQue_.EnQue(raw);
    raw = scoresQue_.template DeQue<T>();
    AscendC::LocalTensor<float> product = dprobsQue_.template AllocTensor<float>();
    if constexpr (std::is_same_v<T, float>) {
      AscendC::Mul(product, raw, raw[count], count);
    } else {
      AscendC::Cast(product, raw, AscendC::RoundMode::CAST_NONE, count);
      AscendC::Cast(product[count], raw[count], AscendC::RoundMode::CAST_NONE, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Mul(product, product, product[count], count);
    }
    AscendC::PipeBarrier<PIPE_V>();
    scoresQue_.FreeTensor(raw);
    const AscendC::LocalTensor<float> sums = SpareStat();
    RowSum(sums, product, Work(), rows, shape_->Dv, pitch);
    dprobsQue_.FreeTensor(product);
    if (hasDlse_) {
      const AscendC::LocalTensor<float> copies = Work();
      const AscendC::LocalTensor<float> lse = sums[kPieceRows];
      WaitPipe<AscendC::HardEvent::V_MTE2>();
      CopyRowsIn(copies, dlseGm_[stat], rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
      WaitPipe<AscendC::HardEvent::MTE2_V>();
      RowFirst(lse, copies, rows, kFlashStatCopies);
      AscendC::Sub(sums, sums, lse, static_cast<int32_t>(rows));
      AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
    SpreadRows(out.template ReinterpretCast<float>(), sums, rows);
    outQue_.EnQue(out);
    out = outQue_.template DeQue<T>();
    CopyRowsOut(deltaGm_[at * kFlashStatCopies], out.template ReinterpretCast<float>(), rows, kFlashStatCopies,
                kFlashStatCopies, kFlashStatCopies);
    outQue_.FreeTensor(out);
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
  InQue statQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> spareBuf_;
  AscendC::LocalTensor<float> stats_;
  bool hasRows_;  // stats_ is in use
  AscendC::LocalTensor<float> probs_;
  AscendC::LocalTensor<float> dscores_;
  AscendC::GlobalTensor<T> dyGm_;
  AscendC::GlobalTensor<T> yGm_;
  AscendC::GlobalTensor<T> dpseGm_;
  AscendC::GlobalTensor<float> maxGm_;
  AscendC::GlobalTensor<float> sumGm_;
  AscendC::GlobalTensor<float> dlseGm_;
  AscendC::GlobalTensor<float> deltaGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_STRIP_H_
