// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "common/cpu_entry.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/tiling_head.h"
#include "runtime.h"

namespace mst {
namespace {

void ThrowIfError(const Status& status) {
  if (!status.ok()) throw std::invalid_argument(status.text());
}

const OpDesc& OpOf(const char* name) {
  const OpDesc* desc = FindOp(name);
  if (desc == nullptr) throw std::invalid_argument(std::string("ms_ops_transformer has no operator ") + name);
  return *desc;
}

void ReadAttrs(AotExtra* extra, OpArgs* args) {
  for (const AttrDesc& attr : args->desc().attrs) {
    switch (attr.type) {
      case 'i':
        args->SetInt(attr.name, extra->Attr<int64_t>(attr.name));
        break;
      case 'f':
        args->SetFloat(attr.name, extra->Attr<float>(attr.name));
        break;
      case 'b':
        args->SetInt(attr.name, extra->Attr<bool>(attr.name) ? 1 : 0);
        break;
      default:
        args->SetStr(attr.name, extra->Attr<std::string>(attr.name));
    }
  }
}

// Kept by MindSpore with the kernel: the arguments with their attributes filled in, copied by every call.
struct KernelData : AotKernelData {
  explicit KernelData(const OpDesc& desc) : args(desc) {}
  OpArgs args;
};

struct Call {
  KernelFn kernel;
  int column;
  void** gm;
  void* workspace;
  const void* tiling;
};

void RunCore(void* context, int /*core*/) {
  const Call& call = *static_cast<const Call*>(context);
  call.kernel(call.column, call.gm, call.workspace, call.tiling);
}

std::vector<GmBuffer> BuffersOf(const OpArgs& args, void* workspace, int64_t workspaceBytes) {
  std::vector<GmBuffer> buffers;
  const auto add = [&](const std::vector<TensorDesc>& descs, const std::vector<TensorArg>& tensors, bool isInput) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      int64_t bytes = SizeOf(tensors[i].dtype);
      for (const int64_t dim : tensors[i].shape) bytes *= dim;
      const GmRole role = !isInput ? GmRole::kOutput : descs[i].isMutable ? GmRole::kUpdated : GmRole::kInput;
      if (tensors[i].data != nullptr) buffers.push_back({descs[i].name, tensors[i].data, bytes, role});
    }
  };
  add(args.desc().inputs, args.inputs(), true);
  add(args.desc().outputs, args.outputs(), false);
  if (workspaceBytes > 0) buffers.push_back({"workspace", workspace, workspaceBytes, GmRole::kWorkspace});
  return buffers;
}

}  // namespace

Status RunOp(OpArgs* args, const Platform& platform, KernelFn kernel, LaunchBeginFn begin, bool checkValues) {
  const OpDesc& desc = args->desc();
  MST_RETURN_IF_ERROR(args->Bind());
  std::vector<int64_t> tilingData((desc.tilingBytes + sizeof(int64_t) - 1) / sizeof(int64_t));
  MST_RETURN_IF_ERROR(desc.plan(*args, platform, tilingData.data()));
  if (checkValues && desc.checkValues != nullptr) MST_RETURN_IF_ERROR(desc.checkValues(*args));
  const auto* head = reinterpret_cast<const TilingHead*>(tilingData.data());
  if (head->cores == 0) return Status::Ok();

  std::vector<void*> gm;
  gm.reserve(args->inputs().size() + args->outputs().size());
  for (const TensorArg& tensor : args->inputs()) gm.push_back(tensor.data);
  for (const TensorArg& tensor : args->outputs()) gm.push_back(tensor.data);
  const Scratch workspace(head->workspaceBytes);
  if (begin != nullptr) {
    const std::vector<GmBuffer> buffers = BuffersOf(*args, workspace.data(), head->workspaceBytes);
    begin(&platform, buffers.data(), static_cast<int>(buffers.size()));
  }
  Call call{kernel, args->column(), gm.data(), workspace.data(), tilingData.data()};
  LaunchKernel(head->cores, RunCore, &call);
  return Status::Ok();
}

int AotInit(const char* op, AotExtra* extra) {
  auto* data = new KernelData(OpOf(op));
  ReadAttrs(extra, &data->args);
  extra->SetKernelData(data);
  return 0;
}

std::vector<Shape> AotInferShape(const char* op, int* ndims, int64_t** shapes, AotExtra* extra) {
  const OpDesc& desc = OpOf(op);
  OpArgs args(desc);
  ReadAttrs(extra, &args);
  const std::string absent = "," + extra->Attr<std::string>("absent") + ",";
  int next = 0;  // MindSpore leaves out inputs that are None
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (absent.find("," + std::string(desc.inputs[i].name) + ",") != std::string::npos) continue;
    args.inputs()[i].shape.assign(shapes[next], shapes[next] + ndims[next]);
    ++next;
    args.inputs()[i].dtype = args.DTypeIn(desc.inputs[i], 0);  // shapes do not depend on dtypes, which are not given
  }
  std::vector<Shape> outputs;
  if (args.Bind().ok() && (!args.allDimsKnown() || desc.check(args).ok()) && args.InferShapes(&outputs).ok()) {
    return outputs;
  }
  // An exception would lose its type here: Python's inference or the launch reports what is wrong. For a launch the
  // outputs need known shapes; nothing is written to them.
  const bool isKnown = std::all_of(args.inputs().begin(), args.inputs().end(), [](const TensorArg& input) {
    return std::all_of(input.shape.begin(), input.shape.end(), [](int64_t dim) { return dim >= 0; });
  });
  outputs.assign(desc.outputs.size(), isKnown ? args.inputs()[0].shape : Shape{-2});
  return outputs;
}

int AotLaunch(KernelFn kernel, int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
              AotExtra* extra) {
  OpArgs args = static_cast<const KernelData*>(extra->KernelData())->args;
  const size_t numInputs = args.inputs().size();
  if (static_cast<size_t>(nparam) != numInputs + args.outputs().size()) {
    throw std::invalid_argument(std::string("For '") + args.desc().className + "', the number of tensors must be " +
                                std::to_string(numInputs + args.outputs().size()) + ", but got " +
                                std::to_string(nparam) + ".");
  }
  for (size_t i = 0; i < static_cast<size_t>(nparam); ++i) {
    TensorArg& tensor = i < numInputs ? args.inputs()[i] : args.outputs()[i - numInputs];
    tensor.dtype = DTypeOf(dtypes[i]);
    if (tensor.dtype == DType::kNone) continue;
    tensor.data = params[i];
    tensor.shape.assign(shapes[i], shapes[i] + ndims[i]);
  }
  ThrowIfError(RunOp(&args, CpuPlatform(PoolThreads()), kernel));
  return 0;
}

void KernelMissing(const char* op, int column, int variant) {
  throw std::logic_error(std::string("ms_ops_transformer: '") + op + "' has no kernel for column " +
                         std::to_string(column) + ", variant " + std::to_string(variant));
}

}  // namespace mst
