// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_TILING_H_
#define MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

constexpr int32_t kScatterBuffers = 6;  // at most: copies of single tokens are short and many must be on their way

// Whatever its mode, a cache is [blocks, pieces, blockSize, pieceLength], or [blocks, blockSize, pieces, pieceLength]
// in mode Norm; a token is [pieces, pieceLength].
struct ScatterPaKvCacheProblem {
  int64_t tokens;
  int64_t blocks;
  int64_t blockSize;  // slots of a block
  int64_t keyPieces;
  int64_t keyPieceLength;    // elements
  int64_t valuePieces;       // 0: no value
  int64_t valuePieceLength;  // elements
  int64_t elementBytes;      // bytes of one element of a cache
  int64_t slotBytes;         // bytes of one slot number
  bool isNorm;
};

struct ScatterPaKvCacheTilingData {
  TilingHead head;
  int64_t tokens;
  int64_t blockSize;  // slots of a block
  int64_t slots;      // blocks * blockSize
  int64_t keyPieces;
  int64_t keyPieceLength;    // elements
  int64_t valuePieces;       // 0: no value
  int64_t valuePieceLength;  // elements
  int64_t groupShift;        // core i owns the groups of 2^groupShift neighbouring slots i, i + cores, ...
  int64_t slotsPerTile;      // slot numbers read at a time
  int64_t tileElements;      // elements of a cache that move at a time
  int32_t isNorm;
  int32_t buffers;  // buffers of the queue
  int32_t streams;  // 1: past the caches
};

using ScatterPaKvCacheCopyProblem = ScatterPaKvCacheProblem;
using ScatterPaKvCacheCopyTilingData = ScatterPaKvCacheTilingData;

}  // namespace mst

#endif  // MST_POSEMBEDDING_SCATTER_PA_KV_CACHE_TILING_H_
