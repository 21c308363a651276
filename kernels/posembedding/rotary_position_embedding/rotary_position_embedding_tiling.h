// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TILING_H_
#define MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

constexpr int32_t kRopeHalf = 0;        // pairs (i, i + D/2)
constexpr int32_t kRopeInterleave = 1;  // pairs (2i, 2i + 1)
constexpr int32_t kRopeAxes = 16;       // groups of outer axes at most

// x is [outer..., V, I, D] and the tables are [outer axis or 1..., V, 1, D]: neighbouring axes that the tables vary on
// are one, so are neighbouring others. V is the last that they vary on and I what follows. Row (o, v, i) of x is row
// (o * V + v) * I + i.
struct RotaryPositionEmbeddingProblem {
  int64_t V;
  int64_t I;
  int64_t D;           // elements of a row; in mode quarter half of x's last axis, which is two rows of mode half
  int64_t xBytes;      // bytes of one element of x
  int64_t tableBytes;  // bytes of one element of cos and sin
  int32_t mode;        // kRopeHalf or kRopeInterleave
  int32_t axes;        // outer axes
  int64_t axisSize[kRopeAxes];
  bool axisVaries[kRopeAxes];  // whether the tables have this axis
};

// A tile is vPerTile x iPerTile rows; tiles are numbered by (tile of V, o, tile of I); core i owns a contiguous share.
struct RotaryPositionEmbeddingTilingData {
  TilingHead head;
  int64_t V;
  int64_t I;
  int64_t outer;     // product of the outer axes
  int64_t D;         // elements per row
  int64_t pitch;     // elements between rows in UB: in mode half two halves, each rounded up to whole blocks
  int64_t vPerTile;  // steps of V
  int64_t iPerTile;  // steps of I
  int64_t tiles;     // tiles in all
  int64_t axisSize[kRopeAxes];
  int64_t axisTableStride[kRopeAxes];  // rows of the tables; 0 where they do not have the axis
  int32_t axes;                        // outer axes
  int32_t mode;                        // kRopeHalf or kRopeInterleave
  int32_t buffers;                     // buffers per queue
  int32_t streams;                     // 1: past the caches
};

// The gradient of x: the same work with another table.
using RotaryPositionEmbeddingGradProblem = RotaryPositionEmbeddingProblem;
using RotaryPositionEmbeddingGradTilingData = RotaryPositionEmbeddingTilingData;

// The gradient of the tables. A tile is vPerTile rows of the tables, numbered by (outer axes of the tables, tile of V);
// core i owns a contiguous share and sums over all else, iPerTile rows of x at a time.
using RotaryPositionEmbeddingTableGradProblem = RotaryPositionEmbeddingProblem;
struct RotaryPositionEmbeddingTableGradTilingData {
  TilingHead head;
  int64_t V;
  int64_t I;
  int64_t D;         // elements per row
  int64_t pitch;     // elements between rows in UB, as above
  int64_t vPerTile;  // steps of V
  int64_t iPerTile;  // steps of I
  int64_t tiles;     // tiles in all
  int64_t repeats;   // product of the outer axes that the tables do not have
  int64_t varyingSize[kRopeAxes];
  int64_t varyingStride[kRopeAxes];  // steps of o
  int64_t repeatedSize[kRopeAxes];
  int64_t repeatedStride[kRopeAxes];  // steps of o
  int32_t varyingAxes;                // outer axes that the tables have
  int32_t repeatedAxes;               // outer axes that they do not have
  int32_t mode;                       // kRopeHalf or kRopeInterleave
  int32_t buffers;                    // buffers per queue
  int32_t streams;                    // 1: past the caches
};

}  // namespace mst

#endif  // MST_POSEMBEDDING_ROTARY_POSITION_EMBEDDING_TILING_H_
