// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// attention_out[b, n, i, :] = sum_j P[i, j] value[b, n / G, j, :], P = softmax_j S[i, j], S = Score(query key^T)
//
// A core owns a range of units: chunks of query rows of the G query heads of one kv head. It goes through tasks, each a
// query block and a key block that it sees (tasks.h):
//   scores (workspace) = query key^T            cube
//   strips of scores: Score, online softmax     vector, UB; probabilities to the workspace
//   products (workspace) = probabilities value  cube
//   output (UB) = output * alpha + products     vector
// With tiling depth 0 a task is done before the next begins. With depth 1 the cube is ahead: while the vector unit
// makes the probabilities of task i - 2, it makes the products of task i - 3 and then the scores of task i. The vector
// unit adds products to the output between its strips, those of task i - 4 a strip's rows before each strip, so that
// copies have time; at a block's end those of task i - 3 at once. The running maximum, sum and output of a block
// live in UB; where it walks the keys in several ranges, in the workspace between them (depth 0 only). A block whose
// output is not finite is done again in careful mode, task by task, where each hidden pair is left out instead of
// multiplied by 0, so that NaN and infinities reach only rows that see them. Results of a row depend on the key blocks
// alone, which start at multiples of kvCols: not on cores or chunks.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_

#include "attention/flash_attention_score/flash_attention_score_dropout.h"
#include "attention/flash_attention_score/flash_attention_score_operand.h"
#include "attention/flash_attention_score/flash_attention_score_output.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashAttentionScoreKernel {
  using GmIn = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  using L1Rows = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T>;
  using L1RowsTransposed = matmul::MatmulType<AscendC::TPosition::TSCM, CubeFormat::NZ, T, true>;
  using GmOut = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

  static constexpr int64_t kProbsOfScore = sizeof(float) / sizeof(T);  // elements that take the place of a score

 public:
  FlashCubeWork<matmul::Matmul<GmIn, L1RowsTransposed, GmOut>> scoreWork;
  FlashCubeWork<matmul::Matmul<GmIn, L1Rows, GmOut>> productWork;

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

    queryGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(query));
    valueGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(value));
    GM_ADDR own = workspace + core * tiling->coreWorkspaceBytes;
    scoresGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));
    probsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(own));  // each strip in the place of its scores
    const int64_t depth = tiles_->depth;
    own += (3 * depth + 1) * tiles_->qRows * tiles_->scoreRow * sizeof(float);
    productsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));
    own += (depth + 1) * tiles_->qRows * tiles_->dvPad * sizeof(float);
    GM_ADDR denseValues = own + tiles_->superRows * tiles_->dPad * sizeof(T);
    keys_.Init(pipe, key, own, tiles_->superRows, shape_->D, tiles_->dPad, shape_->kRow);
    values_.Init(pipe, value, denseValues, tiles_->valueRows, shape_->Dv, tiles_->dvPad, shape_->vRow);
    own += tiling->denseBytes;
    stateGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(own));

    strip_.Init(pipe, shape_, tiles_, realShift, slopes, attnMask);
    dropout_.Init(pipe, shape_, tiles_, dropMask, seedOffset);
    output_.Init(pipe, shape_, tiles_, sink, attentionOut, softmaxMax, softmaxSum);
    pipe->InitBuffer(scoresQue_, depth + 1, tiles_->stripFloats * sizeof(float));
    if (depth != 0) pipe->InitBuffer(productsQue_, 1, tiles_->stripRows * tiles_->dvPad * sizeof(float));
    pipe->InitBuffer(outQue_, 1, tiles_->outElements * sizeof(T));
    pipe->InitBuffer(valueRowQue_, 1, tiles_->dvPad * sizeof(T));
    pipe->InitBuffer(valueRowBuf_, tiles_->dvPad * sizeof(float));
  }

  __aicore__ inline void Process() {
    const int64_t depth = tiles_->depth;
    probsOut_ = GetTPipePtr()->AllocEventID<AscendC::HardEvent::MTE3_S>();
    pieces_ = CeilDivOf(tiles_->kvCols, MinOf(tiles_->superRows, tiles_->valueRows));
    begun_ = 0;
    more_ = true;
    adding_ = nullptr;
    for (int64_t i = 0; more_ || i < begun_ + 3 * depth; ++i) {
      more_ = more_ && walker_.Next(&tasks_[i % kFlashMaxTasks]);
      begun_ += more_;
      const FlashTask* first = TaskAt(i);
      const FlashTask* middle = TaskAt(i - 2 * depth);
      const FlashTask* last = TaskAt(i - 3 * depth);
      for (int64_t piece = 0; depth == 0 && first != nullptr && piece < pieces_; ++piece) Scores(*first, piece);
      if (depth == 0) scoreWork.Await();
      if (middle != nullptr) BeginStrips(*middle);
      int64_t row = 0;
      // The vector unit has strips to do while the cube gets its work, piece by piece.
      for (int64_t piece = 0; depth != 0 && piece < pieces_; ++piece) {
        if (middle != nullptr) row = Strips(*middle, row, 2 * tiles_->stripRows + piece * tiles_->qRows / pieces_);
        scoreWork.Await();
        if (first != nullptr && piece == 0) LoadKeys(*first, first->tile.key);
        if (last != nullptr) Products(*last, piece);
      }
      for (int64_t piece = 0; depth != 0 && first != nullptr && piece < pieces_; ++piece) Scores(*first, piece);
      if (middle != nullptr) EndStrips(*middle, row);
      for (int64_t piece = 0; depth == 0 && last != nullptr && piece < pieces_; ++piece) Products(*last, piece);
      if (last != nullptr) BeginAdding(*last);
      if (last != nullptr && (depth == 0 || last->endsWalk)) AddRest();
      if (last != nullptr && last->endsWalk) EndWalk(*last);
      if (middle != nullptr) LoadValues(*middle, middle->tile.key);
    }
    GetTPipePtr()->ReleaseEventID<AscendC::HardEvent::MTE3_S>(probsOut_);
    scoreWork.matmul.End();
    productWork.matmul.End();
  }

 private:
  // Task `i` of those that have begun.
  __aicore__ inline const FlashTask* TaskAt(int64_t i) const {
    return i >= 0 && i < begun_ ? &tasks_[i % kFlashMaxTasks] : nullptr;
  }
  __aicore__ inline int64_t ScoresOffset(const FlashTask& task) const {
    return task.scores * tiles_->qRows * tiles_->scoreRow;
  }
  __aicore__ inline int64_t ProductsOffset(const FlashTask& task) const {
    return task.turn * tiles_->qRows * tiles_->dvPad;
  }
  // Probabilities lie where their scores were: elements from one row to the next.
  __aicore__ inline int64_t probPitch() const { return tiles_->scoreRow * kProbsOfScore; }

  // Key and value from `key` on come to L1 as soon as there is room, which is when the product before is done.
  __aicore__ inline void LoadKeys(const FlashTask& task, int64_t key) {
    if (task.tile.cols == 0) return;
    keys_.Load(task.sequence, task.kvHead, key / tiles_->superRows * tiles_->superRows,
               task.sequence.index * shape_->kBatch + task.kvHead * shape_->kHead);
  }
  __aicore__ inline void LoadValues(const FlashTask& task, int64_t key) {
    if (task.tile.cols == 0) return;
    values_.Load(task.sequence, task.kvHead, key / tiles_->valueRows * tiles_->valueRows,
                 task.sequence.index * shape_->vBatch + task.kvHead * shape_->vHead);
  }

  // Keys [begin, end) of a piece of the key block: of all if L1 has room for that. There are no more than pieces_.
  __aicore__ inline void PieceOf(const FlashTile& tile, int64_t piece, int64_t rows, int64_t* begin,
                                 int64_t* end) const {
    const int64_t most = MinOf(rows, tiles_->kvCols);
    *end = MinOf(tile.key + (piece + 1) * most, tile.key + tile.cols);
    *begin = MinOf(tile.key + piece * most, *end);
  }

  __aicore__ inline void Scores(const FlashTask& task, int64_t piece) {
    int64_t key, keyEnd;
    PieceOf(task.tile, piece, tiles_->superRows, &key, &keyEnd);
    if (key == keyEnd) return;
    const FlashSequence& sequence = task.sequence;
    const int64_t queryOffset =
        sequence.index * shape_->qBatch + task.tile.head * shape_->qHead + (sequence.rowBase + task.row) * shape_->qRow;
    scoreWork.Await();
    LoadKeys(task, key);
    scoreWork.matmul.SetOrgShape(task.rows, keys_.rows(), shape_->qRow, shape_->D, tiles_->scoreRow);
    scoreWork.matmul.SetSingleShape(task.rows, keyEnd - key, shape_->D);
    scoreWork.matmul.SetTensorA(queryGm_[queryOffset]);
    scoreWork.matmul.SetTensorB(keys_.Rows(key % tiles_->superRows), true);
    scoreWork.Start(scoresGm_[ScoresOffset(task) + key - task.tile.key], false);
  }

  __aicore__ inline void BeginStrips(const FlashTask& task) {
    if (task.beginsBlock) {
      output_.ResetStatistics(task);
    } else if (task.beginsWalk) {
      output_.Load(stateGm_[task.block * output_.stateFloats()]);
    }
  }

  __aicore__ inline void Products(const FlashTask& task, int64_t piece) {
    int64_t key, keyEnd;
    PieceOf(task.tile, piece, tiles_->valueRows, &key, &keyEnd);
    if (key == keyEnd) return;
    if (piece == 0) AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(probsOut_);  // the probabilities are there
    productWork.Await();
    LoadValues(task, key);
    productWork.matmul.SetOrgShape(task.rows, shape_->Dv, probPitch(), values_.rows(), tiles_->dvPad);
    productWork.matmul.SetSingleShape(task.rows, shape_->Dv, keyEnd - key);
    productWork.matmul.SetTensorA(probsGm_[ScoresOffset(task) * kProbsOfScore + key - task.tile.key]);
    productWork.matmul.SetTensorB(values_.Rows(key % tiles_->valueRows));
    productWork.Start(productsGm_[ProductsOffset(task)], piece != 0);
  }

  // The products of `task` are those to be added to the output next. Its factors may be overwritten by the strips of
  // the task after next, each after its rows were added.
  __aicore__ inline void BeginAdding(const FlashTask& task) {
    if (adding_ != nullptr) AddRest();
    productWork.Await();
    adding_ = &task;
    added_ = 0;
    if (task.beginsBlock) output_.BeginOutput(task);
  }
  __aicore__ inline void AddRows() {
    const int64_t end = MinOf(added_ + tiles_->stripRows, adding_->rows);
    if (adding_->tile.cols != 0 && added_ < end) {
      output_.Accumulate(productsQue_, tiles_->stripRows, productsGm_[ProductsOffset(*adding_)], *adding_, added_, end);
    }
    added_ = end;
  }
  __aicore__ inline void AddRest() {
    if (adding_->tile.cols != 0) {
      output_.Accumulate(scoresQue_, MinOf(kMaxRepeat, tiles_->stripFloats / tiles_->dvPad),
                         productsGm_[ProductsOffset(*adding_)], *adding_, added_, adding_->rows);
    }
    added_ = adding_->rows;
  }

  __aicore__ inline void EndWalk(const FlashTask& task) {
    if (!task.endsBlock) {
      output_.Store(stateGm_[task.block * output_.stateFloats()]);
      return;
    }
    if (!output_.IsFinite(scoresQue_, task.rows)) RepeatCarefully(task);
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
    scoreWork.Await();
    output_.ResetStatistics(task);
    output_.ResetOutput(task.rows);
    for (int64_t key = next(FlashKeyBegin(band, task.row) / kvCols * kvCols); key < keyEnd; key = next(key + kvCols)) {
      part.tile = FlashTileAt(task.tile.head, key, keyEnd, kvCols);
      for (int64_t piece = 0; piece < pieces_; ++piece) Scores(part, piece);
      scoreWork.Await();
      for (int64_t r = 0; r < task.rows; r += tiles_->stripRows) Strip(part, r, true);
    }
  }

  // The strips of rows [row, end) of the block; the row after them.
  __aicore__ inline int64_t Strips(const FlashTask& task, int64_t row, int64_t end) {
    for (; row < MinOf(end, task.rows) && task.tile.cols != 0; row += tiles_->stripRows) {
      if (tiles_->depth != 0 && adding_ != nullptr) AddRows();
      Strip(task, row, false);
    }
    return row;
  }
  __aicore__ inline void EndStrips(const FlashTask& task, int64_t row) {
    Strips(task, row, task.rows);
    if (task.tile.cols != 0) AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(probsOut_);
  }

  // The strip from row `r` on; in careful mode on to the output.
  __aicore__ inline void Strip(const FlashTask& task, int64_t r, bool careful) {
    const FlashTile& tile = task.tile;
    const int64_t rows = MinOf(tiles_->stripRows, task.rows - r);
    AscendC::LocalTensor<float> scores = scoresQue_.template AllocTensor<float>();
    CopyRowsIn(scores, scoresGm_[ScoresOffset(task) + r * tiles_->scoreRow], rows, tile.cols, tiles_->scoreRow,
               tile.colsPad);
    scoresQue_.EnQue(scores);
    scores = scoresQue_.template DeQue<float>();
    strip_.Score(scores, task.sequence, tile, task.row + r, rows, false, scores);

    const uint32_t compareCount = static_cast<uint32_t>(RoundUpOf(rows * tile.colsPad, kFlashCompareUnit));
    if (careful) {  // remember what is visible
      AscendC::CompareScalar(strip_.Bits(), scores, kFlashHidden, AscendC::CMPMODE::NE, compareCount);
      AscendC::PipeBarrier<PIPE_V>();
    }
    // Basic blocks, which a card has a faster way for.
    if (rows % 8 == 0 && tile.colsPad % kRepeatFloats == 0) {
      OnlineSoftmax<true>(scores, task, r, rows);
    } else {
      OnlineSoftmax<false>(scores, task, r, rows);
    }
    AscendC::PipeBarrier<PIPE_V>();
    dropout_.Apply(scores, strip_.Work(), task.sequence, tile, task.row + r, rows);
    if (careful) {
      AscendC::Select(scores, strip_.Bits(), scores, -1.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, compareCount);
      AddVisible(scores, task, r, rows);
    } else {
      StoreProbs(scores, task, r, rows);
    }
    scoresQue_.FreeTensor(scores);
  }

  template <bool kBasicBlock>
  __aicore__ inline void OnlineSoftmax(const AscendC::LocalTensor<float>& scores, const FlashTask& task, int64_t r,
                                       int64_t rows) {
    const uint32_t m = static_cast<uint32_t>(rows);
    const uint32_t k = static_cast<uint32_t>(task.tile.colsPad);
    AscendC::SoftmaxFlashV2<float, true, false, kBasicBlock>(
        scores, output_.Sum(task, r), output_.Max(task, r), scores, output_.Alpha(task, r), output_.Sum(task, r),
        output_.Max(task, r), strip_.Work().template ReinterpretCast<uint8_t>(), SoftMaxTiling{},
        AscendC::SoftMaxShapeInfo{m, k, m, k});
  }

  __aicore__ inline void StoreProbs(const AscendC::LocalTensor<float>& probs, const FlashTask& task, int64_t r,
                                    int64_t rows) {
    const int64_t pitch = probPitch();
    const int32_t cols = task.tile.colsPad;
    const AscendC::GlobalTensor<T> gm = probsGm_[ScoresOffset(task) * kProbsOfScore + r * pitch];
    if constexpr (std::is_same_v<T, float>) {  // as they are; the next strip must not come in before they are out
      WaitPipe<AscendC::HardEvent::V_MTE3>();
      CopyRowsOut(gm, probs, rows, cols, pitch, cols);
      WaitPipe<AscendC::HardEvent::MTE3_MTE2>();
    } else {
      AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
      AscendC::Cast(out, probs, AscendC::RoundMode::CAST_RINT, static_cast<int32_t>(rows * cols));
      outQue_.EnQue(out);
      out = outQue_.template DeQue<T>();
      CopyRowsOut(gm, out, rows, cols, pitch, cols);
      outQue_.FreeTensor(out);
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
  bool more_;
  int64_t pieces_;              // of a key block in L1
  const FlashTask* adding_;     // whose products are added to the output
  int64_t added_;               // rows of these
  AscendC::TEventID probsOut_;  // the probabilities of a task are in the workspace
  FlashOperand<T> keys_;
  FlashOperand<T> values_;
  FlashScoreStrip<T> strip_;
  FlashDropout dropout_;
  FlashOutput<T> output_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> scoresQue_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> productsQue_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> valueRowQue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> valueRowBuf_;
  AscendC::GlobalTensor<T> queryGm_;
  AscendC::GlobalTensor<T> valueGm_;
  AscendC::GlobalTensor<float> scoresGm_;
  AscendC::GlobalTensor<float> productsGm_;
  AscendC::GlobalTensor<T> probsGm_;
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
  TCubeTiling valueTiling = FlashCubeTiling(tiles.qRows, tiling->shape.Dv, tiles.kvCols, kFlashCubeRows, sizeof(T));
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.scoreWork.matmul, &scoreTiling, op.productWork.matmul,
                    &valueTiling);
  op.Init(&pipe, query, key, value, realShift, slopes, dropMask, attnMask, prefix, qEnds, kvEnds, sink, seedOffset,
          attentionOut, softmaxMax, softmaxSum, workspace, tiling);
  op.Process();
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_KERNEL_H_
