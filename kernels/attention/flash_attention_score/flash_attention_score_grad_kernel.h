// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// dv = P^T dy, dk = dS^T query, dq = dS key, with P and dS of flash_attention_score_grad_strip.h
//
// A core owns a range of units (flash_attention_score_grad_units.h). For a unit, chunk by chunk of query rows and under
// each super-block by super-block of keys and values in L1, or the other way round where the keys are cut into ranges,
// every query block walks the key blocks it sees. Each pair of them is a task:
//   scores, dprobs (workspace) = query key^T, dy value^T             cube
//   strips of both to P and dS                                       vector, UB; in T to the workspace
//   dv += P^T dy, dk += dS^T query, dq += dS key                     cube, fp32 in GM
// With tiling depth 0 a task is done before the next begins. With depth 1 the cube makes the products of task i while
// the vector unit has the strips of task i - 1, and meanwhile also adds those of task i - 2; before a unit's results
// are looked at all its tasks are through. dq is summed in the workspace, dk and dv in the outputs themselves (fp32) or
// the workspace. Each sum runs over the blocks in order, and the blocks start at multiples of qRows and kvCols. Only
// ranges depend on the number of cores: a kv head that several of them share has a dq of each, which are added in order
// when all are done. A unit whose results are not finite is done again in careful mode, which adds pair by pair and
// leaves hidden pairs out, so that NaN and infinities reach only what sees them.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_

#include "attention/flash_attention_score/flash_attention_score_grad_bias.h"
#include "attention/flash_attention_score/flash_attention_score_grad_sums.h"
#include "attention/flash_attention_score/flash_attention_score_grad_tile.h"
#include "attention/flash_attention_score/flash_attention_score_grad_units.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

namespace mst {

template <typename T>
class FlashAttentionScoreGradKernel {
 public:
  FlashGradTile<T> tile;  // its Matmul objects are registered by the entry function

  __aicore__ inline void Init(AscendC::TPipe* pipe, const FlashGradArgs& args, GM_ADDR workspace,
                              const FlashAttentionScoreGradTilingData* tiling) {
    tiling_ = tiling;
    shape_ = &tiling->shape;
    tiles_ = &tiling->tiles;
    core_ = AscendC::GetBlockIdx();
    sequences_.Init(shape_, args.qEnds, args.kvEnds, args.prefix);
    GM_ADDR own = workspace + core_ * tiling->coreWorkspaceBytes;
    tile.Init(pipe, tiling, args, own);
    own += tiling->tileBytes;
    sums_.Init(pipe, tiling, &tile, args, own, workspace + tiling->head.cores * tiling->coreWorkspaceBytes);
    bias_.Init(tiling, &tile, sequences_, args, own);
  }

  __aicore__ inline void Process() {
    const int64_t begin = tiling_->unitBegin[core_];
    const int64_t end = tiling_->unitBegin[core_ + 1];
    for (auto& event : probsOut_) event = GetTPipePtr()->AllocEventID<AscendC::HardEvent::MTE3_S>();
    FlashGradUnitWalker units;
    units.Init(sequences_, tiling_, begin, MinOf(end, tiling_->pairUnits));
    while (units.Next(&unit_)) {
      if (!ProcessUnit(false)) ProcessUnit(true);
    }
    for (auto& event : probsOut_) GetTPipePtr()->ReleaseEventID<AscendC::HardEvent::MTE3_S>(event);
    const int64_t sinkBegin = tiling_->pairUnits + tiling_->pseUnits;
    for (int64_t i = MaxOf(begin, tiling_->pairUnits); i < end; ++i) {
      if (i < sinkBegin) {
        bias_.ProcessPse(i - tiling_->pairUnits);
      } else {
        bias_.ProcessSink(i - sinkBegin);
      }
    }
    if (tiling_->cut == kFlashGradRanges) {
      AscendC::SyncAll();
      AddSlots();
    }
    tile.End();
  }

