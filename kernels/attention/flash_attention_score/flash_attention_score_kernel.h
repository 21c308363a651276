// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// attention_out[b, n, i, :] = sum_j P[i, j] value[b, n / G, j, :], P = softmax_j S[i, j], S = Score(query key^T)
//
// A core owns a range of units: chunks of query rows of the G query heads of one kv head. It goes through tasks, each a
// query block and a key block that it sees (tasks.h):
//   scores (workspace) = query key^T            cube
//   strips of scores: Score, online softmax     vector, UB; probabilities to the workspace
//   products (workspace) = probabilities value  cube
//   output (UB) = output * alpha + products     vector
// With tiling depth 0 a task is done before the next begins. With depth 1 the cube is ahead: while the vector unit has
// the strips of task i - 1, it makes the scores of task i and products of task i - 2, in turn piece by piece, the last
// piece of products of task i - 3 first. Then the vector unit adds these to the output, a strip's rows together with
// each of its strips, so that copies have time; at a block's end all at once. The running maximum, sum and output of a
// block live in UB; where it walks the keys in several ranges, in the workspace between them (depth 0 only). A block
// whose output is not finite is done again in careful mode, task by task, where each hidden pair is left out instead of
// multiplied by 0, so that NaN and infinities reach only rows that see them. Results of a row depend on the key blocks
// alone, which start at multiples of kvCols: not on cores or chunks.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_

