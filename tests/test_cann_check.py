# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""`op_info check`: header trees are found, entries are generated and an error of a kernel is reported."""

import pathlib

import pytest

from ms_ops_transformer.op_info import cann_check, registry
from ms_ops_transformer.op_info.emit import ascend
from ms_ops_transformer.op_info.spec import ALL, OpSpec, Tensor

KERNELS = pathlib.Path(__file__).parents[1] / "kernels"

# Just enough of the real headers' shape and names for the entry of the toy kernel below.
OPERATOR_H = """\
#pragma once
#include <cstdint>
#include <cstring>
using GM_ADDR = uint8_t*;
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define REGISTER_TILING_DEFAULT(type)
#define TILING_KEY_IS(key) ((key) == 0)
namespace AscendC {
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }
}
"""
DEBUG_H = """\
#pragma once
#define __aicore__
#define __global__
struct half {};
struct bfloat16_t {};
"""
KERNEL_H = """\
#pragma once
#include "kernel_operator.h"
namespace mst {
struct ToyTilingData { struct { int32_t cores; } head; int64_t rows; };
template <typename X, typename M, int32_t kVariant>
inline void ToyRun(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace, const ToyTilingData* tiling) {
  static_assert(sizeof(M) == 1, "");
  BODY
}
}
"""
SPEC = OpSpec(
    name="toy",
    inputs=(Tensor("x", "... D", "X"), Tensor("mask", "D", "M", optional=True)),
    outputs=(Tensor("y", "... D", "X"),),
    dtypes={"X": ("float16", "float32"), "M": ("bool", "uint8")},
    targets={"ascend910b": ALL},
    variants=("whole", "split"),
    family="moe",
    folder="toy",
)


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """A CANN 8.x toolkit in small."""
    api = tmp_path / "cann" / "x86_64-linux" / "ascendc" / "include"
    _write(api / "basic_api" / "kernel_operator.h", OPERATOR_H)
    _write(api / "basic_api" / "interface" / "any.h", "")
    _write(api / "highlevel_api" / "lib" / "matmul" / "matmul_intf.h", "#pragma once\n")
    debug = tmp_path / "cann" / "tools" / "tikicpulib" / "lib" / "include"
    _write(debug / "tikicpulib.h", DEBUG_H)
    _write(debug / "stub_fun.h", "")
    _write(debug / "kern_fwk.h", "")
    _write(tmp_path / "cann" / "version.info", "Version=8.9.1\n")
    return tmp_path / "cann"


def _kernel(tmp_path, body):
    _write(tmp_path / "kernels" / "moe" / "toy" / "toy_kernel.h", KERNEL_H.replace("BODY", body))
    return tmp_path / "kernels"


def test_a_kernel_that_compiles(tmp_path, tree):
    lines = []
    assert cann_check.run([SPEC], _kernel(tmp_path, ""), [str(tree)], lines.append) == 0
    assert any("CANN 8.9.1" in line for line in lines)
    assert any(line.split() == ["toy", "4", "entries", "ok"] for line in lines)
    assert any("registrations were not checked: register/op_def_registry.h" in line for line in lines)


def test_a_kernel_that_does_not(tmp_path, tree):
    lines = []
    assert cann_check.run([SPEC], _kernel(tmp_path, "AscendC::Add(x, y, y);"), [str(tree)], lines.append) == 1
    assert any("FAIL" in line for line in lines)
    assert any("error" in line and "Add" in line for line in lines)


def test_headers_that_are_missing(tmp_path, tree):
    (tree / "tools" / "tikicpulib" / "lib" / "include" / "stub_fun.h").unlink()
    lines = []
    assert cann_check.run([SPEC], _kernel(tmp_path, ""), [str(tree)], lines.append) == 1
    assert any("stub_fun.h" in line and "--cann" in line for line in lines)


def test_no_headers_at_all(tmp_path):
    lines = []
    assert cann_check.run([SPEC], _kernel(tmp_path, ""), [str(tmp_path)], lines.append) == 1
    assert any("No Ascend C headers" in line for line in lines)


def test_a_spec_without_kernel(tmp_path):
    lines = []
    assert cann_check.run([SPEC], tmp_path, (), lines.append) == 1
    assert any("moe/toy/toy_kernel.h" in line for line in lines)
    assert any("Headers were not checked" in line for line in lines)


def test_entry_names_types_and_variants(tmp_path):
    text = ascend.kernel_entry(SPEC, _kernel(tmp_path, ""))
    assert 'extern "C" __global__ __aicore__ void mst_toy(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace' in text
    assert "ToyRun<DTYPE_X, mst::StorageOf<DTYPE_MASK>::Type, 1>(x, mask, y, userWorkspace, &tilingData)" in text


@pytest.mark.parametrize("name", list(registry.all_specs()))
def test_every_operator_has_an_entry(name):
    text = ascend.kernel_entry(registry.get(name), KERNELS)
    inside = text[text.index('extern "C"') :]
    assert "KERNEL_TASK_TYPE_DEFAULT" in inside, "at file scope it is unknown to CANN 8"
