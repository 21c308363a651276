// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// dcos = sum of dy * x, dsin = sum of dy * R(x), over the axes of x that the tables do not have.
// A core owns a contiguous share of tiles of vPerTile rows of the tables and sums everything that belongs to them, row
// after row in the order of x: the result does not depend on the number of cores.
// UB: dy and x tiles (queues), for 16-bit types float copies, a tile of products; both sums; both results (queues); in
// mode interleave the neighbours of x.
#ifndef MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TABLE_GRAD_KERNEL_H_
#define MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TABLE_GRAD_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "posembedding/rotary_position_embedding/rotary_position_embedding_pairs.h"
#include "posembedding/rotary_position_embedding/rotary_position_embedding_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X, typename T>
class RotaryPositionEmbeddingTableGradKernel {
 public:
  __aicore__ inline void Init(GM_ADDR dy, GM_ADDR x, GM_ADDR dcos, GM_ADDR dsin,
                              const RotaryPositionEmbeddingTableGradTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    rows_ = {tiling->D, tiling->pitch, tiling->mode == kRopeHalf};
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dy));
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    dcosGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(dcos));
    dsinGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(dsin));
    SetStreaming(dyGm_, tiling->streams);
    SetStreaming(xGm_, tiling->streams);

    const int64_t tile = tiling->vPerTile * tiling->iPerTile * tiling->pitch;
    const int64_t table = tiling->vPerTile * tiling->pitch;
    pipe->InitBuffer(dyQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(xQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(dcosQueue_, tiling->buffers, table * sizeof(T));
    pipe->InitBuffer(dsinQueue_, tiling->buffers, table * sizeof(T));
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(dyBuf_, tile * sizeof(float));
      pipe->InitBuffer(xBuf_, tile * sizeof(float));
    }
    pipe->InitBuffer(productBuf_, tile * sizeof(float));
    pipe->InitBuffer(dcosBuf_, table * sizeof(float));
    pipe->InitBuffer(dsinBuf_, table * sizeof(float));
    pipe->InitBuffer(signBuf_, tiling->pitch * sizeof(float));
    if (!rows_.isHalf) {
      pipe->InitBuffer(nextQueue_, tiling->buffers, tile * sizeof(X));
      pipe->InitBuffer(previousQueue_, tiling->buffers, tile * sizeof(X));
      if constexpr (!IsSameType<X, float>::value) pipe->InitBuffer(partnerBuf_, tile * sizeof(float));
      pipe->InitBuffer(evenBuf_, RoundUpOf(CeilDivOf(tile, 8), kUbBlockBytes));
      even_ = evenBuf_.Get<uint8_t>();
      rows_.FillEvenBits(even_, tile);
    }
    rows_.FillSign(signBuf_.Get<float>(), productBuf_.Get<float>(), even_, -1.0f);
  }

  __aicore__ inline void Process() {
    const int64_t vTiles = CeilDivOf(tiling_->V, tiling_->vPerTile);
    const int64_t tileEnd = tiling_->tiles * (GetBlockIdx() + 1) / GetBlockNum();
    for (int64_t tile = tiling_->tiles * GetBlockIdx() / GetBlockNum(); tile < tileEnd; ++tile) {
      const int64_t v = tile % vTiles * tiling_->vPerTile;
      const int64_t vs = MinOf(tiling_->vPerTile, tiling_->V - v);
      const int64_t oVarying = Outer(tile / vTiles, tiling_->varyingAxes, tiling_->varyingSize, tiling_->varyingStride);
      ClearSums(vs);
      for (int64_t repeat = 0; repeat < tiling_->repeats; ++repeat) {
        const int64_t o =
            oVarying + Outer(repeat, tiling_->repeatedAxes, tiling_->repeatedSize, tiling_->repeatedStride);
        for (int64_t i = 0; i < tiling_->I; i += tiling_->iPerTile) {
          AddRows((o * tiling_->V + v) * tiling_->I + i, vs, MinOf(tiling_->iPerTile, tiling_->I - i));
        }
      }
      StoreSums(tile / vTiles * tiling_->V + v, vs);
    }
  }

 private:
  // The outer index o of the `index`-th combination of some axes.
  __aicore__ inline int64_t Outer(int64_t index, int32_t axes, const int64_t* size, const int64_t* stride) const {
    int64_t o = 0;
    for (int32_t axis = axes - 1; axis >= 0; --axis) {
      o += index % size[axis] * stride[axis];
      index /= size[axis];
    }
    return o;
  }

  __aicore__ inline void ClearSums(int64_t vs) {
    Duplicate(dcosBuf_.Get<float>(), 0.0f, static_cast<int32_t>(vs * tiling_->pitch));
    Duplicate(dsinBuf_.Get<float>(), 0.0f, static_cast<int32_t>(vs * tiling_->pitch));
    PipeBarrier<PIPE_V>();
  }

  // Adds what vs * is rows of x from `row` on contribute.
  __aicore__ inline void AddRows(int64_t row, int64_t vs, int64_t is) {
    const int64_t pitch = tiling_->pitch;
    const int64_t rows = vs * is;
    const int64_t count = rows * pitch;
    LocalTensor<X> dyStored = Load(dyQueue_, dyGm_[row * tiling_->D], rows);
    LocalTensor<X> xStored = Load(xQueue_, xGm_[row * tiling_->D], rows);
    LocalTensor<float> dy = RopeFloat(dyStored, dyBuf_.Get<float>(), count);
    LocalTensor<float> x = RopeFloat(xStored, xBuf_.Get<float>(), count);
    if constexpr (!IsSameType<X, float>::value) FreeTiles(dyStored, xStored);  // the next tile may come already
    LocalTensor<float> product = productBuf_.Get<float>();
    Mul(product, dy, x, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
    AddTo(dcosBuf_.Get<float>(), product, vs, is);
    if (rows_.isHalf) {
      const int64_t h = pitch / 2;
      RowMul(product, dy, x[h], rows, h, pitch, pitch);
      RowMul(product[h], dy[h], x, rows, h, pitch, pitch);
    } else {
      LocalTensor<X> next = nextQueue_.template AllocTensor<X>();
      LocalTensor<X> previous = previousQueue_.template AllocTensor<X>();
      rows_.CopyNeighboursIn(next, previous, xGm_[row * tiling_->D], rows);
      nextQueue_.EnQue(next);
      previousQueue_.EnQue(previous);
      next = nextQueue_.template DeQue<X>();
      previous = previousQueue_.template DeQue<X>();
      rows_.Choose(next, previous, even_, count);
      LocalTensor<float> partner;
      if constexpr (IsSameType<X, float>::value) {
        partner = next;
      } else {
        partner = RopeFloat(next, partnerBuf_.Get<float>(), count);
      }
      Mul(product, dy, partner, static_cast<int32_t>(count));
      PipeBarrier<PIPE_V>();
      nextQueue_.FreeTensor(next);
      previousQueue_.FreeTensor(previous);
    }
    AddTo(dsinBuf_.Get<float>(), product, vs, is);
    if constexpr (IsSameType<X, float>::value) FreeTiles(dyStored, xStored);
  }

  __aicore__ inline void FreeTiles(LocalTensor<X>& dy, LocalTensor<X>& x) {
    dyQueue_.FreeTensor(dy);
    xQueue_.FreeTensor(x);
  }

  __aicore__ inline LocalTensor<X> Load(TQue<TPosition::VECIN, 1>& queue, const GlobalTensor<X>& src, int64_t rows) {
    LocalTensor<X> tile = queue.template AllocTensor<X>();
    rows_.CopyIn(tile, src, rows);
    queue.EnQue(tile);
    return queue.template DeQue<X>();
  }

  // sum[v, :] += product[v, i, :] for one i after the other.
  __aicore__ inline void AddTo(const LocalTensor<float>& sum, const LocalTensor<float>& product, int64_t vs,
                               int64_t is) {
    const int64_t pitch = tiling_->pitch;
    if (tiling_->I == 1) {
      Add(sum, sum, product, static_cast<int32_t>(vs * pitch));
      PipeBarrier<PIPE_V>();
      return;
    }
    for (int64_t v = 0; v < vs; ++v) {
      for (int64_t i = 0; i < is; ++i) {
        Add(sum[v * pitch], sum[v * pitch], product[(v * is + i) * pitch], static_cast<int32_t>(pitch));
        PipeBarrier<PIPE_V>();
      }
    }
  }

  __aicore__ inline void StoreSums(int64_t tableRow, int64_t vs) {
    LocalTensor<float> dsin = dsinBuf_.Get<float>();
    RowMul(dsin, dsin, signBuf_.Get<float>(), vs, tiling_->pitch, tiling_->pitch);
    Store(dcosQueue_, dcosGm_[tableRow * tiling_->D], dcosBuf_.Get<float>(), vs);
    Store(dsinQueue_, dsinGm_[tableRow * tiling_->D], dsin, vs);
    PipeBarrier<PIPE_V>();  // the next tile overwrites the sums
  }

  __aicore__ inline void Store(TQue<TPosition::VECOUT, 1>& queue, const GlobalTensor<T>& dst,
                               const LocalTensor<float>& sum, int64_t vs) {
    const int32_t count = static_cast<int32_t>(vs * tiling_->pitch);
    LocalTensor<T> out = queue.template AllocTensor<T>();
    if constexpr (IsSameType<T, float>::value) {
      Muls(out, sum, 1.0f, count);
    } else {
      Cast(out, sum, RoundMode::CAST_RINT, count);
    }
    queue.EnQue(out);
    out = queue.template DeQue<T>();
    rows_.CopyOut(dst, out, vs);
    queue.FreeTensor(out);
  }

  const RotaryPositionEmbeddingTableGradTilingData* tiling_;
  RopeRows rows_;
  GlobalTensor<X> dyGm_, xGm_;
  GlobalTensor<T> dcosGm_, dsinGm_;
  TQue<TPosition::VECIN, 1> dyQueue_, xQueue_, nextQueue_, previousQueue_;
  TQue<TPosition::VECOUT, 1> dcosQueue_, dsinQueue_;
  TBuf<TPosition::VECCALC> dyBuf_, xBuf_, partnerBuf_, productBuf_, dcosBuf_, dsinBuf_, signBuf_, evenBuf_;
  LocalTensor<uint8_t> even_;
};

template <typename X, typename T>
__aicore__ inline void RotaryPositionEmbeddingTableGradRun(GM_ADDR dy, GM_ADDR x, GM_ADDR cos, GM_ADDR sin,
                                                           GM_ADDR dcos, GM_ADDR dsin, GM_ADDR workspace,
                                                           const RotaryPositionEmbeddingTableGradTilingData* tiling) {
  TPipe pipe;
  RotaryPositionEmbeddingTableGradKernel<X, T> kernel;
  kernel.Init(dy, x, dcos, dsin, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TABLE_GRAD_KERNEL_H_
