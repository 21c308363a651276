// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Where dq, dk and dv are summed in fp32, and their way into the outputs.
//
// Workspace: dq [chunkRows, dPad], with kFlashGradRanges of all G query heads of a kv head and in a slot; for 16-bit
// outputs, with kFlashGradRanges twice, dk [keyRows, dPad] and dv [keyRows, dvPad], keyRows = the keys between two
// writings. fp32 outputs take the sums of dk and dv themselves. UB: five rows for the careful mode.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_SUMS_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_SUMS_H_

#include "attention/flash_attention_score/flash_attention_score_grad_tile.h"
#include "attention/flash_attention_score/flash_attention_score_grad_units.h"

namespace mst {

// Sets `rows` pieces of `cols` elements, `pitch` apart, to 0. `zeros`: a buffer of `room` elements.
template <typename U>
__aicore__ inline void ClearRows(const AscendC::GlobalTensor<U>& gm, const AscendC::LocalTensor<U>& zeros, int64_t room,
                                 int64_t rows, int64_t cols, int64_t pitch) {
  if (cols == pitch) {
    cols *= rows;
    rows = 1;
  }
  AscendC::Duplicate(zeros, static_cast<U>(0.0f), static_cast<int32_t>(room));
  WaitPipe<AscendC::HardEvent::V_MTE3>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += room) {
      const int64_t count = MinOf(room, cols - c);
      CopyRowsOut(gm[r * pitch + c], zeros, 1, count, count, room);
    }
  }
  WaitPipe<AscendC::HardEvent::MTE3_V>();
}

