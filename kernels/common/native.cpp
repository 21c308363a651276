// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// ms_ops_transformer._native: checks, shape inference, tiling and launches for Python, without MindSpore.
#include <dlfcn.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/cpu_entry.h"
#include "common/op_args.h"
#include "common/platform.h"
#include "runtime.h"

namespace py = pybind11;

namespace mst {
namespace {

void ThrowIfError(const Status& status) {
  if (status.ok()) return;
  if (status.kind() == Status::Kind::kTypeError) throw py::type_error(status.text());
  throw py::value_error(status.text());
}

const OpDesc& OpOf(const std::string& name) {
  const OpDesc* desc = FindOp(name.c_str());
  if (desc == nullptr) throw py::value_error("unknown operator '" + name + "'");
  return *desc;
}

// None, an array, or a pair (shape, dtype name) where data does not matter. bfloat16 is uint16 or ml_dtypes.bfloat16.
TensorArg ToTensor(const char* name, const py::handle& value, bool needsData) {
  TensorArg tensor;
  if (value.is_none()) return tensor;
  if (!needsData && py::isinstance<py::tuple>(value)) {
    const auto pair = py::cast<py::tuple>(value);
    tensor.shape = py::cast<Shape>(pair[0]);
    tensor.dtype = DTypeOf(py::cast<std::string>(pair[1]).c_str());
    return tensor;
  }
  if (!py::isinstance<py::array>(value)) throw py::type_error("'" + std::string(name) + "' must be a NumPy array");
  const auto array = py::cast<py::array>(value);
  if ((array.flags() & py::array::c_style) == 0) {
    throw py::value_error("'" + std::string(name) + "' must be contiguous");
  }
  const std::string dtype = py::cast<std::string>(array.dtype().attr("name"));
  tensor.dtype = DTypeOf(dtype == "uint16" ? "bfloat16" : dtype.c_str());
  tensor.shape.assign(array.shape(), array.shape() + array.ndim());
  tensor.data = const_cast<void*>(array.data());
  return tensor;
}

void FillInputs(const py::sequence& values, bool needsData, OpArgs* args) {
  const auto& tensors = args->desc().inputs;
  if (values.size() != tensors.size()) {
    throw py::value_error("For '" + std::string(args->desc().className) + "', the number of inputs must be " +
                          std::to_string(tensors.size()) + ", but got " + std::to_string(values.size()) + ".");
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    args->inputs()[i] = ToTensor(tensors[i].name, values[i], needsData);
  }
}

void FillAttrs(const py::dict& attrs, OpArgs* args) {
  for (const AttrDesc& attr : args->desc().attrs) {
    if (!attrs.contains(attr.name)) {
      throw py::value_error("For '" + std::string(args->desc().className) + "', attribute '" + attr.name +
                            "' must be given.");
    }
    const py::object value = attrs[attr.name];
    switch (attr.type) {
      case 'i':
        args->SetInt(attr.name, py::cast<int64_t>(value));
        break;
      case 'f':
        args->SetFloat(attr.name, py::cast<float>(value));  // MindSpore passes attributes as float32 too
        break;
      case 'b':
        args->SetInt(attr.name, py::cast<bool>(value) ? 1 : 0);
        break;
      default:
        args->SetStr(attr.name, py::cast<std::string>(value));
    }
  }
}

// Everything that can be known without running: rules of the spec, then of ProblemOf.
void Check(OpArgs* args) {
  ThrowIfError(args->Bind());
  if (args->allDimsKnown()) ThrowIfError(args->desc().check(*args));
}

py::list Infer(const OpArgs& args) {
  std::vector<Shape> shapes;
  ThrowIfError(args.InferShapes(&shapes));
  const std::vector<DType> dtypes = args.InferDTypes();
  py::list outputs;
  for (size_t i = 0; i < shapes.size(); ++i) outputs.append(py::make_tuple(shapes[i], NameOf(dtypes[i])));
  return outputs;
}

Platform PlatformOf(const std::string& soc) {
  if (soc == "cpu") return CpuPlatform(PoolThreads());
  const Platform* platform = FindPlatform(soc.c_str());
  if (platform == nullptr) throw py::value_error("unknown platform '" + soc + "'");
  return *platform;
}

py::object ToPython(const FieldDesc& field, const void* data) {
  const char* at = static_cast<const char*>(data) + field.offset;
  const auto item = [&](size_t i) -> py::object {
    switch (field.type) {
      case 'i':
        return py::int_(reinterpret_cast<const int32_t*>(at)[i]);
      case 'l':
        return py::int_(reinterpret_cast<const int64_t*>(at)[i]);
      case 'f':
        return py::float_(reinterpret_cast<const float*>(at)[i]);
      case 'd':
        return py::float_(reinterpret_cast<const double*>(at)[i]);
      default:
        return py::bool_(reinterpret_cast<const bool*>(at)[i]);
    }
  };
  if (field.count == 1) return item(0);
  py::list items;
  for (size_t i = 0; i < field.count; ++i) items.append(item(i));
  return items;
}

py::dict Plan(const std::string& op, const py::sequence& inputs, const py::dict& attrs, const std::string& soc) {
  OpArgs args(OpOf(op));
  FillInputs(inputs, /*needsData=*/false, &args);
  FillAttrs(attrs, &args);
  Check(&args);
  std::vector<int64_t> tiling(args.desc().tilingBytes / sizeof(int64_t) + 1);
  ThrowIfError(args.desc().plan(args, PlatformOf(soc), tiling.data()));
  py::dict result;
  for (const FieldDesc& field : args.desc().tilingFields) result[field.name] = ToPython(field, tiling.data());
  return result;
}

// Libraries stay open: the pool's threads may hold thread-local objects of theirs.
void* OpenLibrary(const std::string& path) {
  static auto* opened = new std::map<std::string, void*>();
  void*& handle = (*opened)[path];
  if (handle == nullptr) handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw py::import_error(dlerror());
  return handle;
}

void Launch(const std::string& library, const std::string& op, const py::sequence& inputs, const py::dict& attrs,
            const py::sequence& outputs, const std::string& soc, bool checkValues) {
  OpArgs args(OpOf(op));
  FillInputs(inputs, /*needsData=*/true, &args);
  FillAttrs(attrs, &args);
  Check(&args);
  std::vector<Shape> shapes;
  ThrowIfError(args.InferShapes(&shapes));
  const std::vector<DType> dtypes = args.InferDTypes();
  if (outputs.size() != shapes.size()) {
    throw py::value_error("'" + op + "' has " + std::to_string(shapes.size()) + " outputs");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const char* name = args.desc().outputs[i].name;
    const TensorArg output = ToTensor(name, outputs[i], /*needsData=*/true);
    if (output.shape != shapes[i] || output.dtype != dtypes[i]) {
      throw py::value_error("output '" + std::string(name) + "' must be " + NameOf(dtypes[i]) + ToString(shapes[i]));
    }
    args.outputs()[i] = output;
  }
  void* const handle = OpenLibrary(library);
  const auto kernel = reinterpret_cast<KernelFn>(dlsym(handle, ("mst_kernel_" + op).c_str()));
  const auto begin = reinterpret_cast<LaunchBeginFn>(dlsym(handle, "mst_launch_begin"));
  if (kernel == nullptr) throw py::value_error("no operator '" + op + "' in " + library);
  const Platform platform = PlatformOf(soc);
  Status status = Status::Ok();
  {
    const py::gil_scoped_release release;
    status = RunOp(&args, platform, kernel, begin, checkValues);
  }
  ThrowIfError(status);
}

// An operator with its attributes, for the inference of one primitive.
class Op {
 public:
  Op(const std::string& name, const py::dict& attrs) : args_(OpOf(name)) { FillAttrs(attrs, &args_); }

