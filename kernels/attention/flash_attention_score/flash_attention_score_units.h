// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Which rows a core works on: a walk over sequences, kv heads and chunks of query rows.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_UNITS_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_UNITS_H_

#include "attention/flash_attention_score/flash_attention_score_tiling.h"
// After the tiling header: both need it, and here __aicore__ is defined.
#include "attention/flash_attention_score/flash_attention_score_band.h"
#include "common/kernel_util.h"

namespace mst {

// One element of the batch.
struct FlashSequence {
  int64_t index;
  int64_t rowBase;  // packed: its first row in query; otherwise 0
  int64_t keyBase;  // packed: its first row in key and value; otherwise 0
  int64_t rows;
  int64_t keys;
  int64_t pairBase;  // rows x keys of all sequences before it
  FlashBand band;
};

// Query rows [rowBegin, rowEnd) of the query heads of one kv head.
struct FlashUnit {
  FlashSequence sequence;
  int64_t kvHead;
  int64_t rowBegin;
  int64_t rowEnd;
};

// Sequences in order. The lengths are read once each.
class FlashSequenceWalker {
 public:
  __aicore__ inline void Init(const FlashAttentionScoreShape* shape, GM_ADDR qEnds, GM_ADDR kvEnds, GM_ADDR prefix) {
    shape_ = shape;
    if (shape->packed != 0) {
      qEndsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int64_t*>(qEnds));
      kvEndsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int64_t*>(kvEnds));
    }
    if (shape->hasPrefix != 0) prefixGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int64_t*>(prefix));
    sequence_.index = -1;
    sequence_.rowBase = sequence_.keyBase = sequence_.rows = sequence_.keys = sequence_.pairBase = 0;
  }

  // Moves to the next sequence; false after the last.
  __aicore__ inline bool Next() {
    FlashSequence& s = sequence_;
    if (s.index + 1 >= shape_->B) return false;
    ++s.index;
    s.pairBase += s.rows * s.keys;
    if (shape_->packed != 0) {
      s.rowBase += s.rows;
      s.keyBase += s.keys;
      s.rows = qEndsGm_.GetValue(s.index) - s.rowBase;
      s.keys = kvEndsGm_.GetValue(s.index) - s.keyBase;
    } else {
      s.rows = shape_->Sq;
      s.keys = shape_->Skv;
    }
    const int64_t prefix = shape_->hasPrefix != 0 ? prefixGm_.GetValue(s.index) : 0;
    s.band = FlashBandOf(*shape_, s.index, s.rows, s.keys, prefix);
    return true;
  }

  __aicore__ inline const FlashSequence& sequence() const { return sequence_; }

 private:
  const FlashAttentionScoreShape* shape_;
  AscendC::GlobalTensor<int64_t> qEndsGm_;
  AscendC::GlobalTensor<int64_t> kvEndsGm_;
  AscendC::GlobalTensor<int64_t> prefixGm_;
  FlashSequence sequence_;
};

// Units [begin, end), counted over sequences, in each over kv heads, in each over chunks of `chunkRows` rows.
class FlashUnitWalker {
 public:
  __aicore__ inline void Init(const FlashSequenceWalker& sequences, int64_t Nkv, int64_t chunkRows, int64_t begin,
                              int64_t end) {
    sequences_ = sequences;
    Nkv_ = Nkv;
    chunkRows_ = chunkRows;
    skip_ = begin;
    left_ = end - begin;
    next_ = 0;
    units_ = 0;
  }

  __aicore__ inline bool Next(FlashUnit* unit) {
    if (left_ <= 0) return false;
    while (next_ >= units_) {
      if (!sequences_.Next()) return false;
      chunks_ = CeilDivOf(sequences_.sequence().rows, chunkRows_);
      units_ = Nkv_ * chunks_;
      next_ = MinOf(skip_, units_);
      skip_ -= next_;
    }
    unit->sequence = sequences_.sequence();
    unit->kvHead = next_ / chunks_;
    unit->rowBegin = next_ % chunks_ * chunkRows_;
    unit->rowEnd = MinOf(unit->rowBegin + chunkRows_, unit->sequence.rows);
    ++next_;
    --left_;
    return true;
  }

 private:
  FlashSequenceWalker sequences_;
  int64_t Nkv_;
  int64_t chunkRows_;
  int64_t skip_;    // units before the first
  int64_t left_;    // units still to come
  int64_t chunks_;  // of the current sequence
  int64_t units_;
  int64_t next_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_UNITS_H_
