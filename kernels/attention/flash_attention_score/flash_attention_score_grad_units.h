// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What a core works on in the gradient: units of pairs, then units of real_shift, then units of sink.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_UNITS_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_UNITS_H_

#include "attention/flash_attention_score/flash_attention_score_units.h"

namespace mst {

// Units that the keys of a kv head are cut into: in ranges at least one, since it gives dq even without keys.
__aicore__ inline int64_t FlashGradRangesOf(const FlashAttentionScoreGradTilingData& tiling, int64_t keys) {
  return MaxOf(tiling.cut == kFlashGradRanges, CeilDivOf(keys, tiling.rangeKeys));
}

// Query rows [rowBegin, rowEnd) of the query heads of one kv head, and keys [keyBegin, keyEnd).
struct FlashGradUnit {
  FlashSequence sequence;
  int64_t kvHead;
  int64_t rowBegin;
  int64_t rowEnd;
  int64_t keyBegin;
  int64_t keyEnd;
  bool givesQuery;     // dq of its rows
  bool givesKeyValue;  // dk and dv of its keys, from all rows
};

// Units [begin, end), counted over sequences and in each over kv heads. Whole: one unit a kv head gives everything.
// Split: a kv head has units of `chunkRows` rows that give dq, then units of `rangeKeys` keys that give dk and dv.
// Ranges: units of `rangeKeys` keys that give everything; those of a kv head come as one.
class FlashGradUnitWalker {
 public:
  __aicore__ inline void Init(const FlashSequenceWalker& sequences, const FlashAttentionScoreGradTilingData* tiling,
                              int64_t begin, int64_t end) {
    sequences_ = sequences;
    tiling_ = tiling;
    skip_ = begin;
    left_ = end - begin;
    next_ = units_ = 0;
  }

  __aicore__ inline bool Next(FlashGradUnit* unit) {
    if (left_ <= 0) return false;
    const int32_t cut = tiling_->cut;
    while (next_ >= units_) {
      if (!sequences_.Next()) return false;
      const FlashSequence& s = sequences_.sequence();
      chunks_ = cut == kFlashGradSplit ? CeilDivOf(s.rows, tiling_->tiles.chunkRows) : 0;
      perHead_ = cut == kFlashGradWhole ? 1 : chunks_ + FlashGradRangesOf(*tiling_, s.keys);
      units_ = tiling_->shape.Nkv * perHead_;
      next_ = MinOf(skip_, units_);
      skip_ -= next_;
    }
    const FlashSequence& s = sequences_.sequence();
    const int64_t piece = next_ % perHead_;
    const int64_t pieces = cut == kFlashGradRanges ? MinOf(perHead_ - piece, left_) : 1;
    unit->sequence = s;
    unit->kvHead = next_ / perHead_;
    unit->rowBegin = 0;
    unit->rowEnd = s.rows;
    unit->keyBegin = 0;
    unit->keyEnd = s.keys;
    unit->givesQuery = cut != kFlashGradSplit || piece < chunks_;
    unit->givesKeyValue = piece >= chunks_;
    if (piece < chunks_) {
      unit->rowBegin = piece * tiling_->tiles.chunkRows;
      unit->rowEnd = MinOf(s.rows, unit->rowBegin + tiling_->tiles.chunkRows);
    } else if (cut != kFlashGradWhole) {
      unit->keyBegin = (piece - chunks_) * tiling_->rangeKeys;
      unit->keyEnd = MinOf(s.keys, unit->keyBegin + pieces * tiling_->rangeKeys);
    }
    next_ += pieces;
    left_ -= pieces;
    return true;
  }

 private:
  FlashSequenceWalker sequences_;
  const FlashAttentionScoreGradTilingData* tiling_;
  int64_t skip_;     // units before the first
  int64_t left_;     // units still to come
  int64_t chunks_;   // units of rows of a kv head of the current sequence
  int64_t perHead_;  // units of a kv head
  int64_t units_;    // of the current sequence
  int64_t next_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_UNITS_H_
