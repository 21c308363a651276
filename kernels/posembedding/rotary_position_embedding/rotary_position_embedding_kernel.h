// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// y = x * cos + R(x) * sin, R(x) = partner(x) * sign (..._pairs.h); x [outer, V, I, D], tables [outer or 1, V, 1, D].
// The gradient of x is the same with another second table: dx = dy * cos - R(dy * sin) =
// dy * cos + partner(dy) * (partner(sin) * -sign).
// A tile is vPerTile x iPerTile rows of x, which are neighbours in GM, and vPerTile rows of the tables; tiles that need
// the same rows of the tables follow each other, so these stay in UB.
// UB: x and y tiles (queues), for 16-bit types float copies; cos and sin * sign as floats; in mode interleave the
// neighbours of x, and for 16-bit types the partner as floats.
#ifndef MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_KERNEL_H_
#define MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "posembedding/rotary_position_embedding/rotary_position_embedding_pairs.h"
#include "posembedding/rotary_position_embedding/rotary_position_embedding_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X, typename T, bool kBackward>
class RotaryPositionEmbeddingKernel {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y,
                              const RotaryPositionEmbeddingTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    rows_ = {tiling->D, tiling->pitch, tiling->mode == kRopeHalf};
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    cosGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(cos));
    sinGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(sin));
    yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(y));
    SetStreaming(xGm_, tiling->streams);
    SetStreaming(yGm_, tiling->streams);

    const int64_t tile = tiling->vPerTile * tiling->iPerTile * tiling->pitch;
    const int64_t table = tiling->vPerTile * tiling->pitch;
    pipe->InitBuffer(xQueue_, tiling->buffers, tile * sizeof(X));
    pipe->InitBuffer(yQueue_, tiling->buffers, tile * sizeof(X));
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(xBuf_, tile * sizeof(float));
      pipe->InitBuffer(yBuf_, tile * sizeof(float));
    }
    pipe->InitBuffer(cosQueue_, 1, table * sizeof(T));
    pipe->InitBuffer(sinQueue_, 1, table * sizeof(T));
    pipe->InitBuffer(cosBuf_, table * sizeof(float));
    pipe->InitBuffer(sinBuf_, table * sizeof(float));
    pipe->InitBuffer(signBuf_, tiling->pitch * sizeof(float));
    if (!rows_.isHalf) {
      const int64_t bytes = MaxOf(tile * sizeof(X), table * sizeof(T));
      pipe->InitBuffer(nextQueue_, tiling->buffers, bytes);
      pipe->InitBuffer(previousQueue_, tiling->buffers, bytes);
      pipe->InitBuffer(evenBuf_, RoundUpOf(CeilDivOf(tile, 8), kUbBlockBytes));
      if constexpr (!IsSameType<X, float>::value) pipe->InitBuffer(partnerBuf_, tile * sizeof(float));
      even_ = evenBuf_.Get<uint8_t>();
      rows_.FillEvenBits(even_, tile);
    }
    rows_.FillSign(signBuf_.Get<float>(), cosBuf_.Get<float>(), even_, kBackward ? 1.0f : -1.0f);
  }

  __aicore__ inline void Process() {
    const int64_t iTiles = CeilDivOf(tiling_->I, tiling_->iPerTile);
    const int64_t tileEnd = tiling_->tiles * (GetBlockIdx() + 1) / GetBlockNum();
    int64_t loadedRow = -1;
    for (int64_t tile = tiling_->tiles * GetBlockIdx() / GetBlockNum(); tile < tileEnd; ++tile) {
      const int64_t i = tile % iTiles * tiling_->iPerTile;
      const int64_t o = tile / iTiles % tiling_->outer;
      const int64_t v = tile / iTiles / tiling_->outer * tiling_->vPerTile;
      const int64_t vs = MinOf(tiling_->vPerTile, tiling_->V - v);
      const int64_t is = MinOf(tiling_->iPerTile, tiling_->I - i);
      const int64_t tableRow = TableRow(o) + v;
      if (tableRow != loadedRow) LoadTables(tableRow, vs);
      loadedRow = tableRow;
      const int64_t row = (o * tiling_->V + v) * tiling_->I + i;
      CopyIn(row, vs * is);
      Compute(vs, is);
      CopyOut(row, vs * is);
    }
  }

 private:
  // Row of the tables for outer index o and v = 0.
  __aicore__ inline int64_t TableRow(int64_t o) const {
    int64_t row = 0;
    for (int32_t axis = tiling_->axes - 1; axis >= 0; --axis) {
      row += o % tiling_->axisSize[axis] * tiling_->axisTableStride[axis];
      o /= tiling_->axisSize[axis];
    }
    return row;
  }

  __aicore__ inline void LoadTables(int64_t tableRow, int64_t vs) {
    const int64_t offset = tableRow * tiling_->D;
    const int32_t count = static_cast<int32_t>(vs * tiling_->pitch);
    LocalTensor<float> cosFloat = cosBuf_.Get<float>();
    LocalTensor<float> sinFloat = sinBuf_.Get<float>();
    LocalTensor<T> cos = cosQueue_.template AllocTensor<T>();
    rows_.CopyIn(cos, cosGm_[offset], vs);
    cosQueue_.EnQue(cos);
    cos = cosQueue_.template DeQue<T>();
    if constexpr (IsSameType<T, float>::value) {
      Muls(cosFloat, cos, 1.0f, count);
    } else {
      Cast(cosFloat, cos, RoundMode::CAST_NONE, count);
    }
    cosQueue_.FreeTensor(cos);

    if (kBackward && !rows_.isHalf) {
      LocalTensor<T> partner = LoadPartners<T>(sinGm_[offset], vs);
      Signed(sinFloat, partner, vs);
      nextQueue_.FreeTensor(partner);
      return;
    }
    LocalTensor<T> sin = sinQueue_.template AllocTensor<T>();
    if (kBackward) {
      rows_.CopyPartnersIn(sin, sinGm_[offset], vs);
    } else {
      rows_.CopyIn(sin, sinGm_[offset], vs);
    }
    sinQueue_.EnQue(sin);
    sin = sinQueue_.template DeQue<T>();
    Signed(sinFloat, sin, vs);
    sinQueue_.FreeTensor(sin);
  }

  // dst = table * sign
  __aicore__ inline void Signed(const LocalTensor<float>& dst, const LocalTensor<T>& table, int64_t vs) {
    LocalTensor<float> tableFloat = RopeFloat(table, dst, vs * tiling_->pitch);
    RowMul(dst, tableFloat, signBuf_.Get<float>(), vs, tiling_->pitch, tiling_->pitch);
  }

  // Mode interleave: a tensor of nextQueue_.
  template <typename U>
  __aicore__ inline LocalTensor<U> LoadPartners(const GlobalTensor<U>& src, int64_t rows) {
    LocalTensor<U> next = nextQueue_.template AllocTensor<U>();
    LocalTensor<U> previous = previousQueue_.template AllocTensor<U>();
    rows_.CopyNeighboursIn(next, previous, src, rows);
    nextQueue_.EnQue(next);
    previousQueue_.EnQue(previous);
    next = nextQueue_.template DeQue<U>();
    previous = previousQueue_.template DeQue<U>();
    rows_.Choose(next, previous, even_, rows * tiling_->pitch);
    previousQueue_.FreeTensor(previous);
    return next;
  }

  __aicore__ inline void CopyIn(int64_t row, int64_t rows) {
    LocalTensor<X> x = xQueue_.template AllocTensor<X>();
    rows_.CopyIn(x, xGm_[row * tiling_->D], rows);
    xQueue_.EnQue(x);
    if (!rows_.isHalf) partner_ = LoadPartners<X>(xGm_[row * tiling_->D], rows);
  }

  __aicore__ inline void Compute(int64_t vs, int64_t is) {
    const int64_t pitch = tiling_->pitch;
    const int64_t count = vs * is * pitch;
    LocalTensor<X> xStored = xQueue_.template DeQue<X>();
    LocalTensor<X> yStored = yQueue_.template AllocTensor<X>();
    LocalTensor<float> x = RopeFloat(xStored, xBuf_.Get<float>(), count);
    LocalTensor<float> y;
    if constexpr (IsSameType<X, float>::value) {
      y = yStored;
    } else {
      y = yBuf_.Get<float>();
    }
    LocalTensor<float> partner;
    if (!rows_.isHalf) partner = RopeFloat(partner_, partnerBuf_.Get<float>(), count);
    if (tiling_->I == 1) {
      Products(y, x, partner, 0, 0, vs, pitch);
    } else {
      for (int64_t v = 0; v < vs; ++v) Products(y, x, partner, v * is * pitch, v * pitch, is, 0);
    }
    if constexpr (!IsSameType<X, float>::value) Cast(yStored, y, RoundMode::CAST_RINT, static_cast<uint32_t>(count));
    xQueue_.FreeTensor(xStored);
    if (!rows_.isHalf) nextQueue_.FreeTensor(partner_);
    yQueue_.EnQue(yStored);
  }

  // y = x * cos + partner(x) * sin for `rows` rows from `at` on, with the tables from `tableAt` on.
  __aicore__ inline void Products(const LocalTensor<float>& y, const LocalTensor<float>& x,
                                  const LocalTensor<float>& partner, int64_t at, int64_t tableAt, int64_t rows,
                                  int64_t tablePitch) {
    const int64_t pitch = tiling_->pitch;
    const LocalTensor<float> sin = sinBuf_.Get<float>()[tableAt];
    RowMul(y[at], x[at], cosBuf_.Get<float>()[tableAt], rows, pitch, pitch, tablePitch);
    if (rows_.isHalf) {
      rows_.MulAddPartner(y[at], x[at], sin, rows, tablePitch);
    } else {
      RowMulAdd(y[at], partner[at], sin, rows, pitch, pitch, tablePitch);
    }
  }

  __aicore__ inline void CopyOut(int64_t row, int64_t rows) {
    LocalTensor<X> y = yQueue_.template DeQue<X>();
    rows_.CopyOut(yGm_[row * tiling_->D], y, rows);
    yQueue_.FreeTensor(y);
  }

  const RotaryPositionEmbeddingTilingData* tiling_;
  RopeRows rows_;
  GlobalTensor<X> xGm_, yGm_;
  GlobalTensor<T> cosGm_, sinGm_;
  TQue<TPosition::VECIN, 1> xQueue_, nextQueue_, previousQueue_, cosQueue_, sinQueue_;
  TQue<TPosition::VECOUT, 1> yQueue_;
  TBuf<TPosition::VECCALC> xBuf_, yBuf_, partnerBuf_, cosBuf_, sinBuf_, signBuf_, evenBuf_;
  LocalTensor<uint8_t> even_;
  LocalTensor<X> partner_;
};

template <typename X, typename T>
__aicore__ inline void RotaryPositionEmbeddingRun(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, GM_ADDR workspace,
                                                  const RotaryPositionEmbeddingTilingData* tiling) {
  TPipe pipe;
  RotaryPositionEmbeddingKernel<X, T, false> kernel;
  kernel.Init(x, cos, sin, y, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_KERNEL_H_
