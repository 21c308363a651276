// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Online softmax of a strip of scores, of instructions that wait for each other as seldom as can be.
//
//   max' = max(max, max_j S), alpha = exp(max - max'), P = exp(S - max'), sum' = alpha sum + sum_j P
//
// After every instruction that another one needs, the vector unit stands still for as long as its result takes. So the
// sum of a strip is finished between the instructions for the maximum of the next one, together with whatever else the
// caller has to do there. Statistics have one float for each row here.
// UB: for maximum and sum each an eighth of a strip and a block for each row, three columns of floats, a block for each
// row.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_SOFTMAX_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_SOFTMAX_H_

#include "attention/flash_attention_score/flash_attention_score_tiling.h"
#include "common/row_ops.h"

namespace mst {

// The maximum or sum of each row of a strip whose width is a multiple of 64, step by step.
template <bool kMax>
class FlashRowReduction {
 public:
  static constexpr int32_t kSteps = 4;

  __aicore__ inline void Init(AscendC::TPipe* pipe, int64_t strip, int64_t stripRows) {
    pipe->InitBuffer(foldedBuf_, strip / kBlockFloats * sizeof(float));
    pipe->InitBuffer(headsBuf_, stripRows * kUbBlockBytes);
    pipe->InitBuffer(resultBuf_, RoundUpOf(stripRows, kBlockFloats) * sizeof(float));
  }

  __aicore__ inline void Begin(const AscendC::LocalTensor<float>& strip, int64_t rows, int64_t cols) {
    strip_ = strip;
    rows_ = rows;
    width_ = cols / kBlockFloats;
  }

  // Each step needs the results of the one before.
  __aicore__ inline void Step(int32_t step) {
    const AscendC::LocalTensor<float> folded = foldedBuf_.Get<float>();
    const AscendC::LocalTensor<float> heads = headsBuf_.Get<float>();
    const int32_t rows = static_cast<int32_t>(rows_);
    const int32_t blocks = static_cast<int32_t>(width_ / kBlockFloats);
    if (step == 0) {
      ReduceBlocks<kMax>(folded, strip_, rows_ * width_ * kBlockFloats);
    } else if (step == 1 && width_ > kRepeatFloats) {
      FoldRows<kMax>(folded, width_, folded, rows_, width_, width_);
    } else if (step == 2 && width_ >= kRepeatFloats) {
      BlockReduce<kMax>(heads, folded, rows, kRepeatFloats, blocks);
    } else if (step == 3 && width_ >= kRepeatFloats) {
      ReduceBlocks<kMax>(Result(), heads, rows_ * kBlockFloats);
    } else if (step == 3) {
      WholeReduce<kMax>(Result(), folded, rows, static_cast<int32_t>(width_), blocks);
    }
  }

  // A float for each row.
  __aicore__ inline AscendC::LocalTensor<float> Result() { return resultBuf_.Get<float>(); }
  __aicore__ inline int64_t rows() const { return rows_; }

 private:
  int64_t rows_ = 0;
  int64_t width_;  // maxima or sums of blocks, of a row
  AscendC::LocalTensor<float> strip_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> foldedBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> headsBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> resultBuf_;
};

class FlashSoftmax {
 public:
  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashAttentionScoreTiles* tiles) {
    const int64_t strip = int64_t{tiles->stripRows} * tiles->kvCols;
    maxima_.Init(pipe, strip, tiles->stripRows);
    sums_.Init(pipe, strip, tiles->stripRows);
    const int64_t rows = RoundUpOf(tiles->stripRows, kBlockFloats);
    pipe->InitBuffer(newMaxBuf_, rows * sizeof(float));
    pipe->InitBuffer(spreadBuf_, rows * kUbBlockBytes);
    isSumming_ = false;
  }

  // Turns the scores [rows, cols] into P. The statistics of the strip: `max` and `alpha` are new at once, `sum` after
  // the next strip or Finish. `between`: called with 0, 1, 2, ..., kSteps - 1, waited for after each call.
  static constexpr int32_t kSteps = FlashRowReduction<true>::kSteps;
  template <typename Between>
  __aicore__ inline void Update(const AscendC::LocalTensor<float>& scores, int64_t rows, int64_t cols,
                                const AscendC::LocalTensor<float>& max, const AscendC::LocalTensor<float>& sum,
                                const AscendC::LocalTensor<float>& alpha, const Between& between) {
    const AscendC::LocalTensor<float> newMax = newMaxBuf_.Get<float>();
    const AscendC::LocalTensor<float> spread = spreadBuf_.Get<float>();
    const int32_t count = static_cast<int32_t>(rows);
    maxima_.Begin(scores, rows, cols);
    for (int32_t step = 0; step < kSteps; ++step) {
      maxima_.Step(step);
      Sum(step);
      between(step);
      AscendC::PipeBarrier<PIPE_V>();
    }
    AscendC::Max(newMax, max, maxima_.Result(), count);
    Sum(kSteps);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Brcb(spread, newMax, static_cast<uint8_t>(CeilDivOf(rows, kBlockFloats)),
                  AscendC::BrcbRepeatParams(1, kBlockFloats));
    AscendC::Sub(alpha, max, newMax, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(alpha, alpha, count);
    AscendC::Adds(max, newMax, 0.0f, count);
    RowSubSpread(scores, scores, spread, rows, cols, cols);
    AscendC::Exp(scores, scores, static_cast<int32_t>(rows * cols));
    AscendC::PipeBarrier<PIPE_V>();
    sums_.Begin(scores, rows, cols);
    sums_.Step(0);
    sum_ = sum;
    alpha_ = alpha;
    isSumming_ = true;
  }

  __aicore__ inline void Finish() {
    for (int32_t step = 1; step <= kSteps && isSumming_; ++step) {
      AscendC::PipeBarrier<PIPE_V>();
      Sum(step);
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

 private:
  // What is left to do for the sum of the last strip: steps 1 to kSteps.
  __aicore__ inline void Sum(int32_t step) {
    if (!isSumming_ || step == 0) return;
    const int32_t count = static_cast<int32_t>(sums_.rows());
    if (step == kSteps) {
      AscendC::Add(sum_, sum_, sums_.Result(), count);
      isSumming_ = false;
      return;
    }
    sums_.Step(step);
    if (step == 1) AscendC::Mul(sum_, sum_, alpha_, count);
  }

  FlashRowReduction<true> maxima_;
  FlashRowReduction<false> sums_;
  bool isSumming_;
  AscendC::LocalTensor<float> sum_;  // of the strip whose sum is not finished
  AscendC::LocalTensor<float> alpha_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> newMaxBuf_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> spreadBuf_;
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_SOFTMAX_H_
