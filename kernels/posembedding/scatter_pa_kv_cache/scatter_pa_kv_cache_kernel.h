// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// cache[slot[t]] = token[t] for t = 0, 1, ...; a slot outside of the cache, as -1 is, writes nothing (on a card nobody
// else looks at slots); of equal slots the last token stays.
// Groups of neighbouring slots are dealt to the cores in turn. The vector unit of every core looks at all slot numbers
// and leaves those tokens that are the core's own, which are then written in their order: so no two cores write the
// same slot. In mode Norm tokens with consecutive slots of one group move together. UB: slot numbers, what becomes of
// them, and a tile (queue) through which everything moves.
#ifndef MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_KERNEL_H_
#define MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_KERNEL_H_

#include "common/kernel_util.h"
#include "kernel_operator.h"
#include "posembedding/scatter_pa_kv_cache/scatter_pa_kv_cache_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X, typename I>
class ScatterPaKvCacheKernel {
 public:
  __aicore__ inline void Init(GM_ADDR key, GM_ADDR value, GM_ADDR keyCache, GM_ADDR valueCache, GM_ADDR slots,
                              const ScatterPaKvCacheTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    keyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(key));
    valueGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(value));
    keyCacheGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(keyCache));
    valueCacheGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(valueCache));
    slotsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ I*>(slots));
    SetStreaming(keyGm_, tiling->streams);
    SetStreaming(valueGm_, tiling->streams);
    SetStreaming(keyCacheGm_, tiling->streams);
    SetStreaming(valueCacheGm_, tiling->streams);
    pipe->InitBuffer(slotQueue_, 1, tiling->slotsPerTile * sizeof(I));
    pipe->InitBuffer(wordBuf_, tiling->slotsPerTile * sizeof(uint32_t));
    pipe->InitBuffer(groupBuf_, tiling->slotsPerTile * sizeof(float));
    pipe->InitBuffer(roundBuf_, tiling->slotsPerTile * sizeof(float));
    pipe->InitBuffer(numberBuf_, tiling->slotsPerTile * sizeof(int32_t));
    pipe->InitBuffer(mineBuf_, tiling->slotsPerTile * sizeof(int32_t));
    pipe->InitBuffer(bitsBuf_, tiling->slotsPerTile / 8);
    pipe->InitBuffer(tileQueue_, tiling->buffers, tiling->tileElements * sizeof(X));
  }

  __aicore__ inline void Scatter() {
    const int32_t slotsPerTile = static_cast<int32_t>(tiling_->slotsPerTile);
    CreateVecIndex(numberBuf_.Get<int32_t>(), 0, static_cast<uint32_t>(slotsPerTile));
    Duplicate(groupBuf_.Get<float>(), 0.0f, slotsPerTile);  // a comparison looks beyond the last token
    LocalTensor<int32_t> mine = mineBuf_.Get<int32_t>();
    for (int64_t token = 0; token < tiling_->tokens; token += slotsPerTile) {
      const int64_t tokens = MinOf(slotsPerTile, tiling_->tokens - token);
      LocalTensor<I> slots = slotQueue_.template AllocTensor<I>();
      CopyRowsIn(slots, slotsGm_[token], 1, tokens, tokens, RoundUpOf(tokens, kUbBlockBytes / sizeof(I)));
      slotQueue_.EnQue(slots);
      slots = slotQueue_.template DeQue<I>();
      const int64_t count = ChooseMine(mine, slots, static_cast<int32_t>(tokens));
      WaitPipe<HardEvent::V_S>();
      for (int64_t i = 0; i < count;) {
        const int64_t first = mine.GetValue(i);
        const int64_t slot = slots.GetValue(first);
        const int64_t run = Run(mine, slots, i, count, first, slot);
        if (InCache(slot)) {
          WaitForSameSlots(slot, slot + run);
          ScatterRun(token + first, run, slot);
        }
        i += run;
      }
      WaitPipe<HardEvent::S_V>();  // the next tile overwrites the numbers; FreeTensor makes its copy wait for V
      slotQueue_.FreeTensor(slots);
    }
  }

  // All of a cache: this core's contiguous share.
  __aicore__ inline void CopyCache(const GlobalTensor<X>& dst, const GlobalTensor<X>& src, int64_t elements) {
    const int64_t unit = kUbBlockBytes;
    const int64_t share = RoundUpOf(CeilDivOf(elements, GetBlockNum()), unit);
    const int64_t begin = MinOf(elements, share * GetBlockIdx());
    Move(dst[begin], src[begin], MinOf(share, elements - begin));
  }

 private:
  // Writes the numbers of those of the first `count` tokens whose group is this core's, and returns how many they are.
  // A group goes by its lowest kGroupBits bits: floats hold them, and quotients of them, exactly enough.
  __aicore__ inline int64_t ChooseMine(const LocalTensor<int32_t>& mine, const LocalTensor<I>& slots, int32_t count) {
    const float cores = static_cast<float>(GetBlockNum());
    const uint32_t above = static_cast<uint32_t>(32 - kGroupBits - tiling_->groupShift);
    LocalTensor<uint32_t> word = wordBuf_.Get<uint32_t>();
    LocalTensor<float> group = groupBuf_.Get<float>();
    LocalTensor<float> round = roundBuf_.Get<float>();
    LocalTensor<uint8_t> bits = bitsBuf_.Get<uint8_t>();
    if constexpr (IsSameType<I, int64_t>::value) {
      Cast(word.template ReinterpretCast<int32_t>(), slots, RoundMode::CAST_NONE, static_cast<uint32_t>(count));
      PipeBarrier<PIPE_V>();
      ShiftLeft(word, word, above, count);
    } else {
      ShiftLeft(word, slots.template ReinterpretCast<uint32_t>(), above, count);
    }
    PipeBarrier<PIPE_V>();
    ShiftRight(word, word, static_cast<uint32_t>(32 - kGroupBits), count);
    PipeBarrier<PIPE_V>();
    Cast(group, word.template ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
    Adds(round, group, 0.5f, count);
    PipeBarrier<PIPE_V>();
    Muls(round, round, 1.0f / cores, count);
    PipeBarrier<PIPE_V>();
    Cast(round, round, RoundMode::CAST_FLOOR, static_cast<uint32_t>(count));
    PipeBarrier<PIPE_V>();
    Axpy(group, round, -cores, count);
    PipeBarrier<PIPE_V>();
    CompareScalar(bits, group, static_cast<float>(GetBlockIdx()), CMPMODE::EQ,
                  static_cast<uint32_t>(RoundUpOf(count, kRepeatFloats)));
    PipeBarrier<PIPE_V>();
    uint64_t chosen = 0;
    GatherMask(mine, numberBuf_.Get<int32_t>(), bits.template ReinterpretCast<uint32_t>(), true,
               static_cast<uint32_t>(count), GatherMaskParams(1, 1, 8, 8), chosen);
    return static_cast<int64_t>(chosen);
  }

  // Own tokens from the i-th on, number `first` with `slot`, that move together, at least one.
  __aicore__ inline int64_t Run(const LocalTensor<int32_t>& mine, const LocalTensor<I>& slots, int64_t i, int64_t end,
                                int64_t first, int64_t slot) const {
    if (!tiling_->isNorm || !InCache(slot)) return 1;
    const int64_t inGroup = (slot >> tiling_->groupShift << tiling_->groupShift) + (1LL << tiling_->groupShift) - slot;
    const int64_t longest = MinOf(end - i, MinOf(inGroup, tiling_->slots - slot));
    int64_t run = 1;
    while (run < longest && mine.GetValue(i + run) == first + run && slots.GetValue(first + run) == slot + run) ++run;
    return run;
  }

  __aicore__ inline bool InCache(int64_t slot) const { return slot >= 0 && slot < tiling_->slots; }

  // What was written before the last buffer came round is complete; of the rest, the same slots must be.
  __aicore__ inline void WaitForSameSlots(int64_t begin, int64_t end) {
    bool anySame = false;
    for (int32_t i = 0; i < tiling_->buffers; ++i) anySame = anySame || (begin < ends_[i] && begins_[i] < end);
    if (anySame) PipeBarrier<PIPE_MTE3>();
    begins_[oldest_] = begin;
    ends_[oldest_] = end;
    oldest_ = oldest_ + 1 < tiling_->buffers ? oldest_ + 1 : 0;
  }

  __aicore__ inline void ScatterRun(int64_t token, int64_t run, int64_t slot) {
    ScatterRows(keyCacheGm_, keyGm_, token, run, slot, tiling_->keyPieces, tiling_->keyPieceLength);
    if (tiling_->valuePieces > 0) {
      ScatterRows(valueCacheGm_, valueGm_, token, run, slot, tiling_->valuePieces, tiling_->valuePieceLength);
    }
  }

  __aicore__ inline void ScatterRows(const GlobalTensor<X>& cache, const GlobalTensor<X>& tokens, int64_t token,
                                     int64_t run, int64_t slot, int64_t pieces, int64_t length) {
    const int64_t row = pieces * length;
    if (tiling_->isNorm) {
      Move(cache[slot * row], tokens[token * row], run * row);
      return;
    }
    const int64_t blockSize = tiling_->blockSize;
    const int64_t base = slot / blockSize * blockSize * row + slot % blockSize * length;
    const int64_t pitch = RoundUpOf(length, kUbBlockBytes / sizeof(X));
    const int64_t piecesPerTile = MinOf(tiling_->tileElements / pitch, kMaxCopyPieces);
    for (int64_t piece = 0; piece < pieces; piece += piecesPerTile) {
      const int64_t count = MinOf(piecesPerTile, pieces - piece);
      LocalTensor<X> tile = tileQueue_.template AllocTensor<X>();
      CopyRowsIn(tile, tokens[token * row + piece * length], count, length, length, pitch);
      tileQueue_.EnQue(tile);
      tile = tileQueue_.template DeQue<X>();
      CopyRowsOut(cache[base + piece * blockSize * length], tile, count, length, blockSize * length, pitch);
      tileQueue_.FreeTensor(tile);
    }
  }

  __aicore__ inline void Move(const GlobalTensor<X>& dst, const GlobalTensor<X>& src, int64_t elements) {
    for (int64_t at = 0; at < elements; at += tiling_->tileElements) {
      const int64_t count = MinOf(tiling_->tileElements, elements - at);
      LocalTensor<X> tile = tileQueue_.template AllocTensor<X>();
      CopyRowsIn(tile, src[at], 1, count, count, RoundUpOf(count, kUbBlockBytes / sizeof(X)));
      tileQueue_.EnQue(tile);
      tile = tileQueue_.template DeQue<X>();
      CopyRowsOut(dst[at], tile, 1, count, count, RoundUpOf(count, kUbBlockBytes / sizeof(X)));
      tileQueue_.FreeTensor(tile);
    }
  }

  static constexpr int32_t kGroupBits = 15;

  const ScatterPaKvCacheTilingData* tiling_;
  GlobalTensor<X> keyGm_, valueGm_, keyCacheGm_, valueCacheGm_;
  GlobalTensor<I> slotsGm_;
  int64_t begins_[kScatterBuffers] = {};  // slots of the last runs
  int64_t ends_[kScatterBuffers] = {};
  int32_t oldest_ = 0;
  TQue<TPosition::VECIN, 1> slotQueue_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> tileQueue_;
  TBuf<TPosition::VECCALC> wordBuf_, groupBuf_, roundBuf_, numberBuf_, mineBuf_, bitsBuf_;
};

// Tells readers that the caches are written.
__aicore__ inline void WriteDone(GM_ADDR done, TPipe* pipe) {
  TBuf<TPosition::VECCALC> doneBuf;
  pipe->InitBuffer(doneBuf, kUbBlockBytes);
  LocalTensor<int32_t> one = doneBuf.Get<int32_t>();
  GlobalTensor<int32_t> doneGm;
  doneGm.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(done));
  Duplicate(one, int32_t{1}, kBlockFloats);
  WaitPipe<HardEvent::V_MTE3>();
  CopyRowsOut(doneGm, one, 1, 1, 1, kBlockFloats);
}

template <typename X, typename I>
__aicore__ inline void ScatterPaKvCacheRun(GM_ADDR key, GM_ADDR value, GM_ADDR keyCache, GM_ADDR valueCache,
                                           GM_ADDR slots, GM_ADDR done, GM_ADDR workspace,
                                           const ScatterPaKvCacheTilingData* tiling) {
  TPipe pipe;
  ScatterPaKvCacheKernel<X, I> kernel;
  kernel.Init(key, value, keyCache, valueCache, slots, tiling, &pipe);
  kernel.Scatter();
  if (GetBlockIdx() == 0) WriteDone(done, &pipe);
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_KERNEL_H_
