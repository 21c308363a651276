// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_POSEMBEDDING_RMS_NORM_TILING_H_
#define MST_POSEMBEDDING_RMS_NORM_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

constexpr int32_t kRmsNormSums = 8;  // sums that the parts of dgamma are added to in turn, a power of 2

struct RmsNormProblem {
  int64_t rows;        // product of x's axes before the normalised ones
  int64_t D;           // elements of gamma, normalised together
  int64_t xBytes;      // bytes of one element of x
  int64_t gammaBytes;  // bytes of one element of gamma
  float epsilon;
};

struct RmsNormTilingData {
  TilingHead head;
  int64_t rows;         // rows in all; core i owns [i * rows / cores, (i + 1) * rows / cores)
  int64_t D;            // elements per row
  int64_t rowsPerTile;  // rows
  int64_t colsPerTile;  // elements; below D a row takes several tiles and x is read twice
  int64_t pitch;        // elements between the rows of a tile in UB
  int64_t gammaCols;    // elements of gamma in UB: all, or those of a tile
  int32_t buffers;      // buffers per queue
  int32_t streams;      // 1: past the caches
  float epsilon;
  float oneOverD;
};

struct RmsNormGradProblem {
  int64_t rows;        // as in the forward
  int64_t D;           // elements of gamma
  int64_t xBytes;      // bytes of one element of x and dy
  int64_t gammaBytes;  // bytes of one element of gamma
};

struct RmsNormGradTilingData {
  TilingHead head;
  int64_t rows;          // rows in all
  int64_t D;             // elements per row
  int64_t chunks;        // pieces of the sum over rows, by the problem alone; core i takes chunks i, i + cores, ...
  int64_t rowsPerChunk;  // rows, at most: chunk i is [i * rows / chunks, (i + 1) * rows / chunks)
  int64_t rowsPerTile;   // rows
  int64_t colsPerTile;   // elements; below D a row takes several tiles and inputs are read twice
  int64_t pitch;         // elements between the rows of a tile in UB
  int64_t residentCols;  // elements of gamma and of dgamma's part in UB: all, or those of a tile
  int64_t sumCols;       // columns of dgamma that a core sums at a time
  int32_t buffers;       // buffers per queue
  int32_t streams;       // 1: past the caches
  float oneOverD;
};

}  // namespace mst

#endif  // MST_POSEMBEDDING_RMS_NORM_TILING_H_
