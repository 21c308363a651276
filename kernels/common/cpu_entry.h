// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// From a call to running cores on the CPU. Generated entry points and the native module end here.
#ifndef MST_COMMON_CPU_ENTRY_H_
#define MST_COMMON_CPU_ENTRY_H_

#include <cstdint>
#include <vector>

#include "common/aot_extra.h"
#include "common/op_args.h"

namespace mst {

// The part of the calling logical core. gm: inputs, then outputs, nullptr where absent.
using KernelFn = void (*)(int column, void** gm, void* workspace, const void* tiling);

// An input that is read, one that is updated in place, an output, the workspace.
enum class GmRole { kInput, kUpdated, kOutput, kWorkspace };

// A tensor of a launch, or its workspace.
struct GmBuffer {
  const char* name;
  void* data;
  int64_t bytes;
  GmRole role;
};
// Told the platform and the buffers of a launch before its cores run: the export "mst_launch_begin" of the checked
// library.
using LaunchBeginFn = void (*)(const Platform* platform, const GmBuffer* buffers, int count);

// Checks everything, plans, then runs the kernel on the thread pool. Nothing is written unless the status is ok.
// Without `checkValues`, what is inside of tensors goes to the kernel unseen, as on a card.
Status RunOp(OpArgs* args, const Platform& platform, KernelFn kernel, LaunchBeginFn begin = nullptr,
             bool checkValues = true);

// The three functions that MindSpore's aot loader looks up for every op. Errors are thrown as std::invalid_argument.
// Attribute "absent" of the primitive: names of the optional inputs that are None, separated by commas.
int AotInit(const char* op, AotExtra* extra);
std::vector<Shape> AotInferShape(const char* op, int* ndims, int64_t** shapes, AotExtra* extra);
int AotLaunch(KernelFn kernel, int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
              AotExtra* extra);

// A library without the kernel that the plan asks for.
[[noreturn]] void KernelMissing(const char* op, int column, int variant);

}  // namespace mst

#endif  // MST_COMMON_CPU_ENTRY_H_
