// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// One tile of the gradient: query rows of a head x keys. The two products before the strips, the three after them.
//
// L1: key and value of a super-block for the products, on the CPU key again for dq; query and dy of a query block for
// dk and dv.
// Workspace: scores and dprobs [qRows, scoreRow] fp32, P and dS [qRows, probRow] in T.
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
};

template <typename T>
class FlashGradTile {
  using GmIn = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  using GmInTransposed = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T, true>;
  using L1Rows = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T>;
  using L1RowsTransposed = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T, true>;
  using GmOut = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

 public:
  matmul::Matmul<GmIn, L1RowsTransposed, GmOut> productMatmul;
  matmul::Matmul<GmInTransposed, L1Rows, GmOut> overRowsMatmul;
  matmul::Matmul<GmIn, L1Rows, GmOut> overKeysMatmul;

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
    keyColumns_.Init(pipe, args.key, room(superRows, tiles_->dPad), superRows, shape_->D, tiles_->dPad, shape_->kRow);
    valueColumns_.Init(pipe, args.value, room(superRows, tiles_->dvPad), superRows, shape_->Dv, tiles_->dvPad,
                       shape_->vRow);
    keysOnce_ = tiling->keysOnce != 0;
    if (!keysOnce_) {
      keyRows_.Init(pipe, args.key, room(superRows, tiles_->dPad), superRows, shape_->D, tiles_->dPad, shape_->kRow);
    }
    queryRows_.Init(pipe, args.query, room(tiles_->qRows, tiles_->dPad), tiles_->qRows, shape_->D, tiles_->dPad,
                    shape_->qRow);
    dyRows_.Init(pipe, args.inputs.dy, room(tiles_->qRows, tiles_->dvPad), tiles_->qRows, shape_->Dv, tiles_->dvPad,
                 shape_->outRow);
    const int64_t floats = tiles_->qRows * tiles_->scoreRow;
    const int64_t elements = tiles_->qRows * tiles_->probRow;
    scoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
    dprobsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace) + floats);
    workspace += 2 * floats * sizeof(float);
    probsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(workspace));
    dscoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(workspace) + elements);
    strip.Init(pipe, shape_, tiles_, args.inputs, args.realShift, args.slopes, args.attnMask, args.dropMask,
               args.seedOffset, args.dpse);
  }

  __aicore__ inline void LoadRows(const FlashSequence& sequence, int64_t head, int64_t row, int64_t rows) {
    strip.LoadRows(sequence, head, row, rows);
  }

  // scores = query key^T, dprobs = dy value^T
  __aicore__ inline void Products(const FlashSequence& sequence, const FlashGradBlock& block) {
    keyColumns_.Load(sequence, block.kvHead, block.super, KeyOffset(sequence, block.kvHead));
    valueColumns_.Load(sequence, block.kvHead, block.super,
                       sequence.index * shape_->vBatch + block.kvHead * shape_->vHead);
    const int64_t row = sequence.rowBase + block.row;
    const int64_t head = block.tile.head;
    const int64_t query = sequence.index * shape_->qBatch + head * shape_->qHead + row * shape_->qRow;
    const int64_t dy = sequence.index * shape_->outBatch + head * shape_->outHead + row * shape_->outRow;
    Product(block, queryGm_[query], shape_->qRow, shape_->D, keyColumns_, scoresGm_);
    Product(block, dyGm_[dy], shape_->outRow, shape_->Dv, valueColumns_, dprobsGm_);
  }

  // P and dS of rows [r, r + rows) of the block in UB, until StoreStrips or FreeStrips.
  __aicore__ inline void Differentiate(const FlashSequence& sequence, const FlashGradBlock& block, int64_t r,
                                       int64_t rows, bool wantsBiased, bool hides, bool storesPse) {
    strip.Compute(scoresGm_, dprobsGm_, sequence, block.tile, block.row, r, rows, wantsBiased, hides, storesPse);
  }
  __aicore__ inline void StoreStrips(const FlashGradBlock& block, int64_t r, int64_t rows) {
    const int64_t pitch = block.tile.colsPad;
    strip.StoreStrip(probsGm_[r * tiles_->probRow], strip.probs(), rows, pitch, pitch, tiles_->probRow);
    strip.StoreStrip(dscoresGm_[r * tiles_->probRow], strip.dscores(), rows, pitch, pitch, tiles_->probRow);
    strip.Free();
  }
  __aicore__ inline void FreeStrips() { strip.Free(); }

  // dv += P^T dy, dk += dS^T query: rows of the tile's keys, `pitch` floats apart.
  __aicore__ inline void AddValueGrad(const FlashSequence& sequence, const FlashGradBlock& block,
                                      const AscendC::GlobalTensor<float>& dv, int64_t pitch) {
    const int64_t offset = sequence.index * shape_->outBatch + block.tile.head * shape_->outHead;
    AddOverRows(sequence, block, probsGm_, dyRows_, offset, shape_->Dv, dv, pitch);
  }
  __aicore__ inline void AddKeyGrad(const FlashSequence& sequence, const FlashGradBlock& block,
                                    const AscendC::GlobalTensor<float>& dk, int64_t pitch) {
    const int64_t offset = sequence.index * shape_->qBatch + block.tile.head * shape_->qHead;
    AddOverRows(sequence, block, dscoresGm_, queryRows_, offset, shape_->D, dk, pitch);
  }

  // dq += dS key
  __aicore__ inline void AddQueryGrad(const FlashSequence& sequence, const FlashGradBlock& block,
                                      const AscendC::GlobalTensor<float>& dq, int64_t pitch) {
    FlashOperand<T>& keys = keysOnce_ ? keyColumns_ : keyRows_;
    keys.Load(sequence, block.kvHead, block.super, KeyOffset(sequence, block.kvHead));
    overKeysMatmul.SetOrgShape(block.rows, shape_->D, tiles_->probRow, keys.rows(), pitch);
    overKeysMatmul.SetSingleShape(block.rows, shape_->D, block.tile.cols);
    overKeysMatmul.SetTensorA(dscoresGm_);
    overKeysMatmul.SetTensorB(keys.Rows(block.tile.key - block.super));
    overKeysMatmul.IterateAll(dq, 1);
  }

  __aicore__ inline void End() {
    productMatmul.End();
    overRowsMatmul.End();
    overKeysMatmul.End();
  }

  FlashGradStrip<T> strip;

 private:
  __aicore__ inline int64_t KeyOffset(const FlashSequence& sequence, int64_t kvHead) const {
    return sequence.index * shape_->kBatch + kvHead * shape_->kHead;
  }

  __aicore__ inline void Product(const FlashGradBlock& block, const AscendC::GlobalTensor<T>& a, int64_t aPitch,
                                 int64_t width, FlashOperand<T>& columns, const AscendC::GlobalTensor<float>& out) {
    productMatmul.SetOrgShape(block.rows, columns.rows(), aPitch, width, tiles_->scoreRow);
    productMatmul.SetSingleShape(block.rows, block.tile.cols, width);
    productMatmul.SetTensorA(a);
    productMatmul.SetTensorB(columns.Rows(block.tile.key - block.super), true);
    productMatmul.IterateAll(out);
  }

  // out += a^T b, b = rows of the block's head in query or dy
  __aicore__ inline void AddOverRows(const FlashSequence& sequence, const FlashGradBlock& block,
                                     const AscendC::GlobalTensor<T>& a, FlashOperand<T>& b, int64_t offset,
                                     int64_t width, const AscendC::GlobalTensor<float>& out, int64_t pitch) {
    FlashSequence rows = sequence;  // FlashOperand counts keys
    rows.keyBase = sequence.rowBase;
    rows.keys = MinOf(sequence.rows, block.row + block.rows);
    b.Load(rows, block.tile.head, block.row, offset);
    overRowsMatmul.SetOrgShape(tiles_->probRow, width, block.rows, b.rows(), pitch);
    overRowsMatmul.SetSingleShape(block.tile.cols, width, block.rows);
    overRowsMatmul.SetTensorA(a, true);
    overRowsMatmul.SetTensorB(b.Rows(0));
    overRowsMatmul.IterateAll(out, 1);
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  bool keysOnce_;
  FlashOperand<T> keyColumns_;
  FlashOperand<T> valueColumns_;
  FlashOperand<T> keyRows_;
  FlashOperand<T> queryRows_;
  FlashOperand<T> dyRows_;
  AscendC::GlobalTensor<T> queryGm_;
  AscendC::GlobalTensor<T> dyGm_;
  AscendC::GlobalTensor<float> scoresGm_;
  AscendC::GlobalTensor<float> dprobsGm_;
  AscendC::GlobalTensor<T> probsGm_;
  AscendC::GlobalTensor<T> dscoresGm_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_TILE_H_
