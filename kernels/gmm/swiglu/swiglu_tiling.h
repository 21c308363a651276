// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_GMM_SWIGLU_TILING_H_
#define MST_GMM_SWIGLU_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

// Whatever the axis, the input is [rows, 2, H] and the output [rows, H].
struct SwigluProblem {
  int64_t rows;    // product of the axes before `dim`
  int64_t H;       // half of `dim` times the product of the axes after it
  int64_t xBytes;  // bytes of one element
};

struct SwigluTilingData {
  TilingHead head;
  int64_t rows;         // rows in all
  int64_t H;            // elements of an output row
  int64_t rowsPerTile;  // rows
  int64_t colsPerTile;  // elements
  int64_t pitch;        // elements between the rows of a tile in UB
  int64_t tiles;        // tiles of the output, row tiles times column tiles; core i owns a contiguous share
  int32_t buffers;      // buffers per queue
  int32_t streams;      // 1: past the caches
};

using SwigluGradProblem = SwigluProblem;
using SwigluGradTilingData = SwigluTilingData;

}  // namespace mst

#endif  // MST_GMM_SWIGLU_TILING_H_
