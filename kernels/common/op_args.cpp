// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "common/op_args.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

namespace mst {
namespace {

constexpr int64_t kUnknownDim = -1;

// The blank-separated tokens of a dims string, in order.
std::vector<std::string_view> Tokens(std::string_view dims) {
  std::vector<std::string_view> tokens;
  while (!dims.empty()) {
    const size_t end = std::min(dims.find(' '), dims.size());
    tokens.push_back(dims.substr(0, end));
    dims.remove_prefix(std::min(end + 1, dims.size()));
  }
  return tokens;
}

bool IsNumber(std::string_view token) { return token[0] >= '0' && token[0] <= '9'; }

int64_t ToNumber(std::string_view digits) {
  int64_t number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

std::string Format(const OpArgs& args, const char* format, va_list values) {
  char text[1024];
  std::vsnprintf(text, sizeof(text), format, values);
  return std::string("For '") + args.desc().className + "', " + text;
}

[[noreturn]] void AbortOnUnknownName(const OpDesc& desc, const char* kind, const char* name) {
  std::fprintf(stderr, "ms_ops_transformer: the spec of '%s' has no %s '%s'\n", desc.name, kind, name);
  std::abort();
}

}  // namespace

const TensorArg& OpArgs::Input(const char* name) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (std::strcmp(desc_.inputs[i].name, name) == 0) return inputs_[i];
  }
  AbortOnUnknownName(desc_, "input", name);
}

std::vector<int64_t> OpArgs::Values(const char* name) const {
  const TensorArg& input = Input(name);
  int64_t count = 1;
  for (const int64_t dim : input.shape) {
    if (dim < 0) return {};
    count *= dim;
  }
  if (input.data == nullptr) return {};
  if (input.dtype == DType::kInt64) {
    const auto* data = static_cast<const int64_t*>(input.data);
    return {data, data + count};
  }
  if (input.dtype == DType::kInt32) {
    const auto* data = static_cast<const int32_t*>(input.data);
    return {data, data + count};
  }
  return {};
}

OpArgs::AttrValue& OpArgs::Attr(const char* name) {
  for (size_t i = 0; i < attrs_.size(); ++i) {
    if (std::strcmp(desc_.attrs[i].name, name) == 0) return attrs_[i];
  }
  AbortOnUnknownName(desc_, "attribute", name);
}

int64_t OpArgs::Int(const char* attr) const { return Attr(attr).i; }
double OpArgs::Float(const char* attr) const { return Attr(attr).f; }
const std::string& OpArgs::Str(const char* attr) const { return Attr(attr).s; }

int64_t* OpArgs::FindDim(std::string_view symbol) {
  for (auto& [name, size] : dims_) {
    if (name == symbol) return &size;
  }
  return nullptr;
}

int64_t OpArgs::Dim(const char* symbol) const {
  if (std::strcmp(symbol, "...") == 0) {
    if (HasUnknownRank(leading_)) return kUnknownDim;
    int64_t product = 1;
    for (const int64_t dim : leading_) {
      if (dim < 0) return kUnknownDim;
      product *= dim;
    }
    return product;
  }
  const int64_t* size = const_cast<OpArgs*>(this)->FindDim(symbol);
  return size == nullptr ? kUnknownDim : *size;
}

int64_t OpArgs::Evaluate(std::string_view product) const {
  int64_t result = 1;
  while (!product.empty()) {
    const size_t end = std::min(product.find('*'), product.size());
    const std::string_view factor = product.substr(0, end);
    product.remove_prefix(std::min(end + 1, product.size()));
    int64_t size = kUnknownDim;
    if (IsNumber(factor)) {
      size = ToNumber(factor);
    } else if (const int64_t* bound = const_cast<OpArgs*>(this)->FindDim(factor)) {
      size = *bound;
    }
    if (size < 0) return kUnknownDim;
    result *= size;
  }
  return result;
}

DType OpArgs::DTypeIn(const TensorDesc& tensor, size_t column) const {
  for (size_t s = 0; s < desc_.dtypeSymbols.size(); ++s) {
    if (std::strcmp(desc_.dtypeSymbols[s], tensor.dtype) == 0) return desc_.dtypeColumns[column][s];
  }
  return DTypeOf(tensor.dtype);
}