 private:
  // Whether all results are finite; always true in careful mode.
  __aicore__ inline bool ProcessUnit(bool careful) {
    const bool ranges = tiling_->cut == kFlashGradRanges;
    const int64_t G = shape_->N / shape_->Nkv;
    const int64_t spanKeys = ranges ? tiles_->superRows : MaxOf(1, unit_.keyEnd - unit_.keyBegin);
    careful_ = careful;
    depth_ = careful ? 0 : tiles_->depth;
    begun_ = given_ = done_ = spans_ = ended_ = written_ = 0;
    middle_ = last_ = nullptr;
    sums_.BeginFinite();
    if (ranges) sums_.UseSlot(unit_.keyBegin > 0 ? tiling_->slotBegin[core_] : tiling_->slotBegin[core_ + 1] - 1);
    for (int64_t g = 0; g < G; ++g) {
      if (storesPse()) bias_.ClearPse(unit_, HeadOf(g));
      if (ranges) BeginRows(g, 0, unit_.rowEnd);
    }
    int64_t key = unit_.keyBegin;
    do {
      BeginSpan(key, MinOf(key + spanKeys, unit_.keyEnd));
      for (int64_t g = 0; g < G; ++g) {
        for (int64_t row = unit_.rowBegin; row < unit_.rowEnd; row += tiles_->chunkRows) {
          const int64_t end = MinOf(row + tiles_->chunkRows, unit_.rowEnd);
          if (!ranges) BeginRows(g, row, end);
          ProcessChunk(g, row, end);
          if (!ranges) EndRows(g, row, end);
        }
      }
      EndSpan();
      key += spanKeys;
    } while (key < unit_.keyEnd);
    Drain();
    for (int64_t g = 0; ranges && g < G; ++g) EndRows(g, 0, unit_.rowEnd);
    return sums_.IsFinite() || careful;
  }

  __aicore__ inline bool storesPse() const { return unit_.givesQuery && tiling_->pseDirect != 0; }
  // The g-th query head of the unit's kv head.
  __aicore__ inline int64_t HeadOf(int64_t g) const { return unit_.kvHead * (shape_->N / shape_->Nkv) + g; }
  // Where the sums of a head's rows begin, and their delta.
  __aicore__ inline int64_t SumRow(int64_t g) const {
    return tiling_->cut == kFlashGradRanges ? g * tiles_->chunkRows : 0;
  }

  __aicore__ inline void BeginRows(int64_t g, int64_t row, int64_t rowEnd) {
    const int64_t head = HeadOf(g);
    if (unit_.givesQuery) sums_.ClearQuery(SumRow(g), rowEnd - row);
    tile.strip.PrepareRows(unit_.sequence, head, row, rowEnd - row, SumRow(g));
  }
  // dq goes out, unless other cores have a part of it. Other rows may come in the place of these.
  __aicore__ inline void EndRows(int64_t g, int64_t row, int64_t rowEnd) {
    Drain();
    if (!unit_.givesQuery) return;
    const int64_t head = HeadOf(g);
    const bool isWhole = unit_.keyBegin == 0 && unit_.keyEnd == unit_.sequence.keys;
    sums_.WriteQuery(unit_.sequence, head, row, rowEnd, SumRow(g), isWhole);
  }

  // Keys [key, keyEnd): those whose dk and dv are summed until they are written.
  __aicore__ inline void BeginSpan(int64_t key, int64_t keyEnd) {
    while (spans_ - written_ > depth_) Advance(nullptr);  // their place is free
    FlashGradSpan& span = underWay_[spans_ % 2];
    span = {key, keyEnd, depth_ == 0 ? 0 : spans_ % 2 * tiling_->keyRows, 0};
    if (unit_.givesKeyValue) sums_.ClearKeyValue(unit_, key, keyEnd, span.sumKey);
    ++spans_;
  }
  __aicore__ inline void EndSpan() {
    underWay_[(spans_ - 1) % 2].tasks = begun_;
    ++ended_;
    WriteSpans();
  }
  // dk and dv of those whose tasks are done.
  __aicore__ inline void WriteSpans() {
    for (; written_ < ended_ && underWay_[written_ % 2].tasks <= done_; ++written_) {
      const FlashGradSpan& span = underWay_[written_ % 2];
      if (unit_.givesKeyValue) sums_.WriteKeyValue(unit_, span.key, span.keyEnd, span.sumKey);
    }
  }

  // Rows [chunk, chunkEnd) of a head and the keys of the span.
  __aicore__ inline void ProcessChunk(int64_t g, int64_t chunk, int64_t chunkEnd) {
    const FlashGradSpan& span = underWay_[(spans_ - 1) % 2];
    const FlashBand& band = unit_.sequence.band;
    const int64_t head = HeadOf(g);
    const int64_t superRows = tiles_->superRows;
    const int64_t keyEnd = MinOf(span.keyEnd, FlashKeyEnd(band, chunkEnd));
    const int64_t keyBegin = MaxOf(span.key, FlashKeyBegin(band, chunk));
    for (int64_t super = keyBegin / superRows * superRows; super < keyEnd; super += superRows) {
      for (int64_t row = chunk; row < chunkEnd; row += tiles_->qRows) {
        const int64_t rows = MinOf(tiles_->qRows, chunkEnd - row);
        const int64_t end = MinOf(MinOf(span.keyEnd, FlashKeyEnd(band, row + rows)), super + superRows);
        const int64_t first = MaxOf(FlashKeyBegin(band, row) / tiles_->kvCols * tiles_->kvCols, span.key);
        bool beginsRows = true;
        for (int64_t key = MaxOf(super, first); key < end; key += tiles_->kvCols) {
          const int32_t cols = static_cast<int32_t>(MinOf(tiles_->kvCols, end - key));
          if (FlashViewOf(band, row, row + rows, key, key + cols) == FlashTileView::kHidden) continue;
          Begin({unit_.kvHead,
                 row,
                 rows,
                 super,
                 {head, key, cols, static_cast<int32_t>(RoundUpOf(cols, kFlashColsUnit))},
                 depth_ == 0 ? 0 : begun_ % kPlaces,
                 SumRow(g) + row - chunk,
                 span.sumKey + key - span.key,
                 beginsRows});
          beginsRows = false;
        }
      }
    }
  }

