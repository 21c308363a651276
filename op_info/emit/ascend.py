# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The Ascend side of an OpSpec: for now the text of the kernel entry that CANN compiles.

CANN compiles an entry once per dtype combination and defines DTYPE_<ARGUMENT> for each tensor, and once per tiling
key, which is the index of the variant. So the entry names every type by its macro and every variant by its key.
"""

from pathlib import Path

KERNELS = "kernels"  # the include root that every kernel header is named from


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


def kernel_entry(spec, kernels_dir):
    """Text of the .cpp that CANN compiles for `spec`."""
    header = kernel_header(spec, kernels_dir)
    header_text = Path(kernels_dir, header).read_text()
    symbols = dtype_macros(spec)
    tensors = [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
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
    parameters = ", ".join(f"GM_ADDR {name}" for name in (*tensors, "workspace", "tiling"))
    helper = _BOOL_STORAGE if any("bool" in columns for columns in spec.dtypes.values()) else ""
    return f"""\
// Kernel entry of {spec.class_name}, generated from op_info/{spec.family}/. Do not edit.
#include "kernel_operator.h"

#include "{header}"
{helper}
extern "C" __global__ __aicore__ void {spec.name}({parameters}) {{
  KERNEL_TASK_TYPE_DEFAULT({task_type(header_text)});
  REGISTER_TILING_DEFAULT({tiling});
  GET_TILING_DATA_WITH_STRUCT({tiling}, tilingData, tiling);
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
