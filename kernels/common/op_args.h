// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The arguments of one call, free of MindSpore and CANN types, and the checks that follow from the op's spec.
//
// OpDesc is the C++ form of an OpSpec (op_info/), emitted at build time. OpArgs holds shapes, dtypes, attributes and,
// where the host can read them, data. Glue for MindSpore, CANN and the tests fills it; per-op code only reads it.
#ifndef MST_COMMON_OP_ARGS_H_
#define MST_COMMON_OP_ARGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/dtype.h"
#include "common/platform.h"
#include "common/status.h"

namespace mst {

using Shape = std::vector<int64_t>;  // -1: dim not known yet; {-2}: rank not known yet

inline bool HasUnknownRank(const Shape& shape) { return shape.size() == 1 && shape[0] == -2; }

struct TensorDesc {
  const char* name;
  const char* dims;   // "... D", "T K", "T*K H" (products of dims bound before); "" is a scalar; "*" is any shape
  const char* dtype;  // a dtype symbol ("X") or a dtype name ("int32")
  bool optional;
  bool isMutable;  // an input that the operator updates in place
  bool host;       // an input whose values the plan depends on
};

struct AttrDesc {
  const char* name;
  char type;  // 'i' int64, 'f' float, 'b' bool, 's' string
};

// A field of a plain struct, so that Problem and TilingData can be printed and given to Python.
struct FieldDesc {
  const char* name;
  char type;  // 'i' int32_t, 'l' int64_t, 'f' float, 'd' double, 'b' bool
  size_t offset;
  size_t count;  // above 1: an array
};

class OpArgs;

struct OpDesc {
  const char* name;       // "rms_norm"
  const char* className;  // "RmsNorm", the name in error texts
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<AttrDesc> attrs;
  std::vector<const char*> dtypeSymbols;         // "X", "I"
  std::vector<std::vector<DType>> dtypeColumns;  // one supported combination each, in the order of dtypeSymbols
  const char* digest;                            // of the spec this was emitted from
  size_t tilingBytes;                            // sizeof(TilingData)
  std::vector<FieldDesc> tilingFields;
  // Rules that dims cannot express, from shapes, attributes and (when present) data. Called once all dims are known.
  Status (*check)(const OpArgs& args);
  // Problem + Tiling into `tilingData`.
  Status (*plan)(const OpArgs& args, const Platform& platform, void* tilingData);
  // Every value that the kernel will use as an index or a length, before anything is written; may be nullptr.
  // Called with data only.
  Status (*checkValues)(const OpArgs& args);
  // Output shapes where dims cannot express them; may be nullptr. Dims may be unknown: -1, or the shape {-2}.
  Status (*inferShapes)(const OpArgs& args, std::vector<Shape>* outputs);
};

struct TensorArg {
  void* data = nullptr;  // nullptr: absent, or not readable by the host
  Shape shape;
  DType dtype = DType::kNone;  // kNone: absent optional input
};

class OpArgs {
 public:
  explicit OpArgs(const OpDesc& desc)
      : desc_(desc), inputs_(desc.inputs.size()), outputs_(desc.outputs.size()), attrs_(desc.attrs.size()) {}

  const OpDesc& desc() const { return desc_; }
  std::vector<TensorArg>& inputs() { return inputs_; }
  std::vector<TensorArg>& outputs() { return outputs_; }
  const std::vector<TensorArg>& inputs() const { return inputs_; }
  const std::vector<TensorArg>& outputs() const { return outputs_; }

  // By spec name. A name that the spec does not have is a bug of ours and aborts.
  const TensorArg& Input(const char* name) const;
  bool Has(const char* name) const { return Input(name).dtype != DType::kNone; }
  // Host values of an int32 or int64 input, widened; empty when absent, not readable or of unknown size.
  std::vector<int64_t> Values(const char* name) const;

  int64_t Int(const char* attr) const;
  double Float(const char* attr) const;
  bool Bool(const char* attr) const { return Int(attr) != 0; }
  const std::string& Str(const char* attr) const;
  void SetInt(const char* attr, int64_t value) { Attr(attr).i = value; }
  void SetFloat(const char* attr, double value) { Attr(attr).f = value; }
  void SetStr(const char* attr, std::string value) { Attr(attr).s = std::move(value); }

  // Bound by Bind(): a dim symbol of the spec, or -1 while unknown; "..." is the product of the leading dims.
  int64_t Dim(const char* symbol) const;
  bool allDimsKnown() const { return allDimsKnown_; }
  int column() const { return column_; }  // index into desc().dtypeColumns

  // The dtype of a tensor of the spec in one column.
  DType DTypeIn(const TensorDesc& tensor, size_t column) const;
  // Checks ranks, dims and dtypes against the spec and binds the symbols.
  Status Bind();
  // Output shapes by the spec (after Bind), unknown dims as -1.
  Status InferShapes(std::vector<Shape>* outputs) const;
  // Output dtypes by the spec (after Bind).
  std::vector<DType> InferDTypes() const;

 private:
  struct AttrValue {
    int64_t i = 0;
    double f = 0;
    std::string s;
  };

  AttrValue& Attr(const char* name);
  const AttrValue& Attr(const char* name) const { return const_cast<OpArgs*>(this)->Attr(name); }
  Status BindDTypes();
  Status BindDims(const TensorDesc& tensor, const Shape& shape);
  Status BindLeading(const TensorDesc& tensor, const Shape& leading);
  int64_t* FindDim(std::string_view symbol);
  int64_t Evaluate(std::string_view product) const;

  const OpDesc& desc_;
  std::vector<TensorArg> inputs_;
  std::vector<TensorArg> outputs_;
  std::vector<AttrValue> attrs_;                            // in the order of desc_.attrs
  std::vector<std::pair<std::string_view, int64_t>> dims_;  // symbols bound so far
  Shape leading_;
  bool leadingBound_ = false;
  bool allDimsKnown_ = false;
  int column_ = -1;
};

// "For 'RmsNorm', rank of 'gamma' must be from 1 to the rank of 'x' (2), but got 3." and its kin; printf-style, the
// part after the comma.
Status ValueErrorFor(const OpArgs& args, const char* format, ...) __attribute__((format(printf, 2, 3)));
Status TypeErrorFor(const OpArgs& args, const char* format, ...) __attribute__((format(printf, 2, 3)));
// "[2, 8, 64]"
std::string ToString(const Shape& shape);
// "rows=4 D=64 lengths=[1, 2]"
std::string ToString(const std::vector<FieldDesc>& fields, const void* data);

// MS_OPS_LOG=tiling prints every distinct pair of Problem and TilingData once.
bool LogsTiling();
void LogTiling(const OpDesc& desc, const Platform& platform, const std::string& problem, const std::string& tiling);

// Every op of the build; the emitted descriptions register themselves.
bool RegisterOp(const OpDesc* desc);
const OpDesc* FindOp(const char* name);  // or nullptr
const std::vector<const OpDesc*>& AllOps();

}  // namespace mst

#endif  // MST_COMMON_OP_ARGS_H_
