// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// tile[row, position of (row, j)] = value of (row, j) for eight choices j of each row, without the scalar unit: one
// selection takes the j-th choices of all rows.
// A mask of 256 bits is for as many rows as have room in it, or for a part of one. It has 16 words of 16 bits, and the
// bit of a choice is made of two comparisons: of every word with the choice's, and of every bit of a word with its own.
// UB, for each of the eight choices of a row: what is compared, spread over 16 halves, or the value, in a block for
// each repeat of a selection; the masks.
#ifndef MST_MOE_MOE_GATING_TOP_K_SOFTMAX_MASKS_H_
#define MST_MOE_MOE_GATING_TOP_K_SOFTMAX_MASKS_H_

#include "common/kernel_util.h"
#include "kernel_operator.h"
#include "moe/moe_gating_top_k_softmax/moe_gating_top_k_softmax_tiling.h"

namespace mst {

using namespace AscendC;

// X: of the tile.
template <typename X>
class MoeChoiceMasks {
 public:
  // pitch: of the tile, a part or a multiple of a mask; rows: a multiple of RowsPerMask().
  __aicore__ inline void Init(int64_t rows, int64_t pitch, TPipe* pipe) {
    pitch_ = pitch;
    masksPerRow_ = CeilDivOf(pitch, kMoeMaskBits);
    const int64_t choices = rows * kMoeChoicesAtOnce;
    pipe->InitBuffer(wordNumberBuf_, masksPerRow_ * kWords * sizeof(half));
    pipe->InitBuffer(bitNumberBuf_, kWords * sizeof(half));
    pipe->InitBuffer(numberBuf_, choices * sizeof(float));
    pipe->InitBuffer(wordBuf_, choices * sizeof(float));
    pipe->InitBuffer(wordHalfBuf_, choices * sizeof(half));
    pipe->InitBuffer(bitHalfBuf_, choices * sizeof(half));
    pipe->InitBuffer(spreadBuf_, choices * MaxOf(2, RepeatsPerRow()) * kUbBlockBytes);
    pipe->InitBuffer(bitsBuf_, choices * sizeof(uint16_t));
    pipe->InitBuffer(wordBitsBuf_, masksPerRow_ * RoundUpOf(choices * sizeof(uint16_t), kUbBlockBytes));
    pipe->InitBuffer(maskBuf_, choices * masksPerRow_ * kUbBlockBytes);
    if (RowsPerMask() > 1) pipe->InitBuffer(sharedBuf_, choices / RowsPerMask() * kUbBlockBytes);
    pipe->InitBuffer(valueBuf_, choices * sizeof(X));
    LocalTensor<half> wordNumber = wordNumberBuf_.Get<half>();
    CreateVecIndex(wordNumber, static_cast<half>(0.0f), static_cast<uint32_t>(masksPerRow_ * kWords));
    PipeBarrier<PIPE_V>();
    Muls(bitNumberBuf_.Get<half>(), wordNumber, static_cast<half>(kWordOfBit), kWords);
  }

  __aicore__ inline int64_t RowsPerMask() const { return MaxOf(1, kMoeMaskBits / pitch_); }

  // Begins the masks of the eight choices positions[row, 0..7]: elements of the first row that shares the row's mask,
  // or negative for nothing. `positions` stays until Finish.
  __aicore__ inline void Start(const LocalTensor<float>& positions, int64_t choicePitch, int64_t rows) {
    positions_ = positions;
    choicePitch_ = choicePitch;
    rows_ = rows;
    step_ = 0;
  }