#include "attention/flash_attention_score/flash_attention_score_cube.h"
#include "attention/flash_attention_score/flash_attention_score_dropout.h"
#include "attention/flash_attention_score/flash_attention_score_output.h"
#include "attention/flash_attention_score/flash_attention_score_softmax.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashAttentionScoreKernel {
 public:
  FlashCube<T> cube;  // its Matmul objects are registered by the entry function

  __aicore__ inline void Init(AscendC::TPipe* pipe, GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                              GM_ADDR slopes, GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                              GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR attentionOut,
                              GM_ADDR softmaxMax, GM_ADDR softmaxSum, GM_ADDR workspace,
                              const FlashAttentionScoreTilingData* tiling) {
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    const int64_t core = AscendC::GetBlockIdx();
    FlashSequenceWalker sequences;
    sequences.Init(shape_, qEnds, kvEnds, prefix);
    FlashUnitWalker units;
    units.Init(sequences, shape_->Nkv, tiles_->chunkRows, tiling->unitBegin[core], tiling->unitBegin[core + 1]);
    walker_.Init(units, shape_, tiles_);

    valueGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(value));
    GM_ADDR state = cube.Init(pipe, shape_, tiles_, query, key, value, workspace + core * tiling->coreWorkspaceBytes,
                              tiling->denseBytes);
    stateGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(state));

    strip_.Init(pipe, shape_, tiles_, FlashForwardWorkBytes(tiles_->depth), realShift, slopes, attnMask);
    dropout_.Init(pipe, shape_, tiles_, dropMask, seedOffset);
    output_.Init(pipe, shape_, tiles_, sink, attentionOut, softmaxMax, softmaxSum);
    const int64_t depth = tiles_->depth;
    pipe->InitBuffer(scoresQue_, depth + 1, tiles_->stripFloats * sizeof(float));
    if (depth != 0) softmax_.Init(pipe, tiles_);
    if (depth != 0) pipe->InitBuffer(productsQue_, 1, tiles_->stripRows * tiles_->dvPad * sizeof(float));
    pipe->InitBuffer(outQue_, depth + 1, tiles_->outElements * sizeof(T));
    pipe->InitBuffer(valueRowQue_, 1, tiles_->dvPad * sizeof(T));
    pipe->InitBuffer(valueRowBuf_, tiles_->dvPad * sizeof(float));
  }

  __aicore__ inline void Process() {
    for (auto& event : probsOut_) event = GetTPipePtr()->AllocEventID<AscendC::HardEvent::MTE3_S>();
    adding_ = nullptr;
    ended_ = nullptr;
    if (tiles_->depth == 0) {
      ProcessInTurn();
    } else {
      ProcessAhead();
    }
    for (auto& event : probsOut_) GetTPipePtr()->ReleaseEventID<AscendC::HardEvent::MTE3_S>(event);
    cube.End();
  }

 private:
  __aicore__ inline void ProcessInTurn() {
    FlashTask& task = tasks_[0];
    while (walker_.Next(&task)) {
      for (int64_t piece = 0; piece < cube.pieces(); ++piece) cube.Scores(task, piece);
      cube.scoreWork.Await();
      BeginStrips(task);
      for (int64_t row = 0; row < task.rows; row += tiles_->stripRows) Strip(task, row, false);
      EndStrips(task);
      for (int64_t piece = 0; piece < cube.pieces(); ++piece) Products(task, piece);
      EndTask(&task);
      EndWalk();
    }
  }

  __aicore__ inline void ProcessAhead() {
    bool more = true;
    begun_ = 0;
    for (now_ = 0; more || now_ < begun_ + 3; ++now_) {
      more = more && walker_.Next(&tasks_[now_ % kFlashMaxTasks]);
      begun_ += more;
      sent_ = 0;
      cube.scoreWork.Await();
      const FlashTask* task = TaskAt(now_ - 1);
      const int64_t rows = task != nullptr ? task->rows : 0;
      if (task != nullptr) BeginStrips(*task);
      for (int64_t row = 0; row < rows; row += tiles_->stripRows) {
        SendBefore(row, rows);
        Strip(*task, row, false);
      }
      SendBefore(rows, rows);
      if (cube.pieces() == 1) EndTask(TaskAt(now_ - 3));
      EndWalk();
      if (task != nullptr) EndStrips(*task);
    }
  }

  // Sends the cube the pieces that are due before row `row` of `rows`: a piece of products, then one of the scores of
  // the newest task. The operands of both come to L1 while the other vector core of the pair has its turn.
  __aicore__ inline void SendBefore(int64_t row, int64_t rows) {
    const FlashTask* first = TaskAt(now_);
    for (; sent_ < cube.pieces() && sent_ * rows <= row * cube.pieces(); ++sent_) {
      // The last piece of a task comes an iteration later, so that the scalar unit, which sends the first one when all
      // probabilities are there, has sent the vector unit more to do by then.
      const FlashTask* task = TaskAt(now_ - (sent_ == 0 ? 3 : 2));
      const int64_t piece = (sent_ + cube.pieces() - 1) % cube.pieces();
      cube.scoreWork.Await();
      if (first != nullptr) cube.LoadKeys(*first, sent_);
      cube.productWork.Await();
      if (sent_ == 1) EndTask(TaskAt(now_ - 3));
      if (sent_ == 2) EndWalk();
      if (task != nullptr) Products(*task, piece);
      if (first != nullptr) cube.Scores(*first, sent_);
    }
  }

  // Task `i` of those that have begun.
  __aicore__ inline const FlashTask* TaskAt(int64_t i) const {
    return i >= 0 && i < begun_ ? &tasks_[i % kFlashMaxTasks] : nullptr;
  }
  __aicore__ inline void BeginStrips(const FlashTask& task) {
    if (task.beginsBlock) {
      output_.ResetStatistics(task);
    } else if (task.beginsWalk) {
      output_.Load(stateGm_[task.block * output_.stateFloats()]);
    }
  }

  __aicore__ inline void Products(const FlashTask& task, int64_t piece) {
    if (piece == 0 && task.tile.cols != 0) AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(probsOut_[task.turn]);
    cube.Products(task, piece);
  }

  // The next rows of the products that are added come to UB, as many as a strip has; whether there are any.
  __aicore__ inline bool BeginAddingRows() {
    if (adding_ == nullptr || adding_->tile.cols == 0 || added_ == adding_->rows) return false;
    const int64_t rows = MinOf(tiles_->stripRows, adding_->rows - added_);
    output_.BeginAdding(&productsQue_, cube.ProductsOf(*adding_), *adding_, added_, rows);
    added_ += rows;
    return true;
  }
  __aicore__ inline void AddRest() {
    if (adding_->tile.cols != 0) {
      output_.Accumulate(&scoresQue_, cube.ProductsOf(*adding_), *adding_, added_, adding_->rows);
    }
    added_ = adding_->rows;
  }

  // All products of `task` are there.
  __aicore__ inline void EndTask(const FlashTask* task) {
    if (task == nullptr) return;
    if (adding_ != nullptr) AddRest();
    cube.productWork.Await();
    adding_ = task;
    added_ = 0;
    if (task->beginsBlock) output_.BeginOutput(*task);
    if (tiles_->depth == 0 || task->endsWalk) AddRest();
    if (!task->endsWalk) return;
    ended_ = task;
    if (task->endsBlock) output_.BeginFiniteCheck(task->rows);
  }

  // The rest of what there is to do for the block or range that has ended.
  __aicore__ inline void EndWalk() {
    if (ended_ == nullptr) return;
    const FlashTask& task = *ended_;
    ended_ = nullptr;
    if (!task.endsBlock) {
      output_.Store(stateGm_[task.block * output_.stateFloats()]);
      return;
    }
    if (!output_.IsFinite()) RepeatCarefully(task);
    output_.Write(outQue_, strip_.Bits(), task);
  }

  // The block of `task`, with its places; under way are only probabilities of the next task, and scores of those after
  // it.
  __aicore__ inline void RepeatCarefully(const FlashTask& task) {
    const FlashBand& band = task.sequence.band;
    const int64_t kvCols = tiles_->kvCols;
    const int64_t keyEnd = FlashKeyEnd(band, task.row + task.rows);
    const auto next = [&](int64_t key) { return FlashNextKey(band, task.row, task.rows, key, keyEnd, kvCols); };
    FlashTask part = task;
    part.scores = cube.carefulPlace();
    cube.scoreWork.Await();
    output_.ResetStatistics(task);
    output_.ResetOutput(task.rows);
    for (int64_t key = next(FlashKeyBegin(band, task.row) / kvCols * kvCols); key < keyEnd; key = next(key + kvCols)) {
      part.tile = FlashTileAt(task.tile.head, key, keyEnd, *tiles_);
      for (int64_t piece = 0; piece < cube.pieces(); ++piece) cube.Scores(part, piece);
      cube.scoreWork.Await();
      for (int64_t r = 0; r < task.rows; r += tiles_->stripRows) Strip(part, r, true);
    }
  }

  __aicore__ inline void EndStrips(const FlashTask& task) {
    if (tiles_->depth != 0) softmax_.Finish();
    if (task.tile.cols != 0) AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(probsOut_[task.turn]);
  }

  // The strip from row `r` on; in careful mode on to the output.
  __aicore__ inline void Strip(const FlashTask& task, int64_t r, bool careful) {
    const FlashTile& tile = task.tile;
    if (tile.cols == 0) return;
    const int64_t rows = MinOf(tiles_->stripRows, task.rows - r);
    AscendC::LocalTensor<float> scores = scoresQue_.template AllocTensor<float>();
    CopyRowsIn(scores, cube.ScoresOf(task, r), rows, tile.cols, tiles_->scoreRow, tile.colsPad);
    scoresQue_.EnQue(scores);
    const bool adds = tiles_->depth != 0 && !careful && BeginAddingRows();
    scores = scoresQue_.template DeQue<float>();
    strip_.Score(scores, task.sequence, tile, task.row + r, rows, false, scores);

    const uint32_t compareCount = static_cast<uint32_t>(RoundUpOf(rows * tile.colsPad, kFlashCompareUnit));
    // Careful mode remembers what is visible.
    if (careful) AscendC::CompareScalar(strip_.Bits(), scores, kFlashHidden, AscendC::CMPMODE::NE, compareCount);
    if (tiles_->depth != 0) {
      const auto add = [&](int32_t step) {
        if (adds && step < FlashOutput<T>::kAddSteps) output_.Add(step);
      };
      softmax_.Update(scores, rows, tile.colsPad, output_.Max(task, r), output_.Sum(task, r), output_.Alpha(task, r),
                      add);
      if (careful) softmax_.Finish();
    } else {
      FusedSoftmax(scores, task, r, rows);
    }
    if (shape_->dropKind != 0) {
      AscendC::PipeBarrier<PIPE_V>();
      dropout_.Apply(scores, strip_.Work(), task.sequence, tile, task.row + r, rows);
    }
    if (careful) {
      AscendC::Select(scores, strip_.Bits(), scores, -1.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, compareCount);
      AddVisible(scores, task, r, rows);
    } else {
      StoreProbs(scores, task, r, rows);
    }
    scoresQue_.FreeTensor(scores);
  }

  __aicore__ inline void FusedSoftmax(const AscendC::LocalTensor<float>& scores, const FlashTask& task, int64_t r,
                                      int64_t rows) {
    const uint32_t m = static_cast<uint32_t>(rows);
    const uint32_t k = static_cast<uint32_t>(task.tile.colsPad);
    AscendC::SoftmaxFlashV2<float, true>(scores, output_.Sum(task, r), output_.Max(task, r), scores,
                                         output_.Alpha(task, r), output_.Sum(task, r), output_.Max(task, r),
                                         strip_.Work().template ReinterpretCast<uint8_t>(), SoftMaxTiling{},
                                         AscendC::SoftMaxShapeInfo{m, k, m, k});
    AscendC::PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void StoreProbs(const AscendC::LocalTensor<float>& probs, const FlashTask& task, int64_t r,
                                    int64_t rows) {
    const int64_t pitch = cube.probPitch();
    const int32_t cols = task.tile.colsPad;
    const AscendC::GlobalTensor<T> gm = cube.ProbsOf(task, r);
    if constexpr (std::is_same_v<T, float>) {  // as they are; the next strip must not come in before they are out
      WaitPipe<AscendC::HardEvent::V_MTE3>();
      CopyRowsOut(gm, probs, rows, cols, pitch, cols);
      WaitPipe<AscendC::HardEvent::MTE3_MTE2>();
    } else {
      const int64_t most = tiles_->outElements / cols;
      for (int64_t i = 0; i < rows; i += most) {
        const int64_t piece = MinOf(most, rows - i);
        AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
        AscendC::Cast(out, probs[static_cast<uint32_t>(i * cols)], AscendC::RoundMode::CAST_RINT,
                      static_cast<int32_t>(piece * cols));
        outQue_.EnQue(out);
        out = outQue_.template DeQue<T>();
        CopyRowsOut(gm[i * pitch], out, piece, cols, pitch, cols);
        outQue_.FreeTensor(out);
      }
    }
  }

  // Careful mode: output += probs value, pair by pair. A negative probability marks a hidden pair.
  __aicore__ inline void AddVisible(const AscendC::LocalTensor<float>& probs, const FlashTask& task, int64_t r,
                                    int64_t rows) {
    output_.Rescale(task, r, rows);
    const FlashSequence& sequence = task.sequence;
    const FlashTile& tile = task.tile;
    const int32_t Dv = static_cast<int32_t>(shape_->Dv);
    const int64_t offset =
        sequence.index * shape_->vBatch + task.kvHead * shape_->vHead + (sequence.keyBase + tile.key) * shape_->vRow;
    const AscendC::LocalTensor<float> wide = valueRowBuf_.Get<float>();
    for (int32_t c = 0; c < tile.cols; ++c) {
      AscendC::LocalTensor<T> value = valueRowQue_.template AllocTensor<T>();
      CopyRowsIn(value, valueGm_[offset + c * shape_->vRow], 1, Dv, Dv, tiles_->dvPad);
      valueRowQue_.EnQue(value);
      value = valueRowQue_.template DeQue<T>();
      if constexpr (std::is_same_v<T, float>) {
        AscendC::Adds(wide, value, 0.0f, Dv);
      } else {
        AscendC::Cast(wide, value, AscendC::RoundMode::CAST_NONE, Dv);
      }
      valueRowQue_.FreeTensor(value);
      WaitPipe<AscendC::HardEvent::V_S>();
      for (int64_t i = 0; i < rows; ++i) {
        const float p = probs.GetValue(static_cast<uint32_t>(i * tile.colsPad + c));
        if (!(p < 0.0f)) AscendC::Axpy(output_.Row(r + i), wide, p, Dv);
      }
      AscendC::PipeBarrier<PIPE_V>();
    }
    WaitPipe<AscendC::HardEvent::S_MTE2>();  // the next strip takes the place of the probabilities
  }

  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  FlashTaskWalker walker_;
  FlashTask tasks_[kFlashMaxTasks];  // a ring of those that are under way
  int64_t begun_;
  int64_t now_;                                 // the newest
  int64_t sent_;                                // pieces that the cube got since it began
  const FlashTask* adding_;                     // whose products are added to the output
  int64_t added_;                               // rows of these
  const FlashTask* ended_;                      // whose block, or range of keys, has all its products
  AscendC::TEventID probsOut_[FlashPlaces(1)];  // the probabilities of a task are in the workspace
  FlashScoreStrip<T> strip_;
  FlashSoftmax softmax_;
  FlashDropout dropout_;
  FlashOutput<T> output_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> scoresQue_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> productsQue_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> valueRowQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> valueRowBuf_;
  AscendC::GlobalTensor<T> valueGm_;
  AscendC::GlobalTensor<float> stateGm_;
};

