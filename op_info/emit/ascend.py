# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The Ascend side of an OpSpec: the text of its registration (op_host) and of its kernel entry (op_kernel) for CANN.

CANN compiles an entry once per dtype combination and defines DTYPE_<ARGUMENT> for each tensor, and once per tiling
key, which is the index of the variant. So the entry names every type by its macro and every variant by its key.
"""

from pathlib import Path

from ..spec import ALL, REQUIRED, SpecError
from . import cpu

KERNELS = "kernels"  # the include root that every kernel header is named from
CPU = "cpu"  # the target that CANN does not know
GE_TYPES = {
    "float32": "DT_FLOAT",
    "float16": "DT_FLOAT16",
    "bfloat16": "DT_BF16",
    "int8": "DT_INT8",
    "uint8": "DT_UINT8",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "bool": "DT_BOOL",
}
CPP_TYPES = {**cpu.CPP_TYPES, "bool": "bool"}  # CANN has a type of its own for bool tensors
_CORES = {
    "KERNEL_TYPE_AIV_ONLY": "kVector",
    "KERNEL_TYPE_MIX_AIV_1_0": "kVectorInStep",
    "KERNEL_TYPE_MIX_AIC_1_2": "kCubeAndVectors",
}


def op_type(spec):
    """The operator's name in CANN, which has a RmsNorm and more of its own: ours must not take their place."""
    return f"Mst{spec.class_name}"


def entry_name(spec):
    """What CANN derives from op_type: the name of the kernel function and of its file."""
    return f"mst_{spec.name}"


def api_name(spec):
    """The function that CANN generates for callers."""
    return f"aclnn{op_type(spec)}"


def socs(spec):
    """The Ascend targets of a spec."""
    return [target for target in spec.targets if target != CPU]


def updated(spec):
    """The inputs that are updated in place and always there: for CANN they are outputs too, under the same name.

    CANN's generator cannot do that with an optional one; the kernel updates such an input all the same.
    """
    return [tensor for tensor in spec.inputs if tensor.mutable and not tensor.optional]


def kernel_header(spec, kernels_dir):
    """Path of `<op>_kernel.h` relative to `kernels_dir`; a gradient lives in the folder of its operator."""
    header = f"{spec.family}/{spec.folder}/{spec.name}_kernel.h"
    if not Path(kernels_dir, header).is_file():
        raise FileNotFoundError(f"the spec '{spec.name}' needs the kernel {KERNELS}/{header}, which does not exist")
    return header


def dtype_macros(spec):
    """{dtype symbol: the DTYPE_ macro of the first input that has it}."""
    macros = {}
    for tensor in spec.inputs:
        if tensor.dtype in spec.dtypes:
            macros.setdefault(tensor.dtype, f"DTYPE_{tensor.name.upper()}")
    return {symbol: macros[symbol] for symbol in spec.dtypes}


def task_type(header_text):
    """Which cores a kernel runs on, read off what it uses."""
    if "matmul_intf.h" in header_text or "Matmul" in header_text:
        return "KERNEL_TYPE_MIX_AIC_1_2"
    if "SyncAll" in header_text:
        return "KERNEL_TYPE_MIX_AIV_1_0"
    return "KERNEL_TYPE_AIV_ONLY"


def waits_for_all_cores(spec, kernels_dir):
    """Whether the kernel calls SyncAll: then every core of a launch on the CPU needs a thread."""
    return "SyncAll(" in Path(kernels_dir, kernel_header(spec, kernels_dir)).read_text()


