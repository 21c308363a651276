// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The CPU twin of Ascend C: the part of the API that the kernels use, under its real names and signatures.
#ifndef MST_TWIN_KERNEL_OPERATOR_H_
#define MST_TWIN_KERNEL_OPERATOR_H_

#include "pipe.h"
#include "sync.h"
#include "tensor.h"
#include "types.h"

#endif  // MST_TWIN_KERNEL_OPERATOR_H_
