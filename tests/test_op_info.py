# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Specs: those that contradict themselves are refused, and every rule of every spec has a call that breaks it."""

import dataclasses
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from op_examples import EXAMPLES, example

from ms_ops_transformer import _native
from ms_ops_transformer.op_info.emit import cpu
from ms_ops_transformer.op_info.registry import all_specs, get
from ms_ops_transformer.op_info.spec import ALL, DTYPES, REQUIRED, Attr, OpSpec, SpecError, Tensor, dim_tokens
from ms_ops_transformer.ops import _check

ROOT = pathlib.Path(__file__).parents[1]
SPECS = list(all_specs().values())
X = {"X": ("float32", "float16")}
GOOD = {
    "name": "some_op",
    "inputs": (Tensor("x", "... T D", "X"), Tensor("w", "D", "X")),
    "outputs": (Tensor("y", "... T*D 1", "X"),),
    "attrs": (Attr("scale", float, default=1.0, check="scale > 0"),),
    "dtypes": X,
    "targets": {"cpu": ALL},
}
BAD = {
    "name in capitals": {"name": "SomeOp"},
    "two tensors of one name": {"inputs": (Tensor("x", "T D", "X"), Tensor("x", "D", "X"))},
    "attribute named as a tensor": {"attrs": (Attr("x", int, default=1),)},
    "no input": {"inputs": ()},
    "columns of unequal length": {"dtypes": {"X": ("float32",), "I": ("int32", "int64")}},
    "symbol without input": {"dtypes": {**X, "I": ("int32", "int64")}},
    "unknown dtype": {"dtypes": {"X": ("float32", "float64")}},
    "unknown dtype of a tensor": {"outputs": (Tensor("y", "T", "Y"),)},
    "a combination twice": {"dtypes": {"X": ("float32", "float32")}},
    "unbound dim of an output": {"outputs": (Tensor("y", "K", "X"),)},
    "dim of an optional input": {
        "inputs": (Tensor("x", "T", "X"), Tensor("w", "D", "X", optional=True)),
        "outputs": (Tensor("y", "D", "X"),),
    },
    "product of unbound dims": {"inputs": (Tensor("x", "T*D", "X"), Tensor("w", "D", "X"))},
    "leading dims at the end": {"inputs": (Tensor("x", "T ...", "X"), Tensor("w", "D", "X"))},
    "output of any shape": {"outputs": (Tensor("y", "*", "X"),)},
    "optional output": {"outputs": (Tensor("y", "T", "X", optional=True),)},
    "attribute of another type": {"attrs": (Attr("scale", list, default=[]),)},
    "default of another type": {"attrs": (Attr("scale", float, default=1),)},
    "default not among the choices": {"attrs": (Attr("mode", str, default="c", choices=("a", "b")),)},
    "default that breaks the check": {"attrs": (Attr("scale", float, default=0.0, check="scale > 0"),)},
    "target with an unknown column": {"targets": {"cpu": (0, 2)}},
    "unknown infer": {"infer": "python"},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD)
def test_contradiction_is_refused(changes):
    OpSpec(**GOOD)
    with pytest.raises(SpecError, match="op_info of"):
        OpSpec(**{**GOOD, **changes})


def test_class_name_and_digest():
    spec = OpSpec(**GOOD)
    assert spec.class_name == "SomeOp"
    assert spec.digest == OpSpec(**GOOD).digest != dataclasses.replace(spec, dtypes={"X": ("float32",)}).digest


