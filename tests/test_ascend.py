# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The side for the card, as far as it can be run without one: generated text, the staged project, its build with a
stand-in for cmake, what is registered with MindSpore, and the environment."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from all_cases import modules
from mindspore.ops.operations import custom_ops

import ms_ops_transformer as mst
from ms_ops_transformer.op_info import ascend_package, host_check
from ms_ops_transformer.op_info.emit import ascend, ascend_project, cpu
from ms_ops_transformer.op_info.registry import all_specs, get
from ms_ops_transformer.op_info.spec import ALL, Attr, OpSpec, SpecError, Tensor
from ms_ops_transformer.ops import _custom

ROOT = pathlib.Path(__file__).parents[1]
SPECS = list(all_specs().values())
CANN_HEADERS = ("kernel_operator.h", "lib/matmul_intf.h", "kernel_tiling/kernel_tiling.h")

# ---- generated text


def test_registration_of_the_toy(tmp_path):
    (tmp_path / "moe" / "toy").mkdir(parents=True)
    (tmp_path / "moe" / "toy" / "toy_kernel.h").write_text("SyncAll();")
    spec = OpSpec(
        name="toy",
        inputs=(
            Tensor("x", "... D", "X"),
            Tensor("cache", "D", "X", mutable=True),
            Tensor("lengths", "D", "int64", optional=True, host=True),
        ),
        outputs=(Tensor("y", "... D", "X"),),
        attrs=(Attr("count", int), Attr("scale", float, default=0.5), Attr("mode", str, default="a")),
        dtypes={"X": ("float16", "bool")},
        targets={"ascend910b": ALL, "ascend950": (1,), "cpu": ALL},
        family="moe",
        folder="toy",
    )
    text = ascend.op_host_text(spec, tmp_path)
    inputs, config = text.split("    OpAICoreConfig ascend950;")
    assert "class MstToy : public OpDef" in text and "OP_ADD(MstToy);" in text
    assert re.findall(r'(Input|Output)\("(\w+)"\)', inputs) == [
        ("Input", "x"), ("Input", "cache"), ("Input", "lengths"), ("Output", "cache"), ("Output", "y"),
    ]  # fmt: skip
    half, boolean = ascend.GE_TYPES["float16"], ascend.GE_TYPES["bool"]
    assert f"{{ge::{half}, ge::{boolean}}}" in inputs and "std::vector<ge::Format>(2, " in inputs
    assert re.search(r'Input\("lengths"\)\s+\.ParamType\(OPTIONAL\)[^;]*\.ValueDepend\(OPTIONAL\);', inputs)
    assert 'Attr("count").AttrType(REQUIRED).Int();' in inputs
    assert 'Attr("scale").AttrType(OPTIONAL).Float(0.5f);' in inputs
    assert 'Attr("mode").AttrType(OPTIONAL).String("a");' in inputs
    assert 'mst::AscendTiling("toy", mst::KernelCores::kVectorInStep, context)' in inputs
    assert 'AddConfig("ascend910b");' in inputs and 'AddConfig("ascend950", ascend950);' in config
    assert half not in config and boolean in config
    assert "GM_ADDR x, GM_ADDR cache, GM_ADDR lengths, GM_ADDR cache_again, GM_ADDR y" in ascend.kernel_entry(
        spec, tmp_path
    )


def test_a_spec_for_the_cpu_alone_has_no_registration():
    spec = OpSpec(name="toy", inputs=(Tensor("x", "D", "int8"),), outputs=(Tensor("y", "D", "int8"),), targets={})
    with pytest.raises(SpecError, match="toy.*no Ascend target"):
        ascend.op_host_text(spec)


def test_an_absent_optional_input_still_has_a_type():
    text = ascend.kernel_entry(get("flash_attention_score"), cpu.KERNELS)
    assert "#ifndef DTYPE_ATTN_MASK" in text and "#ifndef DTYPE_QUERY" not in text


def test_host_files_are_reported_one_by_one(tmp_path):
    host = host_check.HostTree((), ())
    good = {"a.cpp": "int a;", "b.cpp": "int b;"}
    assert host_check.compile_host(good, host, tmp_path, tmp_path) == {"a.cpp": "", "b.cpp": ""}
    bad = {**good, "c.cpp": "#ifdef OP_TILING_LIB\nint c = missing;\n#endif"}
    errors = host_check.compile_host(bad, host, tmp_path, tmp_path)
    assert not errors["a.cpp"] and not errors["b.cpp"] and "missing" in errors["c.cpp"]


# ---- the project and its build


