// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The functional form: the caches are copied, each core a contiguous share, then all cores scatter into the copies.
#ifndef MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_COPY_KERNEL_H_
#define MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_COPY_KERNEL_H_

#include "posembedding/scatter_pa_kv_cache/scatter_pa_kv_cache_kernel.h"

namespace mst {

template <typename X, typename I>
__aicore__ inline void ScatterPaKvCacheCopyRun(GM_ADDR key, GM_ADDR value, GM_ADDR keyCache, GM_ADDR valueCache,
                                               GM_ADDR slots, GM_ADDR keyCacheOut, GM_ADDR valueCacheOut,
                                               GM_ADDR workspace, const ScatterPaKvCacheCopyTilingData* tiling) {
  TPipe pipe;
  ScatterPaKvCacheKernel<X, I> kernel;
  GlobalTensor<X> src, dst;
  kernel.Init(key, value, keyCacheOut, valueCacheOut, slots, tiling, &pipe);
  src.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(keyCache));
  dst.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(keyCacheOut));
  SetStreaming(src, tiling->streams);
  SetStreaming(dst, tiling->streams);
  kernel.CopyCache(dst, src, tiling->slots * tiling->keyPieces * tiling->keyPieceLength);
  if (tiling->valuePieces > 0) {
    src.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(valueCache));
    dst.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(valueCacheOut));
    kernel.CopyCache(dst, src, tiling->slots * tiling->valuePieces * tiling->valuePieceLength);
  }
  SyncAll();  // tokens go over copied slots of other cores
  kernel.Scatter();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_COPY_KERNEL_H_