def test_every_operator_has_an_example():
    assert set(EXAMPLES) == {spec.name for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_example_is_valid_in_every_column(spec):
    for column in range(spec.num_columns):
        inputs, attrs = example(spec, column)
        outputs = _native.infer(spec.name, inputs, attrs)
        assert [dtype for _, dtype in outputs] == [spec.dtype_of(tensor, column) for tensor in spec.outputs]
    assert _check.attributes(spec, {k: v for k, v in attrs.items() if v != REQUIRED}) == attrs


def _reject(spec, error, name, inputs, attrs):
    with pytest.raises(error) as caught:
        _native.infer(spec.name, inputs, attrs)
    text = str(caught.value)
    assert text.startswith(f"For '{spec.class_name}', ") and f"'{name}'" in text and "must be" in text, text
    assert text.endswith("."), text


def _with(inputs, index, value):
    return [*inputs[:index], value, *inputs[index + 1 :]]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_missing_input(spec):
    inputs, attrs = example(spec)
    for i, tensor in enumerate(spec.inputs):
        if not tensor.optional:
            _reject(spec, TypeError, tensor.name, _with(inputs, i, None), attrs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_dtype_of_no_column(spec):
    inputs, attrs = example(spec)
    for i, tensor in enumerate(spec.inputs):
        allowed = {spec.dtype_of(tensor, column) for column in range(spec.num_columns)}
        if inputs[i] is not None:
            for dtype in ("float64", *sorted(set(DTYPES) - allowed)):
                _reject(spec, TypeError, tensor.name, _with(inputs, i, (inputs[i][0], dtype)), attrs)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if len(spec.dtypes) > 1], ids=lambda spec: spec.name)
