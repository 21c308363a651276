// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Runs kernels on cases from files, without Python and MindSpore: under sanitizers and under emulation.
//
//   runner LEVEL_LIBRARY CASE_FILE...
//
// A case file (tests/casefile.py writes it) holds any number of cases: lines of text up to "data N", then N bytes.
//   case NAME / op NAME / attr NAME i|f|b|s VALUE / input NAME DTYPE DIMS... or input NAME none /
//   updated NAME LIMIT (an input that the op changes) / output NAME DTYPE LIMIT DIMS... / data N
// The data are the inputs in order, then the expected values of updated inputs and of outputs, in their own dtypes;
// LIMIT is the largest allowed difference. Each buffer is its own allocation of exactly its size, every case runs with
// one thread and with two, and both runs must give the same bits.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "common/cpu_entry.h"
#include "common/op_args.h"
#include "common/platform.h"
#include "runtime.h"

namespace {

using mst::DType;

struct Tensor {
  std::string name;
  DType dtype = DType::kNone;
  mst::Shape shape;
  std::vector<char> bytes;     // what goes in
  std::vector<char> expected;  // what must come out
  double limit = -1;           // negative: the op must not change it

  int64_t Count() const {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    return count;
  }
  size_t Bytes() const { return static_cast<size_t>(Count() * mst::SizeOf(dtype)); }
};

struct Attr {
  std::string name;
  char type;
  std::string value;
};

struct Case {
  std::string name;
  std::string op;
  std::vector<Attr> attrs;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

[[noreturn]] void Die(const std::string& text) {
  std::cerr << "runner: " << text << std::endl;
  std::exit(2);
}

double Half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

double ValueAt(const char* data, DType dtype, int64_t i) {
  const auto read = [&](auto value) {
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
    return value;
  };
  switch (dtype) {
    case DType::kFloat32:
      return read(0.0f);
    case DType::kFloat16:
      return Half(read(uint16_t{0}));
    case DType::kBFloat16: {
      const uint32_t bits = static_cast<uint32_t>(read(uint16_t{0})) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    case DType::kInt32:
      return read(int32_t{0});
    case DType::kInt64:
      return static_cast<double>(read(int64_t{0}));
    case DType::kInt8:
      return read(int8_t{0});
    default:
      return read(uint8_t{0});
  }
}

bool ReadCase(std::istream& in, Case* c) {
  *c = {};
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind, name, dtype;
    words >> kind >> name;
    const auto read_shape = [&](Tensor* t) {
      t->dtype = mst::DTypeOf(dtype.c_str());
      for (int64_t dim; words >> dim;) t->shape.push_back(dim);
    };
    if (kind == "case") {
      c->name = name;
    } else if (kind == "op") {
      c->op = name;
    } else if (kind == "attr") {
      Attr attr{name, 0, ""};
      words >> attr.type >> attr.value;
      c->attrs.push_back(attr);
    } else if (kind == "input") {
      c->inputs.emplace_back();
      c->inputs.back().name = name;
      words >> dtype;
      if (dtype != "none") read_shape(&c->inputs.back());
    } else if (kind == "updated") {
      for (Tensor& t : c->inputs) {
        if (t.name == name) words >> t.limit;
      }
    } else if (kind == "output") {
      c->outputs.emplace_back();
      c->outputs.back().name = name;
      words >> dtype >> c->outputs.back().limit;
      read_shape(&c->outputs.back());
    } else if (kind == "data") {
      const auto fill = [&](size_t size, std::vector<char>* bytes) {
        bytes->resize(size);
        if (!in.read(bytes->data(), static_cast<std::streamsize>(size))) Die("case " + c->name + ": file too short");
      };
      for (Tensor& t : c->inputs) fill(t.Bytes(), &t.bytes);
      for (Tensor& t : c->inputs) {
        if (t.limit >= 0) fill(t.Bytes(), &t.expected);
      }
      for (Tensor& t : c->outputs) fill(t.Bytes(), &t.expected);
      return true;
    } else {
      Die("unknown line: " + line);
    }
  }
  return false;
}

// An allocation of exactly the size, so that a sanitizer sees the first byte too many.
class Buffer {
 public:
  explicit Buffer(size_t bytes, const char* from) : data_(static_cast<char*>(std::malloc(bytes ? bytes : 1))) {
    if (from != nullptr) {
      std::memcpy(data_, from, bytes);
    } else {
      std::memset(data_, 0xFF, bytes);  // NaN in every floating type
    }
  }
  Buffer(Buffer&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  char* data() const { return data_; }

 private:
  char* data_;
};

std::string Compare(const Tensor& t, const char* found) {
  const bool same_type = t.dtype == DType::kFloat32 || t.dtype == DType::kFloat16 || t.dtype == DType::kBFloat16;
  for (int64_t i = 0; i < t.Count(); ++i) {
    const double want = ValueAt(t.expected.data(), t.dtype, i);
    const double got = ValueAt(found, t.dtype, i);
    if (same_type && std::isnan(want) && std::isnan(got)) continue;
    if (want == got || std::fabs(want - got) <= t.limit) continue;
    std::ostringstream text;
    text << t.name << "[" << i << "]: " << got << ", expected " << want << " within " << t.limit;
    return text.str();
  }
  return "";
}

// Runs a case; returns what is wrong, or nothing. `bits`: everything the op wrote.
std::string Run(const Case& c, void* library, int threads, std::string* bits) {
  const mst::OpDesc* desc = mst::FindOp(c.op.c_str());
  const auto kernel = reinterpret_cast<mst::KernelFn>(dlsym(library, ("mst_kernel_" + c.op).c_str()));
  if (desc == nullptr || kernel == nullptr) return "no operator " + c.op;
  mst::OpArgs args(*desc);
  for (const Attr& attr : c.attrs) {
    const char* name = attr.name.c_str();
    if (attr.type == 's') {
      args.SetStr(name, attr.value);
    } else if (attr.type == 'f') {
      args.SetFloat(name, static_cast<float>(std::strtod(attr.value.c_str(), nullptr)));
    } else {
      args.SetInt(name, std::strtoll(attr.value.c_str(), nullptr, 10));
    }
  }
  if (args.inputs().size() != c.inputs.size() || args.outputs().size() != c.outputs.size()) {
    return "the case has other inputs or outputs than the operator";
  }
  std::vector<Buffer> buffers;
  const auto bind = [&](const Tensor& t, const char* from, mst::TensorArg* arg) {
    buffers.emplace_back(t.Bytes(), from);
    if (t.dtype == DType::kNone) return;
    arg->data = buffers.back().data();
    arg->shape = t.shape;
    arg->dtype = t.dtype;
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) bind(c.inputs[i], c.inputs[i].bytes.data(), &args.inputs()[i]);
  for (size_t i = 0; i < c.outputs.size(); ++i) bind(c.outputs[i], nullptr, &args.outputs()[i]);

  mst::SetPoolThreads(threads);
  const mst::Status status = mst::RunOp(&args, mst::CpuPlatform(threads), kernel);
  if (!status.ok()) return status.text();
  bits->clear();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& t = c.inputs[i];
    if (t.limit < 0) {
      if (std::memcmp(buffers[i].data(), t.bytes.data(), t.Bytes()) != 0) return "input " + t.name + " was changed";
      continue;
    }
    const std::string wrong = Compare(t, buffers[i].data());
    if (!wrong.empty()) return wrong;
    bits->append(buffers[i].data(), t.Bytes());
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const Tensor& t = c.outputs[i];
    const char* data = buffers[c.inputs.size() + i].data();
    const std::string wrong = Compare(t, data);
    if (!wrong.empty()) return wrong;
    bits->append(data, t.Bytes());
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) Die("usage: runner LEVEL_LIBRARY CASE_FILE...");
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Die(dlerror());
  int passed = 0;
  int failed = 0;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) Die(std::string("cannot read ") + argv[i]);
    for (Case c; ReadCase(file, &c);) {
      std::string bits, other;
      std::string wrong = Run(c, library, 1, &bits);
      if (wrong.empty()) wrong = Run(c, library, 2, &other);
      if (wrong.empty() && bits != other) wrong = "1 and 2 threads give different bits";
      (wrong.empty() ? passed : failed)++;
      if (!wrong.empty()) std::cout << "FAILED " << c.name << ": " << wrong << std::endl;
    }
  }
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed != 0 || passed == 0;
}
