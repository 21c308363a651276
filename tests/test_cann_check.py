# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""`op_info check`: header trees are found, entries are generated, errors of a kernel are told, and so is what did not
run."""

import dataclasses
import pathlib

import pytest

from ms_ops_transformer.op_info import cann_check, device_check, registry
from ms_ops_transformer.op_info.emit import ascend
from ms_ops_transformer.op_info.report import Report
from ms_ops_transformer.op_info.spec import ALL, OpSpec, Tensor

KERNELS = pathlib.Path(__file__).parents[1] / "kernels"

# Just enough of the real headers' shape and names for the entry of the toy kernel below.
OPERATOR_H = """\
#pragma once
#include <cstdint>
#include <cstring>
using GM_ADDR = __gm__ uint8_t*;
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define REGISTER_TILING_DEFAULT(type)
#define TILING_KEY_IS(key) ((key) == 0)
namespace AscendC {
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }
#ifdef ASCENDC_CPU_DEBUG
template <typename T> using LocalAddress = T*;
#else
template <typename T> using LocalAddress = uint64_t;
#endif
template <typename T> struct GlobalTensor {
  void SetGlobalBuffer(__gm__ T* buffer);
  const __gm__ T* GetPhyAddr() const;
};
template <typename T> struct LocalTensor {
  T GetValue(uint32_t index) const;
  LocalAddress<T> GetPhyAddr() const;
};
}
"""
DEBUG_H = """\
#pragma once
#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cb__
#define __cbuf__
#ifndef ASCENDC_FP16_H
struct half {};
struct bfloat16_t {};
#endif
"""
INTRINSICS_H = """\
#pragma once
enum addr_cal_mode_t { inc };
void copy_gm_to_ubuf(__ubuf__ void* dst, __gm__ void* src);
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
    _write(debug / "tikicpulib.h", '#include "stub_def.h"\n#include "stub_fun.h"\n')
    _write(debug / "stub_def.h", DEBUG_H)
    _write(debug / "stub_fun.h", INTRINSICS_H)
    _write(debug / "kern_fwk.h", "")
    _write(tmp_path / "cann" / "version.info", "Version=8.9.1\n")
    return tmp_path / "cann"


def _kernel(tmp_path, body):
    _write(tmp_path / "kernels" / "common" / "ascend_host.cpp", "")
    _write(tmp_path / "kernels" / "moe" / "toy" / "toy_kernel.h", KERNEL_H.replace("BODY", body))
    return tmp_path / "kernels"


def _check(tmp_path, directories, body="", spec=SPEC):
    """The report on the toy kernel, and its lines."""
    lines = []
    report = Report(lines.append)
    cann_check.run([spec], _kernel(tmp_path, body), [str(directory) for directory in directories], report)
    return report, lines


def _verdicts(lines):
    """{mode: verdict} of the toy's entries."""
    rows = [line.split(" mode", 1) for line in lines if "4 entries" in line]
    return {left.split()[-1]: verdict.strip() for left, verdict in rows}


@pytest.fixture(scope="module", autouse=True)
def clang():
    assert device_check.compiler(), f"{device_check.MISSING}: apt-get install clang-19"


def test_a_kernel_that_compiles(tmp_path, tree):
    _, lines = _check(tmp_path, [tree])
    assert any("CANN 8.9.1" in line for line in lines)
    assert _verdicts(lines) == {"CPU": "ok", "device": "ok"}
    programs = [line.split() for line in lines if line.startswith("  device mode ")]
    assert {line[-1] for line in programs} == {"ok"} and len(programs) == 1 + len(device_check.REFUSED)


def test_a_kernel_that_does_not(tmp_path, tree):
    report, lines = _check(tmp_path, [tree], "AscendC::Add(x, y, y);")
    assert _verdicts(lines) == {"CPU": "FAIL", "device": "FAIL"} and report.counts["FAIL"] == 2
    assert any("error" in line and "Add" in line for line in lines)