// A combination of dtypes survives as long as every input seen so far fits it.
Status OpArgs::BindDTypes() {
  const size_t numColumns = desc_.dtypeColumns.size();
  std::vector<bool> fits(numColumns, true);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorDesc& tensor = desc_.inputs[i];
    const DType got = inputs_[i].dtype;
    if (got == DType::kNone) {
      if (tensor.optional) continue;
      return TypeErrorFor(*this, "'%s' must be a Tensor, but got None.", tensor.name);
    }
    const std::vector<bool> before = fits;
    for (size_t c = 0; c < numColumns; ++c) fits[c] = fits[c] && DTypeIn(tensor, c) == got;
    if (std::find(fits.begin(), fits.end(), true) != fits.end()) continue;
    std::vector<std::string> allowed;
    for (size_t c = 0; c < numColumns; ++c) {
      const char* name = NameOf(DTypeIn(tensor, c));
      if (before[c] && std::find(allowed.begin(), allowed.end(), name) == allowed.end()) allowed.push_back(name);
    }
    std::string rule = allowed.size() == 1 ? "" : "one of ";
    for (size_t k = 0; k < allowed.size(); ++k) rule += (k == 0 ? "" : ", ") + allowed[k];
    return TypeErrorFor(*this, "dtype of '%s' must be %s, but got %s.", tensor.name, rule.c_str(), NameOf(got));
  }
  column_ = static_cast<int>(std::find(fits.begin(), fits.end(), true) - fits.begin());
  return Status::Ok();
}

Status OpArgs::BindLeading(const TensorDesc& tensor, const Shape& leading) {
  if (!leadingBound_ || HasUnknownRank(leading_)) {
    leading_ = leading;
    leadingBound_ = true;
    return Status::Ok();
  }
  bool equal = leading.size() == leading_.size();
  for (size_t i = 0; equal && i < leading.size(); ++i) {
    equal = leading[i] == leading_[i] || leading[i] < 0 || leading_[i] < 0;
    if (leading_[i] < 0) leading_[i] = leading[i];
  }
  if (equal) return Status::Ok();
  return ValueErrorFor(*this, "leading dims of '%s' must be %s, but got %s.", tensor.name, ToString(leading_).c_str(),
                       ToString(leading).c_str());
}

Status OpArgs::BindDims(const TensorDesc& tensor, const Shape& shape) {
  if (std::strcmp(tensor.dims, "*") == 0) return Status::Ok();
  std::vector<std::string_view> tokens = Tokens(tensor.dims);
  const bool hasLeading = !tokens.empty() && tokens[0] == "...";
  if (hasLeading) tokens.erase(tokens.begin());
  if (HasUnknownRank(shape)) {
    if (hasLeading && !leadingBound_) leading_ = shape;
    return Status::Ok();
  }
  if (hasLeading ? shape.size() < tokens.size() : shape.size() != tokens.size()) {
    return ValueErrorFor(*this, "rank of '%s' must be %s%zu, but got %zu.", tensor.name, hasLeading ? "at least " : "",
                         tokens.size(), shape.size());
  }
  const size_t first = shape.size() - tokens.size();
  if (hasLeading) MST_RETURN_IF_ERROR(BindLeading(tensor, Shape(shape.begin(), shape.begin() + first)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    const int64_t got = shape[first + i];
    const bool isSymbol = !IsNumber(token) && token.find('*') == std::string_view::npos;
    int64_t* bound = isSymbol ? FindDim(token) : nullptr;
    if (isSymbol && bound == nullptr) {
      dims_.emplace_back(token, got);
      continue;
    }
    const int64_t want = isSymbol ? *bound : Evaluate(token);
    if (bound != nullptr && want < 0) *bound = got;
    if (want < 0 || got < 0 || want == got) continue;
    if (IsNumber(token)) {
      return ValueErrorFor(*this, "dim %zu of '%s' must be %ld, but got %ld.", first + i, tensor.name,
                           static_cast<long>(want), static_cast<long>(got));
    }
    return ValueErrorFor(*this, "dim %.*s of '%s' must be %ld, but got %ld.", static_cast<int>(token.size()),
                         token.data(), tensor.name, static_cast<long>(want), static_cast<long>(got));
  }
  return Status::Ok();
}

Status OpArgs::Bind() {
  dims_.clear();
  leading_.clear();
  leadingBound_ = false;
  allDimsKnown_ = true;
  MST_RETURN_IF_ERROR(BindDTypes());
  for (size_t i = 0; i < attrs_.size(); ++i) {
    if (desc_.attrs[i].type == 'i') dims_.emplace_back(desc_.attrs[i].name, attrs_[i].i);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].dtype == DType::kNone) continue;
    MST_RETURN_IF_ERROR(BindDims(desc_.inputs[i], inputs_[i].shape));
    for (const int64_t dim : inputs_[i].shape) allDimsKnown_ = allDimsKnown_ && dim >= 0;
  }
  return Status::Ok();
}