  // One step towards the masks. A barrier belongs between two of them: that of other work, if there is some.
  __aicore__ inline void Step() {
    const uint8_t repeat = static_cast<uint8_t>(rows_);
    const int32_t choices = static_cast<int32_t>(rows_ * kMoeChoicesAtOnce);
    const BrcbRepeatParams choiceMajor(static_cast<uint16_t>(rows_), 1);  // the first choices of all rows come first
    const BinaryRepeatParams withNumbers(1, 1, 0, 8, 8, 0);
    LocalTensor<float> number = numberBuf_.Get<float>();
    LocalTensor<float> word = wordBuf_.Get<float>();
    LocalTensor<half> wordHalf = wordHalfBuf_.Get<half>();
    LocalTensor<half> bitHalf = bitHalfBuf_.Get<half>();
    LocalTensor<half> wordSpread = spreadBuf_.Get<half>();
    LocalTensor<half> bitSpread = wordSpread[choices * kWords];
    LocalTensor<uint8_t> bits = bitsBuf_.Get<uint8_t>();
    LocalTensor<half> masks = maskBuf_.Get<half>();
    switch (step_++) {
      case 0:
        Muls(number, positions_, kWordOfBit, uint64_t{kMoeChoicesAtOnce}, repeat,
             UnaryRepeatParams(1, 1, 1, static_cast<uint8_t>(choicePitch_ / kBlockFloats)));
        break;
      case 1:
        Cast(word, number, RoundMode::CAST_FLOOR, static_cast<uint32_t>(choices));
        break;
      case 2:
        Sub(number, number, word, choices);  // the bit, in words
        Cast(wordHalf, word, RoundMode::CAST_RINT, static_cast<uint32_t>(choices));
        break;
      case 3:
        Cast(bitHalf, number, RoundMode::CAST_RINT, static_cast<uint32_t>(choices));
        Brcb(wordSpread, wordHalf, repeat, choiceMajor);
        break;
      case 4:
        Brcb(bitSpread, bitHalf, repeat, choiceMajor);
        for (int64_t i = 0; i < masksPerRow_; ++i) {
          Compare(WordBits(i), wordSpread, wordNumberBuf_.Get<half>()[i * kWords], CMPMODE::EQ, kHalves, repeat,
                  withNumbers);
        }
        break;
      case 5:
        Compare(bits, bitSpread, bitNumberBuf_.Get<half>(), CMPMODE::EQ, kHalves, repeat, withNumbers);
        break;
      case 6:
        Brcb(bitSpread, bits.template ReinterpretCast<half>(), repeat, BrcbRepeatParams(1, 8));
        break;
      case 7:
        for (int64_t i = 0; i < masksPerRow_; ++i) {
          const uint8_t step = static_cast<uint8_t>(masksPerRow_);
          Select(masks[i * kWords], WordBits(i), bitSpread, static_cast<half>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE,
                 kHalves, repeat, BinaryRepeatParams(step, 1, 1, static_cast<uint8_t>(8 * step), 8, 8));
        }
        break;
      default:
        if (step_ <= Steps()) Share(step_ - kStepsAlone, rows_ / RowsPerMask());
    }
  }

  // The remaining steps.
  __aicore__ inline void Finish() {
    while (step_ < Steps()) {
      Step();
      PipeBarrier<PIPE_V>();
    }
  }

  // Values of the choices, choicePitch apart as their positions, of which `count` are put in place.
  __aicore__ inline void Place(const LocalTensor<X>& tile, const LocalTensor<float>& values, int64_t count) {
    LocalTensor<float> closed = values;
    if (choicePitch_ > kMoeChoicesAtOnce) {
      closed = numberBuf_.Get<float>();
      Muls(closed, values, 1.0f, uint64_t{kMoeChoicesAtOnce}, static_cast<uint8_t>(rows_),
           UnaryRepeatParams(1, 1, 1, static_cast<uint8_t>(choicePitch_ / kBlockFloats)));
      PipeBarrier<PIPE_V>();
    }
    if constexpr (IsSameType<X, float>::value) {
      Put(tile, closed, count);
    } else {
      LocalTensor<X> stored = valueBuf_.Get<X>();
      Cast(stored, closed, RoundMode::CAST_RINT, static_cast<uint32_t>(rows_ * kMoeChoicesAtOnce));
      PipeBarrier<PIPE_V>();
      Put(tile.template ReinterpretCast<half>(), stored.template ReinterpretCast<half>(), count);
    }
  }

