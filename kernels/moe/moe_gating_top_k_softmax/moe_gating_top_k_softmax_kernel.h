// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// expert_idx[t, :] = the k largest of x[t, :], descending, of equal ones the lower expert first     x [T, E], y [T, k]
// y[t, j] = exp(x[t, expert_idx[t, j]] - max) / sum, the sum over all experts or, with renorm, over the chosen
// row_idx[t, j] = j * T + t; a finished token has expert_idx E
// A core owns a contiguous range of tokens. In a tile each row is padded with -inf to a multiple of 32, and all groups
// of 32 are sorted by one instruction. Of the sorted lists of a row no more than k records matter: for a small k the
// heads of neighbouring lists, 32 records together, are sorted again, those of all rows at once, until a row is one
// list; otherwise lists are merged, four of a row at a time. The first of a row is its maximum. UB: x, its floats and
// softmax_result, expert numbers, records (value and expert), heads or merged records, results (queues).
#ifndef MST_MOE_MOE_GATING_TOP_K_SOFTMAX_KERNEL_H_
#define MST_MOE_MOE_GATING_TOP_K_SOFTMAX_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "moe/moe_gating_top_k_softmax/moe_gating_top_k_softmax_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X>
class MoeGatingTopKSoftmaxKernel {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR finished, GM_ADDR y, GM_ADDR expertIdx, GM_ADDR rowIdx,
                              GM_ADDR softmax, const MoeGatingTopKSoftmaxTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    finishedGm_.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(finished));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(y));
    expertIdxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(expertIdx));
    rowIdxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(rowIdx));
    softmaxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(softmax));

    const int64_t rows = RoundUpOf(tiling->rowsPerTile, kBlockFloats);
    const int64_t experts = tiling->rowsPerTile * tiling->expertPitch;
    // Extract works on groups of 32; the last merge writes up to four lists beyond its row.
    const int64_t choices = RoundUpOf(tiling->rowsPerTile * tiling->choicePitch, kSortUnit);
    pipe->InitBuffer(xQueue_, tiling->buffers, experts * sizeof(X));
    pipe->InitBuffer(yQueue_, tiling->buffers, choices * sizeof(X));
    pipe->InitBuffer(expertQueue_, tiling->buffers, choices * sizeof(int32_t));
    pipe->InitBuffer(rowQueue_, tiling->buffers, choices * sizeof(int32_t));
    if (tiling->hasFinished) pipe->InitBuffer(finishedQueue_, 1, RoundUpOf(rows, kUbBlockBytes));
    if (tiling->hasSoftmax) pipe->InitBuffer(softmaxQueue_, tiling->buffers, experts * sizeof(float));
    pipe->InitBuffer(logitBuf_, experts * sizeof(float));
    pipe->InitBuffer(numberBuf_, experts * sizeof(uint32_t));
    pipe->InitBuffer(recordBuf_, experts * kRecordBytes);
    if (tiling->sortsAgain) {
      pipe->InitBuffer(headBuf_, experts / 2 * kRecordBytes);
      pipe->InitBuffer(headValueBuf_, experts / 2 * sizeof(float));
      pipe->InitBuffer(headNumberBuf_, experts / 2 * sizeof(uint32_t));
      pipe->InitBuffer(chosenBuf_, choices * kRecordBytes);
    } else {
      pipe->InitBuffer(mergeBuf_[0], tiling->expertPitch * kRecordBytes);
      pipe->InitBuffer(mergeBuf_[1], tiling->expertPitch * kRecordBytes);
      pipe->InitBuffer(chosenBuf_, (choices + kWays * RoundUpOf(tiling->choicePitch, kSortUnit)) * kRecordBytes);
    }
    pipe->InitBuffer(valueBuf_, choices * sizeof(float));
    pipe->InitBuffer(expBuf_, choices * sizeof(float));
    pipe->InitBuffer(firstRowBuf_, choices * sizeof(int32_t));
    pipe->InitBuffer(maxBuf_, rows * sizeof(float));
    pipe->InitBuffer(sumBuf_, rows * sizeof(float));
    pipe->InitBuffer(spreadBuf_, rows * kUbBlockBytes);
    pipe->InitBuffer(workBuf_, ReduceWorkFloats(tiling->expertPitch) * sizeof(float));
    FillNumbers(tiling->rowsPerTile);
  }

  __aicore__ inline void Process() {
    const int64_t tokenEnd = tiling_->T * (GetBlockIdx() + 1) / GetBlockNum();
    for (int64_t token = tiling_->T * GetBlockIdx() / GetBlockNum(); token < tokenEnd; token += tiling_->rowsPerTile) {
      const int64_t rows = MinOf(tiling_->rowsPerTile, tokenEnd - token);
      CopyIn(token, rows);
      LocalTensor<int32_t> experts = expertQueue_.template AllocTensor<int32_t>();
      Sort(rows, experts);
      Softmax(token, rows);
      if (tiling_->hasFinished) MarkFinished(token, rows, experts);
      Store(expertQueue_, expertIdxGm_[token * tiling_->k], experts, rows);
      StoreRowIdx(token, rows);
    }
  }

 private:
  static constexpr int64_t kSortUnit = kMoeSortUnit;
  static constexpr int64_t kRecordBytes = 8;  // value and number
  static constexpr int64_t kRecordFloats = 2;
  static constexpr int64_t kWays = 4;  // lists that one merge takes

  // Expert numbers of every row, and the row numbers of a tile whose first token is 0. CopyIn has a barrier before
  // their first use.
  __aicore__ inline void FillNumbers(int64_t rows) {
    LocalTensor<int32_t> numbers = numberBuf_.Get<int32_t>();
    CreateVecIndex(numbers, int32_t{0}, static_cast<uint32_t>(tiling_->expertPitch));
    LocalTensor<int32_t> first = firstRowBuf_.Get<int32_t>();
    CreateVecIndex(first, int32_t{0}, static_cast<uint32_t>(tiling_->choicePitch));
    PipeBarrier<PIPE_V>();
    Muls(first, first, static_cast<int32_t>(tiling_->T), static_cast<int32_t>(tiling_->choicePitch));
    PipeBarrier<PIPE_V>();
    for (int64_t row = 1; row < rows; ++row) {
      Adds(numbers[row * tiling_->expertPitch], numbers, int32_t{0}, static_cast<int32_t>(tiling_->expertPitch));
      Adds(first[row * tiling_->choicePitch], first, static_cast<int32_t>(row),
           static_cast<int32_t>(tiling_->choicePitch));
    }
  }

  // The logits as floats, padded with -inf.
  __aicore__ inline void CopyIn(int64_t token, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t pitch = tiling_->expertPitch;
    LocalTensor<float> logits = logitBuf_.Get<float>();
    LocalTensor<X> x = xQueue_.template AllocTensor<X>();
    CopyRowsIn(x, xGm_[token * E], rows, E, E, pitch);
    xQueue_.EnQue(x);
    x = xQueue_.template DeQue<X>();
    if constexpr (IsSameType<X, float>::value) {
      Muls(logits, x, 1.0f, static_cast<int32_t>(rows * pitch));
    } else {
      Cast(logits, x, RoundMode::CAST_NONE, static_cast<uint32_t>(rows * pitch));
    }
    PipeBarrier<PIPE_V>();
    xQueue_.FreeTensor(x);
    if (E < pitch) {
      // From the last whole block on, which may begin with logits.
      const int64_t begin = E / kBlockFloats * kBlockFloats;
      const int32_t minusInfinity = -8388608;  // 0xff800000
      const LocalTensor<int32_t> bits = logits.ReinterpretCast<int32_t>();
      uint64_t mask[2] = {((uint64_t{1} << (pitch - begin)) - 1) & ~((uint64_t{1} << (E - begin)) - 1), 0};
      for (int64_t row = 0; row < rows; ++row) Duplicate(bits[row * pitch + begin], minusInfinity, mask, 1, 1, 8);
      PipeBarrier<PIPE_V>();
    }
  }

  // The chosen experts, and their logits in valueBuf_.
  __aicore__ inline void Sort(int64_t rows, const LocalTensor<int32_t>& experts) {
    LocalTensor<float> records = recordBuf_.Get<float>();
    LocalTensor<float> chosen = chosenBuf_.Get<float>();
    const int64_t pitch = tiling_->expertPitch;
    const int64_t choicePitch = tiling_->choicePitch;
    Sort32(records, logitBuf_.Get<float>(), numberBuf_.Get<uint32_t>(), static_cast<int32_t>(rows * pitch / kSortUnit));
    PipeBarrier<PIPE_V>();
    if (tiling_->sortsAgain) SortHeads(records, rows);
    if (tiling_->sortsAgain || pitch == kSortUnit) {  // one list per row: its first records are the result
      CopyHeads(chosen, records, rows, choicePitch);
    } else {
      for (int64_t row = 0; row < rows; ++row) {
        MergeRow(chosen[row * choicePitch * kRecordFloats], records[row * pitch * kRecordFloats]);
      }
    }
    PipeBarrier<PIPE_V>();
    const int32_t groups = static_cast<int32_t>(CeilDivOf(rows * choicePitch, kSortUnit));
    Extract(valueBuf_.Get<float>(), experts.ReinterpretCast<uint32_t>(), chosen, groups);
    PipeBarrier<PIPE_V>();
  }

  // The first `length` records of each sorted list, which fill whole blocks.
  __aicore__ inline void CopyHeads(const LocalTensor<float>& dst, const LocalTensor<float>& records, int64_t lists,
                                   int64_t length) {
    const uint16_t blocks = static_cast<uint16_t>(length * kRecordBytes / kUbBlockBytes);
    const uint16_t listBlocks = static_cast<uint16_t>(kSortUnit * kRecordBytes / kUbBlockBytes);
    DataCopy(dst, records, DataCopyParams(static_cast<uint16_t>(lists), blocks, listBlocks - blocks, 0));
  }

  // Replaces the sorted lists of all rows, a power of two per row, by one list per row.
  __aicore__ inline void SortHeads(const LocalTensor<float>& records, int64_t rows) {
    LocalTensor<float> heads = headBuf_.Get<float>();
    LocalTensor<float> values = headValueBuf_.Get<float>();
    LocalTensor<uint32_t> numbers = headNumberBuf_.Get<uint32_t>();
    int64_t ways = kSortUnit / 4;  // lists of which one is made; 4 records fill a block
    while (kSortUnit / ways < tiling_->k) ways /= 2;
    int64_t lists = tiling_->expertPitch / kSortUnit;
    for (; lists > 1; lists /= ways) {
      ways = MinOf(ways, lists);
      const int32_t groups = static_cast<int32_t>(rows * lists / ways);
      CopyHeads(heads, records, rows * lists, kSortUnit / ways);
      PipeBarrier<PIPE_V>();
      Extract(values, numbers, heads, groups);
      PipeBarrier<PIPE_V>();
      Sort32(records, values, numbers, groups);
      PipeBarrier<PIPE_V>();
    }
  }

  // Merges the sorted lists of a row, kWays at a time, until one is left, which goes to dst.
  __aicore__ inline void MergeRow(const LocalTensor<float>& dst, const LocalTensor<float>& records) {
    LocalTensor<float> src = records;
    int64_t lists = tiling_->expertPitch / kSortUnit;
    int64_t stride = kSortUnit;                     // records between lists
    int64_t length = MinOf(kSortUnit, tiling_->k);  // records that matter of each list but the last
    int64_t lastLength = length;
    for (int32_t level = 0; lists > 1; ++level) {
      const int64_t merged = CeilDivOf(lists, kWays);
      LocalTensor<float> out = dst;
      if (merged > 1) out = mergeBuf_[level % 2].template Get<float>();
      const int64_t outStride = stride * kWays;
      int64_t outLast = 0;
      for (int64_t i = 0; i < merged; ++i) {
        const int64_t first = i * kWays;
        outLast = MergeLists(out[i * outStride * kRecordFloats], src[first * stride * kRecordFloats], stride,
                             MinOf(kWays, lists - first), length, i + 1 == merged ? lastLength : length);
      }
      PipeBarrier<PIPE_V>();
      src = out;
      length = MinOf(length * kWays, tiling_->k);
      lastLength = MinOf(outLast, tiling_->k);
      stride = outStride;
      lists = merged;
    }
  }

  // Returns the length of the merged list.
  __aicore__ inline int64_t MergeLists(const LocalTensor<float>& dst, const LocalTensor<float>& src, int64_t stride,
                                       int64_t lists, int64_t length, int64_t lastLength) {
    if (lists == 1) {
      const int64_t floats = RoundUpOf(lastLength * kRecordFloats, kBlockFloats);
      DataCopy(dst, src, static_cast<uint32_t>(floats));
      return lastLength;
    }
    uint16_t lengths[kWays] = {0, 0, 0, 0};
    for (int64_t i = 0; i < lists; ++i) lengths[i] = static_cast<uint16_t>(i + 1 == lists ? lastLength : length);
    const int64_t step = stride * kRecordFloats;
    MrgSortSrcList<float> sources(src, src[step], src[MinOf(2, lists - 1) * step], src[MinOf(3, lists - 1) * step]);
    MrgSort(dst, sources, MrgSort4Info(lengths, false, static_cast<uint16_t>((1 << lists) - 1), 1));
    return length * (lists - 1) + lastLength;
  }

  // y, and softmax_result where it is wanted.
  __aicore__ inline void Softmax(int64_t token, int64_t rows) {
    const int64_t k = tiling_->k;
    const int64_t pitch = tiling_->choicePitch;
    const int32_t count = static_cast<int32_t>(rows * pitch);
    LocalTensor<float> values = valueBuf_.Get<float>();
    LocalTensor<float> exps = expBuf_.Get<float>();
    LocalTensor<float> max = maxBuf_.Get<float>();
    LocalTensor<float> sum = sumBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    RowFirst(max, values, rows, pitch);
    Spread(max, rows);
    RowSubSpread(values, values, spread, rows, k, pitch);
    Exp(exps, values, count);
    PipeBarrier<PIPE_V>();
    if (tiling_->renorm) {
      Muls(values, exps, 1.0f, count);
      PipeBarrier<PIPE_V>();
      RowSum(sum, values, workBuf_.Get<float>(), rows, k, pitch);
    } else {
      SumAll(sum, token, rows);
    }
    Spread(sum, rows);
    RowDivSpread(exps, exps, spread, rows, k, pitch);
    LocalTensor<X> y = yQueue_.template AllocTensor<X>();
    if constexpr (IsSameType<X, float>::value) {
      Muls(y, exps, 1.0f, count);
    } else {
      Cast(y, exps, RoundMode::CAST_RINT, static_cast<uint32_t>(count));
    }
    Store(yQueue_, yGm_[token * k], y, rows);
  }

  // sum[row] = sum of exp(x - max) over all experts; the maxima are spread.
  __aicore__ inline void SumAll(const LocalTensor<float>& sum, int64_t token, int64_t rows) {
    const int64_t E = tiling_->E;
    const int64_t pitch = tiling_->expertPitch;
    LocalTensor<float> logits = logitBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    RowSubSpread(logits, logits, spread, rows, E, pitch);
    Exp(logits, logits, static_cast<int32_t>(rows * pitch));
    PipeBarrier<PIPE_V>();
    if (!tiling_->hasSoftmax) {
      RowSum(sum, logits, workBuf_.Get<float>(), rows, E, pitch);
      return;
    }
    LocalTensor<float> softmax = softmaxQueue_.template AllocTensor<float>();
    Muls(softmax, logits, 1.0f, static_cast<int32_t>(rows * pitch));
    PipeBarrier<PIPE_V>();
    RowSum(sum, logits, workBuf_.Get<float>(), rows, E, pitch);
    Spread(sum, rows);
    RowDivSpread(softmax, softmax, spread, rows, E, pitch);
    softmaxQueue_.EnQue(softmax);
    softmax = softmaxQueue_.template DeQue<float>();
    CopyRowsOut(softmaxGm_[token * E], softmax, rows, E, E, pitch);
    softmaxQueue_.FreeTensor(softmax);
  }

  __aicore__ inline void Spread(const LocalTensor<float>& factors, int64_t rows) {
    SpreadRows(spreadBuf_.Get<float>(), factors, rows);
  }

  __aicore__ inline void MarkFinished(int64_t token, int64_t rows, const LocalTensor<int32_t>& experts) {
    LocalTensor<uint8_t> finished = finishedQueue_.template AllocTensor<uint8_t>();
    CopyRowsIn(finished, finishedGm_[token], 1, rows, rows, RoundUpOf(rows, kUbBlockBytes));
    finishedQueue_.EnQue(finished);
    finished = finishedQueue_.template DeQue<uint8_t>();
    WaitPipe<HardEvent::MTE2_S>();
    for (int64_t row = 0; row < rows; ++row) {
      if (finished.GetValue(row) == 0) continue;
      Duplicate(experts[row * tiling_->choicePitch], static_cast<int32_t>(tiling_->E),
                static_cast<int32_t>(tiling_->k));
    }
    WaitPipe<HardEvent::S_MTE2>();  // FreeTensor makes the copy wait for the vector pipe only
    finishedQueue_.FreeTensor(finished);
  }

  __aicore__ inline void StoreRowIdx(int64_t token, int64_t rows) {
    LocalTensor<int32_t> rowIdx = rowQueue_.template AllocTensor<int32_t>();
    Adds(rowIdx, firstRowBuf_.Get<int32_t>(), static_cast<int32_t>(token),
         static_cast<int32_t>(rows * tiling_->choicePitch));
    Store(rowQueue_, rowIdxGm_[token * tiling_->k], rowIdx, rows);
  }

  template <typename U>
  __aicore__ inline void Store(TQue<TPosition::VECOUT, 1>& queue, const GlobalTensor<U>& dst, LocalTensor<U>& tile,
                               int64_t rows) {
    queue.EnQue(tile);
    tile = queue.template DeQue<U>();
    CopyRowsOut(dst, tile, rows, tiling_->k, tiling_->k, tiling_->choicePitch);
    queue.FreeTensor(tile);
  }

  const MoeGatingTopKSoftmaxTilingData* tiling_;
  GlobalTensor<X> xGm_, yGm_;
  GlobalTensor<uint8_t> finishedGm_;
  GlobalTensor<int32_t> expertIdxGm_, rowIdxGm_;
  GlobalTensor<float> softmaxGm_;
  TQue<TPosition::VECIN, 1> xQueue_, finishedQueue_;
  TQue<TPosition::VECOUT, 1> yQueue_, expertQueue_, rowQueue_, softmaxQueue_;
  TBuf<TPosition::VECCALC> logitBuf_, numberBuf_, recordBuf_, headBuf_, headValueBuf_, headNumberBuf_, mergeBuf_[2],
      chosenBuf_, valueBuf_, expBuf_, firstRowBuf_, maxBuf_, sumBuf_, spreadBuf_, workBuf_;
};

template <typename X>
__aicore__ inline void MoeGatingTopKSoftmaxRun(GM_ADDR x, GM_ADDR finished, GM_ADDR y, GM_ADDR expertIdx,
                                               GM_ADDR rowIdx, GM_ADDR softmax, GM_ADDR workspace,
                                               const MoeGatingTopKSoftmaxTilingData* tiling) {
  TPipe pipe;
  MoeGatingTopKSoftmaxKernel<X> kernel;
  kernel.Init(x, finished, y, expertIdx, rowIdx, softmax, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_MOE_MOE_GATING_TOP_K_SOFTMAX_KERNEL_H_
