// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// One tile of the gradient: query rows of a head x keys. The two products before the strips, the three after them.
//
// L1: key and value of a super-block, key twice; query and dy of a query block for dk and dv. Of the keys one copy is
// for scores and one for dq on the CPU, whose panels serve one side of a product only; on the card, which is two tasks
// ahead with scores, one is for every other super-block. Workspace: scores and dprobs [qRows, scoreRow] fp32 of each
// task under way, P and dS in T in their place; delta of FlashGradStrip.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_TILE_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_TILE_H_

#include "attention/flash_attention_score/flash_attention_score_grad_strip.h"
#include "attention/flash_attention_score/flash_attention_score_operand.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

// The arguments of the kernel.
struct FlashGradArgs {
  GM_ADDR query;
  GM_ADDR key;
  GM_ADDR value;
  GM_ADDR realShift;
  GM_ADDR dropMask;
  GM_ADDR attnMask;
  GM_ADDR prefix;
  GM_ADDR qEnds;
  GM_ADDR kvEnds;
  GM_ADDR sink;
  GM_ADDR seedOffset;
  GM_ADDR slopes;
  GM_ADDR dq;
  GM_ADDR dk;
  GM_ADDR dv;
  GM_ADDR dpse;
  GM_ADDR dsink;
  FlashGradInputs inputs;
};

// Rows [row, row + rows) of head tile.head x the keys of the tile, which lie in the super-block from `super` on.
struct FlashGradBlock {
  int64_t kvHead;
  int64_t row;
  int64_t rows;
  int64_t super;
  FlashTile tile;
  int64_t place = 0;       // in the ring of tasks under way
  int64_t sumRow = 0;      // its first row among those whose dq is summed and whose delta is in the workspace,
  int64_t sumKey = 0;      //   its first key among those whose dk and dv are
  bool beginsRows = true;  // the task before had other rows
};

template <typename T>
class FlashGradTile {
  using GmIn = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  using GmInTransposed = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T, true>;
  using L1Rows = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T>;
  using L1RowsTransposed = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T, true>;
  using GmOut = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

