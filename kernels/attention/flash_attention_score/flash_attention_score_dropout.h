// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Dropout on a strip of probabilities: which of them are set to 0.
//
// By drop_mask: bit number ((b N + n) Sq + i) Skv + j, least significant bit first, 1 = keep. Packed sequences hold
// their N x rows x keys bits one after the other.
// By generator: two 32-bit keys of (seed, offset, b, n, i), then a hash of j with both, in wrapping 32-bit arithmetic:
//   h = j * F1 + key0;  h ^= h >> 15;  h = (h + key1) * F2;  h ^= h >> 13;  h *= F3;  keep if float(h) is less than
// (keep_prob - 1/2) 2^32, h taken as signed. So a decision depends on no tile, thread or layout.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_DROPOUT_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_DROPOUT_H_

#include "attention/flash_attention_score/flash_attention_score_strip.h"

namespace mst {

class FlashDropout {
 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles, GM_ADDR dropMask, GM_ADDR seedOffset) {
    shape_ = shape;
    kind_ = shape->dropKind;
    kvCols_ = tiles->kvCols;
    if (kind_ == 1) {
      maskGm_.SetGlobalBuffer(dropMask);
      rowBytes_ = FlashDropRowBytes(tiles->kvCols);
      pipe->InitBuffer(rawQue_, 1, 2 * tiles->stripRows * rowBytes_);
      pipe->InitBuffer(bitsBuf_, tiles->stripRows * rowBytes_ + rowBytes_);
    } else if (kind_ == 2) {
      AscendC::GlobalTensor<int64_t> seedGm;
      seedGm.SetGlobalBuffer(reinterpret_cast<__gm__ int64_t*>(seedOffset));
      key_ = Mix(static_cast<uint64_t>(seedGm.GetValue(0)) + kStep) ^ static_cast<uint64_t>(seedGm.GetValue(1));
      pipe->InitBuffer(bitsBuf_, FlashGeneratorBytes(tiles->kvCols));
    }
  }

  // probs: strip of `rows` x tile.colsPad. `work`: FlashWorkFloats. `row`: the sequence's row of the
  // first.
  __aicore__ inline void Apply(const AscendC::LocalTensor<float>& probs, const AscendC::LocalTensor<float>& work,
                               const FlashSequence& sequence, const FlashTile& tile, int64_t row, int64_t rows) {
    if (kind_ == 1) ApplyMask(probs, sequence, tile, row, rows);
    if (kind_ == 2) ApplyGenerator(probs, work, sequence, tile, row, rows);
  }

 private:
  __aicore__ inline void ApplyMask(const AscendC::LocalTensor<float>& probs, const FlashSequence& sequence,
                                   const FlashTile& tile, int64_t row, int64_t rows) {
    // A row starts at any bit. Its bytes are loaded twice, two bytes apart, and shifted together as 16-bit words.
    const int64_t firstBit =
        shape_->N * sequence.pairBase + (tile.head * sequence.rows + row) * sequence.keys + tile.key;
    AscendC::LocalTensor<uint8_t> raw = rawQue_.AllocTensor<uint8_t>();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t byte = (firstBit + r * sequence.keys) / 8;
      Load(raw[2 * r * rowBytes_], byte);
      Load(raw[(2 * r + 1) * rowBytes_], byte + 2);
    }
    rawQue_.EnQue(raw);
    raw = rawQue_.DeQue<uint8_t>();
    const AscendC::LocalTensor<uint16_t> words = bitsBuf_.Get<uint16_t>();
    const AscendC::LocalTensor<uint16_t> low = raw.ReinterpretCast<uint16_t>();
    const int32_t pitch = rowBytes_ / 2;
    const int32_t count = tile.colsPad / 16;
    const AscendC::LocalTensor<uint16_t> high = words[rows * pitch];
    for (int64_t r = 0; r < rows; ++r) {
      const uint16_t shift = static_cast<uint16_t>((firstBit + r * sequence.keys) % 8);
      AscendC::LocalTensor<uint16_t> bits = low[2 * r * pitch];
      if (shift != 0) {
        bits = words[r * pitch];
        AscendC::ShiftRight(bits, low[2 * r * pitch], shift, count);
        AscendC::ShiftLeft(high, low[(2 * r + 1) * pitch], static_cast<uint16_t>(16 - shift), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Or(bits, bits, high, count);
        AscendC::PipeBarrier<PIPE_V>();
      }
      AscendC::Select(probs[r * tile.colsPad], bits.ReinterpretCast<uint8_t>(), probs[r * tile.colsPad], 0.0f,
                      AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(tile.colsPad));
    }
    AscendC::PipeBarrier<PIPE_V>();
    rawQue_.FreeTensor(raw);
  }

