# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Walks the registry: every operator has all its parts, and every way to infer a shape gives the real one."""

import pathlib
import re
import subprocess

import mindspore as ms
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindspore import nn
from op_examples import example

from ms_ops_transformer import _level, _native, ops
from ms_ops_transformer.op_info.emit import ascend, cpu
from ms_ops_transformer.op_info.registry import all_specs
from ms_ops_transformer.ops._custom import primitive

ROOT = pathlib.Path(__file__).parents[1]
SPECS = list(all_specs().values())
OPERATORS = [spec for spec in SPECS if spec.name == spec.folder]
by_name = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


@by_name
def test_kernel_and_tiling(spec):
    folder = ROOT / "kernels" / spec.family / spec.folder
    assert (folder / f"{spec.folder}_tiling.cpp").is_file()
    tiling = "".join(path.read_text() for path in folder.glob("*.cpp"))
    for function in ("ProblemOf", "Tiling", *["InferShape"] * bool(spec.infer), *["CheckValues"] * spec.value_check):
        assert f"Status {spec.class_name}{function}(" in tiling
    assert f"{spec.class_name}Run(" in (folder / f"{spec.name}_kernel.h").read_text()
    assert f"struct {spec.class_name}TilingData {{" in (folder / f"{spec.folder}_tiling.h").read_text() or (
        f"using {spec.class_name}TilingData =" in (folder / f"{spec.folder}_tiling.h").read_text()
    )


@by_name
def test_ascend_side(spec):
    """A registration for each Ascend target and a kernel entry, with the same tensors in the same columns of dtypes."""
    assert ascend.socs(spec), "an operator that the card does not have"
    host, entry = ascend.op_host_text(spec), ascend.kernel_entry(spec, cpu.KERNELS)
    for soc in ascend.socs(spec):
        assert f'AICore().AddConfig("{soc}"' in host
    outputs = (*ascend.updated(spec), *spec.outputs)
    declared = re.findall(r'(Input|Output)\("(\w+)"\)\s+\.ParamType\(\w+\)\s+\.DataType\(\{([^}]*)\}\)', host)
    want = [("Input", tensor) for tensor in spec.inputs] + [("Output", tensor) for tensor in outputs]
    assert [(role, name) for role, name, _ in declared] == [(role, tensor.name) for role, tensor in want]
    own = {other: dtype for dtype, other in ascend.GE_TYPES.items()}
    for (_, tensor), (_, _, types) in zip(want, declared):
        columns = [own[name.removeprefix("ge::")] for name in types.split(", ")]
        assert columns == [spec.dtype_of(tensor, column) for column in range(spec.num_columns)], tensor.name
    parameters = re.search(rf"void {ascend.entry_name(spec)}\((.*)\) {{", entry)[1].split(", ")
    assert len(parameters) == len(want) + 2  # and workspace and tiling


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_function_reference_and_tests(spec):
    function = getattr(ops, spec.name)
    assert (ROOT / "ms_ops_transformer" / "ops" / spec.family / f"{spec.name}.py").is_file()
    for section in ("Args:", "Returns:", "Raises:", "Supported Platforms:", "Examples:"):
        assert section in function.__doc__, f"{spec.name}: no {section} in its docstring"
    for platform, targets in (("``Ascend``", ("ascend910b",)), ("``CPU``", ("cpu",))):
        assert (platform in function.__doc__) == any(target in spec.targets for target in targets)
    tests = ROOT / "tests" / spec.family
    assert (tests / f"ref_{spec.name}.py").is_file()
    assert list(tests.glob(f"test_{spec.name.removesuffix('_score')}*.py"))


@by_name
def test_library_has_the_entries(spec):
    symbols = subprocess.run(["nm", "-D", "--defined-only", _level.library()], capture_output=True, text=True).stdout
    assert set(cpu.exported_symbols(spec)) <= set(symbols.split())
    assert _native.digest(spec.name) == spec.digest


def _known(spec):
    inputs, attrs = example(spec)
    return inputs, attrs, _native.infer(spec.name, inputs, attrs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_unknown_dims_pass_through(spec, data):
    """With dims or ranks not known yet, inference says what it can and never what is wrong."""
    inputs, attrs, outputs = _known(spec)
    partly = []
    for value in inputs:
        if value is not None and data.draw(st.integers(0, 4)) == 0:
            value = ([-2], value[1])
        elif value is not None:
            value = ([data.draw(st.sampled_from((dim, dim, -1))) for dim in value[0]], value[1])
        partly.append(value)
    for (shape, dtype), (real, real_dtype) in zip(_native.infer(spec.name, partly, attrs), outputs):
        assert dtype == real_dtype
        assert shape == [-2] or (len(shape) == len(real) and all(a in (-1, b) for a, b in zip(shape, real))), (
            f"{partly} gave {shape}, but it is {real}"
        )


def _numpy(shape, dtype):
    """Small values that are valid indices and lengths too."""
    return np.zeros(shape, np.float32 if dtype == "bfloat16" else dtype)


@by_name
def test_inference_gives_the_real_shape(spec):
    """Python's inference == what a graph is built with == the C++ inference of a dynamic graph == the outputs."""
    inputs, attrs, outputs = _known(spec)
    want = [(tuple(shape), dtype) for shape, dtype in outputs]
    absent = tuple(tensor.name for tensor, value in zip(spec.inputs, inputs) if value is None)
    net = Net(primitive(spec.name, absent, **attrs), [value is not None for value in inputs])
    there = [ms.Tensor(_numpy(*value)) for value in inputs if value is not None]
    assert _outputs(net(*there)) == want  # PyNative
    ms.set_context(mode=ms.GRAPH_MODE)
    assert _outputs(net(*there)) == want  # graph, all shapes known
    dynamic = Net(net.op, net.is_there)
    dynamic.set_inputs(*[ms.Tensor(shape=[None] * x.ndim, dtype=x.dtype) for x in there])
    assert _outputs(dynamic(*there)) == want  # graph, C++ inference at run time


class Net(nn.Cell):
    """Calls a primitive with None where an input is absent."""

    def __init__(self, op, is_there):
        super().__init__()
        self.op = op
        self.is_there = tuple(is_there)

    def construct(self, *there):
        args = ()
        count = 0
        for is_there in self.is_there:
            if is_there:
                args = args + (there[count],)
                count = count + 1
            else:
                args = args + (None,)
        return self.op(*args)


def _outputs(found):
    found = found if isinstance(found, (tuple, list)) else [found]
    return [(tuple(out.shape), str(out.dtype).lower()) for out in found]
