// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// dv = P^T dy, dk = dS^T query, dq = dS key, with P and dS of flash_attention_score_grad_strip.h
//
// A core owns a range of units (flash_attention_score_grad_units.h). For a unit, chunk by chunk of query rows and under
// each super-block by super-block of keys and values in L1, every query block walks the key blocks it sees:
//   scores, dprobs (workspace) = query key^T, dy value^T             cube
//   strips of both to P and dS                                       vector, UB; in T to the workspace
//   dv += P^T dy, dk += dS^T query, dq += dS key                     cube, fp32 in GM
// dq is summed in the workspace, dk and dv in the outputs themselves (fp32) or the workspace. Each sum runs over the
// blocks in order, and the blocks start at multiples of qRows and kvCols, so results depend neither on cores nor on how
// the units are cut.
// A unit whose results are not finite is done again in careful mode, which adds pair by pair and leaves hidden pairs
// out, so that NaN and infinities reach only what sees them.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_

#include "attention/flash_attention_score/flash_attention_score_grad_bias.h"
#include "attention/flash_attention_score/flash_attention_score_grad_sums.h"
#include "attention/flash_attention_score/flash_attention_score_grad_tile.h"
#include "attention/flash_attention_score/flash_attention_score_grad_units.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashAttentionScoreGradKernel {
 public:
  FlashGradTile<T> tile;  // its Matmul objects are registered by the entry function

  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashGradArgs& args, GM_ADDR workspace,
                              const FlashAttentionScoreGradTilingData* tiling) {
    tiling_ = tiling;
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    core_ = AscendC::GetBlockIdx();
    sequences_.Init(shape_, args.qEnds, args.kvEnds, args.prefix);
    GM_ADDR own = workspace + core_ * tiling->coreWorkspaceBytes;
    tile.Init(pipe, tiling, args, own);
    own += tiling->tileBytes;
    sums_.Init(pipe, tiling, &tile, args, own);
    bias_.Init(tiling, &tile, sequences_, args, own);
  }

  __aicore__ inline void Process() {
    const int64_t begin = tiling_->unitBegin[core_];
    const int64_t end = tiling_->unitBegin[core_ + 1];
    FlashGradUnitWalker units;
    units.Init(sequences_, tiling_, begin, MinOf(end, tiling_->pairUnits));
    FlashGradUnit unit;
    while (units.Next(&unit)) {
      if (!ProcessUnit(unit, false)) ProcessUnit(unit, true);
    }
    const int64_t sinkBegin = tiling_->pairUnits + tiling_->pseUnits;
    for (int64_t i = MaxOf(begin, tiling_->pairUnits); i < end; ++i) {
      if (i < sinkBegin) {
        bias_.ProcessPse(i - tiling_->pairUnits);
      } else {
        bias_.ProcessSink(i - sinkBegin);
      }
    }
    tile.End();
  }

 private:
  // Whether all results are finite; always true in careful mode.
  __aicore__ inline bool ProcessUnit(const FlashGradUnit& unit, bool careful) {
    const int64_t G = shape_->N / shape_->Nkv;
    bool finite = true;
    if (unit.givesKeyValue) sums_.ClearKeyValue(unit);
    for (int64_t g = 0; g < G; ++g) {
      const int64_t head = unit.kvHead * G + g;
      const bool storesPse = unit.givesQuery && tiling_->pseDirect != 0;
      if (storesPse) bias_.ClearPse(unit.sequence, head, unit.rowBegin, unit.rowEnd);
      for (int64_t chunk = unit.rowBegin; chunk < unit.rowEnd; chunk += tiles_->chunkRows) {
        const int64_t chunkEnd = MinOf(chunk + tiles_->chunkRows, unit.rowEnd);
        if (unit.givesQuery) sums_.ClearQuery(chunkEnd - chunk);
        ProcessChunk(unit, head, chunk, chunkEnd, storesPse, careful);
        if (unit.givesQuery) finite = sums_.WriteQuery(unit.sequence, head, chunk, chunkEnd) && finite;
      }
    }
    if (unit.givesKeyValue) finite = sums_.WriteKeyValue(unit) && finite;
    return finite || careful;
  }

  __aicore__ inline void ProcessChunk(const FlashGradUnit& unit, int64_t head, int64_t chunk, int64_t chunkEnd,
                                      bool storesPse, bool careful) {
    const FlashBand& band = unit.sequence.band;
    const int64_t superRows = tiles_->superRows;
    const int64_t keyEnd = MinOf(unit.keyEnd, FlashKeyEnd(band, chunkEnd));
    const int64_t keyBegin = MaxOf(unit.keyBegin, FlashKeyBegin(band, chunk));
    for (int64_t super = keyBegin / superRows * superRows; super < keyEnd; super += superRows) {
      for (int64_t row = chunk; row < chunkEnd; row += tiles_->qRows) {
        const int64_t rows = MinOf(tiles_->qRows, chunkEnd - row);
        const int64_t end = MinOf(MinOf(unit.keyEnd, FlashKeyEnd(band, row + rows)), super + superRows);
        const int64_t first = MaxOf(FlashKeyBegin(band, row) / tiles_->kvCols * tiles_->kvCols, unit.keyBegin);
        int64_t key = MaxOf(super, first);
        if (key >= end) continue;
        tile.LoadRows(unit.sequence, head, row, rows);
        for (; key < end; key += tiles_->kvCols) {
          const int32_t cols = static_cast<int32_t>(MinOf(tiles_->kvCols, end - key));
          if (FlashViewOf(band, row, row + rows, key, key + cols) == FlashTileView::kHidden) continue;
          const FlashGradBlock block = {
              unit.kvHead, row, rows, super, {head, key, cols, static_cast<int32_t>(RoundUpOf(cols, kFlashColsUnit))}};
          tile.Products(unit.sequence, block);
          if (careful) {
            AddPairs(unit, block, row - chunk, storesPse);
          } else {
            AddTile(unit, block, row - chunk, storesPse);
          }
        }
      }
    }
  }

  __aicore__ inline void AddTile(const FlashGradUnit& unit, const FlashGradBlock& block, int64_t chunkRow,
                                 bool storesPse) {
    for (int64_t r = 0; r < block.rows; r += tiles_->stripRows) {
      const int64_t rows = MinOf(tiles_->stripRows, block.rows - r);
      tile.Differentiate(unit.sequence, block, r, rows, false, false, storesPse);
      tile.StoreStrips(block, r, rows);
    }
    WaitPipe<AscendC::HardEvent::MTE3_S>();  // the cube reads P and dS next
    if (unit.givesKeyValue) {
      tile.AddValueGrad(unit.sequence, block, sums_.ValueRows(unit, block.tile.key), sums_.valuePitch());
      tile.AddKeyGrad(unit.sequence, block, sums_.KeyRows(unit, block.tile.key), sums_.keyPitch());
    }
    if (unit.givesQuery) tile.AddQueryGrad(unit.sequence, block, sums_.QueryRows(chunkRow), tiles_->dPad);
  }

  // Careful mode: pair by pair, only those that are visible.
  __aicore__ inline void AddPairs(const FlashGradUnit& unit, const FlashGradBlock& block, int64_t chunkRow,
                                  bool storesPse) {
    for (int64_t r = 0; r < block.rows; r += tiles_->stripRows) {
      const int64_t rows = MinOf(tiles_->stripRows, block.rows - r);
      tile.Differentiate(unit.sequence, block, r, rows, false, true, storesPse);
      WaitPipe<AscendC::HardEvent::V_S>();
      for (int64_t i = 0; i < rows; ++i) sums_.AddRow(unit, block, r + i, i, chunkRow + r + i);
      WaitPipe<AscendC::HardEvent::S_MTE2>();  // the next strips take the place of these
      tile.FreeStrips();
    }
  }

  const FlashAttentionScoreGradTilingData* tiling_;
  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  int64_t core_;
  FlashSequenceWalker sequences_;
  FlashGradSums<T> sums_;
  FlashGradBias<T> bias_;
};