def _toolkit(home, kind):
    if kind == ascend_project.ASC:
        path = home / ascend_project.ASC_FILE
        path.parent.mkdir(parents=True)
        path.write_text("")
    else:
        (home / ascend_project.TEMPLATE_FOLDER / "cmake" / "util").mkdir(parents=True)
        (home / ascend_project.TEMPLATE_FOLDER / "cmake" / "func.cmake").write_text("# CANN's\n")
    return home


@pytest.mark.parametrize("kind", [ascend_project.ASC, ascend_project.TEMPLATE])
def test_staged_project_is_whole(tmp_path, kind):
    home, out = _toolkit(tmp_path / "home", kind), tmp_path / "out"
    ascend_package.stage(home, out)
    variables = json.loads((out / "CMakePresets.json").read_text())["configurePresets"][0]["cacheVariables"]
    assert variables["ASCEND_COMPUTE_UNIT"] == "ascend910b" and variables["ASCEND_CANN_PACKAGE_PATH"] == str(home)
    assert ("find_package(ASC" in (out / "CMakeLists.txt").read_text()) == (kind == ascend_project.ASC)
    assert (out / "cmake" / "func.cmake").exists() == (kind == ascend_project.TEMPLATE)
    for spec in SPECS:
        assert (out / "op_host" / f"mst_{spec.name}.cpp").is_file()
        assert (out / "op_host" / "mst" / f"{spec.name}_desc.cpp").is_file()
        assert (out / "op_kernel" / f"mst_{spec.name}.cpp").is_file()
    # CANN compiles kernels without an include root: whatever is ours must be found from the file that includes it.
    for path in (out / "op_kernel").rglob("*.[hc]*"):
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            assert (path.parent / name).is_file() or name in CANN_HEADERS, (path, name)


def test_a_wrong_toolkit_is_told(tmp_path):
    with pytest.raises(ascend_package.BuildError, match=f"ASCEND_HOME_PATH.* must name.*{tmp_path} has neither"):
        ascend_package.build(tmp_path, tmp_path / "work", tmp_path / "target")
    env = {**os.environ, "ASCEND_HOME_PATH": str(tmp_path)}
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode != 0 and "must name a CANN toolkit" in done.stderr


CMAKE = """\
#!/bin/sh
echo "$ASCEND_HOME_PATH $*" >> "$PWD/../calls"
if [ "$1" = --install ]; then
  mkdir -p installed/packages/vendors/ms_ops_transformer/op_api/lib
  echo library > installed/packages/vendors/ms_ops_transformer/op_api/lib/libcust_opapi.so
fi
"""


