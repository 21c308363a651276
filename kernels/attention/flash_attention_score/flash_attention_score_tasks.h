// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What a core does, one task after the other: a query block and a key block that it sees.
//
// Of a unit, each query block in turn walks the keys of a range of `walkRows`, then each those of the next range.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_TASKS_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_TASKS_H_

#include "attention/flash_attention_score/flash_attention_score_strip.h"

namespace mst {

constexpr int32_t kFlashMaxTasks = 5;  // that are under way at a time

struct FlashTask {
  FlashSequence sequence;
  int64_t kvHead;
  FlashTile tile;  // without columns where the block sees no key of the range
  int64_t row;     // the query block: of the sequence
  int64_t rows;
  int64_t block;    // its number in the unit
  bool beginsWalk;  // the block's first task of the range
  bool endsWalk;
  bool beginsBlock;  // and of all
  bool endsBlock;
  int64_t scores;  // places in the rings of tasks: of scores and probabilities,
  int64_t turn;    //   of products and factors of the output;
  int64_t state;   //   in that of blocks: of maxima and sums
};

// The first key block of a query block, at or after the multiple `key` of kvCols and before `keyEnd`, of which it sees
// something; `keyEnd` or more without one.
__aicore__ inline int64_t FlashNextKey(const FlashBand& band, int64_t row, int64_t rows, int64_t key, int64_t keyEnd,
                                       int64_t kvCols) {
  while (key < keyEnd &&
         FlashViewOf(band, row, row + rows, key, MinOf(key + kvCols, keyEnd)) == FlashTileView::kHidden) {
    key += kvCols;
  }
  return key;
}

__aicore__ inline FlashTile FlashTileAt(int64_t head, int64_t key, int64_t keyEnd,
                                        const FlashAttentionScoreTiles& tiles) {
  const int64_t cols = MaxOf(0, MinOf(tiles.kvCols, keyEnd - key));
  return {head, key, static_cast<int32_t>(cols), static_cast<int32_t>(RoundUpOf(cols, tiles.colsUnit))};
}

class FlashTaskWalker {
 public:
  __aicore__ inline void Init(const FlashUnitWalker& units, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles) {
    units_ = units;
    G_ = shape->N / shape->Nkv;
    tiles_ = tiles;
    key_ = keyEnd_ = walk_ = unitKeyEnd_ = row_ = 0;
    unit_.rowBegin = unit_.rowEnd = 0;
    g_ = G_ - 1;
    tasks_ = 0;
    walks_ = -1;
  }

  __aicore__ inline bool Next(FlashTask* task) {
    const bool beginsWalk = key_ >= keyEnd_;
    if (beginsWalk && !NextBlock()) return false;
    const FlashBand& band = unit_.sequence.band;
    task->sequence = unit_.sequence;
    task->kvHead = unit_.kvHead;
    task->tile = FlashTileAt(unit_.kvHead * G_ + g_, key_, keyEnd_, *tiles_);
    task->row = row_;
    task->rows = rows_;
    task->block = block_;
    key_ = FlashNextKey(band, row_, rows_, key_ + tiles_->kvCols, keyEnd_, tiles_->kvCols);
    task->beginsWalk = beginsWalk;
    task->endsWalk = key_ >= keyEnd_;
    task->beginsBlock = beginsWalk && isFirstWalk_;
    task->endsBlock = task->endsWalk && walk_ + tiles_->walkRows >= unitKeyEnd_;
    walks_ += beginsWalk;
    task->turn = tasks_ % FlashPlaces(tiles_->depth);
    task->scores = tasks_ % tiles_->scorePlaces;
    task->state = walks_ % FlashPlaces(tiles_->depth);
    ++tasks_;
    return true;
  }

 private:
  // Of the range, else the first block of the next range, else of the next unit.
  __aicore__ inline bool NextBlock() {
    row_ += tiles_->qRows;
    ++block_;
    if (row_ >= unit_.rowEnd) {
      row_ = unit_.rowBegin;
      ++g_;
    }
    if (g_ >= G_) {
      g_ = 0;
      block_ = 0;
      walk_ += tiles_->walkRows;
      isFirstWalk_ = false;
      if (walk_ >= unitKeyEnd_ && !NextUnit()) return false;
    }
    const FlashBand& band = unit_.sequence.band;
    rows_ = MinOf(tiles_->qRows, unit_.rowEnd - row_);
    keyEnd_ = MinOf(FlashKeyEnd(band, row_ + rows_), walk_ + tiles_->walkRows);
    const int64_t key = MaxOf(walk_, FlashKeyBegin(band, row_) / tiles_->kvCols * tiles_->kvCols);
    key_ = FlashNextKey(band, row_, rows_, key, keyEnd_, tiles_->kvCols);
    return true;
  }

  __aicore__ inline bool NextUnit() {
    if (!units_.Next(&unit_)) return false;
    unitKeyEnd_ = FlashKeyEnd(unit_.sequence.band, unit_.rowEnd);
    walk_ = FlashKeyBegin(unit_.sequence.band, unit_.rowBegin) / tiles_->walkRows * tiles_->walkRows;
    isFirstWalk_ = true;  // also without a visible key: the rows are written
    row_ = unit_.rowBegin;
    return true;
  }

  FlashUnitWalker units_;
  FlashUnit unit_;
  int64_t G_;
  const FlashAttentionScoreTiles* tiles_;
  int64_t tasks_;       // so far
  int64_t walks_;       // and those that began a walk, less 1
  int64_t walk_;        // where the range of keys begins
  int64_t unitKeyEnd_;  // of all that the unit sees
  bool isFirstWalk_;
  int64_t g_;  // of the query heads of the unit's kv head
  int64_t row_;
  int64_t rows_;
  int64_t block_;
  int64_t key_;  // of the next task; at or beyond keyEnd_: the block has no more in this range
  int64_t keyEnd_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_TASKS_H_