Status OpArgs::InferShapes(std::vector<Shape>* outputs) const {
  outputs->clear();
  if (desc_.inferShapes != nullptr) return desc_.inferShapes(*this, outputs);
  for (const TensorDesc& tensor : desc_.outputs) {
    Shape shape;
    for (const std::string_view token : Tokens(tensor.dims)) {
      if (token != "...") {
        shape.push_back(Evaluate(token));
      } else if (HasUnknownRank(leading_)) {
        shape = leading_;
        break;
      } else {
        shape = leading_;
      }
    }
    outputs->push_back(std::move(shape));
  }
  return Status::Ok();
}

std::vector<DType> OpArgs::InferDTypes() const {
  std::vector<DType> dtypes;
  for (const TensorDesc& tensor : desc_.outputs) dtypes.push_back(DTypeIn(tensor, column_));
  return dtypes;
}

Status ValueErrorFor(const OpArgs& args, const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::string text = Format(args, format, values);
  va_end(values);
  return Status::ValueError(std::move(text));
}

Status TypeErrorFor(const OpArgs& args, const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::string text = Format(args, format, values);
  va_end(values);
  return Status::TypeError(std::move(text));
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string ToString(const std::vector<FieldDesc>& fields, const void* data) {
  std::string text;
  for (const FieldDesc& field : fields) {
    text += (text.empty() ? "" : " ") + std::string(field.name) + "=" + (field.count > 1 ? "[" : "");
    const char* at = static_cast<const char*>(data) + field.offset;
    for (size_t i = 0; i < field.count; ++i) {
      char value[32] = "";
      switch (field.type) {
        case 'i':
          std::snprintf(value, sizeof(value), "%d", reinterpret_cast<const int32_t*>(at)[i]);
          break;
        case 'l':
          std::snprintf(value, sizeof(value), "%ld", static_cast<long>(reinterpret_cast<const int64_t*>(at)[i]));
          break;
        case 'f':
          std::snprintf(value, sizeof(value), "%g", reinterpret_cast<const float*>(at)[i]);
          break;
        case 'd':
          std::snprintf(value, sizeof(value), "%g", reinterpret_cast<const double*>(at)[i]);
          break;
        default:
          std::snprintf(value, sizeof(value), "%d", reinterpret_cast<const bool*>(at)[i]);
      }
      text += (i == 0 ? "" : ", ") + std::string(value);
    }
    if (field.count > 1) text += "]";
  }
  return text;
}

bool LogsTiling() {
  static const bool logs = [] {
    const char* what = std::getenv("MS_OPS_LOG");
    return what != nullptr && std::strcmp(what, "tiling") == 0;
  }();
  return logs;
}

void LogTiling(const OpDesc& desc, const Platform& platform, const std::string& problem, const std::string& tiling) {
  static std::mutex mutex;
  static auto* printed = new std::set<std::string>();
  const std::string text = std::string(desc.name) + " on " + platform.soc + ": " + problem + " -> " + tiling;
  const std::lock_guard<std::mutex> lock(mutex);
  if (printed->insert(text).second) std::fprintf(stderr, "ms_ops_transformer: %s\n", text.c_str());
}

namespace {

std::vector<const OpDesc*>& Registry() {
  static auto* ops = new std::vector<const OpDesc*>();
  return *ops;
}

}  // namespace

bool RegisterOp(const OpDesc* desc) {
  Registry().push_back(desc);
  return true;
}

const OpDesc* FindOp(const char* name) {
  for (const OpDesc* desc : Registry()) {
    if (std::strcmp(desc->name, name) == 0) return desc;
  }
  return nullptr;
}

const std::vector<const OpDesc*>& AllOps() { return Registry(); }

}  // namespace mst