template <typename T>
class FlashGradSums {
  static constexpr bool kIsFloat = std::is_same_v<T, float>;

 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreGradTilingData* tiling,
                              FlashGradTile<T>* tile, const FlashGradArgs& args, GM_ADDR workspace, GM_ADDR slots) {
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    tile_ = tile;
    queryGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.query));
    keyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.key));
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.inputs.dy));
    dqGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.dq));
    dkGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.dk));
    dvGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.dv));
    __gm__ float* floats = reinterpret_cast<__gm__ float*>(workspace);
    if (tiling->cut == kFlashGradRanges) {
      slotsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(slots));
    } else {
      slotsGm_.SetGlobalBuffer(floats);
      floats += tiles_->chunkRows * tiles_->dPad;
    }
    slotFloats_ = shape_->N / shape_->Nkv * tiles_->chunkRows * tiles_->dPad;
    UseSlot(0);
    if constexpr (kIsFloat) {
      keySumGm_ = dkGm_;
      valueSumGm_ = dvGm_;
    } else {
      keySumGm_.SetGlobalBuffer(floats);
      valueSumGm_.SetGlobalBuffer(floats + FlashGradKeyPlaces(tiling->cut) * tiling->keyRows * tiles_->dPad);
    }
    rowFloats_ = MaxOf(tiles_->dPad, tiles_->dvPad);
    pipe->InitBuffer(rowQue_, 1, static_cast<uint32_t>(rowFloats_ * sizeof(T)));
    pipe->InitBuffer(rowBuf_, static_cast<uint32_t>(kFlashRowBuffers * rowFloats_ * sizeof(float)));
  }

  __aicore__ inline int64_t keyPitch() const { return kIsFloat ? shape_->kRow : tiles_->dPad; }
  __aicore__ inline int64_t valuePitch() const { return kIsFloat ? shape_->vRow : tiles_->dvPad; }

  // Ranges: from now on dq is summed in this slot.
  __aicore__ inline void UseSlot(int64_t slot) { querySumGm_ = slotsGm_[slot * slotFloats_]; }

  // The sums from a key of the block, or from one of the rows whose dq is summed, on.
  __aicore__ inline AscendC::GlobalTensor<float> KeyRows(const FlashGradUnit& unit, const FlashGradBlock& block,
                                                         int64_t c = 0) {
    return KeySums(unit, block.tile.key + c, block.sumKey + c);
  }
  __aicore__ inline AscendC::GlobalTensor<float> ValueRows(const FlashGradUnit& unit, const FlashGradBlock& block,
                                                           int64_t c = 0) {
    return ValueSums(unit, block.tile.key + c, block.sumKey + c);
  }
  __aicore__ inline AscendC::GlobalTensor<float> QueryRows(int64_t row) { return querySumGm_[row * tiles_->dPad]; }

  __aicore__ inline void ClearQuery(int64_t row, int64_t rows) {
    Clear(QueryRows(row), rows, tiles_->dPad, tiles_->dPad);
  }
  // Keys [key, keyEnd), whose sums begin at `sumKey`.
  __aicore__ inline void ClearKeyValue(const FlashGradUnit& unit, int64_t key, int64_t keyEnd, int64_t sumKey) {
    const int64_t rows = keyEnd - key;
    Clear(KeySums(unit, key, sumKey), rows, kIsFloat ? shape_->D : tiles_->dPad, keyPitch());
    Clear(ValueSums(unit, key, sumKey), rows, kIsFloat ? shape_->Dv : tiles_->dvPad, valuePitch());
  }

  // Looks from now on whether all sums are finite.
  __aicore__ inline void BeginFinite() {
    AscendC::Duplicate(Zeros(), 0.0f, static_cast<int32_t>(kPieceRows));  // LookAt has barriers before it adds
  }
  __aicore__ inline bool IsFinite() {
    return FlashSum(Zeros(), tile_->strip.Work(), static_cast<int32_t>(kPieceRows)) == 0.0f;
  }

  // The sums from `sumRow` on to rows [row, rowEnd) of the output, or are only looked at.
  __aicore__ inline void WriteQuery(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rowEnd,
                                    int64_t sumRow, bool stores) {
    Write(dqGm_[QueryOffset(sequence, head, row)], QueryRows(sumRow), rowEnd - row, shape_->D, tiles_->dPad,
          shape_->qRow, tiles_->dPad, stores);
  }
  __aicore__ inline void WriteKeyValue(const FlashGradUnit& unit, int64_t key, int64_t keyEnd, int64_t sumKey) {
    const int64_t rows = keyEnd - key;
    Write(dkGm_[KeyOffset(unit, key)], KeySums(unit, key, sumKey), rows, shape_->D, keyPitch(), shape_->kRow,
          tiles_->dPad, !kIsFloat);
    Write(dvGm_[ValueOffset(unit, key)], ValueSums(unit, key, sumKey), rows, shape_->Dv, valuePitch(), shape_->vRow,
          tiles_->dvPad, !kIsFloat);
  }

  // Ranges, after all cores have come: rows [row, rowEnd) of dq from the sums from `sumRow` on in slots [first, end).
  __aicore__ inline void AddSlots(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rowEnd,
                                  int64_t sumRow, int64_t first, int64_t end) {
    const int64_t pitch = tiles_->dPad;
    const int64_t pieceRows = MinOf(kPieceRows, tiles_->stripFloats / pitch);
    for (int64_t r = row; r < rowEnd; r += pieceRows) {
      const int64_t rows = MinOf(pieceRows, rowEnd - r);
      const int32_t count = static_cast<int32_t>(rows * pitch);
      AscendC::GlobalTensor<float> gm = slotsGm_[first * slotFloats_ + (sumRow + r - row) * pitch];
      AscendC::LocalTensor<float> sum = Load(tile_->strip.scoresQue(), gm, rows, pitch, pitch, pitch);
      for (int64_t slot = first + 1; slot < end; ++slot) {
        gm = gm[slotFloats_];
        AscendC::LocalTensor<float> more = Load(tile_->strip.dprobsQue(), gm, rows, pitch, pitch, pitch);
        AscendC::Add(sum, sum, more, count);
        AscendC::PipeBarrier<PIPE_V>();
        tile_->strip.dprobsQue().FreeTensor(more);
      }
      tile_->strip.StoreStrip(dqGm_[QueryOffset(sequence, head, r)], sum, rows, shape_->D, pitch, shape_->qRow);
      tile_->strip.scoresQue().FreeTensor(sum);
    }
  }

  // Careful mode: the visible pairs of one row. `r`: row of the block, `i`: of the strips.
  __aicore__ inline void AddRow(const FlashGradUnit& unit, const FlashGradBlock& block, int64_t r, int64_t i) {
    const FlashSequence& s = unit.sequence;
    const FlashTile& tile = block.tile;
    const int64_t row = s.rowBase + block.row + r;
    const AscendC::LocalTensor<float> query = Row(0), dy = Row(1), key = Row(2), sum = Row(3), product = Row(4);
    const int32_t D = static_cast<int32_t>(shape_->D);
    const int32_t Dv = static_cast<int32_t>(shape_->Dv);
    LoadRow(query, queryGm_[QueryOffset(s, tile.head, block.row + r)], D);
    LoadRow(dy, dyGm_[s.index * shape_->outBatch + tile.head * shape_->outHead + row * shape_->outRow], Dv);
    AscendC::Duplicate(sum, 0.0f, D);  // LoadRow has a barrier before the first addition
    for (int32_t c = 0; c < tile.cols; ++c) {
      const uint32_t pair = static_cast<uint32_t>(i * tile.colsPad + c);
      if (!tile_->strip.IsVisible(pair)) continue;
      const float p = tile_->strip.probs().GetValue(pair);
      const float ds = tile_->strip.dscores().GetValue(pair);
      if (unit.givesQuery) {
        LoadRow(key, keyGm_[KeyOffset(unit, tile.key + c)], D);
        AscendC::Axpy(sum, key, ds, D);
        AscendC::PipeBarrier<PIPE_V>();
      }
      if (unit.givesKeyValue) {
        AscendC::Muls(product, query, ds, D);
        AddTo(KeyRows(unit, block, c), product, D);
        AscendC::Muls(product, dy, p, Dv);
        AddTo(ValueRows(unit, block, c), product, Dv);
      }
    }
    if (unit.givesQuery) AddTo(QueryRows(block.sumRow + r), sum, D);
  }

 private:
  static constexpr int64_t kPieceRows = FlashGradStrip<T>::kPieceRows;

  __aicore__ inline int64_t QueryOffset(const FlashSequence& s, int64_t head, int64_t row) const {
    return s.index * shape_->qBatch + head * shape_->qHead + (s.rowBase + row) * shape_->qRow;
  }
  __aicore__ inline int64_t KeyOffset(const FlashGradUnit& unit, int64_t key) const {
    const FlashSequence& s = unit.sequence;
    return s.index * shape_->kBatch + unit.kvHead * shape_->kHead + (s.keyBase + key) * shape_->kRow;
  }
  __aicore__ inline int64_t ValueOffset(const FlashGradUnit& unit, int64_t key) const {
    const FlashSequence& s = unit.sequence;
    return s.index * shape_->vBatch + unit.kvHead * shape_->vHead + (s.keyBase + key) * shape_->vRow;
  }
  // From a key on, or from the place of its sums.
  __aicore__ inline AscendC::GlobalTensor<float> KeySums(const FlashGradUnit& unit, int64_t key, int64_t sumKey) {
    return keySumGm_[kIsFloat ? KeyOffset(unit, key) : sumKey * tiles_->dPad];
  }
  __aicore__ inline AscendC::GlobalTensor<float> ValueSums(const FlashGradUnit& unit, int64_t key, int64_t sumKey) {
    return valueSumGm_[kIsFloat ? ValueOffset(unit, key) : sumKey * tiles_->dvPad];
  }
  // 0 as long as all that was looked at is finite; beyond the sums of rows.
  __aicore__ inline AscendC::LocalTensor<float> Zeros() {
    return tile_->strip.SpareStat()[static_cast<uint32_t>(2 * kPieceRows)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Row(int64_t which) {
    return rowBuf_.Get<float>()[static_cast<uint32_t>(which * rowFloats_)];
  }

  __aicore__ inline void Clear(const AscendC::GlobalTensor<float>& gm, int64_t rows, int64_t cols, int64_t pitch) {
    AscendC::LocalTensor<float> zeros = tile_->strip.scoresQue().template AllocTensor<float>();
    ClearRows(gm, zeros, tiles_->stripFloats, rows, cols, pitch);
    tile_->strip.scoresQue().FreeTensor(zeros);
  }

  template <typename Que>
  __aicore__ inline AscendC::LocalTensor<float> Load(Que& que, const AscendC::GlobalTensor<float>& sums, int64_t rows,
                                                     int64_t cols, int64_t sumPitch, int64_t pitch) {
    AscendC::LocalTensor<float> tile = que.template AllocTensor<float>();
    CopyRowsIn(tile, sums, rows, cols, sumPitch, pitch);
    que.EnQue(tile);
    return que.template DeQue<float>();
  }

  // `rows` rows of `cols` sums, `sumPitch` apart, to `out` (unless they are there), `outPitch` apart. UB: pitch
  // `pitch`.
  __aicore__ inline void Write(const AscendC::GlobalTensor<T>& out, const AscendC::GlobalTensor<float>& sums,
                               int64_t rows, int64_t cols, int64_t sumPitch, int64_t outPitch, int64_t pitch,
                               bool stores) {
    WaitPipe<AscendC::HardEvent::MTE3_MTE2>();  // without any pair they are as they were cleared
    const int64_t pieceRows = MinOf(kPieceRows, tiles_->stripFloats / pitch);
    for (int64_t r = 0; r < rows; r += pieceRows) {
      const int64_t piece = MinOf(pieceRows, rows - r);
      AscendC::LocalTensor<float> tile =
          Load(tile_->strip.scoresQue(), sums[r * sumPitch], piece, cols, sumPitch, pitch);
      if (stores) tile_->strip.StoreStrip(out[r * outPitch], tile, piece, cols, pitch, outPitch);
      LookAt(tile, piece, cols, pitch);
      tile_->strip.scoresQue().FreeTensor(tile);
    }
  }

  // 0 * x is 0 for finite x only. Destroys the tile.
  __aicore__ inline void LookAt(const AscendC::LocalTensor<float>& tile, int64_t rows, int64_t cols, int64_t pitch) {
    const AscendC::LocalTensor<float> sums = tile_->strip.SpareStat();
    AscendC::Muls(tile, tile, 0.0f, static_cast<int32_t>(rows * pitch));
    AscendC::PipeBarrier<PIPE_V>();
    RowSum(sums, tile, tile_->strip.Work(), rows, cols, pitch);
    AscendC::Add(Zeros(), Zeros(), sums, static_cast<int32_t>(rows));
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void LoadRow(const AscendC::LocalTensor<float>& dst, const AscendC::GlobalTensor<T>& gm,
                                 int32_t cols) {
    AscendC::LocalTensor<T> raw = rowQue_.template AllocTensor<T>();
    CopyRowsIn(raw, gm, 1, cols, cols, rowFloats_);
    rowQue_.EnQue(raw);
    raw = rowQue_.template DeQue<T>();
    if constexpr (kIsFloat) {
      AscendC::Adds(dst, raw, 0.0f, cols);
    } else {
      AscendC::Cast(dst, raw, AscendC::RoundMode::CAST_NONE, cols);
    }
    AscendC::PipeBarrier<PIPE_V>();
    rowQue_.FreeTensor(raw);
  }

  __aicore__ inline void AddTo(const AscendC::GlobalTensor<float>& gm, const AscendC::LocalTensor<float>& row,
                               int64_t cols) {
    WaitPipe<AscendC::HardEvent::V_MTE3>();
    AscendC::SetAtomicAdd<float>();
    CopyRowsOut(gm, row, 1, cols, cols, rowFloats_);
    AscendC::SetAtomicNone();
    WaitPipe<AscendC::HardEvent::MTE3_V>();
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  FlashGradTile<T>* tile_;
  int64_t rowFloats_;
  int64_t slotFloats_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> rowQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> rowBuf_;
  AscendC::GlobalTensor<T> queryGm_;
  AscendC::GlobalTensor<T> keyGm_;
  AscendC::GlobalTensor<T> dyGm_;
  AscendC::GlobalTensor<T> dqGm_;
  AscendC::GlobalTensor<T> dkGm_;
  AscendC::GlobalTensor<T> dvGm_;
  AscendC::GlobalTensor<float> slotsGm_;
  AscendC::GlobalTensor<float> querySumGm_;
  AscendC::GlobalTensor<float> keySumGm_;
  AscendC::GlobalTensor<float> valueSumGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_SUMS_H_