@pytest.mark.parametrize("statements", device_check.REFUSED.values(), ids=list(device_check.REFUSED))
def test_a_kernel_that_mixes_address_spaces(tmp_path, tree, statements):
    _, lines = _check(tmp_path, [tree], f"{{ using namespace AscendC; {device_check.OPERANDS} {statements} }}")
    assert _verdicts(lines) == {"CPU": "ok", "device": "FAIL"}
    assert any("toy_kernel.h" in line and "error" in line for line in lines)


def test_an_intrinsic_with_the_wrong_address_space(tmp_path, tree):
    _, lines = _check(tmp_path, [tree], "copy_gm_to_ubuf(x, y);")
    assert _verdicts(lines) == {"CPU": "ok", "device": "FAIL"}


def test_errors_of_the_headers_alone_are_set_aside(tmp_path, tree):
    header = next(tree.rglob("kernel_operator.h"))
    header.write_text(header.read_text() + "inline void Intrinsic() { unknown(); }\n")
    _, lines = _check(tmp_path, [tree])
    assert _verdicts(lines) == {"CPU": "FAIL", "device": "ok"}
    assert any("device mode: 1 errors that the headers have by themselves are set aside" in line for line in lines)
    assert _verdicts(_check(tmp_path, [tree], "unknown();")[1])["device"] == "FAIL"


def test_a_mode_that_refuses_nothing_fails(tmp_path, tree, monkeypatch):
    monkeypatch.setattr(device_check, "_SPACES", ())
    report, lines = _check(tmp_path, [tree])
    assert any("refuses a pointer to GM as a plain one  FAIL" in line for line in lines)
    assert report.counts["FAIL"] >= 4


def test_without_clang_device_mode_is_not_run(tmp_path, tree, monkeypatch):
    monkeypatch.setattr(device_check, "compiler", lambda: None)
    report, lines = _check(tmp_path, [tree])
    assert _verdicts(lines) == {"CPU": "ok", "device": "not run: clang++ 17 or newer is missing"}
    assert not report.sound


def test_registrations_without_headers_are_not_run(tmp_path, tree):
    report, lines = _check(tmp_path, [tree])
    for name in ("ascend_host.cpp", "mst_toy.cpp"):
        assert any(name in line and "not run: register/op_def_registry.h" in line for line in lines)
    assert report.counts == {"ok": 12, "FAIL": 0, "not run": 2} and not report.sound
    assert report.summary() == "12 ok, 0 FAIL, 2 not run"


def test_a_soc_that_the_headers_do_not_know(tmp_path, tree):
    spec = dataclasses.replace(SPEC, targets={"ascend910b": ALL, "ascend950": ALL})
    _, lines = _check(tmp_path, [tree], spec=spec)
    assert any("4 entries, ascend910b, CPU mode     ok" in line for line in lines)
    assert any("4 entries, ascend950, CPU mode     not run: CANN 8.9.1 does not know" in line for line in lines)


def test_headers_that_are_missing(tmp_path, tree):
    (tree / "tools" / "tikicpulib" / "lib" / "include" / "stub_fun.h").unlink()
    report, lines = _check(tmp_path, [tree])
    assert any("not run: stub_fun.h" in line and "--cann" in line for line in lines) and not report.sound


def test_no_headers_at_all(tmp_path):
    report, lines = _check(tmp_path, [tmp_path])
    assert any("not run: no Ascend C headers" in line for line in lines) and not report.sound


def test_the_search_ends_somewhere_and_says_so(tmp_path):
    for folders in ("abcdefgh", "abcdefghi"):
        tmp_path.joinpath(folders[-1], *folders[:-1]).mkdir(parents=True)
        tmp_path.joinpath(folders[-1], *folders[:-1], "kernel_operator.h").touch()
    assert cann_check._locate([tmp_path])["kernel_operator.h"] == [
        tmp_path.joinpath("h", *"abcdefg", "kernel_operator.h")
    ]
    _, lines = _check(tmp_path, [tmp_path])
    assert f"Searching {tmp_path} for Ascend C headers, 8 folders deep" in lines


def test_a_spec_without_kernel(tmp_path):
    lines = []
    report = Report(lines.append)
    cann_check.run([SPEC], tmp_path, (), report)
    assert any("moe/toy/toy_kernel.h" in line for line in lines) and report.counts["FAIL"] == 1
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
