// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#ifndef MST_TWIN_CHECKED_KERNEL_LINE_H_
#define MST_TWIN_CHECKED_KERNEL_LINE_H_

#include <string>

// "rms_norm_kernel.h:57": the innermost line of the calling stack that is outside the twin, from the debug information
// of this library by way of binutils' addr2line; without it a plain address.
std::string KernelLine();

#endif  // MST_TWIN_CHECKED_KERNEL_LINE_H_