def test_combination_of_dtypes_that_is_no_column(spec):
    inputs, attrs = example(spec)
    there = [i for i, value in enumerate(inputs) if value is not None]
    used = [symbol for symbol in spec.dtypes if any(spec.inputs[i].dtype == symbol for i in there)]
    columns = set(zip(*(spec.dtypes[symbol] for symbol in used)))
    for combination in itertools.product(*(sorted(set(spec.dtypes[symbol])) for symbol in used)):
        dtypes = dict(zip(used, combination))
        mixed = [value and (value[0], dtypes.get(tensor.dtype, value[1])) for tensor, value in zip(spec.inputs, inputs)]
        if combination in columns:
            _native.infer(spec.name, mixed, attrs)
        else:
            with pytest.raises(TypeError, match=f"^For '{spec.class_name}', dtype of '.*' must be .*, but got "):
                _native.infer(spec.name, mixed, attrs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_rank(spec):
    inputs, attrs = example(spec)
    for i, tensor in enumerate(spec.inputs):
        if tensor.dims == "*" or inputs[i] is None:
            continue
        shape, dtype = inputs[i]
        least = len([factors for factors in dim_tokens(tensor.dims) if factors != ["..."]])
        if least:
            _reject(spec, ValueError, tensor.name, _with(inputs, i, (shape[: least - 1], dtype)), attrs)
        if not tensor.dims.startswith("..."):
            _reject(spec, ValueError, tensor.name, _with(inputs, i, ((1, *shape), dtype)), attrs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_leading_dims(spec):
    inputs, attrs = example(spec)
    leading = [i for i, tensor in enumerate(spec.inputs) if tensor.dims.startswith("...") and inputs[i] is not None]
    for i in leading[1:]:
        shape, dtype = inputs[i]
        _reject(spec, ValueError, spec.inputs[i].name, _with(inputs, i, ((shape[0] + 1, *shape[1:]), dtype)), attrs)
        _reject(spec, ValueError, spec.inputs[i].name, _with(inputs, i, ((1, *shape), dtype)), attrs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_dim_that_is_bound_elsewhere(spec):
    inputs, attrs = example(spec)
    bound = {attr.name for attr in spec.attrs if attr.type is int}
    for i, tensor in enumerate(spec.inputs):
        if inputs[i] is None:
            continue
        shape, dtype = inputs[i]
        tokens = dim_tokens(tensor.dims)
        for axis, factors in enumerate(tokens, start=len(shape) - len(tokens)):
            if factors == ["..."]:
                continue
            if len(factors) > 1 or factors[0] in bound or factors[0].isdigit():
                longer = (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])
                _reject(spec, ValueError, tensor.name, _with(inputs, i, (longer, dtype)), attrs)
        bound.update(itertools.chain(*tokens))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_number_of_inputs(spec):
    inputs, attrs = example(spec)
    with pytest.raises(ValueError, match=f"^For '{spec.class_name}', the number of inputs must be "):
        _native.infer(spec.name, [*inputs, None], attrs)


ATTRS = [(spec, attr) for spec in SPECS for attr in spec.attrs]
CANDIDATES = (
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    1 << 40,
    -1.0,
    0.0,
    0.5,
    1.5,
    1e30,
    float("nan"),
    True,
    False,
    "",
    "no_such_choice",
)


@pytest.mark.parametrize("spec, attr", ATTRS, ids=lambda value: value.name)
def test_attribute_rules(spec, attr):
    _, attrs = example(spec)
    wrong = "text" if attr.type is not str else 1
    with pytest.raises(
        TypeError, match=f"^For '{spec.class_name}', '{attr.name}' must be of type {attr.type.__name__}"
    ):
        _check.attributes(spec, {**attrs, attr.name: wrong})
    others = [{other.name: value} for other in spec.attrs if other is not attr for value in other.choices]
    broken = [
        {**attrs, **other, attr.name: value}
        for value in CANDIDATES
        if type(value) is attr.type
        for other in ({}, *others)
        if (attr.choices and value not in attr.choices)
        or (attr.check and not eval(attr.check, {}, {**attrs, **other, attr.name: value}))
    ]
    assert broken or not (attr.choices or attr.check), "no candidate breaks the rule: add one"
    for values in broken:
        with pytest.raises(ValueError, match=f"^For '{spec.class_name}', '.*' must .*, but got .*\\.$"):
            _check.attributes(spec, values)
    for value in attr.choices:
        _check.attributes(spec, {**attrs, attr.name: value})
    if attr.type is int:
        with pytest.raises(ValueError, match=f"^For '{spec.class_name}', '{attr.name}' must fit in 64 bits"):
            _check.attributes(spec, {**attrs, attr.name: 2**63})
    if attr.default == REQUIRED:
        with pytest.raises(TypeError, match=f"^For '{spec.class_name}', '{attr.name}' must be given"):
            _check.attributes(spec, {name: value for name, value in attrs.items() if name != attr.name})


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_unknown_attribute(spec):
    with pytest.raises(TypeError, match=f"^For '{spec.class_name}', unknown attribute 'nonsense'"):
        _check.attributes(spec, {"nonsense": 1})


def test_text_of_the_errors():
    def text(op, inputs, attrs):
        with pytest.raises((TypeError, ValueError)) as caught:
            _native.infer(op, inputs, attrs)
        return str(caught.value)

    f32 = "float32"
    attrs = {"epsilon": 1e-6}
    assert text("rms_norm", [((4, 64), f32), ((64,), "float64")], attrs) == (
        "For 'RmsNorm', dtype of 'gamma' must be float32, but got float64."
    )
    assert text("rms_norm", [((4, 64), "float64"), ((64,), f32)], attrs) == (
        "For 'RmsNorm', dtype of 'x' must be one of float32, float16, bfloat16, but got float64."
    )
    assert text("rms_norm", [((4, 64), f32), None], attrs) == "For 'RmsNorm', 'gamma' must be a Tensor, but got None."
    with pytest.raises(ValueError) as caught:
        _check.attributes(get("rms_norm"), {"epsilon": -1.0})
    assert str(caught.value) == "For 'RmsNorm', 'epsilon' must be >= 0, but got -1.0."


def test_plan_gives_the_fields_of_tiling_data():
    inputs, attrs = example(get("rms_norm"))
    for platform in _native.platforms():
        plan = _native.plan("rms_norm", inputs, attrs, platform)
        names = [name for ctype, name, _ in cpu.struct_fields(get("rms_norm"), "RmsNormTilingData") if name != "head"]
        assert list(plan) == ["cores", "variant", "workspaceBytes", *names]
        assert plan["rows"] == 32 and plan["D"] == 64 and plan["cores"] >= 1
    with pytest.raises(ValueError, match="unknown platform 'ascend000'"):
        _native.plan("rms_norm", inputs, attrs, "ascend000")


def test_platforms():
    b1 = _native.platforms()["ascend910b1"]
    assert (b1["cubeCores"], b1["vectorCores"], b1["ubBytes"], b1["tasksPerCore"]) == (24, 48, 196352, 1)
    assert (b1["l2Bytes"], _native.platforms()["ascend910b4"]["l2Bytes"]) == (192 << 20, 96 << 20)
    assert _native.platforms()["cpu"]["vectorCores"] == _native.num_threads()


def test_log_of_tiling():
    code = (
        "from ms_ops_transformer import _native\n"
        "for rows in (4, 4, 8):\n"
        "    _native.plan('rms_norm', [((rows, 64), 'float32'), ((64,), 'float32')], {'epsilon': 1e-6})\n"
    )
    done = _python("-c", code, MS_OPS_LOG="tiling")
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "rms_norm on cpu: rows=4 D=64" in lines[0] and " -> cores=" in lines[0]


def _python(*args, **env):
    import os

    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=True, env={**os.environ, **env}
    )


def test_command_line():
    module = ("-m", "ms_ops_transformer.op_info")
    assert _python(*module, "list").stdout.split() == [spec.name for spec in SPECS]
    shown = _python(*module, "show", "rms_norm").stdout
    assert 'extern "C" int RmsNorm(' in shown and "const OpDesc kDesc" in shown and "__global__" in shown
    table = _python(*module, "table").stdout
    assert "`rms_norm`" in table and "_grad" not in table
    assert " 0 FAIL, 0 not run" in _python(*module, "check").stdout


NEW_SPEC = """
from ..spec import ALL, OpSpec, Tensor
SPEC = OpSpec(
    name="new_op", inputs=(Tensor("x", "T D", "X"),), outputs=(Tensor("y", "T D", "X"),),
    dtypes={"X": ("float32",)}, targets={"cpu": ALL, "ascend910b": ALL}, infer=None
)
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of op_info and setup.py to which an operator is added."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("needs the source tree")
    shutil.copytree(ROOT / "op_info", tmp_path / "op_info")
    shutil.copy(ROOT / "setup.py", tmp_path)
    return tmp_path


def _in(tree, *args):
    return subprocess.run([sys.executable, *args], cwd=tree, capture_output=True, text=True)


def test_a_spec_without_a_kernel_is_shown(tree):
    (tree / "op_info/gmm/new_op.py").write_text(NEW_SPEC)
    done = _in(tree, "-m", "op_info", "show", "new_op")
    assert "//   input  x: [T D] X" in done.stdout, done.stderr
    for header in ("new_op_tiling.h", "new_op_kernel.h"):
        assert re.search(f"^// not yet: .*kernels/gmm/new_op/{header}", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", ("list", "table", "show", "check", "build_native"))
def test_a_bad_spec_is_one_line(tree, command):
    (tree / "op_info/gmm/new_op.py").write_text(NEW_SPEC.replace("None", "'python'"))
    args = ("setup.py", command) if command == "build_native" else ("-m", "op_info", command)
    done = _in(tree, *args, *["new_op"] * (command == "show"))
    error = "error: op_info of 'new_op': infer must be None or 'custom', but got 'python'"
    assert done.returncode == 1 and done.stderr.strip().splitlines()[-1] == error and "Traceback" not in done.stderr


def test_a_reader_that_has_read_enough():
    command = [sys.executable, "-m", "ms_ops_transformer.op_info", "show", "rms_norm"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()  # as `| head` does
        assert process.stderr.read() == ""
    assert process.returncode == 0
