// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "common/ascend_host.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "ascend_types.h"  // generated from op_info: kGeTypes
#include "common/op_args.h"
#include "common/tiling_head.h"
#include "tiling/platform/platform_ascendc.h"

namespace mst {
namespace {

ge::graphStatus Report(const Status& status) {
  if (status.ok()) return ge::GRAPH_SUCCESS;
  std::fprintf(stderr, "ms_ops_transformer: %s\n", status.text().c_str());
  return ge::GRAPH_FAILED;
}

DType FromGe(ge::DataType type) {
  for (const auto& [own, other] : kGeTypes) {
    if (other == type) return own;
  }
  return DType::kOther;
}

ge::DataType ToGe(DType type) {
  for (const auto& [own, other] : kGeTypes) {
    if (own == type) return other;
  }
  return ge::DT_UNDEFINED;
}

Shape FromGert(const gert::Shape& shape) {
  Shape dims;
  for (size_t i = 0; i < shape.GetDimNum(); ++i) dims.push_back(shape.GetDim(i));
  return dims;
}

void ToGert(const Shape& dims, gert::Shape* shape) {
  shape->SetDimNum(0);
  for (const int64_t dim : dims) shape->AppendDim(dim);
}

// In the order of the spec, which is the order of the registration.
Status ReadAttrs(const gert::RuntimeAttrs* values, OpArgs* args) {
  const std::vector<AttrDesc>& descs = args->desc().attrs;
  for (size_t i = 0; i < descs.size(); ++i) {
    const char* name = descs[i].name;
    bool found = false;
    const auto set = [&](const auto* value, auto setter) {
      found = value != nullptr;
      if (found) setter(*value);
    };
    if (values != nullptr && descs[i].type == 'i') {
      set(values->GetInt(i), [&](int64_t value) { args->SetInt(name, value); });
    } else if (values != nullptr && descs[i].type == 'f') {
      set(values->GetFloat(i), [&](float value) { args->SetFloat(name, value); });
    } else if (values != nullptr && descs[i].type == 'b') {
      set(values->GetBool(i), [&](bool value) { args->SetInt(name, value ? 1 : 0); });
    } else if (values != nullptr) {
      const char* text = values->GetStr(i);
      found = text != nullptr;
      if (found) args->SetStr(name, text);
    }
    if (!found) return ValueErrorFor(*args, "attribute '%s' must be given, but is missing.", name);
  }
  return Status::Ok();
}

// Shapes and dtypes of the inputs that are there; shapeOf gives nullptr for one that is not.
template <typename Context, typename ShapeOf>
void ReadInputs(const Context& context, ShapeOf shapeOf, OpArgs* args) {
  for (size_t i = 0; i < args->inputs().size(); ++i) {
    const gert::Shape* shape = shapeOf(i);
    const gert::CompileTimeTensorDesc* desc = context.GetOptionalInputDesc(i);
    if (shape == nullptr || desc == nullptr) continue;
    // For callers that must pass a list of values, an empty list stands for none.
    const TensorDesc& own = args->desc().inputs[i];
    if (own.host && own.optional && shape->GetDimNum() == 1 && shape->GetDim(0) == 0) continue;
    args->inputs()[i].shape = FromGert(*shape);
    args->inputs()[i].dtype = FromGe(desc->GetDataType());
  }
}

// Only inputs registered as ValueDepend have values that the host may read.
Status ReadValues(const gert::TilingContext& context, OpArgs* args) {
  for (size_t i = 0; i < args->inputs().size(); ++i) {
    const TensorDesc& desc = args->desc().inputs[i];
    TensorArg& input = args->inputs()[i];
    if (!desc.host || input.dtype == DType::kNone) continue;
    const gert::Tensor* tensor = context.GetOptionalInputTensor(i);
    if (tensor != nullptr) input.data = const_cast<void*>(tensor->GetAddr());
    if (input.data == nullptr) {
      return ValueErrorFor(*args, "the values of '%s' must be known to the host, but are not.", desc.name);
    }
  }
  return Status::Ok();
}

Platform PlatformOf(const platform_ascendc::PlatformAscendC& card) {
  Platform platform = *FindPlatform("ascend910b1");  // UB, L1 and L0 are the same in the whole class
  platform.soc = "ascend910b";
  platform.vectorCores = static_cast<int32_t>(card.GetCoreNumAiv());
  platform.cubeCores = static_cast<int32_t>(card.GetCoreNumAic());
  uint64_t l2Bytes = 0;
  card.GetCoreMemSize(platform_ascendc::CoreMemType::L2, l2Bytes);
  platform.l2Bytes = static_cast<int64_t>(l2Bytes);
  return platform;
}

// Registered outputs are the inputs that are updated in place and always there, and then those of the spec.
std::vector<size_t> UpdatedInputs(const OpDesc& desc) {
  std::vector<size_t> found;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].isMutable && !desc.inputs[i].optional) found.push_back(i);
  }
  return found;
}

