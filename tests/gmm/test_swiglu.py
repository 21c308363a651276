# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
import mindspore as ms
import numpy as np
import pytest
import ref_swiglu as ref
from harness import Op, case, suite

from ms_ops_transformer import ops

CASES = [
    case("tiny", x=(3, 8), graph="all"),
    case("half_of_1", x=(5, 2)),
    case("odd_half", x=(7, 34)),
    case("first_axis", x=(6, 5, 4), dim=0),
    case("middle_axis", x=(3, 10, 7), dim=1),
    case("one_axis", x=(64,)),
    case("tile", x=(8, 2048)),
    case("row_of_several_tiles", x=(3, 2 * 11008)),
    case("many_rows", x=(1031, 24)),
    case("rows_0", x=(0, 8)),
    case("large_values", x=(16, 64), scale=30),
]
PERF_CASES = [
    case("llama_7b", x=(2048, 2 * 11008)),
    case("qwen3_moe", x=(4096, 2 * 768)),
]


def dim_of(c):
    return c.get("dim", -1)


def launch(c, run, input, doutput):
    return run("swiglu", (input,), dim=dim_of(c)), run("swiglu_grad", (doutput, input), dim=dim_of(c))


OP = Op(
    ops.swiglu,
    inputs=lambda c, rng: {"input": rng.standard_normal(c.x) * c.get("scale", 1)},
    call=lambda c: {"dim": dim_of(c)},
    launch=launch,
    outputs=("output",),
    grads=("input",),
    forward=lambda c, input: ref.forward(input, dim_of(c)),
    gradient=lambda c, dy, input: ref.gradient(dy, input, dim_of(c)),
)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)

EXTREME = np.array([-1e4, 1e4, -90, 90, -3e38, 88.8, 0, -0.0], np.float32)
SMALL = np.array([-3e38, -1e4, -1e3, -86, -80, -60, -1, 0.5], np.float32)


@pytest.mark.parametrize("gates, up", [(EXTREME, 2), (SMALL, -1e36)])
def test_extreme_gates(gates, up):
    """x * sigmoid(x) without inf / inf or inf * 0, also before the gate has made a large value small."""
    x = np.stack([gates, np.full(8, up, np.float32)]).reshape(1, 16)
    y = ops.swiglu(ms.Tensor(x)).asnumpy()[0]
    expected = ref.forward(x.astype(np.float64), -1)[0]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-30)


def test_extreme_gates_gradient():
    x = np.stack([EXTREME, np.full(8, 2, np.float32)]).reshape(1, 16)
    dx = ms.grad(lambda x: ops.swiglu(x).sum())(ms.Tensor(x)).asnumpy()
    expected = ref.gradient(np.ones((1, 8)), x.astype(np.float64), -1)
    np.testing.assert_allclose(dx, expected, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize(
    "x, dim, error, text",
    [
        ((2, 5), -1, ValueError, "size of axis -1 of 'input' must be even, but got 5"),
        ((), -1, ValueError, "rank of 'input' must be at least 1, but got 0"),
        ((2, 4), 2, ValueError, "'dim' must be an axis of 'input', from -2 to 1, but got 2"),
        ((2, 4), 1.0, TypeError, "'dim' must be of type int"),
    ],
)
def test_bad_input(mode, x, dim, error, text):
    ms.set_context(mode=mode)
    with pytest.raises(error, match=text):
        ops.swiglu(ms.ops.ones(x, ms.float32), dim)
