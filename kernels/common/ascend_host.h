// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// From CANN's contexts to OpArgs, the same for every operator: what the generated op_host files register. Compiled by
// CANN's build only.
#ifndef MST_COMMON_ASCEND_HOST_H_
#define MST_COMMON_ASCEND_HOST_H_

#include "register/op_def_registry.h"

namespace mst {

// How a kernel uses the cores of the card.
enum class KernelCores {
  kVector,          // vector cores that do not wait for each other
  kVectorInStep,    // vector cores that wait for each other (SyncAll): they must all run at once
  kCubeAndVectors,  // groups of one cube core and two vector cores
};

// `op` is the name of the spec. An error is printed, and CANN is told that the function failed.
ge::graphStatus AscendInferShape(const char* op, gert::InferShapeContext* context);
ge::graphStatus AscendInferDataType(const char* op, gert::InferDataTypeContext* context);
ge::graphStatus AscendTiling(const char* op, KernelCores cores, gert::TilingContext* context);

}  // namespace mst

#endif  // MST_COMMON_ASCEND_HOST_H_