 private:
  static constexpr int32_t kWords = 16;  // of a mask, and bits of a word: a comparison of 16 halves gives one
  static constexpr float kWordOfBit = 1.0f / kWords;
  static constexpr uint64_t kHalves = 8 * kWords;  // of a repeat
  static constexpr int64_t kLanes = kUbBlockBytes * 8 / sizeof(X);

  __aicore__ inline int64_t RepeatsPerRow() const { return pitch_ / kLanes; }

  __aicore__ inline int64_t Steps() const { return kStepsAlone + RowsPerMask() - 1; }
  // One bit for each word of the i-th masks of rows.
  __aicore__ inline LocalTensor<uint8_t> WordBits(int64_t i) {
    return wordBitsBuf_.Get<uint8_t>()[i * RoundUpOf(rows_ * kMoeChoicesAtOnce * kWords / 8, kUbBlockBytes)];
  }

  // Rows that share a mask have their bits in different words of it: adds the i-th of them.
  __aicore__ inline void Share(int64_t i, int64_t groups) {
    const uint8_t repeat = static_cast<uint8_t>(groups);
    const uint8_t step = static_cast<uint8_t>(RowsPerMask());
    const uint8_t repeatStep = static_cast<uint8_t>(8 * step);
    LocalTensor<uint16_t> masks = maskBuf_.Get<uint16_t>();
    LocalTensor<uint16_t> shared = sharedBuf_.Get<uint16_t>();
    if (i == 1) {
      Or(shared, masks, masks[kWords], kHalves, repeat, BinaryRepeatParams(1, step, step, 8, repeatStep, repeatStep));
    } else {
      Or(shared, shared, masks[i * kWords], kHalves, repeat, BinaryRepeatParams(1, 1, step, 8, 8, repeatStep));
    }
  }

  template <typename Word>
  __aicore__ inline void Put(const LocalTensor<Word>& tile, const LocalTensor<Word>& values, int64_t count) {
    const int64_t repeats = rows_ * RepeatsPerRow();
    const BrcbRepeatParams params(static_cast<uint16_t>(repeats), static_cast<uint16_t>(RepeatsPerRow()));
    constexpr int64_t kBlockWords = kUbBlockBytes / sizeof(Word);
    LocalTensor<Word> spread = spreadBuf_.Get<Word>();
    for (int64_t i = 0; i < RepeatsPerRow(); ++i) {
      Brcb(spread[i * kBlockWords], values, static_cast<uint8_t>(rows_), params);
    }
    PipeBarrier<PIPE_V>();
    LocalTensor<uint8_t> masks = RowsPerMask() > 1 ? sharedBuf_.Get<uint8_t>() : maskBuf_.Get<uint8_t>();
    for (int64_t j = 0; j < count; ++j) {
      Select(tile, masks[j * rows_ * pitch_ / 8], spread[j * repeats * kBlockWords], tile,
             SELMODE::VSEL_TENSOR_TENSOR_MODE, static_cast<uint64_t>(kLanes), static_cast<uint8_t>(repeats),
             BinaryRepeatParams(1, 0, 1, 8, 1, 8));
      PipeBarrier<PIPE_V>();
    }
  }

  static constexpr int64_t kStepsAlone = 8;  // of masks that rows do not share

  int64_t pitch_, masksPerRow_, choicePitch_, rows_, step_;
  LocalTensor<float> positions_;
  TBuf<TPosition::VECCALC> wordNumberBuf_, bitNumberBuf_, numberBuf_, wordBuf_, wordHalfBuf_, bitHalfBuf_, spreadBuf_,
      bitsBuf_, wordBitsBuf_, maskBuf_, sharedBuf_, valueBuf_;
};

}  // namespace mst

#endif  // MST_MOE_MOE_GATING_TOP_K_SOFTMAX_MASKS_H_
