# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The C++ text that the CPU build generates from a spec: the description of the op for the runtime library, and the
entry points of each instruction-level library that MindSpore's loader looks up."""

import pathlib
import re

from ..spec import SpecError

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels"
_HEAD = KERNELS / "common" / "tiling_head.h"

CPP_TYPES = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}
ENUMS = {
    "float32": "kFloat32",
    "float16": "kFloat16",
    "bfloat16": "kBFloat16",
    "int8": "kInt8",
    "uint8": "kUint8",
    "int32": "kInt32",
    "int64": "kInt64",
    "bool": "kBool",
}
_FIELD_CODES = {"int32_t": "i", "int64_t": "l", "float": "f", "double": "d", "bool": "b"}
_FIELD = re.compile(r"\s*([A-Za-z_][\w:]*)\s+([A-Za-z_]\w*)\s*(\[[^\]]*\])?\s*(?:=[^;]*|\{[^;]*\})?;")


def struct_fields(spec, struct, kernels=KERNELS):
    """The (type, name, is_array) of a plain struct in <op>_tiling.h, in order."""
    return _fields_in(kernels / spec.family / spec.folder / f"{spec.folder}_tiling.h", struct)


def _fields_in(path, struct):
    text = re.sub(r"//[^\n]*", "", path.read_text())
    alias = re.search(rf"using {struct} = (\w+);", text)
    match = re.search(rf"struct {alias[1] if alias else struct} \{{(.*?)^\}};", text, re.S | re.M)
    if not match:
        raise SpecError(f"{path.name} has no struct {struct}")
    fields = []
    for line in filter(str.strip, match[1].splitlines()):
        field = _FIELD.fullmatch(line.rstrip())
        if not field:
            raise SpecError(f"{path.name}: a field of {struct} must be a plain declaration, but got '{line.strip()}'")
        fields.append((field[1], field[2], field[3] is not None))
    return fields


def _field_table(spec, struct, kernels):
    """Initialisers of FieldDesc; of the head, or another struct of the same file, its members."""
    rows = []
    text = (kernels / spec.family / spec.folder / f"{spec.folder}_tiling.h").read_text()
    for ctype, name, is_array in struct_fields(spec, struct, kernels):
        if ctype == "TilingHead" or f"struct {ctype} {{" in text:
            is_head = ctype == "TilingHead"
            inner = _fields_in(_HEAD, ctype) if is_head else struct_fields(spec, ctype, kernels)
            rows += [
                f"{{\"{member}\", '{_FIELD_CODES[mtype]}', "
                f"offsetof({struct}, {name}) + offsetof({ctype}, {member}), 1}}"
                for mtype, member, _ in inner
                if mtype in _FIELD_CODES
            ]
        elif ctype in _FIELD_CODES:
            count = f"sizeof({struct}::{name}) / sizeof({ctype})" if is_array else "1"
            rows.append(f"{{\"{name}\", '{_FIELD_CODES[ctype]}', offsetof({struct}, {name}), {count}}}")
        elif struct.endswith("TilingData"):
            raise SpecError(f"field '{name}' of {struct} must be int32_t, int64_t or float, but is {ctype}")
    return rows


def _braced(rows, indent="    "):
    return "{\n" + "".join(f"{indent}    {row},\n" for row in rows) + f"{indent}}}"


def _bool(value):
    return "true" if value else "false"


def _tensor(tensor):
    flags = ", ".join(_bool(flag) for flag in (tensor.optional, tensor.mutable, tensor.host))
    return f'{{"{tensor.name}", "{tensor.dims}", "{tensor.dtype}", {flags}}}'


