// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// attention_out[b, n, i, :] = sum_j P[i, j] value[b, n / G, j, :], P = softmax_j S[i, j], S = Score(query key^T)
//
// A core owns a range of units: chunks of query rows of the G query heads of one kv head. For a unit, super-blocks of
// keys and values are brought to L1; under each, every query block walks the key blocks it sees:
//   scores (workspace) = query key^T            cube
//   strips of scores: Score, online softmax     vector, UB; probabilities to the workspace
//   products (workspace) = probabilities value  cube
//   output (UB) = output * alpha + products     vector
// The running maximum, sum and output of a block live in UB; between super-blocks in the workspace.
// A block whose output is not finite is done again in careful mode, where each hidden pair is left out instead of
// multiplied by 0, so that NaN and infinities reach only rows that see them.
// Results of a row depend on the key blocks alone, which start at multiples of kvCols: not on cores or chunks.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_

#include "attention/flash_attention_score/flash_attention_score_dropout.h"
#include "attention/flash_attention_score/flash_attention_score_operand.h"
#include "attention/flash_attention_score/flash_attention_score_output.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashAttentionScoreKernel {
  using GmIn = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  using L1Rows = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T>;
  using L1RowsTransposed = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T, true>;
  using GmOut = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

 public:
  matmul::Matmul<GmIn, L1RowsTransposed, GmOut> scoreMatmul;  // registered by the entry function
  matmul::Matmul<GmIn, L1Rows, GmOut> valueMatmul;

  __aicore__ inline void Init(AscendC::TPipe* pipe, GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                              GM_ADDR slopes, GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                              GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR attentionOut,
                              GM_ADDR softmaxMax, GM_ADDR softmaxSum, GM_ADDR workspace,
                              const FlashAttentionScoreTilingData* tiling) {
    tiling_ = tiling;
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    const int64_t core = AscendC::GetBlockIdx();
    FlashSequenceWalker sequences;
    sequences.Init(shape_, qEnds, kvEnds, prefix);
    units_.Init(sequences, shape_->Nkv, tiles_->chunkRows, tiling->unitBegin[core], tiling->unitBegin[core + 1]);

    queryGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(query));
    valueGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(value));
    GM_ADDR own = workspace + core * tiling->coreWorkspaceBytes;
    scoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));
    probsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(own));  // each strip in the place of its scores
    own += tiles_->qRows * tiles_->scoreRow * sizeof(float);
    productsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));
    own += tiles_->qRows * tiles_->dvPad * sizeof(float);
    GM_ADDR denseValues = own + tiles_->superRows * tiles_->dPad * sizeof(T);
    keys_.Init(pipe, key, own, tiles_->superRows, shape_->D, tiles_->dPad, shape_->kRow);
    values_.Init(pipe, value, denseValues, tiles_->superRows, shape_->Dv, tiles_->dvPad, shape_->vRow);
    own += tiling->denseBytes;
    stateGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));

    strip_.Init(pipe, shape_, tiles_, realShift, slopes, attnMask);
    dropout_.Init(pipe, shape_, tiles_, dropMask, seedOffset);
    output_.Init(pipe, shape_, tiles_, sink, attentionOut, softmaxMax, softmaxSum);
    pipe->InitBuffer(scoresQue_, 1, tiles_->stripFloats * sizeof(float));
    pipe->InitBuffer(outQue_, 1, tiles_->outElements * sizeof(T));
    pipe->InitBuffer(valueRowQue_, 1, tiles_->dvPad * sizeof(T));
    pipe->InitBuffer(valueRowBuf_, tiles_->dvPad * sizeof(float));
  }

  __aicore__ inline void Process() {
    FlashUnit unit;
    while (units_.Next(&unit)) {
      for (uint64_t& word : retry_) word = 0;
      careful_ = false;
      anyRetry_ = false;
      ProcessUnit(unit);
      careful_ = true;
      if (anyRetry_) ProcessUnit(unit);
    }
    scoreMatmul.End();
    valueMatmul.End();
  }

 private:
  __aicore__ inline void ProcessUnit(const FlashUnit& unit) {
    const FlashBand& band = unit.sequence.band;
    const int64_t superRows = tiles_->superRows;
    const int64_t keyEnd = FlashKeyEnd(band, unit.rowEnd);
    const int64_t firstSuper = FlashKeyBegin(band, unit.rowBegin) / superRows * superRows;
    const int64_t G = shape_->N / shape_->Nkv;
    int64_t super = firstSuper;
    do {  // once even without a visible key: the rows are written
      const bool isLast = super + superRows >= keyEnd;
      int32_t block = 0;
      for (int64_t g = 0; g < G; ++g) {
        for (int64_t row = unit.rowBegin; row < unit.rowEnd; row += tiles_->qRows, ++block) {
          if (careful_ && (retry_[block / 64] & (uint64_t{1} << (block % 64))) == 0) continue;
          ProcessBlock(unit, unit.kvHead * G + g, row, super, block, super == firstSuper, isLast);
        }
      }
      super += superRows;
    } while (super < keyEnd);
  }

  // One query block under one super-block.
  __aicore__ inline void ProcessBlock(const FlashUnit& unit, int64_t head, int64_t row, int64_t super, int32_t block,
                                      bool isFirst, bool isLast) {
    const FlashBand& band = unit.sequence.band;
    const int64_t rows = MinOf(tiles_->qRows, unit.rowEnd - row);
    const int64_t stateOffset = block * output_.stateFloats();
    if (isFirst) {
      output_.Reset(head, rows);
    } else {
      output_.Load(stateGm_[stateOffset]);
    }
    const int64_t kvCols = tiles_->kvCols;
    const int64_t keyEnd = MinOf(FlashKeyEnd(band, row + rows), super + tiles_->superRows);
    bool isEmpty = isFirst;
    for (int64_t key = MaxOf(super, FlashKeyBegin(band, row) / kvCols * kvCols); key < keyEnd; key += kvCols) {
      const int32_t cols = static_cast<int32_t>(MinOf(kvCols, keyEnd - key));
      if (FlashViewOf(band, row, row + rows, key, key + cols) == FlashTileView::kHidden) continue;
      const FlashTile tile = {head, key, cols, static_cast<int32_t>(RoundUpOf(cols, kFlashColsUnit))};
      ProcessTile(unit, tile, row, rows, super, isEmpty);
      isEmpty = false;
    }
    if (!isLast) {
      output_.Store(stateGm_[stateOffset]);
      return;
    }
    if (!careful_ && !output_.IsFinite(scoresQue_, rows)) {
      retry_[block / 64] |= uint64_t{1} << (block % 64);
      anyRetry_ = true;
      return;
    }
    output_.Write(outQue_, strip_.Bits(), unit.sequence, head, row, rows);
  }

  // `isEmpty`: the block has seen no key yet.
  __aicore__ inline void ProcessTile(const FlashUnit& unit, const FlashTile& tile, int64_t row, int64_t rows,
                                     int64_t super, bool isEmpty) {
    const FlashSequence& sequence = unit.sequence;
    const int64_t cols = tile.cols;
    keys_.Load(sequence, unit.kvHead, super, sequence.index * shape_->kBatch + unit.kvHead * shape_->kHead);
    const int64_t queryOffset =
        sequence.index * shape_->qBatch + tile.head * shape_->qHead + (sequence.rowBase + row) * shape_->qRow;
    scoreMatmul.SetOrgShape(rows, keys_.rows(), shape_->qRow, shape_->D, tiles_->scoreRow);
    scoreMatmul.SetSingleShape(rows, cols, shape_->D);
    scoreMatmul.SetTensorA(queryGm_[queryOffset]);
    scoreMatmul.SetTensorB(keys_.Rows(tile.key - super), true);
    scoreMatmul.IterateAll(scoresGm_);

    for (int64_t r = 0; r < rows; r += tiles_->stripRows) {
      Softmax(sequence, unit.kvHead, tile, row, r, MinOf(tiles_->stripRows, rows - r));
    }
    if (careful_) return;
    WaitPipe<AscendC::HardEvent::MTE3_S>();  // the cube reads the probabilities next

    values_.Load(sequence, unit.kvHead, super, sequence.index * shape_->vBatch + unit.kvHead * shape_->vHead);
    valueMatmul.SetOrgShape(rows, shape_->Dv, tiles_->scoreRow * sizeof(float) / sizeof(T), values_.rows(),
                            tiles_->dvPad);
    valueMatmul.SetSingleShape(rows, shape_->Dv, cols);
    valueMatmul.SetTensorA(probsGm_);
    valueMatmul.SetTensorB(values_.Rows(tile.key - super));
    valueMatmul.IterateAll(productsGm_);
    output_.Accumulate(scoresQue_, productsGm_, rows, isEmpty);
  }

  // Rows [r, r + rows) of the block that starts at `row`: scores to probabilities.
  __aicore__ inline void Softmax(const FlashSequence& sequence, int64_t kvHead, const FlashTile& tile, int64_t row,
                                 int64_t r, int64_t rows) {
    AscendC::LocalTensor<float> scores = scoresQue_.template AllocTensor<float>();
    CopyRowsIn(scores, scoresGm_[r * tiles_->scoreRow], rows, tile.cols, tiles_->scoreRow, tile.colsPad);
    scoresQue_.EnQue(scores);
    scores = scoresQue_.template DeQue<float>();
    strip_.Score(scores, sequence, tile, row + r, rows, false, scores);

    const uint32_t compareCount = static_cast<uint32_t>(RoundUpOf(rows * tile.colsPad, kFlashCompareUnit));
    if (careful_) {  // remember what is visible
      AscendC::CompareScalar(strip_.Bits(), scores, kFlashHidden, AscendC::CMPMODE::NE, compareCount);
      AscendC::PipeBarrier<PIPE_V>();
    }
    const uint32_t m = static_cast<uint32_t>(rows);
    const uint32_t k = static_cast<uint32_t>(tile.colsPad);
    AscendC::SoftmaxFlashV2<float, true>(
        scores, output_.Sum(r), output_.Max(r), scores, output_.Alpha(r), output_.Sum(r), output_.Max(r),
        strip_.Work().template ReinterpretCast<uint8_t>(), SoftMaxTiling{}, AscendC::SoftMaxShapeInfo{m, k, m, k});
    AscendC::PipeBarrier<PIPE_V>();
    dropout_.Apply(scores, strip_.Work(), sequence, tile, row + r, rows);
    if (careful_) {
      AscendC::Select(scores, strip_.Bits(), scores, -1.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, compareCount);
      AddVisible(scores, sequence, kvHead, tile, r, rows);
    } else {
      StoreProbs(scores, tile, r, rows);
    }
    scoresQue_.FreeTensor(scores);
  }

  __aicore__ inline void StoreProbs(const AscendC::LocalTensor<float>& probs, const FlashTile& tile, int64_t r,
                                    int64_t rows) {
    const int64_t pitch = tiles_->scoreRow * sizeof(float) / sizeof(T);
    if constexpr (std::is_same_v<T, float>) {  // as they are; the next strip must not come in before they are out
      WaitPipe<AscendC::HardEvent::V_MTE3>();
      CopyRowsOut(probsGm_[r * pitch], probs, rows, tile.colsPad, pitch, tile.colsPad);
      WaitPipe<AscendC::HardEvent::MTE3_MTE2>();
    } else {
      AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
      AscendC::Cast(out, probs, AscendC::RoundMode::CAST_RINT, static_cast<int32_t>(rows * tile.colsPad));
      outQue_.EnQue(out);
      out = outQue_.template DeQue<T>();
      CopyRowsOut(probsGm_[r * pitch], out, rows, tile.colsPad, pitch, tile.colsPad);
      outQue_.FreeTensor(out);
    }
  }

  // Careful mode: output += probs value, pair by pair. A negative probability marks a hidden pair.
  __aicore__ inline void AddVisible(const AscendC::LocalTensor<float>& probs, const FlashSequence& sequence,
                                    int64_t kvHead, const FlashTile& tile, int64_t r, int64_t rows) {
    output_.Rescale(r, rows);
    const int32_t Dv = static_cast<int32_t>(shape_->Dv);
    const int64_t offset =
        sequence.index * shape_->vBatch + kvHead * shape_->vHead + (sequence.keyBase + tile.key) * shape_->vRow;
    const AscendC::LocalTensor<float> wide = valueRowBuf_.Get<float>();
    for (int32_t c = 0; c < tile.cols; ++c) {
      AscendC::LocalTensor<T> value = valueRowQue_.template AllocTensor<T>();
      CopyRowsIn(value, valueGm_[offset + c * shape_->vRow], 1, Dv, Dv, tiles_->dvPad);
      valueRowQue_.EnQue(value);
      value = valueRowQue_.template DeQue<T>();
      if constexpr (std::is_same_v<T, float>) {
        AscendC::Adds(wide, value, 0.0f, Dv);
      } else {
        AscendC::Cast(wide, value, AscendC::RoundMode::CAST_NONE, Dv);
      }
      valueRowQue_.FreeTensor(value);
      WaitPipe<AscendC::HardEvent::V_S>();
      for (int64_t i = 0; i < rows; ++i) {
        const float p = probs.GetValue(static_cast<uint32_t>(i * tile.colsPad + c));
        if (!(p < 0.0f)) AscendC::Axpy(output_.Row(r + i), wide, p, Dv);
      }
      AscendC::PipeBarrier<PIPE_V>();
    }
    WaitPipe<AscendC::HardEvent::S_MTE2>();  // the next strip takes the place of the probabilities
  }

  const FlashAttentionScoreTilingData* tiling_;
  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  FlashUnitWalker units_;
  bool careful_;
  bool anyRetry_;
  uint64_t retry_[kFlashMaxBlocksPerUnit / 64];  // blocks of the unit that must be done carefully
  FlashOperand<T> keys_;
  FlashOperand<T> values_;
  FlashScoreStrip<T> strip_;
  FlashDropout dropout_;
  FlashOutput<T> output_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> scoresQue_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> valueRowQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> valueRowBuf_;
  AscendC::GlobalTensor<T> queryGm_;
  AscendC::GlobalTensor<T> valueGm_;
  AscendC::GlobalTensor<float> scoresGm_;
  AscendC::GlobalTensor<float> productsGm_;
  AscendC::GlobalTensor<T> probsGm_;
  AscendC::GlobalTensor<float> stateGm_;
};

template <typename T, typename Mask>
__aicore__ inline void FlashAttentionScoreRun(GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                                              GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                                              GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR slopes,
                                              GM_ADDR attentionOut, GM_ADDR softmaxMax, GM_ADDR softmaxSum,
                                              GM_ADDR workspace, const FlashAttentionScoreTilingData* tiling) {
  static_assert(sizeof(Mask) == 1, "attn_mask has one byte for each pair");
  AscendC::TPipe pipe;
  FlashAttentionScoreKernel<T> op;
  const FlashAttentionScoreTiles& tiles = tiling->tiles;
  TCubeTiling scoreTiling = FlashCubeTiling(tiles.qRows, tiles.kvCols, tiling->shape.D, kFlashCubeRows, sizeof(T));
  TCubeTiling valueTiling = FlashCubeTiling(tiles.qRows, tiling->shape.Dv, tiles.kvCols, kFlashCubeRows, sizeof(T));
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.scoreMatmul, &scoreTiling, op.valueMatmul, &valueTiling);
  op.Init(&pipe, query, key, value, realShift, slopes, dropMask, attnMask, prefix, qEnds, kvEnds, sink, seedOffset,
          attentionOut, softmaxMax, softmaxSum, workspace, tiling);
  op.Process();
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
