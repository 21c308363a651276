# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
import mindspore as ms
import numpy as np
import pytest
import ref_rotary_position_embedding as ref
from harness import Op, case, suite

from ms_ops_transformer import ops

HALF, INTERLEAVE, QUARTER = 0, 1, 2
CASES = [
    case("half", x=(3, 8), table=(3, 8), mode=HALF, graph="all"),
    case("interleave", x=(3, 8), table=(3, 8), mode=INTERLEAVE, graph="all"),
    case("quarter", x=(3, 8), table=(3, 8), mode=QUARTER),
    case("half_of_3", x=(4, 6), table=(4, 6), mode=HALF),  # halves that do not begin at a block
    case("half_of_1", x=(4, 2), table=(4, 2), mode=HALF),
    case("interleave_6", x=(4, 6), table=(4, 6), mode=INTERLEAVE),
    case("bnsd_11sd", x=(2, 3, 40, 64), table=(1, 1, 40, 64), mode=HALF),
    case("bnsd_11sd_interleave", x=(2, 3, 40, 64), table=(1, 1, 40, 64), mode=INTERLEAVE),
    case("bnsd_b1sd", x=(2, 3, 5, 16), table=(2, 1, 5, 16), mode=HALF),
    case("bnsd_b1sd_interleave", x=(2, 3, 5, 16), table=(2, 1, 5, 16), mode=INTERLEAVE),
    case("bsnd_1s1d", x=(2, 7, 4, 96), table=(1, 7, 1, 96), mode=HALF),
    case("bsnd_1s1d_quarter", x=(2, 7, 4, 96), table=(1, 7, 1, 96), mode=QUARTER),
    case("bsnd_bs1d", x=(2, 7, 4, 32), table=(2, 7, 1, 32), mode=INTERLEAVE),
    case("sbnd_s11d", x=(9, 2, 3, 32), table=(9, 1, 1, 32), mode=HALF),
    case("tnd_t1d", x=(21, 5, 128), table=(21, 1, 128), mode=HALF),
    case("one_row_table", x=(70, 5, 48), table=(48,), mode=HALF),
    case("heads_in_the_table", x=(2, 3, 4, 16), table=(1, 3, 1, 16), mode=HALF),
    case("alternating_axes", x=(2, 3, 2, 3, 2, 8), table=(2, 1, 2, 1, 2, 8), mode=HALF),
    case("alternating_axes_interleave", x=(3, 2, 3, 2, 8), table=(1, 2, 1, 2, 8), mode=INTERLEAVE),
    case("one_kv_head", x=(1, 1, 33, 64), table=(1, 1, 33, 64), mode=HALF),
    case("long_rows", x=(5, 1, 3, 1100), table=(1, 1, 3, 1100), mode=HALF),
    case("long_rows_interleave", x=(5, 2, 1100), table=(5, 1, 1100), mode=INTERLEAVE),
    case("many_rows", x=(1, 4, 600, 64), table=(1, 1, 600, 64), mode=HALF),
    case("rows_0", x=(0, 4, 8), table=(1, 4, 8), mode=HALF, zeros=True),
    case("float32_tables", x=(2, 3, 5, 16), table=(1, 1, 5, 16), mode=HALF, table_dtype=np.float32,
         dtypes=("float16", "bfloat16")),
]  # fmt: skip
PERF_CASES = [
    case("llama_7b_bnsd", x=(1, 32, 2048, 128), table=(1, 1, 2048, 128), mode=HALF),
    case("llama_7b_bsnd", x=(1, 2048, 32, 128), table=(1, 2048, 1, 128), mode=HALF),
    case("glm_interleave", x=(1, 2048, 32, 64), table=(1, 2048, 1, 64), mode=INTERLEAVE),
]


def inputs(c, rng):
    # General tables: the two entries of a pair differ.
    dtype = c.get("table_dtype", np.float64)
    return {
        "x": rng.standard_normal(c.x),
        "cos": rng.standard_normal(c.table).astype(dtype),
        "sin": rng.standard_normal(c.table).astype(dtype),
    }


