// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Running maximum, sum and output of a block of query rows.
//
// UB: output [qRows, dvPad] whose columns beyond Dv are 0; maximum and sum [qRows, 8] of the block whose scores are
// being looked at, with depth 1 also of the one whose last products are awaited; alpha [qRows, 8] likewise, of tasks.
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
    statFloats_ = tiles->qRows * kFlashStatCopies;
    const int32_t places = tiles->depth + 1;
    pipe->InitBuffer(stateBuf_, (outputFloats_ + 2 * places * statFloats_) * sizeof(float));
    pipe->InitBuffer(alphaBuf_, (1 + places) * statFloats_ * sizeof(float));
    state_ = stateBuf_.Get<float>();
    alpha_ = alphaBuf_.Get<float>();
  }

  // Output, maximum and sum, in this order; what Load and Store move, of the place 0.
  __aicore__ inline int64_t stateFloats() const { return outputFloats_ + 2 * statFloats_; }
  __aicore__ inline AscendC::LocalTensor<float> Row(int64_t r) {
    return state_[static_cast<uint32_t>(r * tiles_->dvPad)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Max(const FlashTask& task, int64_t r) {
    return state_[static_cast<uint32_t>(outputFloats_ + 2 * task.state * statFloats_ + r * kFlashStatCopies)];
  }
  __aicore__ inline AscendC::LocalTensor<float> Sum(const FlashTask& task, int64_t r) {
    return Max(task, tiles_->qRows + r);
  }
  __aicore__ inline AscendC::LocalTensor<float> Alpha(const FlashTask& task, int64_t r) {
    return alpha_[static_cast<uint32_t>((1 + task.turn) * statFloats_ + r * kFlashStatCopies)];
  }

  // Nothing seen yet; a sink counts as a key without value, if it is not -inf.
  __aicore__ inline void ResetStatistics(const FlashTask& task) {
    const float sink = shape_->hasSink != 0 ? sinkGm_.GetValue(task.tile.head) : kFlashHidden;
    const bool counts = !(sink < kFlashLowest);  // NaN does
    WaitPipe<AscendC::HardEvent::MTE3_V>();      // those of a block before may still be on their way out
    AscendC::Duplicate(Max(task, 0), counts ? sink : kFlashLowest, statFloats_);
    AscendC::Duplicate(Sum(task, 0), counts ? 1.0f : 0.0f, statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void ResetOutput(int64_t rows) {
    AscendC::PipeBarrier<PIPE_V>();  // that of a block before may still be read
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

  // output[r, :] *= alpha[r]
  __aicore__ inline void Rescale(const FlashTask& task, int64_t r, int64_t rows) {
    MulRows(Row(r), Row(r), Alpha(task, r), rows);
  }

  // Before a block's first products, which are its output if they have all its columns: otherwise it begins with 0.
  __aicore__ inline void BeginOutput(const FlashTask& task) {
    if (task.tile.cols == 0 || shape_->Dv != tiles_->dvPad) ResetOutput(task.rows);
  }
  // output = output * alpha + products [rows, Dv], pitch dvPad, of rows [r, end). The queue has room for `pieceRows`.
  __aicore__ inline void Accumulate(InQue& que, int64_t pieceRows, const AscendC::GlobalTensor<float>& productsGm,
                                    const FlashTask& task, int64_t r, int64_t end) {
    const int64_t pitch = tiles_->dvPad;
    const int64_t Dv = shape_->Dv;
    const uint8_t stride = static_cast<uint8_t>(pitch / kBlockFloats);
    const bool isOutput = task.beginsBlock && Dv == pitch;
    for (; r < end; r += pieceRows) {
      const uint8_t rows = static_cast<uint8_t>(MinOf(pieceRows, end - r));
      AscendC::LocalTensor<float> products = que.AllocTensor<float>();
      CopyRowsIn(products, productsGm[r * pitch], rows, Dv, pitch, pitch);
      que.EnQue(products);
      // On the card two instructions take less time than the one that does both.
      if (tiles_->depth != 0 && !isOutput) Rescale(task, r, rows);
      products = que.DeQue<float>();
      if (isOutput) AscendC::Adds(Row(r), products, 0.0f, static_cast<int32_t>(rows * pitch));
      for (int64_t c = 0; c < Dv && !isOutput; c += kRepeatFloats) {
        const uint64_t mask = MinOf(kRepeatFloats, Dv - c);
        if (tiles_->depth != 0) {
          AscendC::Add(Row(r)[c], Row(r)[c], products[c], mask, rows,
                       AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, stride));
        } else {
          AscendC::FusedMulAdd(Row(r)[c], Alpha(task, r), products[c], mask, rows,
                               AscendC::BinaryRepeatParams(1, 0, 1, stride, 1, stride));
        }
      }
      AscendC::PipeBarrier<PIPE_V>();
      que.FreeTensor(products);
    }
  }

  // Whether no element is NaN or infinite: 0 * x is 0 for the others only.
  __aicore__ inline bool IsFinite(InQue& que, int64_t rows) {
    const int64_t total = rows * tiles_->dvPad;
    const int64_t piece = tiles_->stripFloats;
    bool finite = true;
    AscendC::LocalTensor<float> zeros = que.AllocTensor<float>();
    for (int64_t i = 0; i < total; i += piece) {
      const int32_t count = static_cast<int32_t>(MinOf(piece, total - i));
      AscendC::Muls(zeros, state_[static_cast<uint32_t>(i)], 0.0f, count);
      AscendC::PipeBarrier<PIPE_V>();
      finite = FlashSum(zeros, Spare(), count) == 0.0f && finite;
    }
    que.FreeTensor(zeros);
    return finite;
  }

  // attention_out = output / (sum * keep_prob), and the statistics. `bits`: a bit for each of them.
  __aicore__ inline void Write(OutQue& que, const AscendC::LocalTensor<uint8_t>& bits, const FlashTask& task) {
    const FlashSequence& sequence = task.sequence;
    const int64_t rows = task.rows;
    const AscendC::LocalTensor<float> factor = Alpha(task, 0);
    // A sum is 0, for a row that sees nothing and whose output is 0, or at least 1.
    AscendC::Maxs(Spare(), Sum(task, 0), 1.0f, statFloats_);
    AscendC::Duplicate(factor, 1.0f / shape_->keepProb, statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Div(factor, factor, Spare(), statFloats_);
    AscendC::PipeBarrier<PIPE_V>();
    const int64_t pitch = tiles_->dvPad;
    const int64_t pieceRows = tiles_->outElements / pitch;
    const int64_t offset = sequence.index * shape_->outBatch + task.tile.head * shape_->outHead +
                           (sequence.rowBase + task.row) * shape_->outRow;
    for (int64_t r = 0; r < rows; r += pieceRows) {
      const int64_t piece = MinOf(pieceRows, rows - r);
      AscendC::LocalTensor<T> out = que.AllocTensor<T>();
      const AscendC::LocalTensor<float> factors = factor[static_cast<uint32_t>(r * kFlashStatCopies)];
      if constexpr (std::is_same_v<T, float>) {
        MulRows(out, Row(r), factors, piece);
      } else {
        MulRows(Row(r), Row(r), factors, piece);
        AscendC::Cast(out, Row(r), AscendC::RoundMode::CAST_RINT, static_cast<int32_t>(piece * pitch));
      }
      que.EnQue(out);
      out = que.DeQue<T>();
      CopyRowsOut(outGm_[offset + r * shape_->outRow], out, piece, shape_->Dv, shape_->outRow, pitch);
      que.FreeTensor(out);
    }
    WriteStatistics(bits, task);
  }

 private:
  __aicore__ inline AscendC::LocalTensor<float> Spare() { return alpha_; }

  // A row that sees no key has maximum -FLT_MAX and sum FLT_MAX; without any key both are 0.
  __aicore__ inline void WriteStatistics(const AscendC::LocalTensor<uint8_t>& bits, const FlashTask& task) {
    const FlashSequence& sequence = task.sequence;
    const AscendC::LocalTensor<float> max = Max(task, 0);
    const AscendC::LocalTensor<float> sum = Sum(task, 0);
    if (sequence.keys == 0 && shape_->hasSink == 0) {
      AscendC::Duplicate(max, 0.0f, statFloats_);
    } else {
      // Max may pass over a NaN that is in the sum.
      AscendC::Muls(Spare(), sum, 0.0f, statFloats_);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Add(max, max, Spare(), statFloats_);
      AscendC::CompareScalar(bits, sum, 0.0f, AscendC::CMPMODE::NE, static_cast<uint32_t>(statFloats_));
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Select(sum, bits, sum, -kFlashLowest, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                      static_cast<uint32_t>(statFloats_));
    }
    WaitPipe<AscendC::HardEvent::V_MTE3>();
    const int64_t offset = sequence.index * shape_->statBatch + task.tile.head * shape_->statHead +
                           (sequence.rowBase + task.row) * shape_->statRow;
    CopyRowsOut(maxGm_[offset], max, task.rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
    CopyRowsOut(sumGm_[offset], sum, task.rows, kFlashStatCopies, shape_->statRow, kFlashStatCopies);
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
    AscendC::PipeBarrier<PIPE_V>();
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  AscendC::GlobalTensor<float> sinkGm_;
  AscendC::GlobalTensor<T> outGm_;
  AscendC::GlobalTensor<float> maxGm_;
  AscendC::GlobalTensor<float> sumGm_;
  int32_t outputFloats_;
  int32_t statFloats_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> stateBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> alphaBuf_;
  AscendC::LocalTensor<float> state_;
  AscendC::LocalTensor<float> alpha_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_OUTPUT_H_