@pytest.fixture
def cmake(tmp_path, monkeypatch):
    """A stand-in for cmake; the returned function replaces its text."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def write(text):
        (tmp_path / "bin" / "cmake").write_text(text)
        (tmp_path / "bin" / "cmake").chmod(0o755)

    write(CMAKE)
    return write


def test_build_puts_the_package_in_place(tmp_path, cmake):
    home = _toolkit(tmp_path / "home", ascend_project.ASC)
    ascend_package.build(home, tmp_path / "work", tmp_path / "_ascend")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[1] for call in calls] == ["--preset", "--build", "--build", "--install"]
    assert all(call.startswith(str(home)) for call in calls)
    assert (tmp_path / "_ascend/vendors/ms_ops_transformer/op_api/lib/libcust_opapi.so").is_file()


def test_a_build_that_fails_is_told(tmp_path, cmake):
    home = _toolkit(tmp_path / "home", ascend_project.ASC)
    cmake("#!/bin/sh\nexit 3\n")
    with pytest.raises(ascend_package.BuildError, match="cmake --preset default.*ended with 3"):
        ascend_package.build(home, tmp_path / "work", tmp_path / "_ascend")
    cmake("#!/bin/sh\n")
    with pytest.raises(ascend_package.BuildError, match="has no library"):
        ascend_package.build(home, tmp_path / "work", tmp_path / "_ascend")


# ---- at import


@pytest.mark.parametrize("before, after", [(None, "{}"), ("/a:/b", "{}:/a:/b"), ("{}:/a", "{}:/a")])
def test_import_tells_cann(tmp_path, before, after):
    """Of a source tree that shadows nothing: a copy of the package with a folder as a build leaves it."""
    package = tmp_path / "ms_ops_transformer"
    vendor = package / "_ascend" / "vendors" / "ms_ops_transformer"
    vendor.mkdir(parents=True)
    (package / "__init__.py").write_text((ROOT / "ms_ops_transformer" / "__init__.py").read_text())
    (package / "op_info").mkdir()
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "ASCEND_CUSTOM_OPP_PATH")}
    if before is not None:
        env["ASCEND_CUSTOM_OPP_PATH"] = before.format(vendor)
    code = "import ms_ops_transformer, os; print(os.environ['ASCEND_CUSTOM_OPP_PATH'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.strip() == after.format(vendor), done.stderr


def test_show_config(monkeypatch, capsys):
    mst.show_config()
    text = capsys.readouterr().out
    assert re.search(r"CPU level  \w+ of", text) and re.search(r"threads    \d+", text)
    monkeypatch.setattr(mst, "_ascend_package", lambda: None)
    mst.show_config()
    text = capsys.readouterr().out
    assert "Ascend     not in this build" in text and "ascend910b" not in text
    columns = {line.rindex(" cpu") for line in text.splitlines()[4:]}
    assert len(columns) == 1  # as wide as the longest name
    monkeypatch.setattr(mst, "_ascend_package", lambda: "/there")
    mst.show_config()
    text = capsys.readouterr().out
    assert "Ascend     /there" in text and text.count("ascend910b") == len(text.splitlines()) - 4


# ---- MindSpore


@pytest.fixture
def on_ascend(tmp_path, monkeypatch):
    """MindSpore believes in a card, and finds headers; nothing can be run."""
    get_context = ms.get_context
    monkeypatch.setattr(
        custom_ops.context, "get_context", lambda key: "Ascend" if key == "device_target" else get_context(key)
    )
    monkeypatch.setattr(ms, "get_context", lambda key: "Ascend" if key == "device_target" else get_context(key))
    monkeypatch.setattr(_custom, "_ascend_package", lambda: str(tmp_path))
    (tmp_path / "include" / "acl").mkdir(parents=True)
    (tmp_path / "include" / "acl" / "acl_base.h").write_text("#include <cstdint>\n")
    monkeypatch.setenv("ASCEND_OPP_PATH", f"{tmp_path}/opp")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path))
    monkeypatch.setenv("MS_COMPILER_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    _custom._primitive.cache_clear()
    yield tmp_path
    _custom._primitive.cache_clear()


def test_what_is_registered_on_ascend(on_ascend):
    attrs = {"head_num": 2, "input_layout": "BNSD"}
    absent = tuple(tensor.name for tensor in get("flash_attention_score").inputs if tensor.optional)
    call = _custom.primitive("flash_attention_score", absent=absent, **attrs)
    operator = call.fwd.operator
    assert isinstance(operator, ms.ops.Custom) and operator.func_type == "aot"
    assert operator.func == "aclnnMstFlashAttentionScore" and operator.is_ascend_c
    info = operator.reg_info
    assert operator.get_attr_dict()["reg_op_name"] == "aclnnMstFlashAttentionScore" and info["target"] == "Ascend"
    assert [item["name"] for item in info["attr"]] == [attr.name for attr in get("flash_attention_score").attrs]
    assert {item["type"] for item in info["attr"]} == {"int", "float", "str"}
    assert all("value" not in item for item in info["attr"])
    assert len(info["dtype_format"]) == 6 and len(info["dtype_format"][0]) == 12 + 3
    assert info["dtype_format"][1][0] == ("float16", "DefaultFormat")
    # the function is called with every input, every attribute's value and every output
    types = operator.get_attr_dict()["custom_inputs_type"]
    assert len(types) == 12 + 12 + 3 and types[:12] == ["aclTensor*"] * 12
    assert call.fwd.values[:2] == (2, 1.0) and call.fwd.values[5] == "BNSD"
    # None of an input whose values the host needs becomes an empty list
    assert [name.name for name, is_list in zip(get("flash_attention_score").inputs, call.fwd.lists) if is_list] == [
        "prefix", "actual_seq_qlen", "actual_seq_kvlen",
    ]  # fmt: skip


def test_inference_on_ascend(on_ascend):
    operator = _custom.primitive("rms_norm", epsilon=1e-5).fwd.operator
    infer = operator.__infer__
    x, gamma, epsilon = (
        {"shape": shape, "dtype": dtype}
        for shape, dtype in (((4, 8), ms.float16), ((8,), ms.float16), ((), ms.float32))
    )
    assert [tuple(shape) for shape in infer(x, gamma, epsilon)["shape"]] == [(4, 8), (4, 1)]
    assert infer(x, gamma, epsilon)["dtype"] == (ms.float16, ms.float32)
    with pytest.raises(ValueError, match="For 'RmsNorm', shape of 'gamma'"):
        infer(x, {"shape": (7,), "dtype": ms.float16}, epsilon)
    with pytest.raises(ValueError, match="For 'RmsNorm', shapes must be known when a graph is built for Ascend"):
        infer({"shape": (-1, 8), "dtype": ms.float16}, gamma, epsilon)


def test_targets_that_cannot_be(monkeypatch):
    _custom._primitive.cache_clear()
    monkeypatch.setattr(ms, "get_context", lambda key: "Ascend")
    monkeypatch.setattr(_custom, "_ascend_package", lambda: None)
    with pytest.raises(RuntimeError, match="For 'Swiglu'.*runs on the CPU only: install it with ASCEND_HOME_PATH"):
        _custom.primitive("swiglu")
    monkeypatch.setattr(ms, "get_context", lambda key: "GPU")
    with pytest.raises(RuntimeError, match="For 'Swiglu', the device target must be CPU or Ascend, but got GPU"):
        _custom.primitive("swiglu")
    _custom._primitive.cache_clear()


def test_call_and_gradient_of_an_aclnn_function():
    """Around the CPU's operator, since that is what can be run: same results and gradients in both modes."""
    spec, attrs = get("rms_norm"), {"epsilon": 1e-6}
    reg_info = _custom._cpu_info(spec, {**attrs, "absent": ""})
    function = f"{_custom._level.library()}:RmsNorm"
    operator = _custom._Primitive(spec, attrs, (), None, function, reg_info)
    bprop = _custom._BPROPS["rms_norm"]({**attrs, "absent": ()})
    call = _custom._with_bprop(_custom._OnAscend(operator, (False, False), ()), bprop)
    x = ms.Tensor(np.random.default_rng(0).standard_normal((4, 8)), ms.float32)
    gamma = ms.Tensor(np.arange(8), ms.float32)

    def loss(x, gamma):
        return (call(x, gamma)[0] ** 2).sum()

    def want(x, gamma):
        return (mst.rms_norm(x, gamma)[0] ** 2).sum()

    expected = [grad.asnumpy() for grad in ms.grad(want, (0, 1))(x, gamma)]
    for found in (ms.grad(loss, (0, 1))(x, gamma), ms.jit(ms.grad(loss, (0, 1)))(x, gamma)):
        for a, b in zip(found, expected):
            np.testing.assert_array_equal(a.asnumpy(), b)


