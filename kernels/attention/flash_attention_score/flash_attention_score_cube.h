// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the cube does for the forward kernel: scores = query key^T and products = probabilities value of a task, key
// block by key block or, where L1 has no room for one, piece by piece.
//
// L1: a query block, and of keys and values a super-block of several key blocks or a piece of one.
// Workspace: rings of scores, in whose place come the probabilities, and of products.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_CUBE_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_CUBE_H_

#include "attention/flash_attention_score/flash_attention_score_operand.h"
#include "attention/flash_attention_score/flash_attention_score_tasks.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashCube {
  using GmIn = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  using L1Rows = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T>;
  using L1RowsTransposed = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T, true>;
  using GmOut = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

  static constexpr int64_t kProbsOfScore = sizeof(float) / sizeof(T);  // elements that take the place of a score

 public:
  FlashCubeWork<matmul::Matmul<L1Rows, L1RowsTransposed, GmOut>> scoreWork;
  FlashCubeWork<matmul::Matmul<GmIn, L1Rows, GmOut>> productWork;

  // `workspace`: of the core; the place after what the cube takes of it.
  __aicore__ inline GM_ADDR Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                                 const FlashAttentionScoreTiles* tiles, GM_ADDR query, GM_ADDR key, GM_ADDR value,
                                 GM_ADDR workspace, int64_t denseBytes) {
    shape_ = shape;
    tiles_ = tiles;
    pieces_ = CeilDivOf(tiles->kvCols, tiles->superRows);
    scoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
    probsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(workspace));
    workspace += (carefulPlace() + 1) * tiles->qRows * tiles->scoreRow * sizeof(float);
    productsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
    workspace += FlashPlaces(tiles->depth) * tiles->qRows * tiles->dvPad * sizeof(float);
    const int64_t queryRows = RoundUpOf(tiles->qRows, kFlashFractalRows);
    GM_ADDR denseKeys = workspace + queryRows * tiles->dPad * sizeof(T);
    GM_ADDR denseValues = denseKeys + tiles->superRows * tiles->dPad * sizeof(T);
    queries_.Init(pipe, query, workspace, queryRows, shape->D, tiles->dPad, shape->qRow);
    keys_.Init(pipe, key, denseKeys, tiles->superRows, shape->D, tiles->dPad, shape->kRow);
    values_.Init(pipe, value, denseValues, tiles->superRows, shape->Dv, tiles->dvPad, shape->vRow);
    return workspace + denseBytes;
  }

  __aicore__ inline void End() {
    scoreWork.matmul.End();
    productWork.matmul.End();
  }

  __aicore__ inline int64_t pieces() const { return pieces_; }
  // For scores beside the ring; with depth 0 there is one place only.
  __aicore__ inline int64_t carefulPlace() const { return tiles_->scorePlaces + tiles_->depth - 1; }
  __aicore__ inline AscendC::GlobalTensor<float> ScoresOf(const FlashTask& task, int64_t r) const {
    return scoresGm_[ScoresOffset(task) + r * tiles_->scoreRow];
  }
  // Probabilities lie where their scores were: elements from one row to the next.
  __aicore__ inline int64_t probPitch() const { return tiles_->scoreRow * kProbsOfScore; }
  __aicore__ inline AscendC::GlobalTensor<T> ProbsOf(const FlashTask& task, int64_t r) const {
    return probsGm_[ScoresOffset(task) * kProbsOfScore + r * probPitch()];
  }
  __aicore__ inline AscendC::GlobalTensor<float> ProductsOf(const FlashTask& task) const {
    return productsGm_[task.turn * tiles_->qRows * tiles_->dvPad];
  }

  // Keys or values of a piece come to L1 as soon as there is room, which is when the product before is done.
  __aicore__ inline void LoadKeys(const FlashTask& task, int64_t piece) {
    const FlashPiece keys = PieceOf(task.tile, piece);
    if (keys.begin == keys.end) return;
    keys_.Load(task.sequence, task.kvHead, keys.super,
               task.sequence.index * shape_->kBatch + task.kvHead * shape_->kHead);
  }
  __aicore__ inline void LoadValues(const FlashTask& task, int64_t piece) {
    values_.Load(task.sequence, task.kvHead, PieceOf(task.tile, piece).super,
                 task.sequence.index * shape_->vBatch + task.kvHead * shape_->vHead);
  }

  __aicore__ inline void Scores(const FlashTask& task, int64_t piece) {
    const FlashPiece keys = PieceOf(task.tile, piece);
    if (keys.begin == keys.end) return;
    scoreWork.Await();
    LoadQueries(task);
    LoadKeys(task, piece);
    scoreWork.matmul.SetOrgShape(queries_.rows(), keys_.rows(), shape_->D, shape_->D, tiles_->scoreRow);
    scoreWork.matmul.SetSingleShape(task.rows, keys.end - keys.begin, shape_->D);
    scoreWork.matmul.SetTensorA(queries_.Rows(0));
    scoreWork.matmul.SetTensorB(keys_.Rows(keys.begin - keys.super), true);
    scoreWork.Start(ScoresOf(task, 0)[keys.begin - task.tile.key], false);
  }

  // The probabilities must be there.
  __aicore__ inline void Products(const FlashTask& task, int64_t piece) {
    const FlashPiece keys = PieceOf(task.tile, piece);
    if (keys.begin == keys.end) return;
    productWork.Await();
    LoadValues(task, piece);
    productWork.matmul.SetOrgShape(task.rows, shape_->Dv, probPitch(), values_.rows(), tiles_->dvPad);
    productWork.matmul.SetSingleShape(task.rows, shape_->Dv, keys.end - keys.begin);
    productWork.matmul.SetTensorA(ProbsOf(task, 0)[keys.begin - task.tile.key]);
    productWork.matmul.SetTensorB(values_.Rows(keys.begin - keys.super));
    productWork.Start(ProductsOf(task), piece != 0);
  }

 private:
  // Keys [begin, end) of a key block, which is one piece if L1 has room for all. In L1 with them are those from `super`
  // on: the blocks of a super-block, or just them.
  struct FlashPiece {
    int64_t begin;
    int64_t end;
    int64_t super;
  };
  __aicore__ inline FlashPiece PieceOf(const FlashTile& tile, int64_t piece) const {
    const int64_t most = MinOf(tiles_->superRows, tiles_->kvCols);
    const int64_t end = MinOf(tile.key + (piece + 1) * most, tile.key + tile.cols);
    const int64_t begin = MinOf(tile.key + piece * most, end);
    return {begin, end, pieces_ > 1 ? begin : begin / tiles_->superRows * tiles_->superRows};
  }

  __aicore__ inline int64_t ScoresOffset(const FlashTask& task) const {
    return task.scores * tiles_->qRows * tiles_->scoreRow;
  }
  // The query block comes to L1 once for all of its tasks.
  __aicore__ inline void LoadQueries(const FlashTask& task) {
    FlashSequence rows = task.sequence;
    rows.keyBase = rows.rowBase;
    rows.keys = task.row + task.rows;
    queries_.Load(rows, task.tile.head, task.row, rows.index * shape_->qBatch + task.tile.head * shape_->qHead);
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  int64_t pieces_;  // of a key block
  FlashOperand<T> queries_;
  FlashOperand<T> keys_;
  FlashOperand<T> values_;
  AscendC::GlobalTensor<float> scoresGm_;
  AscendC::GlobalTensor<T> probsGm_;
  AscendC::GlobalTensor<float> productsGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_CUBE_H_