  // (shape, dtype name) of every output; raises TypeError or ValueError. A dim of -1 and a shape of [-2] are unknown.
  py::list Infer(const py::sequence& shapes, const py::sequence& dtypes) const {
    OpArgs args = args_;
    const size_t count = args.inputs().size();
    if (shapes.size() != count) {
      throw py::type_error("For '" + std::string(args.desc().className) + "', the number of inputs must be " +
                           std::to_string(count) + ", but got " + std::to_string(shapes.size()) + ".");
    }
    for (size_t i = 0; i < count; ++i) {
      if (py::object(dtypes[i]).is_none()) continue;
      args.inputs()[i].dtype = DTypeOf(py::cast<std::string>(dtypes[i]).c_str());
      args.inputs()[i].shape = py::cast<Shape>(shapes[i]);
    }
    Check(&args);
    return mst::Infer(args);
  }

 private:
  OpArgs args_;
};

py::dict PlatformDict(const Platform& platform) {
  py::dict dict;
  dict["soc"] = platform.soc;
  dict["vectorCores"] = platform.vectorCores;
  dict["cubeCores"] = platform.cubeCores;
  dict["tasksPerCore"] = platform.tasksPerCore;
  dict["ubBytes"] = platform.ubBytes;
  dict["l1Bytes"] = platform.l1Bytes;
  dict["l0aBytes"] = platform.l0aBytes;
  dict["l0bBytes"] = platform.l0bBytes;
  dict["l0cBytes"] = platform.l0cBytes;
  dict["l2Bytes"] = platform.l2Bytes;
  dict["mhz"] = platform.mhz;
  return dict;
}

// The instruction levels that this CPU can run, best first.
std::vector<std::string> Levels() {
#if defined(__x86_64__)
  std::vector<std::string> levels;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    levels.push_back("avx512");
  }
  if (avx2) levels.push_back("avx2");
  return levels;
#else
  return {"neon"};
#endif
}

}  // namespace
}  // namespace mst