def desc_text(spec, kernels=KERNELS):
    """<op>_desc.cpp of the runtime library."""
    cls = spec.class_name
    columns = [
        "{" + ", ".join(f"DType::{ENUMS[dtypes[column]]}" for dtypes in spec.dtypes.values()) + "}"
        for column in range(spec.num_columns)
    ]
    codes = {int: "i", float: "f", bool: "b", str: "s"}
    attrs = [f"{{\"{attr.name}\", '{codes[attr.type]}'}}" for attr in spec.attrs]
    symbols = ", ".join(f'"{symbol}"' for symbol in spec.dtypes)
    check_values = f"Status {cls}CheckValues(const OpArgs& args);\n" if spec.value_check else ""
    infer = (
        f"Status {cls}InferShape(const OpArgs& args, std::vector<Shape>* outputs);\n" if spec.infer == "custom" else ""
    )
    return f"""// Generated from op_info/{spec.family}/{spec.folder}.py.
#include <cstddef>
#include <new>

#include "common/op_args.h"
#include "{spec.family}/{spec.folder}/{spec.folder}_tiling.h"

namespace mst {{

Status {cls}ProblemOf(const OpArgs& args, {cls}Problem* problem);
Status {cls}Tiling(const {cls}Problem& problem, const Platform& platform, {cls}TilingData* tiling);
{check_values}{infer}
namespace {{

const std::vector<FieldDesc> kProblemFields = {_braced(_field_table(spec, cls + "Problem", kernels), "")};

Status Check(const OpArgs& args) {{
  {cls}Problem problem{{}};
  return {cls}ProblemOf(args, &problem);
}}

extern const OpDesc kDesc;

Status Plan(const OpArgs& args, const Platform& platform, void* tilingData) {{
  {cls}Problem problem{{}};
  MST_RETURN_IF_ERROR({cls}ProblemOf(args, &problem));
  auto* tiling = new (tilingData) {cls}TilingData{{}};
  MST_RETURN_IF_ERROR({cls}Tiling(problem, platform, tiling));
  if (LogsTiling()) {{
    LogTiling(kDesc, platform, ToString(kProblemFields, &problem), ToString(kDesc.tilingFields, tiling));
  }}
  return Status::Ok();
}}

const OpDesc kDesc = {{
    "{spec.name}",
    "{cls}",
    /*inputs=*/{_braced([_tensor(tensor) for tensor in spec.inputs])},
    /*outputs=*/{_braced([_tensor(tensor) for tensor in spec.outputs])},
    /*attrs=*/{_braced(attrs)},
    /*dtypeSymbols=*/{{{symbols}}},
    /*dtypeColumns=*/{_braced(columns)},
    /*digest=*/"{spec.digest}",
    sizeof({cls}TilingData),
    /*tilingFields=*/{_braced(_field_table(spec, cls + "TilingData", kernels))},
    Check,
    Plan,
    /*checkValues=*/{cls + "CheckValues" if spec.value_check else "nullptr"},
    /*inferShapes=*/{cls + "InferShape" if spec.infer == "custom" else "nullptr"},
}};

const bool kRegistered = RegisterOp(&kDesc);

}}  // namespace
}}  // namespace mst
"""


def _kernel_switch(spec, indent):
    """One case per distinct list of C++ types; columns that differ in host types only share it."""
    count = len(spec.inputs) + len(spec.outputs)
    arguments = ", ".join(f"at(gm[{i}])" for i in range(count))
    cases = {}
    for column in range(spec.num_columns):
        types = tuple(CPP_TYPES[dtypes[column]] for dtypes in spec.dtypes.values())
        cases.setdefault(types, []).append(column)
    lines = []
    for types, columns in cases.items():
        lines += [f"{indent}case {column}:" for column in columns]
        for variant in range(max(1, len(spec.variants))):
            parameters = ", ".join(types + ((str(variant),) if spec.variants else ()))
            call = f"{spec.class_name}Run{f'<{parameters}>' if parameters else ''}({arguments}, at(workspace), tiling)"
            if spec.variants:
                lines.append(
                    f"{indent}  if (tiling->head.variant == {variant}) return {call};  // {spec.variants[variant]}"
                )
            else:
                lines.append(f"{indent}  return {call};")
        if spec.variants:
            lines.append(f"{indent}  break;")
    return "\n".join(lines)


def entry_text(spec):
    """<op>_cpu.cpp of each instruction-level library."""
    cls = spec.class_name
    shape_type = "std::vector<int64_t>" if len(spec.outputs) == 1 else "std::vector<std::vector<int64_t>>"
    pick = "[0]" if len(spec.outputs) == 1 else ""
    return f"""// Generated from op_info/{spec.family}/{spec.folder}.py.
#include "{spec.family}/{spec.folder}/{spec.name}_kernel.h"

#include "common/cpu_entry.h"

namespace mst {{

// Runs the calling logical core's part. gm: inputs, then outputs; column: which combination of dtypes.
extern "C" void mst_kernel_{spec.name}(int column, void** gm, void* workspace, const void* tilingData) {{
  const auto at = [](void* data) {{ return static_cast<GM_ADDR>(data); }};
  const auto* tiling = static_cast<const {cls}TilingData*>(tilingData);
  switch (column) {{
{_kernel_switch(spec, "    ")}
  }}
  KernelMissing("{spec.name}", column, tiling->head.variant);
}}

}}  // namespace mst

extern "C" int {cls}Init(int* /*ndims*/, int64_t** /*shapes*/, const char** /*dtypes*/, AotExtra* extra) {{
  return mst::AotInit("{spec.name}", extra);
}}

extern "C" {shape_type} {cls}InferShape(int* ndims, int64_t** shapes, AotExtra* extra) {{
  return mst::AotInferShape("{spec.name}", ndims, shapes, extra){pick};
}}

extern "C" int {cls}(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* /*stream*/,
    void* extra) {{
  return mst::AotLaunch(mst::mst_kernel_{spec.name}, nparam, params, ndims, shapes, dtypes,
      static_cast<AotExtra*>(extra));
}}
"""


# Exported by the checked library: it is told the buffers of a launch, the mutation test asks it for places, `op_info
# cost` for times.
CHECKED_EXPORTS = "mst_launch_begin; mst_check_*; mst_cost_*;"


def exported_symbols(spec):
    """What an instruction-level library exports for an op."""
    cls = spec.class_name
    return (f"mst_kernel_{spec.name}", cls, f"{cls}Init", f"{cls}InferShape")
