// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// g = dy * gamma,  dx[r, :] = rstd[r] * (g - x[r, :] * rstd[r]^2 * mean(g * x[r, :])),
// dgamma = sum over r of dy[r, :] * x[r, :] * rstd[r]                                     dy, x [rows, D], gamma [D]
// The rows are cut into chunks that depend on the problem alone. A core takes every cores-th chunk, row after row, and
// leaves the chunk's share of dgamma in the workspace [chunks, D]; when all cores have, each sums a range of columns in
// an order that the chunks give: the result does not depend on the number of cores.
// Rows that are longer than a tile (on the card, than UB) are cut into tiles of columns and read twice: for the mean,
// and for the rest. UB: dy, x and dx tiles and the part for dgamma (queues), for 16-bit types three float tiles, gamma.
#ifndef MST_POSEMBEDDING_RMS_NORM_GRAD_KERNEL_H_
#define MST_POSEMBEDDING_RMS_NORM_GRAD_KERNEL_H_

#include "common/kernel_util.h"
#include "common/row_ops.h"
#include "kernel_operator.h"
#include "posembedding/rms_norm/rms_norm_gamma.h"
#include "posembedding/rms_norm/rms_norm_tiling.h"

namespace mst {

using namespace AscendC;

template <typename X, typename G>
class RmsNormGradKernel {
 public:
  __aicore__ inline void Init(GM_ADDR dy, GM_ADDR x, GM_ADDR rstd, GM_ADDR gamma, GM_ADDR dx, GM_ADDR dgamma,
                              GM_ADDR workspace, const RmsNormGradTilingData* tiling, TPipe* pipe) {
    tiling_ = tiling;
    dyGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dy));
    xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x));
    rstdGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(rstd));
    dxGm_.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(dx));
    dgammaGm_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(dgamma));
    partsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace));
    isSplit_ = tiling->colsPerTile < tiling->D;
    isResident_ = tiling->residentCols >= tiling->D;
    dyAgainGm_ = dyGm_;
    xAgainGm_ = xGm_;
    SetStreaming(dyGm_, tiling->streams);
    SetStreaming(xGm_, tiling->streams);
    SetStreaming(dxGm_, tiling->streams);

    tileBytes_ = MaxOf(tiling->rowsPerTile * tiling->pitch * sizeof(X), kRmsNormSums * tiling->sumCols * sizeof(float));
    const int64_t tileFloatBytes = tiling->rowsPerTile * tiling->pitch * sizeof(float);
    const int64_t rowFloats = RoundUpOf(isSplit_ ? tiling->rowsPerChunk : tiling->rowsPerTile, kBlockFloats);
    pipe->InitBuffer(dyQueue_, tiling->buffers, tileBytes_);
    pipe->InitBuffer(xQueue_, tiling->buffers, tileBytes_);
    pipe->InitBuffer(dxQueue_, tiling->buffers, tileBytes_);
    pipe->InitBuffer(rstdQueue_, tiling->buffers, rowFloats * sizeof(float));
    gamma_.Init(gamma, tiling->residentCols, pipe);
    pipe->InitBuffer(partQueue_, tiling->buffers, tiling->residentCols * sizeof(float));
    if constexpr (!IsSameType<X, float>::value) {
      pipe->InitBuffer(dyFloatBuf_, tileFloatBytes);
      pipe->InitBuffer(xFloatBuf_, tileFloatBytes);
      pipe->InitBuffer(productBuf_, tileFloatBytes);
    }
    pipe->InitBuffer(coefBuf_, rowFloats * sizeof(float));
    pipe->InitBuffer(sumBuf_, RoundUpOf(tiling->rowsPerTile, kBlockFloats) * sizeof(float));
    pipe->InitBuffer(spreadBuf_, RoundUpOf(tiling->rowsPerTile, kBlockFloats) * kUbBlockBytes);
    pipe->InitBuffer(workBuf_, ReduceWorkFloats(tiling->colsPerTile) * sizeof(float));
  }

  __aicore__ inline void Process() {
    LocalTensor<float> gamma;
    if (isResident_) gamma = gamma_.Load(0, tiling_->D);
    for (int64_t chunk = GetBlockIdx(); chunk < tiling_->chunks; chunk += GetBlockNum()) {
      const int64_t rowBegin = tiling_->rows * chunk / tiling_->chunks;
      const int64_t rowEnd = tiling_->rows * (chunk + 1) / tiling_->chunks;
      if (isSplit_ && isResident_) {
        LongRowsChunk(chunk, rowBegin, rowEnd, gamma);
      } else if (isSplit_) {
        SplitChunk(chunk, rowBegin, rowEnd);
      } else {
        WholeChunk(chunk, rowBegin, rowEnd, gamma);
      }
    }
    if (isResident_) gamma_.Free(gamma);
    SyncAll();  // every part of dgamma is in the workspace
    for (int64_t col = GetBlockIdx() * tiling_->sumCols; col < tiling_->D; col += GetBlockNum() * tiling_->sumCols) {
      SumParts(col, MinOf(tiling_->sumCols, tiling_->D - col));
    }
  }

 private:
  // Float views of one tile of dy and x, and a third tile to work in: the dx tile where that is of the right type.
  struct Tiles {
    LocalTensor<X> dyStored, xStored, dx;
    LocalTensor<float> dy, x, work;
  };

  __aicore__ inline void WholeChunk(int64_t chunk, int64_t rowBegin, int64_t rowEnd, const LocalTensor<float>& gamma) {
    const int64_t D = tiling_->D;
    const int64_t pitch = tiling_->pitch;
    LocalTensor<float> part = ZeroPart(D);
    LocalTensor<float> coef = coefBuf_.Get<float>();
    LocalTensor<float> factor = sumBuf_.Get<float>();
    LocalTensor<float> spread = spreadBuf_.Get<float>();
    for (int64_t row = rowBegin; row < rowEnd; row += tiling_->rowsPerTile) {
      const int64_t rows = MinOf(tiling_->rowsPerTile, rowEnd - row);
      LocalTensor<float> rstd = LoadRstd(row, rows);
      Tiles tiles = LoadTiles(dyGm_, xGm_, row, rows, 0, D);
      AllocDx(tiles);
      ScaleRows(tiles.dy, rstd, rows);
      Mul(factor, rstd, rstd, static_cast<int32_t>(rows));
      Mul(tiles.work, tiles.dy, tiles.x, static_cast<int32_t>(rows * pitch));
      PipeBarrier<PIPE_V>();
      Muls(factor, factor, -tiling_->oneOverD, static_cast<int32_t>(rows));
      for (int64_t i = 0; i < rows; ++i) {
        Add(part, part, tiles.work[i * pitch], static_cast<int32_t>(D));
        PipeBarrier<PIPE_V>();
      }
      RowDot(coef, tiles.work, tiles.work, gamma, workBuf_.Get<float>(), rows, D, pitch, 0);
      Mul(coef, coef, factor, static_cast<int32_t>(rows));
      PipeBarrier<PIPE_V>();
      SpreadRows(spread, coef, rows);
      RowMulSpread(tiles.work, tiles.x, spread, rows, D, pitch);
      RowMulAdd(tiles.work, tiles.dy, gamma, rows, D, pitch, 0);
      StoreDx(tiles, row, rows, 0, D);
      FreeRstd(rstd);
    }
    StorePart(part, chunk, 0, D);
  }

  // A chunk of rows that are longer than a tile, one after the other. Sums over columns end in scalars.
  __aicore__ inline void LongRowsChunk(int64_t chunk, int64_t rowBegin, int64_t rowEnd,
                                       const LocalTensor<float>& gamma) {
    LocalTensor<float> rstd = LoadRstd(rowBegin, rowEnd - rowBegin);
    LocalTensor<float> part = ZeroPart(tiling_->D);
    for (int64_t row = rowBegin; row < rowEnd; ++row) {
      const float scale = rstd.GetValue(row - rowBegin);
      const float coef = -ProductSum(row, gamma) * tiling_->oneOverD * scale * scale;
      for (int64_t col = 0; col < tiling_->D; col += tiling_->colsPerTile) {
        const int64_t cols = MinOf(tiling_->colsPerTile, tiling_->D - col);
        RowPiece(row, col, cols, gamma[col], part[col], scale, coef);
      }
    }
    StorePart(part, chunk, 0, tiling_->D);
    FreeRstd(rstd);
  }

  // The same where gamma and the part for dgamma do not fit as a whole: one range of columns after the other.
  __aicore__ inline void SplitChunk(int64_t chunk, int64_t rowBegin, int64_t rowEnd) {
    LocalTensor<float> rstd = LoadRstd(rowBegin, rowEnd - rowBegin);
    LocalTensor<float> coef = coefBuf_.Get<float>();
    for (int64_t row = rowBegin; row < rowEnd; ++row) {
      const float scale = rstd.GetValue(row - rowBegin);
      coef.SetValue(row - rowBegin, -ProductSum(row, coef) * tiling_->oneOverD * scale * scale);
    }
    for (int64_t col = 0; col < tiling_->D; col += tiling_->colsPerTile) {
      const int64_t cols = MinOf(tiling_->colsPerTile, tiling_->D - col);
      LocalTensor<float> gamma = gamma_.Load(col, cols);
      LocalTensor<float> part = ZeroPart(cols);
      for (int64_t row = rowBegin; row < rowEnd; ++row) {
        RowPiece(row, col, cols, gamma, part, rstd.GetValue(row - rowBegin), coef.GetValue(row - rowBegin));
      }
      StorePart(part, chunk, col, cols);
      gamma_.Free(gamma);
    }
    FreeRstd(rstd);
  }

  // dx of some columns of a row, and what they add to dgamma's part.
  __aicore__ inline void RowPiece(int64_t row, int64_t col, int64_t cols, const LocalTensor<float>& gamma,
                                  const LocalTensor<float>& part, float scale, float coef) {
    const int32_t count = static_cast<int32_t>(cols);
    Tiles tiles = LoadTiles(dyAgainGm_, xAgainGm_, row, 1, col, cols);
    AllocDx(tiles);
    Mul(tiles.work, tiles.dy, tiles.x, count);
    PipeBarrier<PIPE_V>();
    Axpy(part, tiles.work, scale, count);
    Mul(tiles.dy, tiles.dy, gamma, count);
    PipeBarrier<PIPE_V>();
    Axpy(tiles.dy, tiles.x, coef, count);
    PipeBarrier<PIPE_V>();
    Muls(tiles.work, tiles.dy, scale, count);
    PipeBarrier<PIPE_V>();
    StoreDx(tiles, row, 1, col, cols);
  }

  // sum over the row of dy * gamma * x; wholeGamma where that is in UB
  __aicore__ inline float ProductSum(int64_t row, const LocalTensor<float>& wholeGamma) {
    LocalTensor<float> sum = sumBuf_.Get<float>();
    float total = 0.0f;
    for (int64_t col = 0; col < tiling_->D; col += tiling_->colsPerTile) {
      const int64_t cols = MinOf(tiling_->colsPerTile, tiling_->D - col);
      const int32_t count = static_cast<int32_t>(cols);
      LocalTensor<float> gamma = isResident_ ? wholeGamma[col] : gamma_.Load(col, cols);
      Tiles tiles = LoadTiles(dyGm_, xGm_, row, 1, col, cols);
      Mul(tiles.dy, tiles.dy, tiles.x, count);  // in place: this tile is read again later
      PipeBarrier<PIPE_V>();
      RowDot(sum, tiles.dy, tiles.dy, gamma, workBuf_.Get<float>(), 1, cols, tiling_->pitch, 0);
      WaitPipe<HardEvent::V_S>();
      total += sum.GetValue(0);
      WaitPipe<HardEvent::S_V>();  // the next sum goes to the same place
      FreeTiles(tiles);
      if (!isResident_) gamma_.Free(gamma);
    }
    return total;
  }

  // tile[i, :] *= rstd[i]
  __aicore__ inline void ScaleRows(const LocalTensor<float>& tile, const LocalTensor<float>& rstd, int64_t rows) {
    if (IsShortRow(tiling_->D, tiling_->pitch)) {
      SpreadRows(spreadBuf_.Get<float>(), rstd, rows);
      RowMulSpread(tile, tile, spreadBuf_.Get<float>(), rows, tiling_->D, tiling_->pitch);
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const LocalTensor<float> row = tile[i * tiling_->pitch];
      Muls(row, row, rstd.GetValue(i), static_cast<int32_t>(tiling_->D));
    }
    PipeBarrier<PIPE_V>();
  }

  // A tile's product has a barrier before it is added.
  __aicore__ inline LocalTensor<float> ZeroPart(int64_t cols) {
    LocalTensor<float> part = partQueue_.template AllocTensor<float>();
    Duplicate(part, 0.0f, static_cast<int32_t>(RoundUpOf(cols, kBlockFloats)));
    return part;
  }

  __aicore__ inline void StorePart(LocalTensor<float>& part, int64_t chunk, int64_t col, int64_t cols) {
    partQueue_.EnQue(part);
    part = partQueue_.template DeQue<float>();
    CopyRowsOut(partsGm_[chunk * tiling_->D + col], part, 1, cols, cols, RoundUpOf(cols, kBlockFloats));
    partQueue_.FreeTensor(part);
  }

  // dgamma[col, col + cols) from the parts: those whose numbers differ by multiples of kRmsNormSums are added in their
  // order, then these sums. Tiles of parts come through the queue of dy; the sums are in a tile of the queue of x.
  __aicore__ inline void SumParts(int64_t col, int64_t cols) {
    const int64_t pitch = RoundUpOf(cols, kBlockFloats);
    const int64_t group = kRmsNormSums * pitch;
    const int64_t chunksPerTile = MinOf(tileBytes_ / (group * sizeof(float)) * kRmsNormSums, kMaxCopyPieces);
    LocalTensor<float> sum = xQueue_.template AllocTensor<float>();
    Duplicate(sum, 0.0f, static_cast<int32_t>(group));
    PipeBarrier<PIPE_V>();
    for (int64_t chunk = 0; chunk < tiling_->chunks; chunk += chunksPerTile) {
      const int64_t rows = MinOf(chunksPerTile, tiling_->chunks - chunk);
      LocalTensor<float> parts = dyQueue_.template AllocTensor<float>();
      CopyRowsIn(parts, partsGm_[chunk * tiling_->D + col], rows, cols, tiling_->D, pitch);
      dyQueue_.EnQue(parts);
      parts = dyQueue_.template DeQue<float>();
      for (int64_t at = 0; at < rows * pitch; at += group) {
        Add(sum, sum, parts[at], static_cast<int32_t>(MinOf(group, rows * pitch - at)));
        PipeBarrier<PIPE_V>();
      }
      dyQueue_.FreeTensor(parts);
    }
    for (int64_t half = group / 2; half >= pitch; half /= 2) {
      Add(sum, sum, sum[half], static_cast<int32_t>(half));
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<G> out = dxQueue_.template AllocTensor<G>();
    if constexpr (IsSameType<G, float>::value) {
      Adds(out, sum, 0.0f, static_cast<int32_t>(cols));
    } else {
      Cast(out, sum, RoundMode::CAST_RINT, cols);
    }
    xQueue_.FreeTensor(sum);
    dxQueue_.EnQue(out);
    out = dxQueue_.template DeQue<G>();
    CopyRowsOut(dgammaGm_[col], out, 1, cols, cols, RoundUpOf(cols, kUbBlockBytes / sizeof(G)));
    dxQueue_.FreeTensor(out);
  }

  __aicore__ inline LocalTensor<float> LoadRstd(int64_t row, int64_t rows) {
    LocalTensor<float> rstd = rstdQueue_.template AllocTensor<float>();
    CopyRowsIn(rstd, rstdGm_[row], 1, rows, rows, RoundUpOf(rows, kBlockFloats));
    rstdQueue_.EnQue(rstd);
    rstd = rstdQueue_.template DeQue<float>();
    WaitPipe<HardEvent::MTE2_S>();  // DeQue makes the vector pipe wait; rstd is read by the scalar pipe too
    return rstd;
  }

  __aicore__ inline void FreeRstd(LocalTensor<float>& rstd) {
    WaitPipe<HardEvent::S_MTE2>();  // FreeTensor makes the next copy wait for the vector pipe
    rstdQueue_.FreeTensor(rstd);
  }

  __aicore__ inline Tiles LoadTiles(const GlobalTensor<X>& dy, const GlobalTensor<X>& x, int64_t row, int64_t rows,
                                    int64_t col, int64_t cols) {
    Tiles tiles;
    const int64_t offset = row * tiling_->D + col;
    tiles.dyStored = dyQueue_.template AllocTensor<X>();
    CopyRowsIn(tiles.dyStored, dy[offset], rows, cols, tiling_->D, tiling_->pitch);
    dyQueue_.EnQue(tiles.dyStored);
    tiles.xStored = xQueue_.template AllocTensor<X>();
    CopyRowsIn(tiles.xStored, x[offset], rows, cols, tiling_->D, tiling_->pitch);
    xQueue_.EnQue(tiles.xStored);
    tiles.dyStored = dyQueue_.template DeQue<X>();
    tiles.xStored = xQueue_.template DeQue<X>();
    if constexpr (IsSameType<X, float>::value) {
      tiles.dy = tiles.dyStored;
      tiles.x = tiles.xStored;
    } else {
      tiles.dy = dyFloatBuf_.Get<float>();
      tiles.x = xFloatBuf_.Get<float>();
      Cast(tiles.dy, tiles.dyStored, RoundMode::CAST_NONE, rows * tiling_->pitch);
      Cast(tiles.x, tiles.xStored, RoundMode::CAST_NONE, rows * tiling_->pitch);
      PipeBarrier<PIPE_V>();
    }
    return tiles;
  }

  __aicore__ inline void AllocDx(Tiles& tiles) {
    tiles.dx = dxQueue_.template AllocTensor<X>();
    if constexpr (IsSameType<X, float>::value) {
      tiles.work = tiles.dx;
    } else {
      tiles.work = productBuf_.Get<float>();
    }
  }

  __aicore__ inline void FreeTiles(Tiles& tiles) {
    dyQueue_.FreeTensor(tiles.dyStored);
    xQueue_.FreeTensor(tiles.xStored);
  }

  // dx is in tiles.work
  __aicore__ inline void StoreDx(Tiles& tiles, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    FreeTiles(tiles);
    if constexpr (!IsSameType<X, float>::value) {
      Cast(tiles.dx, tiles.work, RoundMode::CAST_RINT, rows * tiling_->pitch);
    }
    dxQueue_.EnQue(tiles.dx);
    tiles.dx = dxQueue_.template DeQue<X>();
    CopyRowsOut(dxGm_[row * tiling_->D + col], tiles.dx, rows, cols, tiling_->D, tiling_->pitch);
    dxQueue_.FreeTensor(tiles.dx);
  }

  const RmsNormGradTilingData* tiling_;
  bool isSplit_;
  bool isResident_;
  int64_t tileBytes_;
  GlobalTensor<X> dyGm_, xGm_, dxGm_;
  GlobalTensor<X> dyAgainGm_, xAgainGm_;  // dy and x where they are read for the second time
  RmsNormGamma<G> gamma_;
  GlobalTensor<G> dgammaGm_;
  GlobalTensor<float> rstdGm_, partsGm_;
  TQue<TPosition::VECIN, 1> dyQueue_, xQueue_, rstdQueue_;
  TQue<TPosition::VECOUT, 1> dxQueue_, partQueue_;
  TBuf<TPosition::VECCALC> dyFloatBuf_, xFloatBuf_, productBuf_, coefBuf_, sumBuf_, spreadBuf_, workBuf_;
};

template <typename X, typename G>
__aicore__ inline void RmsNormGradRun(GM_ADDR dy, GM_ADDR x, GM_ADDR rstd, GM_ADDR gamma, GM_ADDR dx, GM_ADDR dgamma,
                                      GM_ADDR workspace, const RmsNormGradTilingData* tiling) {
  TPipe pipe;
  RmsNormGradKernel<X, G> kernel;
  kernel.Init(dy, x, rstd, gamma, dx, dgamma, workspace, tiling, &pipe);
  kernel.Process();
}

}  // namespace mst

#endif  // MST_POSEMBEDDING_RMS_NORM_GRAD_KERNEL_H_