def kernel_entry(spec, kernels_dir):
    """Text of the .cpp that CANN compiles for `spec`."""
    header = kernel_header(spec, kernels_dir)
    header_text = Path(kernels_dir, header).read_text()
    symbols = dtype_macros(spec)
    tensors = [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
    again = [f"{tensor.name}_again" for tensor in updated(spec)]
    tiling = f"mst::{spec.class_name}TilingData"
    types = [_storage(spec, symbol, macro) for symbol, macro in symbols.items()]

    def call(variant=None):
        parameters = types + ([] if variant is None else [str(variant)])
        brackets = f"<{', '.join(parameters)}>" if parameters else ""
        return f"mst::{spec.class_name}Run{brackets}({', '.join(tensors)}, userWorkspace, &tilingData);"

    if spec.variants:
        keys = [f"if (TILING_KEY_IS({i})) {{  // {name}\n    {call(i)}\n  }}" for i, name in enumerate(spec.variants)]
        body = " else ".join(keys)
    else:
        body = call()
    names = [*(tensor.name for tensor in spec.inputs), *again, *(tensor.name for tensor in spec.outputs)]
    parameters = ", ".join(f"GM_ADDR {name}" for name in (*names, "workspace", "tiling"))
    helper = _BOOL_STORAGE if any("bool" in columns for columns in spec.dtypes.values()) else ""
    for symbol, macro in symbols.items():
        if all(tensor.optional for tensor in spec.inputs if tensor.dtype == symbol):
            helper += f"""
#ifndef {macro}  // CANN defines none for an absent input
#define {macro} {CPP_TYPES[spec.dtypes[symbol][0]]}
#endif
"""
    return f"""\
// Generated from op_info/{spec.family}/{spec.folder}.py: kernel entry of {spec.class_name}.
#include "kernel_operator.h"

#include "{header}"
{helper}
extern "C" __global__ __aicore__ void {entry_name(spec)}({parameters}) {{
  KERNEL_TASK_TYPE_DEFAULT({task_type(header_text)});
  REGISTER_TILING_DEFAULT({tiling});
  GET_TILING_DATA_WITH_STRUCT({tiling}, tilingData, tiling);
  if (tilingData.head.cores == 0) return;
  GM_ADDR userWorkspace = AscendC::GetUserWorkspace(workspace);
  {body}
}}
"""


_BOOL_STORAGE = """
#ifndef MST_BOOL_STORAGE
#define MST_BOOL_STORAGE
namespace mst {  // kernels read a bool tensor as bytes
template <typename T>
struct StorageOf {
  using Type = T;
};
template <>
struct StorageOf<bool> {
  using Type = uint8_t;
};
}  // namespace mst
#endif
"""


def _storage(spec, symbol, macro):
    return f"mst::StorageOf<{macro}>::Type" if "bool" in spec.dtypes[symbol] else macro


def _params(owner, role, tensor, spec, columns):
    """The declaration of one tensor for the given columns of dtypes."""
    kind = "OPTIONAL" if tensor.optional else "REQUIRED"
    types = ", ".join(f"ge::{GE_TYPES[spec.dtype_of(tensor, column)]}" for column in columns)
    formats = f"std::vector<ge::Format>({len(columns)}, ge::FORMAT_ND)"
    extra = ""
    if role == "Input" and tensor.host:
        extra = f"\n        .ValueDepend({kind})"
    elif role == "Input" and not (tensor.mutable and tensor.optional):  # a contiguous copy would be updated instead
        extra = "\n        .AutoContiguous()"
    return f"""\
    {owner}{role}("{tensor.name}")
        .ParamType({kind})
        .DataType({{{types}}})
        .Format({formats})
        .UnknownShapeFormat({formats}){extra};
"""


def _tensors(owner, spec, columns):
    inputs = [_params(owner, "Input", tensor, spec, columns) for tensor in spec.inputs]
    return "".join(inputs + [_params(owner, "Output", t, spec, columns) for t in (*updated(spec), *spec.outputs)])


def _attr(attr):
    method = {int: "Int", float: "Float", bool: "Bool", str: "String"}[attr.type]
    if attr.default == REQUIRED:
        return f'    Attr("{attr.name}").AttrType(REQUIRED).{method}();\n'
    text = {int: str, float: lambda x: f"{x}f", bool: lambda x: str(x).lower(), str: lambda x: f'"{x}"'}
    return f'    Attr("{attr.name}").AttrType(OPTIONAL).{method}({text[attr.type](attr.default)});\n'


def _configs(spec):
    """One AddConfig per SoC; one that takes only some columns declares its tensors again."""
    lines = []
    for soc in socs(spec):
        if spec.targets[soc] == ALL:
            lines.append(f'    AICore().AddConfig("{soc}");\n')
        else:
            lines.append(f"    OpAICoreConfig {soc};\n{_tensors(f'{soc}.', spec, spec.targets[soc])}")
            lines.append(f'    AICore().AddConfig("{soc}", {soc});\n')
    return "".join(lines)


def op_host_text(spec, kernels_dir=cpu.KERNELS):
    """Text of the .cpp that registers an operator with CANN: what it takes, its inference and its tiling."""
    if not socs(spec):
        raise SpecError(f"op_info of '{spec.name}': it has no Ascend target")
    cores = _CORES[task_type(Path(kernels_dir, kernel_header(spec, kernels_dir)).read_text())]
    name = op_type(spec)
    return f"""\
// Generated from op_info/{spec.family}/{spec.folder}.py: registration of {spec.class_name}.
#include "common/ascend_host.h"

namespace ops {{

class {name} : public OpDef {{
 public:
  explicit {name}(const char* name) : OpDef(name) {{
{_tensors("", spec, range(spec.num_columns))}{"".join(map(_attr, spec.attrs))}
    SetInferShape([](gert::InferShapeContext* context) {{ return mst::AscendInferShape("{spec.name}", context); }});
    SetInferDataType([](gert::InferDataTypeContext* context) {{
      return mst::AscendInferDataType("{spec.name}", context);
    }});
    AICore().SetTiling([](gert::TilingContext* context) {{
      return mst::AscendTiling("{spec.name}", mst::KernelCores::{cores}, context);
    }});
{_configs(spec)}  }}
}};

OP_ADD({name});

}}  // namespace ops
"""


def types_text():
    """ascend_types.h: the types of tensors, ours and CANN's."""
    rows = "".join(f"    {{DType::{cpu.ENUMS[dtype]}, ge::{ge_type}}},\n" for dtype, ge_type in GE_TYPES.items())
    return f"""\
// Generated from op_info/emit/ascend.py.
#pragma once
#include <utility>

#include "common/dtype.h"
#include "graph/types.h"

namespace mst {{

constexpr std::pair<DType, ge::DataType> kGeTypes[] = {{
{rows}}};

}}  // namespace mst
"""
