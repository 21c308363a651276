// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// cache[slot[t]] = token[t] for t = 0, 1, ...; a slot outside of the cache, as -1 is, writes nothing (on a card nobody
// else looks at slots); of equal slots the last token stays.
// Groups of neighbouring slots are dealt to the cores in turn. Every core reads all slot numbers and writes, in the
// order of the tokens, those that are its own: so no two cores write the same slot. In mode Norm tokens with
// consecutive slots of one group move together. UB: slot numbers, and a tile (queue) through which everything moves.
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
    pipe->InitBuffer(tileQueue_, tiling->buffers, tiling->tileElements * sizeof(X));
  }

  __aicore__ inline void Scatter() {
    for (int64_t token = 0; token < tiling_->tokens; token += tiling_->slotsPerTile) {
      const int64_t tokens = MinOf(tiling_->slotsPerTile, tiling_->tokens - token);
      LocalTensor<I> slots = slotQueue_.template AllocTensor<I>();
      CopyRowsIn(slots, slotsGm_[token], 1, tokens, tokens, RoundUpOf(tokens, kUbBlockBytes / sizeof(I)));
      slotQueue_.EnQue(slots);
      slots = slotQueue_.template DeQue<I>();
      WaitPipe<HardEvent::MTE2_S>();
      for (int64_t i = 0; i < tokens;) {
        const int64_t run = Run(slots, i, tokens);
        if (IsMine(slots.GetValue(i))) ScatterRun(token + i, run, slots.GetValue(i));
        i += run;
      }
      WaitPipe<HardEvent::S_MTE2>();  // FreeTensor makes the copy wait for the vector pipe only
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
  // Tokens from `i` on that move together, at least one.
  __aicore__ inline int64_t Run(const LocalTensor<I>& slots, int64_t i, int64_t end) const {
    const int64_t first = slots.GetValue(i);
    if (!tiling_->isNorm || !InCache(first)) return 1;
    const int64_t inGroup = tiling_->slotsPerGroup - first % tiling_->slotsPerGroup;
    const int64_t longest = MinOf(end - i, MinOf(inGroup, tiling_->slots - first));
    int64_t run = 1;
    while (run < longest && slots.GetValue(i + run) == first + run) ++run;
    return run;
  }

  __aicore__ inline bool InCache(int64_t slot) const { return slot >= 0 && slot < tiling_->slots; }

  __aicore__ inline bool IsMine(int64_t slot) const {
    return InCache(slot) && slot / tiling_->slotsPerGroup % GetBlockNum() == GetBlockIdx();
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
    const int64_t piecesPerTile = MinOf(tiling_->tileElements / pitch, kCopyPiecesMax);
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

  static constexpr int64_t kCopyPiecesMax = 4095;  // pieces of one copy

  const ScatterPaKvCacheTilingData* tiling_;
  GlobalTensor<X> keyGm_, valueGm_, keyCacheGm_, valueCacheGm_;
  GlobalTensor<I> slotsGm_;
  TQue<TPosition::VECIN, 1> slotQueue_;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> tileQueue_;
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