Status InferShapes(gert::InferShapeContext* context, OpArgs* args) {
  const OpDesc& desc = args->desc();
  MST_RETURN_IF_ERROR(ReadAttrs(context->GetAttrs(), args));
  ReadInputs(*context, [&](size_t i) { return context->GetOptionalInputShape(i); }, args);
  MST_RETURN_IF_ERROR(args->Bind());
  if (args->allDimsKnown()) MST_RETURN_IF_ERROR(desc.check(*args));
  std::vector<Shape> shapes;
  MST_RETURN_IF_ERROR(args->InferShapes(&shapes));
  std::vector<Shape> all;
  for (const size_t i : UpdatedInputs(desc)) all.push_back(args->inputs()[i].shape);
  all.insert(all.end(), shapes.begin(), shapes.end());
  for (size_t i = 0; i < all.size(); ++i) ToGert(all[i], context->GetOutputShape(i));
  return Status::Ok();
}

Status InferDataTypes(gert::InferDataTypeContext* context, OpArgs* args) {
  const OpDesc& desc = args->desc();
  MST_RETURN_IF_ERROR(ReadAttrs(context->GetAttrs(), args));
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const ge::DataType type = context->GetOptionalInputDataType(i);
    if (type == ge::DT_UNDEFINED) continue;
    args->inputs()[i].dtype = FromGe(type);
    args->inputs()[i].shape = {-2};
  }
  MST_RETURN_IF_ERROR(args->Bind());
  std::vector<DType> all;
  for (const size_t i : UpdatedInputs(desc)) all.push_back(args->inputs()[i].dtype);
  for (const DType type : args->InferDTypes()) all.push_back(type);
  for (size_t i = 0; i < all.size(); ++i) context->SetOutputDataType(i, ToGe(all[i]));
  return Status::Ok();
}

Status Tile(KernelCores cores, gert::TilingContext* context, OpArgs* args) {
  const OpDesc& desc = args->desc();
  MST_RETURN_IF_ERROR(ReadAttrs(context->GetAttrs(), args));
  const auto shapeOf = [&](size_t i) {
    const gert::StorageShape* shape = context->GetOptionalInputShape(i);
    return shape == nullptr ? nullptr : &shape->GetStorageShape();
  };
  ReadInputs(*context, shapeOf, args);
  MST_RETURN_IF_ERROR(ReadValues(*context, args));
  MST_RETURN_IF_ERROR(args->Bind());

  const platform_ascendc::PlatformAscendC card(context->GetPlatformInfo());
  std::vector<int64_t> tilingData((desc.tilingBytes + sizeof(int64_t) - 1) / sizeof(int64_t));
  MST_RETURN_IF_ERROR(desc.plan(*args, PlatformOf(card), tilingData.data()));
  gert::TilingData* raw = context->GetRawTilingData();
  size_t* workspace = context->GetWorkspaceSizes(1);
  if (workspace == nullptr)
    return ValueErrorFor(*args, "CANN must have room for the size of a workspace, but has none.");
  if (raw == nullptr || raw->GetCapacity() < desc.tilingBytes) {
    return ValueErrorFor(*args, "%zu bytes of tiling data must fit, but there is room for %zu.", desc.tilingBytes,
                         raw == nullptr ? 0 : raw->GetCapacity());
  }
  std::memcpy(raw->GetData(), tilingData.data(), desc.tilingBytes);
  raw->SetDataSize(desc.tilingBytes);

  const auto* head = reinterpret_cast<const TilingHead*>(tilingData.data());
  // Of an odd number of vector cores the last group has one too many: it finds no work for its index.
  const int32_t blocks = cores == KernelCores::kCubeAndVectors ? (head->cores + 1) / 2 : head->cores;
  context->SetBlockDim(std::max(1, blocks));  // with nothing to do one block sees that
  context->SetTilingKey(head->variant);
  if (cores != KernelCores::kVector) context->SetScheduleMode(1);  // all blocks at once or none
  workspace[0] = card.GetLibApiWorkSpaceSize() + static_cast<size_t>(head->workspaceBytes);
  return Status::Ok();
}

}  // namespace

ge::graphStatus AscendInferShape(const char* op, gert::InferShapeContext* context) {
  OpArgs args(*FindOp(op));
  return Report(InferShapes(context, &args));
}

ge::graphStatus AscendInferDataType(const char* op, gert::InferDataTypeContext* context) {
  OpArgs args(*FindOp(op));
  return Report(InferDataTypes(context, &args));
}

ge::graphStatus AscendTiling(const char* op, KernelCores cores, gert::TilingContext* context) {
  OpArgs args(*FindOp(op));
  return Report(Tile(cores, context, &args));
}

}  // namespace mst
