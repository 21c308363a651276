// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The CPU twin of Ascend C: the part of the API that the kernels use, under its real names and signatures.
#ifndef MST_TWIN_KERNEL_OPERATOR_H_
#define MST_TWIN_KERNEL_OPERATOR_H_

#include "data_copy.h"
#include "l1.h"
#include "math_api.h"
#include "pipe.h"
#include "softmax.h"
#include "sort.h"
#include "sync.h"
#include "tensor.h"
#include "types.h"
#include "vector_binary.h"
#include "vector_cast.h"
#include "vector_move.h"
#include "vector_reduce.h"
#include "vector_select.h"
#include "vector_unary.h"

#endif  // MST_TWIN_KERNEL_OPERATOR_H_