template <typename T, typename Mask>
__aicore__ inline void FlashAttentionScoreGradRun(GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                                                  GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                                                  GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR slopes,
                                                  GM_ADDR softmaxMax, GM_ADDR softmaxSum, GM_ADDR attentionIn,
                                                  GM_ADDR dy, GM_ADDR dlse, GM_ADDR dq, GM_ADDR dk, GM_ADDR dv,
                                                  GM_ADDR dpse, GM_ADDR dsink, GM_ADDR workspace,
                                                  const FlashAttentionScoreGradTilingData* tiling) {
  static_assert(sizeof(Mask) == 1, "attn_mask has one byte for each pair");
  AscendC::TPipe pipe;
  FlashAttentionScoreGradKernel<T> op;
  const FlashAttentionScoreTiles& t = tiling->tiles;
  const int64_t width = MaxOf(tiling->shape.D, tiling->shape.Dv);
  TCubeTiling products = FlashCubeTiling(t.qRows, t.kvCols, width, kFlashGradCubeRows, sizeof(T));
  TCubeTiling overRows = FlashCubeTiling(t.kvCols, width, t.qRows, kFlashGradCubeRows, sizeof(T));
  TCubeTiling overKeys = FlashCubeTiling(t.qRows, tiling->shape.D, t.kvCols, kFlashGradCubeRows, sizeof(T));
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.tile.productMatmul, &products, op.tile.overRowsMatmul, &overRows,
                    op.tile.overKeysMatmul, &overKeys);
  const FlashGradArgs args = {
      query,  key,   value,  realShift, dropMask,   attnMask,
      prefix, qEnds, kvEnds, sink,      seedOffset, slopes,
      dq,     dk,    dv,     dpse,      dsink,      {dy, attentionIn, softmaxMax, softmaxSum, dlse}};
  op.Init(&pipe, args, workspace, tiling);
  op.Process();
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_