  __aicore__ inline void Begin(const FlashGradBlock& block) {
    FlashGradBlock& task = tasks_[begun_ % kPlaces];
    task = block;
    ++begun_;
    Advance(&task);
  }
  __aicore__ inline void Drain() {
    while (done_ < begun_) Advance(nullptr);
  }

  // `first` begins, if there is one, and those before it go on.
  __aicore__ inline void Advance(const FlashGradBlock* first) {
    const FlashSequence& sequence = unit_.sequence;
    const FlashGradBlock* middle = depth_ == 0 ? first : middle_;
    const FlashGradBlock* last = depth_ == 0 ? first : last_;
    tile.AwaitProducts();
    if (first != nullptr) tile.StartProducts(sequence, *first);
    if (depth_ == 0) tile.AwaitProducts();
    if (middle != nullptr) Strips(*middle);
    tile.AwaitGrads();
    done_ = given_;
    if (last != nullptr && !careful_) StartGrads(*last, middle);
    given_ += last != nullptr;
    if (depth_ == 0) {
      tile.AwaitGrads();
      done_ = given_;
    }
    last_ = middle_;
    middle_ = first;
    WriteSpans();
  }

  __aicore__ inline void Strips(const FlashGradBlock& block) {
    if (block.beginsRows) {
      tile.strip.LoadRows(unit_.sequence, block.tile.head, block.row, block.rows, block.sumRow);
    }
    for (int64_t r = 0; r < block.rows; r += tiles_->stripRows) {
      const int64_t rows = MinOf(tiles_->stripRows, block.rows - r);
      tile.Differentiate(unit_.sequence, block, r, rows, false, careful_, storesPse());
      if (careful_) {
        AddPairs(block, r, rows);
      } else {
        tile.StoreStrips(block, r, rows);
      }
    }
    if (!careful_) AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(probsOut_[block.place % 2]);
  }

  // `next`: the task after it, if it has begun.
  __aicore__ inline void StartGrads(const FlashGradBlock& block, const FlashGradBlock* next) {
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(probsOut_[block.place % 2]);  // P and dS are there
    if (unit_.givesKeyValue) {
      tile.StartKeyValueGrads(unit_.sequence, block, sums_.ValueRows(unit_, block), sums_.valuePitch(),
                              sums_.KeyRows(unit_, block), sums_.keyPitch());
      if (depth_ != 0 && (next == nullptr || next->beginsRows)) tile.ReleaseRows();
    }
    if (unit_.givesQuery) {
      tile.StartQueryGrad(unit_.sequence, block, sums_.QueryRows(block.sumRow), tiles_->dPad);
    }
  }

  // Careful mode: rows [r, r + rows) of a block, of which P and dS are in UB, pair by pair, only those that are
  // visible.
  __aicore__ inline void AddPairs(const FlashGradBlock& block, int64_t r, int64_t rows) {
    WaitPipe<AscendC::HardEvent::V_S>();
    for (int64_t i = 0; i < rows; ++i) sums_.AddRow(unit_, block, r + i, i);
    WaitPipe<AscendC::HardEvent::S_MTE2>();  // the next strips take the place of these
    tile.FreeStrips();
  }