 public:
  FlashCubeWork<matmul::Matmul<GmIn, L1RowsTransposed, GmOut>> scores;
  FlashCubeWork<matmul::Matmul<GmIn, L1RowsTransposed, GmOut>> dprobs;
  FlashCubeWork<matmul::Matmul<GmInTransposed, L1Rows, GmOut>> valueGrad;
  FlashCubeWork<matmul::Matmul<GmInTransposed, L1Rows, GmOut>> keyGrad;
  FlashCubeWork<matmul::Matmul<GmIn, L1Rows, GmOut>> queryGrad;

  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreGradTilingData* tiling,
                              const FlashGradArgs& args, GM_ADDR workspace) {
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    queryGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.query));
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(args.inputs.dy));
    const int64_t superRows = tiles_->superRows;
    // Rows that are far apart in GM are brought together here first.
    const auto room = [&workspace, tiling](int64_t rows, int64_t widthPad) {
      GM_ADDR dense = workspace;
      if (tiling->denseBytes != 0) workspace += rows * widthPad * sizeof(T);
      return dense;
    };
    keyCopies_ = tiling->keyCopies;
    for (int64_t i = 0; i < keyCopies_; ++i) {
      keys_[i].Init(pipe, args.key, room(superRows, tiles_->dPad), superRows, shape_->D, tiles_->dPad, shape_->kRow);
    }
    values_.Init(pipe, args.value, room(superRows, tiles_->dvPad), superRows, shape_->Dv, tiles_->dvPad, shape_->vRow);
    queryRows_.Init(pipe, args.query, room(tiles_->qRows, tiles_->dPad), tiles_->qRows, shape_->D, tiles_->dPad,
                    shape_->qRow);
    dyRows_.Init(pipe, args.inputs.dy, room(tiles_->qRows, tiles_->dvPad), tiles_->qRows, shape_->Dv, tiles_->dvPad,
                 shape_->outRow);
    placeFloats_ = 2 * tiles_->qRows * tiles_->scoreRow;
    scoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
    probsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(workspace));
    workspace += FlashGradPlaces(tiles_->depth) * placeFloats_ * sizeof(float);
    strip.Init(pipe, shape_, tiles_, args.inputs, args.realShift, args.slopes, args.attnMask, args.dropMask,
               args.seedOffset, args.dpse, workspace);
  }

  // scores = query key^T, dprobs = dy value^T
  __aicore__ inline void StartProducts(const FlashSequence& sequence, const FlashGradBlock& block) {
    const int64_t row = sequence.rowBase + block.row;
    const int64_t head = block.tile.head;
    const int64_t query = sequence.index * shape_->qBatch + head * shape_->qHead + row * shape_->qRow;
    const int64_t dy = sequence.index * shape_->outBatch + head * shape_->outHead + row * shape_->outRow;
    FlashOperand<T>& keys = Keys(block, 0);
    AwaitProducts();
    keys.Load(sequence, block.kvHead, block.super, KeyOffset(sequence, block.kvHead));
    values_.Load(sequence, block.kvHead, block.super, sequence.index * shape_->vBatch + block.kvHead * shape_->vHead);
    Product(&scores, block, queryGm_[query], shape_->qRow, shape_->D, keys, ScoresOf(block));
    Product(&dprobs, block, dyGm_[dy], shape_->outRow, shape_->Dv, values_, DprobsOf(block));
  }
  __aicore__ inline void AwaitProducts() {
    scores.Await();
    dprobs.Await();
  }

  // P and dS of rows [r, r + rows) of the block in UB, until StoreStrips or FreeStrips.
  __aicore__ inline void Differentiate(const FlashSequence& sequence, const FlashGradBlock& block, int64_t r,
                                       int64_t rows, bool wantsBiased, bool hides, bool storesPse) {
    strip.Compute(ScoresOf(block), DprobsOf(block), sequence, block.tile, block.row, r, rows, wantsBiased, hides,
                  storesPse);
  }
  __aicore__ inline void StoreStrips(const FlashGradBlock& block, int64_t r, int64_t rows) {
    const int64_t pitch = block.tile.colsPad;
    strip.StoreStrip(ProbsOf(block)[r * probPitch()], strip.probs(), rows, pitch, pitch, probPitch());
    strip.StoreStrip(DscoresOf(block)[r * probPitch()], strip.dscores(), rows, pitch, pitch, probPitch());
    strip.Free();
  }
  __aicore__ inline void FreeStrips() { strip.Free(); }

  // dv += P^T dy and dk += dS^T query: rows of the tile's keys.
  __aicore__ inline void StartKeyValueGrads(const FlashSequence& sequence, const FlashGradBlock& block,
                                            const AscendC::GlobalTensor<float>& dv, int64_t dvPitch,
                                            const AscendC::GlobalTensor<float>& dk, int64_t dkPitch) {
    const int64_t head = block.tile.head;
    FlashSequence rows = sequence;  // FlashOperand counts keys
    rows.keyBase = sequence.rowBase;
    rows.keys = MinOf(sequence.rows, block.row + block.rows);
    dyRows_.Load(rows, head, block.row, sequence.index * shape_->outBatch + head * shape_->outHead);
    AddOverRows(&valueGrad, block, ProbsOf(block), dyRows_, shape_->Dv, dv, dvPitch);
    queryRows_.Load(rows, head, block.row, sequence.index * shape_->qBatch + head * shape_->qHead);
    AddOverRows(&keyGrad, block, DscoresOf(block), queryRows_, shape_->D, dk, dkPitch);
  }
  // Then other rows may come to L1.
  __aicore__ inline void ReleaseRows() {
    dyRows_.Release();
    queryRows_.Release();
  }
  // dq += dS key
  __aicore__ inline void StartQueryGrad(const FlashSequence& sequence, const FlashGradBlock& block,
                                        const AscendC::GlobalTensor<float>& dq, int64_t pitch) {
    FlashOperand<T>& keys = Keys(block, 1);
    if (shape_->kRow > kFlashMaxPitch) AwaitProducts();  // they may still read the rows brought together for them
    keys.Load(sequence, block.kvHead, block.super, KeyOffset(sequence, block.kvHead));
    queryGrad.matmul.SetOrgShape(block.rows, shape_->D, probPitch(), keys.rows(), pitch);
    queryGrad.matmul.SetSingleShape(block.rows, shape_->D, block.tile.cols);
    queryGrad.matmul.SetTensorA(DscoresOf(block));
    queryGrad.matmul.SetTensorB(keys.Rows(block.tile.key - block.super));
    queryGrad.Start(dq, true);
  }
  __aicore__ inline void AwaitGrads() {
    valueGrad.Await();
    keyGrad.Await();
    queryGrad.Await();
  }

  __aicore__ inline void End() {
    scores.matmul.End();
    dprobs.matmul.End();
    valueGrad.matmul.End();
    keyGrad.matmul.End();
    queryGrad.matmul.End();
  }

  FlashGradStrip<T> strip;

 private:
  __aicore__ inline int64_t KeyOffset(const FlashSequence& sequence, int64_t kvHead) const {
    return sequence.index * shape_->kBatch + kvHead * shape_->kHead;
  }

  // The copy for the first or the second use.
  __aicore__ inline FlashOperand<T>& Keys(const FlashGradBlock& block, int64_t use) {
    return keys_[(tiles_->depth == 0 ? use : block.super / tiles_->superRows) % keyCopies_];
  }

  // Each a place after the other: scores, then dprobs. Probabilities lie where their scores were.
  __aicore__ inline AscendC::GlobalTensor<float> ScoresOf(const FlashGradBlock& block) const {
    return scoresGm_[block.place * placeFloats_];
  }
  __aicore__ inline AscendC::GlobalTensor<float> DprobsOf(const FlashGradBlock& block) const {
    return scoresGm_[block.place * placeFloats_ + placeFloats_ / 2];
  }
  __aicore__ inline AscendC::GlobalTensor<T> ProbsOf(const FlashGradBlock& block) const {
    return probsGm_[block.place * placeFloats_ * kProbsOfScore];
  }
  __aicore__ inline AscendC::GlobalTensor<T> DscoresOf(const FlashGradBlock& block) const {
    return probsGm_[(block.place * placeFloats_ + placeFloats_ / 2) * kProbsOfScore];
  }
  __aicore__ inline int64_t probPitch() const { return tiles_->scoreRow * kProbsOfScore; }

  template <typename Work>
  __aicore__ inline void Product(Work* work, const FlashGradBlock& block, const AscendC::GlobalTensor<T>& a,
                                 int64_t aPitch, int64_t width, FlashOperand<T>& columns,
                                 const AscendC::GlobalTensor<float>& out) {
    work->matmul.SetOrgShape(block.rows, columns.rows(), aPitch, width, tiles_->scoreRow);
    work->matmul.SetSingleShape(block.rows, block.tile.cols, width);
    work->matmul.SetTensorA(a);
    work->matmul.SetTensorB(columns.Rows(block.tile.key - block.super), true);
    work->Start(out, false);
  }

  // out += a^T b, b = the block's rows of query or dy
  template <typename Work>
  __aicore__ inline void AddOverRows(Work* work, const FlashGradBlock& block, const AscendC::GlobalTensor<T>& a,
                                     FlashOperand<T>& b, int64_t width, const AscendC::GlobalTensor<float>& out,
                                     int64_t pitch) {
    work->matmul.SetOrgShape(probPitch(), width, block.rows, b.rows(), pitch);
    work->matmul.SetSingleShape(block.tile.cols, width, block.rows);
    work->matmul.SetTensorA(a, true);
    work->matmul.SetTensorB(b.Rows(0));
    work->Start(out, true);
  }

  static constexpr int64_t kProbsOfScore = sizeof(float) / sizeof(T);  // elements that take the place of a score

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  int64_t placeFloats_;  // of a task
  int64_t keyCopies_;
  FlashOperand<T> keys_[2];
  FlashOperand<T> values_;
  FlashOperand<T> queryRows_;
  FlashOperand<T> dyRows_;
  AscendC::GlobalTensor<T> queryGm_;
  AscendC::GlobalTensor<T> dyGm_;
  AscendC::GlobalTensor<float> scoresGm_;
  AscendC::GlobalTensor<T> probsGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_TILE_H_