def launch(c, run, x, cos, sin, dy):
    (y,) = run("rotary_position_embedding", (x, cos, sin), mode=c.mode)
    (dx,) = run("rotary_position_embedding_grad", (dy, cos, sin), mode=c.mode)
    return (y,), (dx, *run("rotary_position_embedding_table_grad", (dy, x, cos, sin), mode=c.mode))


OP = Op(
    ops.rotary_position_embedding,
    inputs=inputs,
    call=lambda c: {"mode": c.mode},
    launch=launch,
    outputs=("y",),
    grads=("x", "cos", "sin"),
    forward=lambda c, x, cos, sin: ref.forward(x, cos, sin, c.mode),
    gradient=lambda c, dy, x, cos, sin: ref.gradient(dy, x, cos, sin, c.mode),
)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)


def test_known_values():
    x = ms.Tensor([[1.0, 2, 3, 4]], ms.float32)
    half = [ms.Tensor([t], ms.float32) for t in ([0.6, 0.8, 0.6, 0.8], [0.8, 0.6, 0.8, 0.6])]
    pairs = [ms.Tensor([t], ms.float32) for t in ([0.6, 0.6, 0.8, 0.8], [0.8, 0.8, 0.6, 0.6])]
    np.testing.assert_allclose(ops.rotary_position_embedding(x, *half).asnumpy(), [[-1.8, -0.8, 2.6, 4.4]], rtol=1e-6)
    np.testing.assert_allclose(
        ops.rotary_position_embedding(x, *pairs, mode=1).asnumpy(), [[-1, 2, 0, 5]], rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_view_with_far_rows(mode):
    """A slice whose rows are more than 65535 elements apart."""
    ms.set_context(mode=mode)
    rng = np.random.default_rng(3)
    base = rng.standard_normal((3, 70000)).astype(np.float32)
    cos, sin = rng.standard_normal((2, 3, 8)).astype(np.float32)
    out = ops.rotary_position_embedding(ms.Tensor(base)[:, :8], ms.Tensor(cos), ms.Tensor(sin)).asnumpy()
    wide = [t.astype(np.float64) for t in (base[:, :8], cos, sin)]
    np.testing.assert_allclose(out, ref.forward(*wide, HALF), rtol=1e-5, atol=1e-6)


def test_without_table_gradient():
    rng = np.random.default_rng(4)
    x, cos, sin = (ms.Tensor(rng.standard_normal((3, 8)).astype(np.float32)) for _ in range(3))

    def loss(x, cos, sin):
        return ops.rotary_position_embedding(x, cos, sin, table_grad=False).sum()

    dx, dcos, dsin = ms.grad(loss, (0, 1, 2))(x, cos, sin)
    expected = ref.gradient(np.ones((3, 8)), *(t.asnumpy().astype(np.float64) for t in (x, cos, sin)), HALF)[0]
    np.testing.assert_allclose(dx.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert not dcos.asnumpy().any()
    assert not dsin.asnumpy().any()


@pytest.mark.parametrize("graph", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize(
    "x, cos, sin, mode, text",
    [
        ((2, 5), (2, 5), (2, 5), 0, "last axis of 'x' must be a positive multiple of 2, but got 5"),
        ((2, 6), (2, 6), (2, 6), 2, "last axis of 'x' must be a positive multiple of 4, but got 6"),
        ((2, 8), (2, 8), (1, 8), 0, "shape of 'sin' must be that of 'cos'"),
        ((2, 8), (3, 8), (3, 8), 0, "shape of 'cos' must broadcast to that of 'x'"),
        ((2, 8), (2, 1), (2, 1), 0, "shape of 'cos' must broadcast to that of 'x'"),
        ((8,), (2, 8), (2, 8), 0, "rank of 'cos' must be from 1 to the rank of 'x'"),
        ((2, 8), (2, 8), (2, 8), 3, "'mode' must be one of 0, 1, 2, but got 3"),
    ],
)
def test_bad_input(graph, x, cos, sin, mode, text):
    ms.set_context(mode=graph)
    tensors = [ms.ops.ones(shape, ms.float32) for shape in (x, cos, sin)]
    with pytest.raises(ValueError, match=text):
        ops.rotary_position_embedding(*tensors, mode=mode)