  // dq of kv heads that several cores have a part of: their slots are next to each other.
  __aicore__ inline void AddSlots() {
    const int64_t G = shape_->N / shape_->Nkv;
    const int64_t* unitBegin = tiling_->unitBegin;
    FlashSequenceWalker sequences = sequences_;
    int64_t unit = 0, core = 0, turn = 0;
    while (sequences.Next()) {
      const FlashSequence& s = sequences.sequence();
      for (int64_t kvHead = 0; kvHead < shape_->Nkv; ++kvHead) {
        while (unitBegin[core + 1] <= unit) ++core;  // it has the head's first unit
        unit += FlashGradRangesOf(*tiling_, s.keys);
        const int64_t first = tiling_->slotBegin[core + 1] - 1;
        if (unitBegin[core + 1] >= unit) continue;
        while (unitBegin[core + 1] < unit) ++core;  // and it the last
        const int64_t end = tiling_->slotBegin[core] + 1;
        for (int64_t g = 0; g < G; ++g) {
          for (int64_t row = 0; row < s.rows; row += tiles_->qRows) {
            if (turn++ % tiling_->head.cores != core_) continue;
            sums_.AddSlots(s, kvHead * G + g, row, MinOf(row + tiles_->qRows, s.rows), SumRow(g) + row, first, end);
          }
        }
      }
    }
  }

  static constexpr int64_t kPlaces = FlashGradPlaces(1);  // of tasks under way

  // Keys [key, keyEnd) whose dk and dv are summed from `sumKey` on, until the first `tasks` of the unit are done.
  struct FlashGradSpan {
    int64_t key;
    int64_t keyEnd;
    int64_t sumKey;
    int64_t tasks;
  };

  const FlashAttentionScoreGradTilingData* tiling_;
  const FlashAttentionScoreShape* shape_;
  const FlashAttentionScoreTiles* tiles_;
  int64_t core_;
  AscendC::TEventID probsOut_[2];  // P and dS of a task are in the workspace; of tasks in turn
  FlashSequenceWalker sequences_;
  FlashGradUnit unit_;
  bool careful_;
  int64_t depth_;  // 0 in careful mode
  FlashGradBlock tasks_[kPlaces];
  const FlashGradBlock* middle_;  // whose scores the cube has been given, and whose P and dS are there
  const FlashGradBlock* last_;
  int64_t begun_;  // tasks of the unit: all, those of which the cube has been given everything, those that are done
  int64_t given_;
  int64_t done_;
  FlashGradSpan underWay_[2];
  int64_t spans_;  // of the unit: all, those without further tasks, those that are written
  int64_t ended_;
  int64_t written_;
  FlashGradSums<T> sums_;
  FlashGradBias<T> bias_;
};

template <typename T, typename Mask>
__aicore__ inline void FlashAttentionScoreGradRun(GM_ADDR query, GM_ADDR key, GM_ADDR value, GM_ADDR realShift,
                                                  GM_ADDR dropMask, GM_ADDR attnMask, GM_ADDR prefix, GM_ADDR qEnds,
                                                  GM_ADDR kvEnds, GM_ADDR sink, GM_ADDR seedOffset, GM_ADDR slopes,
                                                  GM_ADDR softmaxMax, GM_ADDR softmaxSum, GM_ADDR attentionIn,
                                                  GM_ADDR dy, GM_ADDR dlse, GM_ADDR dq, GM_ADDR dk, GM_ADDR dv,
                                                  GM_ADDR dpse, GM_ADDR dsink, GM_ADDR workspace,
                                                  const FlashAttentionScoreGradTilingData* tiling) {
  static_assert(sizeof(Mask) == 1, "attn_mask has one byte for each pair");
  AscendC::TPipe pipe;
  FlashAttentionScoreGradKernel<T> op;
  const FlashAttentionScoreTiles& t = tiling->tiles;
  const int64_t D = tiling->shape.D, Dv = tiling->shape.Dv;
  TCubeTiling scores = FlashCubeTiling(t.qRows, t.kvCols, D, kFlashCubeRows, sizeof(T));
  TCubeTiling dprobs = FlashCubeTiling(t.qRows, t.kvCols, Dv, kFlashCubeRows, sizeof(T));
  TCubeTiling valueGrad = FlashCubeTiling(t.kvCols, Dv, t.qRows, kFlashCubeRows, sizeof(T));
  TCubeTiling keyGrad = FlashCubeTiling(t.kvCols, D, t.qRows, kFlashCubeRows, sizeof(T));
  TCubeTiling queryGrad = FlashCubeTiling(t.qRows, D, t.kvCols, kFlashCubeRows, sizeof(T));
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.tile.scores.matmul, &scores, op.tile.dprobs.matmul, &dprobs,
                    op.tile.valueGrad.matmul, &valueGrad, op.tile.keyGrad.matmul, &keyGrad, op.tile.queryGrad.matmul,
                    &queryGrad);
  const FlashGradArgs args = {
      query,  key,   value,  realShift, dropMask,   attnMask,
      prefix, qEnds, kvEnds, sink,      seedOffset, slopes,
      dq,     dk,    dv,     dpse,      dsink,      {dy, attentionIn, softmaxMax, softmaxSum, dlse}};
  op.Init(&pipe, args, workspace, tiling);
  op.Process();
}

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_GRAD_KERNEL_H_
