// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Gradients that sum over heads, batch elements or rows: of a broadcast real_shift, and of sink.
//
// A unit of real_shift is a block of its rows in one of its heads; it walks all pairs that use them in order and sums
// in the workspace, [qRows, superRows] floats. A unit of sink is a head. Units belong to one core each, so the order
// of a sum never depends on the cores.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_BIAS_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_BIAS_H_

#include "attention/flash_attention_score/flash_attention_score_grad_sums.h"

namespace mst {

template <typename T>
class FlashGradBias {
 public:
  __aicore__ inline void Init(const FlashAttentionScoreGradTilingData* tiling, FlashGradTile<T>* tile,
                              const FlashSequenceWalker& sequences, const FlashGradArgs& args, GM_ADDR workspace) {
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    tile_ = tile;
    sequences_ = sequences;
    sinkGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(args.sink));
    dpseGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.dpse));
    dsinkGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(args.dsink));
    sumGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
  }

  // dpse of the unit's pairs in a head to 0, where no pair is visible it stays so.
  __aicore__ inline void ClearPse(const FlashGradUnit& unit, int64_t head) {
    const FlashSequence& s = unit.sequence;
    const int64_t offset = (shape_->packed != 0 ? shape_->N * s.pairBase + head * s.rows * s.keys
                                                : s.index * shape_->pseBatch + head * shape_->pseHead) +
                           unit.rowBegin * s.keys + unit.keyBegin;
    AscendC::LocalTensor<T> zeros = tile_->strip.scoresQue().template AllocTensor<T>();
    ClearRows(dpseGm_[offset], zeros, tiles_->stripFloats, unit.rowEnd - unit.rowBegin, unit.keyEnd - unit.keyBegin,
              s.keys);
    tile_->strip.scoresQue().FreeTensor(zeros);
  }

  __aicore__ inline void ProcessPse(int64_t index) {
    const int64_t qRows = tiles_->qRows;
    const bool oneRow = shape_->pseRow == 0;
    const int64_t blocks = oneRow ? 1 : CeilDivOf(shape_->Sq, qRows);
    const int64_t heads = shape_->pseHead == 0 ? 1 : shape_->N;
    const int64_t row = index % blocks * qRows;
    const int64_t head = index / blocks % heads;
    const int64_t batch = index / blocks / heads;
    const int64_t rowEnd = oneRow ? shape_->Sq : MinOf(shape_->Sq, row + qRows);
    const int64_t sumRows = oneRow ? 1 : rowEnd - row;
    for (int64_t super = 0; super < shape_->Skv; super += tiles_->superRows) {
      const int64_t cols = MinOf(tiles_->superRows, shape_->Skv - super);
      Clear(sumRows * tiles_->superRows);
      FlashSequenceWalker sequences = sequences_;
      while (sequences.Next()) {
        const FlashSequence& sequence = sequences.sequence();
        if (shape_->pseBatch != 0 && sequence.index != batch) continue;
        for (int64_t n = shape_->pseHead == 0 ? 0 : head; n < (shape_->pseHead == 0 ? shape_->N : head + 1); ++n) {
          for (int64_t r = row; r < rowEnd; r += qRows) SumBlock(sequence, n, r, MinOf(qRows, rowEnd - r), super);
        }
      }
      WaitPipe<AscendC::HardEvent::MTE3_MTE2>();  // without any pair the sums are as they were cleared
      const int64_t offset = batch * shape_->pseBatch + head * shape_->pseHead + row * shape_->pseRow + super;
      for (int64_t r = 0; r < sumRows; ++r) Write(dpseGm_[offset + r * shape_->pseRow], r * tiles_->superRows, cols);
    }
  }

  // dsink = -sum of exp(sink - max) / sum * delta over all rows of the head
  __aicore__ inline void ProcessSink(int64_t head) {
    float total = 0.0f;
    const float sink = sinkGm_.GetValue(head);
    const AscendC::LocalTensor<float> p = tile_->strip.SpareStat();
    FlashSequenceWalker sequences = sequences_;
    while (sequences.Next()) {
      const FlashSequence& sequence = sequences.sequence();
      for (int64_t row = 0; row < sequence.rows; row += tiles_->qRows) {
        const int64_t rows = MinOf(tiles_->qRows, sequence.rows - row);
        const int32_t count = static_cast<int32_t>(rows * kFlashStatCopies);
        tile_->strip.PrepareRows(sequence, head, row, rows, 0);
        tile_->strip.LoadRows(sequence, head, row, rows, 0);
        AscendC::Muls(p, tile_->strip.Max(0), -1.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(p, p, sink, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(p, p, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(p, p, tile_->strip.Sum(0), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(p, p, tile_->strip.Delta(0), count);
        AscendC::PipeBarrier<PIPE_V>();
        total -= FlashSum(p, tile_->strip.Work(), count) / kFlashStatCopies;
      }
    }
    AscendC::Duplicate(p, total, kFlashStatCopies);
    WaitPipe<AscendC::HardEvent::V_MTE3>();
    CopyRowsOut(dsinkGm_[head], p, 1, 1, 1, kFlashStatCopies);
    WaitPipe<AscendC::HardEvent::MTE3_V>();
  }

 private:
  __aicore__ inline void Clear(int64_t count) {
    AscendC::LocalTensor<float> zeros = tile_->strip.scoresQue().template AllocTensor<float>();
    ClearRows(sumGm_, zeros, tiles_->stripFloats, 1, count, count);
    tile_->strip.scoresQue().FreeTensor(zeros);
  }

  // Adds what rows [row, row + rows) of a head give for the keys of a super-block.
  __aicore__ inline void SumBlock(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rows,
                                  int64_t super) {
    const FlashBand& band = sequence.band;
    const int64_t kvCols = tiles_->kvCols;
    const int64_t end = MinOf(FlashKeyEnd(band, row + rows), super + tiles_->superRows);
    int64_t key = MaxOf(super, FlashKeyBegin(band, row) / kvCols * kvCols);
    if (key >= end) return;
    tile_->strip.PrepareRows(sequence, head, row, rows, 0);
    tile_->strip.LoadRows(sequence, head, row, rows, 0);
    for (; key < end; key += kvCols) {
      const int32_t cols = static_cast<int32_t>(MinOf(kvCols, end - key));
      if (FlashViewOf(band, row, row + rows, key, key + cols) == FlashTileView::kHidden) continue;
      const FlashGradBlock block = {head / (shape_->N / shape_->Nkv),
                                    row,
                                    rows,
                                    super,
                                    {head, key, cols, static_cast<int32_t>(RoundUpOf(cols, kFlashColsUnit))}};
      tile_->StartProducts(sequence, block);
      tile_->AwaitProducts();
      for (int64_t r = 0; r < rows; r += tiles_->stripRows) {
        const int64_t strip = MinOf(tiles_->stripRows, rows - r);
        tile_->Differentiate(sequence, block, r, strip, shape_->pseType == 0, true, false);
        AddTo(block.tile, r, strip, super);
        tile_->FreeStrips();
      }
      WaitPipe<AscendC::HardEvent::V_S>();  // the cube writes the products again
    }
  }

  __aicore__ inline void AddTo(const FlashTile& tile, int64_t r, int64_t rows, int64_t super) {
    const AscendC::LocalTensor<float>& ds = tile_->strip.dscores();
    WaitPipe<AscendC::HardEvent::V_MTE3>();
    AscendC::SetAtomicAdd<float>();
    if (shape_->pseRow == 0) {
      for (int64_t i = 0; i < rows; ++i) {
        CopyRowsOut(sumGm_[tile.key - super], ds[static_cast<uint32_t>(i * tile.colsPad)], 1, tile.cols, tile.cols,
                    tile.colsPad);
      }
    } else {
      CopyRowsOut(sumGm_[r * tiles_->superRows + tile.key - super], ds, rows, tile.cols, tiles_->superRows,
                  tile.colsPad);
    }
    AscendC::SetAtomicNone();
    WaitPipe<AscendC::HardEvent::MTE3_V>();
  }

  // `cols` sums from `sum` on to one row of dpse.
  __aicore__ inline void Write(const AscendC::GlobalTensor<T>& out, int64_t sum, int64_t cols) {
    for (int64_t c = 0; c < cols; c += tiles_->stripFloats) {
      const int64_t piece = MinOf(tiles_->stripFloats, cols - c);
      const int64_t pitch = RoundUpOf(piece, kFlashColsUnit);
      AscendC::LocalTensor<float> tile = tile_->strip.scoresQue().template AllocTensor<float>();
      CopyRowsIn(tile, sumGm_[sum + c], 1, piece, piece, pitch);
      tile_->strip.scoresQue().EnQue(tile);
      tile = tile_->strip.scoresQue().template DeQue<float>();
      tile_->strip.StoreStrip(out[c], tile, 1, piece, pitch, piece);
      tile_->strip.scoresQue().FreeTensor(tile);
    }
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  FlashGradTile<T>* tile_;
  FlashSequenceWalker sequences_;
  AscendC::GlobalTensor<float> sinkGm_;
  AscendC::GlobalTensor<T> dpseGm_;
  AscendC::GlobalTensor<float> dsinkGm_;
  AscendC::GlobalTensor<float> sumGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_BIAS_H_
