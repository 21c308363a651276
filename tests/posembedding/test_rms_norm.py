# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
import mindspore as ms
import numpy as np
import pytest
import ref_rms_norm as ref
from harness import Op, case, suite

from ms_ops_transformer import ops

CASES = [
    case("tiny", x=(3, 5)),
    case("one_column", x=(4, 1)),
    case("odd_zero_row", x=(31, 7), zero_row=0),
    case("tail", x=(33, 96), graph="all"),
    case("three_axes", x=(3, 4, 12), eps=1e-5),
    case("gamma_of_two_axes", x=(2, 3, 4, 5), gamma=(4, 5)),
    case("gamma_of_all_axes", x=(4, 5), gamma=(4, 5)),
    case("short_rows", x=(521, 128)),
    case("odd_long_rows", x=(19, 257)),
    case("block_of_rows", x=(40, 1024)),
    case("row_longer_than_l1", x=(9, 6001)),
    case("row_longer_than_tile", x=(5, 9001)),
    case("row_longer_than_ub", x=(3, 20001)),
    case("row_longer_than_cache", x=(2, 150000), dtypes=("float32", "bfloat16")),
    case("many_chunks", x=(1100, 40)),
    case("rows_0", x=(0, 16), zeros=True),
    case("squares_overflow_float16", x=(3, 64), scale=400, dtypes=("float16",)),
    case("tiny_values", x=(13, 16), scale=1e-3),
    case("eps_0", x=(3, 16), eps=0.0),
    case("float32_gamma", x=(9, 48), gamma_dtype=np.float32, dtypes=("float16", "bfloat16"), graph="all"),
]
PERF_CASES = [
    case("llama_7b", x=(4096, 4096)),
    case("qwen3_head", x=(2048 * 32, 128)),
]


def inputs(c, rng):
    x = rng.standard_normal(c.x) * c.get("scale", 1)
    if c.get("zero_row") is not None:
        x[c.zero_row] = 0
    gamma = 1 + 0.5 * rng.standard_normal(c.get("gamma", c.x[-1:]))
    return {"x": x, "gamma": gamma.astype(c.get("gamma_dtype", np.float64))}


def epsilon(c):
    return c.get("eps", 1e-6)


def launch(c, run, x, gamma, dy):
    y, rstd = run("rms_norm", (x, gamma), epsilon=epsilon(c))
    return (y, rstd), run("rms_norm_grad", (dy, x, rstd, gamma))


OP = Op(
    ops.rms_norm,
    inputs=inputs,
    call=lambda c: {"epsilon": epsilon(c)},
    launch=launch,
    outputs=("y", "rstd"),
    float32=("rstd",),
    grads=("x", "gamma"),
    forward=lambda c, x, gamma: ref.forward(x, gamma, epsilon(c)),
    gradient=lambda c, dy, x, gamma: ref.gradient(dy, x, gamma, epsilon(c)),
)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize(
    "x, gamma, epsilon, error, text",
    [
        ((2, 8), (7,), 1e-6, ValueError, "shape of 'gamma' must be the last axes of 'x'"),
        ((8,), (2, 8), 1e-6, ValueError, "rank of 'gamma' must be from 1 to the rank of 'x'"),
        ((2, 0), (0,), 1e-6, ValueError, "'gamma' must not be empty"),
        ((2, 8), (8,), -1.0, ValueError, "'epsilon' must be >= 0, but got -1.0"),
        ((2, 8), (8,), "x", TypeError, "'epsilon' must be of type float"),
    ],
)
def test_bad_input(mode, x, gamma, epsilon, error, text):
    ms.set_context(mode=mode)
    with pytest.raises(error, match=text):
        ops.rms_norm(ms.ops.ones(x, ms.float32), ms.ops.ones(gamma, ms.float32), epsilon)


def test_bad_dtype():
    with pytest.raises(TypeError):
        ops.rms_norm(ms.ops.ones((2, 8), ms.float32), ms.ops.ones((8,), ms.float16))


def test_zero_row_is_zero():
    x = np.random.default_rng(0).standard_normal((2, 7)).astype(np.float32)
    x[0] = 0
    y, _ = ops.rms_norm(ms.Tensor(x), ms.ops.ones(7, ms.float32))
    assert (y.asnumpy()[0] == 0).all()
    assert (y.asnumpy()[1] != 0).all()