# ---- the first script for a card


def _smoke(*arguments):
    command = [sys.executable, str(ROOT / "examples" / "ascend_smoke.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_smoke_off_a_card():
    done = _smoke()
    assert done.returncode == 1
    assert "error: this build of ms_ops_transformer has no Ascend package" in done.stderr or (
        "error: MindSpore cannot use the device Ascend" in done.stderr
    )


def test_smoke_compares_every_case():
    done = _smoke("--device", "CPU")
    rows = [line.split() for line in done.stdout.splitlines() if line.endswith(("ok", "FAIL"))]
    assert {row[0] for row in rows} == {spec.name for spec in SPECS}, done.stdout + done.stderr
    assert len(rows) == sum(spec.num_columns for spec in SPECS)
    cases = sum(len(c.dtypes) for module in modules() if hasattr(module, "OP") for c in module.CASES)
    launches = sum(int(row[-4]) for row in rows)
    assert done.stdout.splitlines()[-1] == f"0 of {launches} launches failed." and done.returncode == 0
    assert launches >= cases > 500


@pytest.fixture
def smoke():
    spec = importlib.util.spec_from_file_location("smoke", ROOT / "examples" / "ascend_smoke.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRONG = {
    "nothing": (lambda y: y, 0),
    "a number": (lambda y: y + 1e-3 * (np.arange(y.size) == 5).reshape(y.shape).astype(y.dtype), 1),
    "NaN": (lambda y: y * np.float32(np.nan), 1),
    "the shape": (lambda y: y[:1], 1),
    "an error": (lambda y: 1 / 0, 1),
}


@pytest.mark.parametrize("what", WRONG)
def test_smoke_sees_what_a_device_does_wrong(smoke, what, monkeypatch, capsys):
    change, failures = WRONG[what]
    right = smoke.on_device
    monkeypatch.setattr(smoke, "on_device", lambda *args: [change(y) for y in right(*args)])
    run = smoke.Comparison("swiglu")
    run.case = "toy"
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    run("swiglu", [x])
    run("rms_norm", [x, x[0]])  # not asked for
    assert [(name, count, failed) for (name, _), (count, failed, _) in run.rows.items()] == [("swiglu", 1, failures)]
    assert ("FAIL swiglu toy: " in capsys.readouterr().out) == bool(failures)


def test_smoke_wants_whole_numbers_to_be_the_same(smoke):
    experts = np.array([3, 200, 255], np.int32)
    assert smoke.largest_difference([experts.copy()], [experts]) == 0
    assert smoke.largest_difference([experts + np.array([0, 1, 0], np.int32)], [experts]) == np.inf