template <typename T, typename Mask>
__aicore__ inline void FlashAttentionScoreRun(GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                                              GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                                              GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR slopes,
                                              GM_ADDR attentionOut, GM_ADDR softmaxMax, GM_ADDR softmaxSum,
                                              GM_ADDR workspace, const FlashAttentionScoreTilingData* tiling) {
  static_assert(sizeof(Mask) == 1, "attn_mask has one byte for each pair");
  AscendC::TPipe pipe;
  FlashAttentionScoreKernel<T> op;
  const FlashAttentionScoreTiles& tiles = tiling->tiles;
  TCubeTiling scoreTiling = FlashCubeTiling(tiles.qRows, tiles.kvCols, tiling->shape.D, kFlashCubeRows, sizeof(T));
  TCubeTiling valueTiling = FlashCubeTiling(tiles.qRows, tiling->shape.Dv, tiles.kvCols, kFlashCubeRows, sizeof(T), 1);
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.cube.scoreWork.matmul, &scoreTiling, op.cube.productWork.matmul,
                    &valueTiling);
  op.Init(&pipe, query, key, value, realShift, slopes, dropMask, attnMask, prefix, qEnds, kvEnds, sink, seedOffset,
          attentionOut, softmaxMax, softmaxSum, workspace, tiling);
  op.Process();
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