  // The bytes of a row from `byte` on, as far as drop_mask goes.
  __aicore__ inline void Load(const AscendC::LocalTensor<uint8_t>& dst, int64_t byte) {
    const int64_t bytes = MinOf(rowBytes_, shape_->dropBytes - byte);
    if (bytes > 0) CopyRowsIn(dst, maskGm_[byte], 1, bytes, bytes, rowBytes_);
  }

  // In groups of rows, so that the three temporaries of a group fit `work`.
  __aicore__ inline void ApplyGenerator(const AscendC::LocalTensor<float>& probs,
                                        const AscendC::LocalTensor<float>& work, const FlashSequence& sequence,
                                        const FlashTile& tile, int64_t row, int64_t rows) {
    const uint64_t head = static_cast<uint64_t>(sequence.index * shape_->N + tile.head);
    const AscendC::LocalTensor<int32_t> columns = bitsBuf_.Get<int32_t>();  // j * kFactor1
    AscendC::CreateVecIndex(columns, static_cast<int32_t>(tile.key), static_cast<uint32_t>(tile.colsPad));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(columns, columns, kFactor1, tile.colsPad);
    AscendC::PipeBarrier<PIPE_V>();
    const AscendC::LocalTensor<uint8_t> bits = columns[kvCols_].ReinterpretCast<uint8_t>();
    const AscendC::LocalTensor<int32_t> hash = work.ReinterpretCast<int32_t>();
    for (int64_t r = 0; r < rows; r += kGroupRows) {
      const int64_t group = MinOf(kGroupRows, rows - r);
      const int32_t count = static_cast<int32_t>(RoundUpOf(group * tile.colsPad, kFlashCompareUnit));
      for (int64_t i = 0; i < group; ++i) {
        AscendC::Adds(hash[i * tile.colsPad], columns, static_cast<int32_t>(RowKey(head, row + r + i)), tile.colsPad);
      }
      AscendC::PipeBarrier<PIPE_V>();
      Stir(hash, 15, count);
      for (int64_t i = 0; i < group; ++i) {
        AscendC::Adds(hash[i * tile.colsPad], hash[i * tile.colsPad],
                      static_cast<int32_t>(RowKey(head, row + r + i) >> 32), tile.colsPad);
      }
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Muls(hash, hash, kFactor2, count);
      AscendC::PipeBarrier<PIPE_V>();
      Stir(hash, 13, count);
      AscendC::Muls(hash, hash, kFactor3, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Cast(work, hash, AscendC::RoundMode::CAST_RINT, count);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::CompareScalar(bits, work, (shape_->keepProb - 0.5f) * kRange, AscendC::CMPMODE::LT,
                             static_cast<uint32_t>(count));
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Select(probs[r * tile.colsPad], bits, probs[r * tile.colsPad], 0.0f,
                      AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(group * tile.colsPad));
      AscendC::PipeBarrier<PIPE_V>();
    }
  }

  // hash ^= hash >> shift, where x ^ y = (x | y) - (x & y)
  __aicore__ inline void Stir(const AscendC::LocalTensor<int32_t>& hash, uint32_t shift, int32_t count) {
    const AscendC::LocalTensor<int32_t> shifted = hash[kGroupRows * kvCols_];
    const AscendC::LocalTensor<int32_t> either = shifted[kGroupRows * kvCols_];
    AscendC::ShiftRight(shifted.ReinterpretCast<uint32_t>(), hash.ReinterpretCast<uint32_t>(), shift, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Or(either.ReinterpretCast<uint16_t>(), hash.ReinterpretCast<uint16_t>(),
                shifted.ReinterpretCast<uint16_t>(), 2 * count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::And(shifted.ReinterpretCast<uint16_t>(), hash.ReinterpretCast<uint16_t>(),
                 shifted.ReinterpretCast<uint16_t>(), 2 * count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(hash, either, shifted, count);
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  // `head` counts over the batch.
  __aicore__ inline uint64_t RowKey(uint64_t head, int64_t row) const {
    return Mix(Mix(key_ + (head + 1) * kStep) + (static_cast<uint64_t>(row) + 1) * kStep);
  }

  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
  static constexpr int32_t kFactor1 = static_cast<int32_t>(0x9e3779b1u);
  static constexpr int32_t kFactor2 = static_cast<int32_t>(0x85ebca6bu);
  static constexpr int32_t kFactor3 = static_cast<int32_t>(0xc2b2ae35u);
  static constexpr float kRange = 4294967296.0f;  // of the hash, from -2^31 on
  static constexpr int64_t kGroupRows = kFlashGeneratorRows;

  const FlashAttentionScoreShape* shape_;
  int32_t kind_;
  int32_t kvCols_;
  int32_t rowBytes_;
  uint64_t key_;
  AscendC::GlobalTensor<uint8_t> maskGm_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> rawQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> bitsBuf_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_DROPOUT_H_
