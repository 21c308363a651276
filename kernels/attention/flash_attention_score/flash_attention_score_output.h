// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Running maximum, sum and output of a block of query rows.
//
// UB: output [qRows, dvPad] whose columns beyond Dv are 0; maximum and sum [qRows, 8] of a block; alpha [qRows, 8] of a
// task. With depth 1 there are FlashPlaces of these statistics, since products of blocks and tasks before are still to
// come, and a row has one float of each, which is spread to 8 for a few rows at a time.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_OUTPUT_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_OUTPUT_H_

#include <type_traits>

#include "attention/flash_attention_score/flash_attention_score_tasks.h"

namespace mst {

constexpr float kFlashLowest = -3.4028235e38f;  // maximum of a row that sees nothing

template <typename T>
class FlashOutput {
  using InQue = AscendC::TQue<AscendC::TPosition::VECIN, 1>;
  using OutQue = AscendC::TQue<AscendC::TPosition::VECOUT, 1>;

 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreShape* shape,
                              const FlashAttentionScoreTiles* tiles, GM_ADDR sink, GM_ADDR attentionOut,
                              GM_ADDR softmaxMax, GM_ADDR softmaxSum) {
    shape_ = shape;
    tiles_ = tiles;
    sinkGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(sink));
    outGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(attentionOut));
    maxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(softmaxMax));
    sumGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(softmaxSum));
    outputFloats_ = tiles->qRows * tiles->dvPad;
    copies_ = FlashStatWidth(tiles->depth);
    statFloats_ = FlashStatFloats(tiles->qRows, tiles->depth);
    const int32_t places = FlashPlaces(tiles->depth);
    pipe->InitBuffer(stateBuf_, (outputFloats_ + 2 * places * statFloats_) * sizeof(float));
    pipe->InitBuffer(alphaBuf_, places * statFloats_ * sizeof(float));
    pipe->InitBuffer(spareBuf_, FlashSpareFloats(tiles->qRows, tiles->dvPad, tiles->depth) * sizeof(float));
    state_ = stateBuf_.Get<float>();
    alpha_ = alphaBuf_.Get<float>();
    spare_ = spareBuf_.Get<float>();
  }

  // Output, maximum and sum, in this order; what Load and Store move, of the place 0.
  __aicore__ inline int64_t stateFloats() const { return outputFloats_ + 2 * statFloats_; }
  __aicore__ inline AscendC::LocalTensor<float> Row(int64_t r) {
    return state_[static_cast<uint32_t>(r * tiles_->dvPad)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Max(const FlashTask& task, int64_t r) {
    return state_[static_cast<uint32_t>(outputFloats_ + 2 * task.state * statFloats_ + r * copies_)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Sum(const FlashTask& task, int64_t r) {
    return Max(task, r)[static_cast<uint32_t>(statFloats_)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Alpha(const FlashTask& task, int64_t r) {
    return alpha_[static_cast<uint32_t>(task.turn * statFloats_ + r * copies_)];
  }

  // Nothing seen yet; a sink counts as a key without value, if it is not -inf.
  __aicore__ inline void ResetStatistics(const FlashTask& task) {
    const float sink = shape_->hasSink != 0 ? sinkGm_.GetValue(task.tile.head) : kFlashHidden;
    const bool counts = !(sink < kFlashLowest);  // NaN does
    // Those of a block before may still be on their way out.
    if (tiles_->depth == 0) WaitPipe<AscendC::HardEvent::MTE3_V>();
    AscendC::Duplicate(Max(task, 0), counts ? sink : kFlashLowest, statFloats_);
    AscendC::Duplicate(Sum(task, 0), counts ? 1.0f : 0.0f, statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void ResetOutput(int64_t rows) {
    AscendC::Duplicate(state_, 0.0f, static_cast<int32_t>(rows * tiles_->dvPad));
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void Load(const AscendC::GlobalTensor<float>& gm) {
    WaitPipe<AscendC::HardEvent::MTE3_MTE2>();  // it was stored by this core, and UB may still be read
    AscendC::DataCopy(state_, gm, static_cast<uint32_t>(stateFloats()));
    WaitPipe<AscendC::HardEvent::MTE2_V>();
  }

  __aicore__ inline void Store(const AscendC::GlobalTensor<float>& gm) {
    WaitPipe<AscendC::HardEvent::V_MTE3>();
    AscendC::DataCopy(gm, state_, static_cast<uint32_t>(stateFloats()));  // Reset and Load wait for it
  }

  // output[r, :] *= alpha[r], to be waited for
  __aicore__ inline void Rescale(const FlashTask& task, int64_t r, int64_t rows) {
    SpreadStatistics(Alpha(task, 0), r, rows);
    AscendC::PipeBarrier<PIPE_V>();
    MulRows(Row(r), Row(r), Spread(Alpha(task, 0), r), rows);
  }

  // Before a block's first products, which are its output if they have all its columns: otherwise it begins with 0.
  __aicore__ inline void BeginOutput(const FlashTask& task) {
    if (task.tile.cols == 0 || shape_->Dv != tiles_->dvPad) ResetOutput(task.rows);
  }

  // output = output * alpha + products [rows, Dv], pitch dvPad, of rows [r, r + rows), for which the queue has room:
  // the products come to UB, then steps 0 to kAddSteps - 1, each waited for.
  static constexpr int32_t kAddSteps = 3;
  __aicore__ inline void BeginAdding(InQue* que, const AscendC::GlobalTensor<float>& productsGm, const FlashTask& task,
                                     int64_t r, int64_t rows) {
    addQue_ = que;
    addTask_ = &task;
    addRow_ = r;
    addRows_ = rows;
    const int64_t pitch = tiles_->dvPad;
    AscendC::LocalTensor<float> products = que->AllocTensor<float>();
    CopyRowsIn(products, productsGm[r * pitch], rows, shape_->Dv, pitch, pitch);
    que->EnQue(products);
  }
  __aicore__ inline void Add(int32_t step) {
    const int64_t pitch = tiles_->dvPad;
    const int64_t Dv = shape_->Dv;
    const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
    const uint8_t rows = static_cast<uint8_t>(addRows_);
    const bool isOutput = addTask_->beginsBlock && Dv == pitch;
    const AscendC::LocalTensor<float> alpha = Alpha(*addTask_, 0);
    const AscendC::LocalTensor<float> out = Row(addRow_);
    if (step == 0 && !isOutput) SpreadStatistics(alpha, addRow_, addRows_);
    // On the card two instructions take less time than the one that does both.
    if (step == 1 && !isOutput && tiles_->depth != 0) MulRows(out, out, Spread(alpha, addRow_), addRows_);
    if (step != 2) return;
    AscendC::LocalTensor<float> products = addQue_->DeQue<float>();
    if (isOutput) AscendC::Adds(out, products, 0.0f, static_cast<int32_t>(addRows_ * pitch));
    for (int64_t c = 0; c < Dv && !isOutput; c += kRepeatFloats) {
      const uint64_t mask = MinOf(kRepeatFloats, Dv - c);
      if (tiles_->depth != 0) {
        AscendC::Add(out[c], out[c], products[c], mask, rows,
                     AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, stride));
      } else {
        AscendC::FusedMulAdd(out[c], Spread(alpha, addRow_), products[c], mask, rows,
                             AscendC::BinaryRepeatParams(1, 0, 1, stride, 1, stride));
      }
    }
    addQue_->FreeTensor(products);
  }
  // All of it for rows [r, end), as many at a time as there is room for.
  __aicore__ inline void Accumulate(InQue* que, const AscendC::GlobalTensor<float>& productsGm, const FlashTask& task,
                                    int64_t r, int64_t end) {
    const int64_t most = MinOf(MaxRows(), tiles_->stripFloats / tiles_->dvPad);
    for (; r < end; r += most) {
      BeginAdding(que, productsGm, task, r, MinOf(most, end - r));
      for (int32_t step = 0; step < kAddSteps; ++step) {
        Add(step);
        AscendC::PipeBarrier<PIPE_V>();
      }
    }
  }

  // Whether the sum of all elements of the block is finite, which no NaN or infinity is part of then. The vector unit
  // adds them up, then the scalar unit asks.
  __aicore__ inline void BeginFiniteCheck(int64_t rows) {
    AscendC::ReduceSum<float>(spare_, state_, spare_[kBlockFloats], static_cast<int32_t>(rows * tiles_->dvPad));
    checked_ = GetTPipePtr()->AllocEventID<AscendC::HardEvent::V_S>();
    AscendC::SetFlag<AscendC::HardEvent::V_S>(checked_);
  }
  __aicore__ inline bool IsFinite() {
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(checked_);
    GetTPipePtr()->ReleaseEventID<AscendC::HardEvent::V_S>(checked_);
    const bool isFinite = spare_.GetValue(0) * 0.0f == 0.0f;
    WaitPipe<AscendC::HardEvent::S_V>();
    return isFinite;
  }

  // attention_out = output / (sum * keep_prob), and the statistics. `bits`: a bit for each of them.
  __aicore__ inline void Write(OutQue& que, const AscendC::LocalTensor<uint8_t>& bits, const FlashTask& task) {
    const FlashSequence& sequence = task.sequence;
    const int64_t rows = task.rows;
    const AscendC::LocalTensor<float> factor = Alpha(task, 0);
    // A sum is 0, for a row that sees nothing and whose output is 0, or at least 1.
    AscendC::Maxs(spare_, Sum(task, 0), 1.0f, statFloats_);
    AscendC::Duplicate(factor, 1.0f / shape_->keepProb, statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Div(factor, factor, spare_, statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
    const int64_t pitch = tiles_->dvPad;
    const int64_t pieceRows = MinOf(MaxRows(), tiles_->outElements / pitch);
    const int64_t offset = sequence.index * shape_->outBatch + task.tile.head * shape_->outHead +
                           (sequence.rowBase + task.row) * shape_->outRow;
    for (int64_t r = 0; r < rows; r += pieceRows) {
      const int64_t piece = MinOf(pieceRows, rows - r);
      AscendC::LocalTensor<T> out = que.AllocTensor<T>();
      SpreadStatistics(factor, r, piece);
      AscendC::PipeBarrier<PIPE_V>();
      if constexpr (std::is_same_v<T, float>) {
        MulRows(out, Row(r), Spread(factor, r), piece);
        AscendC::PipeBarrier<PIPE_V>();
      } else {
        MulRows(Row(r), Row(r), Spread(factor, r), piece);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(out, Row(r), AscendC::RoundMode::CAST_RINT, static_cast<int32_t>(piece * pitch));
      }
      que.EnQue(out);
      out = que.DeQue<T>();
      CopyRowsOut(outGm_[offset + r * shape_->outRow], out, piece, shape_->Dv, shape_->outRow, pitch);
      que.FreeTensor(out);
    }
    WriteStatistics(que, bits, task);
  }

 private:
  // The statistics of rows from `r` on, each for all 8 lanes of a block, which is how they lie with depth 0.
  __aicore__ inline void SpreadStatistics(const AscendC::LocalTensor<float>& statistics, int64_t r, int64_t rows) {
    if (tiles_->depth == 0) return;
    SpreadTo(spare_, statistics[static_cast<uint32_t>(r / kBlockFloats * kBlockFloats)], r % kBlockFloats + rows);
  }
  __aicore__ inline AscendC::LocalTensor<float> Spread(const AscendC::LocalTensor<float>& statistics, int64_t r) {
    if (tiles_->depth == 0) return statistics[static_cast<uint32_t>(r * kFlashStatCopies)];
    return spare_[static_cast<uint32_t>(r % kBlockFloats * kFlashStatCopies)];
  }
  // Rows that MulRows takes at a time.
  __aicore__ inline int64_t MaxRows() const {
    return tiles_->depth == 0 ? kMaxRepeat : kFlashSpreadRows - kBlockFloats + 1;
  }
  __aicore__ inline void SpreadTo(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& statistics,
                                  int64_t rows) {
    AscendC::Brcb(dst, statistics, static_cast<uint8_t>(CeilDivOf(rows, kBlockFloats)),
                  AscendC::BrcbRepeatParams(1, kBlockFloats));
  }

  // A row that sees no key has maximum -FLT_MAX and sum FLT_MAX; without any key both are 0.
  __aicore__ inline void WriteStatistics(OutQue& que, const AscendC::LocalTensor<uint8_t>& bits,
                                         const FlashTask& task) {
    const FlashSequence& sequence = task.sequence;
    const AscendC::LocalTensor<float> max = Max(task, 0);
    const AscendC::LocalTensor<float> sum = Sum(task, 0);
    if (sequence.keys == 0 && shape_->hasSink == 0) {
      AscendC::Duplicate(max, 0.0f, statFloats_);
    } else {
      // Max may pass over a NaN that is in the sum.
      AscendC::Muls(spare_, sum, 0.0f, statFloats_);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Add(max, max, spare_, statFloats_);
      AscendC::CompareScalar(bits, sum, 0.0f, AscendC::CMPMODE::NE, static_cast<uint32_t>(statFloats_));
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Select(sum, bits, sum, -kFlashLowest, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                      static_cast<uint32_t>(statFloats_));
    }
    const int64_t offset = sequence.index * shape_->statBatch + task.tile.head * shape_->statHead +
                           (sequence.rowBase + task.row) * shape_->statRow;
    AscendC::PipeBarrier<PIPE_V>();  // also for whoever overwrites the output next
    if (tiles_->depth == 0) {
      WaitPipe<AscendC::HardEvent::V_MTE3>();
      CopyStatistics(offset, max, sum, task.rows);
      return;
    }
    const int64_t room = tiles_->outElements * static_cast<int64_t>(sizeof(T)) / (2 * kUbBlockBytes);
    const int64_t pieceRows = room / kBlockFloats * kBlockFloats;
    for (int64_t r = 0; r < task.rows; r += pieceRows) {
      const int64_t piece = MinOf(pieceRows, task.rows - r);
      AscendC::LocalTensor<float> out = que.AllocTensor<float>();
      const uint32_t half = static_cast<uint32_t>(pieceRows * kFlashStatCopies);
      SpreadTo(out, max[static_cast<uint32_t>(r)], piece);
      SpreadTo(out[half], sum[static_cast<uint32_t>(r)], piece);
      que.EnQue(out);
      out = que.DeQue<float>();
      CopyStatistics(offset + r * shape_->statRow, out, out[half], piece);
      que.FreeTensor(out);
    }
  }

  __aicore__ inline void CopyStatistics(int64_t offset, const AscendC::LocalTensor<float>& max,
                                        const AscendC::LocalTensor<float>& sum, int64_t rows) {
    CopyRowsOut(maxGm_[offset], max, rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    CopyRowsOut(sumGm_[offset], sum, rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
  }

  // dst[r, :] = src[r, :] * factors[r, 0..7], whose eight values are equal
  __aicore__ inline void MulRows(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& src,
                                 const AscendC::LocalTensor<float>& factors, int64_t rows) {
    const int64_t pitch = tiles_->dvPad;
    const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
    for (int64_t c = 0; c < pitch; c += kRepeatFloats) {
      const uint64_t mask = MinOf(kRepeatFloats, pitch - c);
      AscendC::Mul(dst[static_cast<uint32_t>(c)], src[static_cast<uint32_t>(c)], factors, mask,
                   static_cast<uint8_t>(rows), AscendC::BinaryRepeatParams(1, 1, 0, stride, stride, 1));
    }
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  AscendC::GlobalTensor<float> sinkGm_;
  AscendC::GlobalTensor<T> outGm_;
  AscendC::GlobalTensor<float> maxGm_;
  AscendC::GlobalTensor<float> sumGm_;
  int32_t outputFloats_;
  int32_t copies_;      // floats of a row's statistic
  int32_t statFloats_;  // of a block of rows
  AscendC::TBuf<AscendC::TPosition::VECCALC> stateBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> alphaBuf_;
  AscendC::LocalTensor<float> state_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> spareBuf_;
  AscendC::LocalTensor<float> alpha_;
  AscendC::LocalTensor<float> spare_;  // temporaries, and a few rows of spread statistics
  AscendC::TEventID checked_;          // BeginFiniteCheck is done
  InQue* addQue_;                      // what Add has under way
  const FlashTask* addTask_;
  int64_t addRow_;
  int64_t addRows_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_OUTPUT_H_
