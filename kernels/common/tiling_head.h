// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// First member of every TilingData: what the launcher itself needs to know.
#ifndef MST_COMMON_TILING_HEAD_H_
#define MST_COMMON_TILING_HEAD_H_

#include <cstdint>

namespace mst {

struct TilingHead {
  int32_t cores;           // logical cores (blocks) to launch; 0 = nothing to do
  int32_t variant;         // index into the spec's `variants`
  int64_t workspaceBytes;  // scratch in global memory, shared by all cores
};

}  // namespace mst

#endif  // MST_COMMON_TILING_HEAD_H_