PYBIND11_MODULE(_native, m) {
  using mst::OpArgs;
  m.doc() = "Checks, shape inference, tiling and launches of the operators, without MindSpore.";
  m.def("ops", [] {
    std::vector<std::string> names;
    for (const mst::OpDesc* desc : mst::AllOps()) names.push_back(desc->name);
    return names;
  });
  m.def("digest", [](const std::string& op) { return mst::OpOf(op).digest; });
  m.def("levels", mst::Levels, "Instruction levels that this CPU can run, best first.");
  m.def("platforms", [] {
    py::dict all;
    for (const char* soc : {"cpu", "ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4"}) {
      all[soc] = mst::PlatformDict(mst::PlatformOf(soc));
    }
    return all;
  });
  m.def("num_threads", mst::PoolThreads);
  m.def("set_num_threads", mst::SetPoolThreads, "Threads of the pool; 0 is the default again.");
  m.def(
      "infer",
      [](const std::string& op, const py::sequence& inputs, const py::dict& attrs) {
        OpArgs args(mst::OpOf(op));
        mst::FillInputs(inputs, /*needsData=*/false, &args);
        mst::FillAttrs(attrs, &args);
        mst::Check(&args);
        return mst::Infer(args);
      },
      py::arg("op"), py::arg("inputs"), py::arg("attrs"),
      "[(shape, dtype)] of the outputs; inputs are arrays, (shape, dtype) or None. Raises what the checks find.");
  m.def("plan", mst::Plan, py::arg("op"), py::arg("inputs"), py::arg("attrs"), py::arg("platform") = "cpu",
        "The TilingData as a dict.");
  m.def("launch", mst::Launch, py::arg("library"), py::arg("op"), py::arg("inputs"), py::arg("attrs"),
        py::arg("outputs"), py::arg("platform") = "cpu", py::arg("check_values") = true,
        "Runs the op of a library file on NumPy arrays; outputs are written, and inputs that the op updates in place.");
  py::class_<mst::Op>(m, "Op")
      .def(py::init<const std::string&, const py::dict&>(), py::arg("name"), py::arg("attrs"))
      .def("infer", &mst::Op::Infer, py::arg("shapes"), py::arg("dtypes"));
}
