# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
import mindspore as ms
import numpy as np
import pytest
import ref_moe_gating_top_k_softmax as ref
from harness import Op, case, suite
from launch import Launcher

from ms_ops_transformer import ops

CASES = [
    case("tiny", x=(3, 5), k=2, graph="all"),
    case("renorm", x=(3, 5), k=2, renorm=1, graph="all", zeros=True, tilings=("card", "cpu")),
    case("softmax_result", x=(4, 6), k=3, softmax=True, graph="all", tilings=("card", "cpu")),
    case("finished", x=(40, 8), k=2, finished=(1, 4), graph="all"),
    case("finished_renorm", x=(40, 8), k=2, finished=(1, 4), renorm=1, zeros=True),
    case("finished_64", x=(41, 64), k=9, finished=(1, 4)),  # nine choices: masks of eight, then of one
    case("batch_and_sequence", x=(2, 5, 16), k=4),
    case("one_expert", x=(5, 1), k=1, zeros=True),
    case("k_is_E", x=(9, 40), k=40),
    case("experts_32", x=(50, 32), k=5),
    case("experts_64_top_8", x=(130, 64), k=8),
    case("experts_65", x=(33, 65), k=6),
    case("experts_128_renorm", x=(33, 128), k=8, renorm=1, zeros=True),
    case("experts_160", x=(20, 160), k=6),  # five lists: one is left over in the first merge
    case("experts_256_top_8", x=(20, 256), k=8),  # the heads of eight lists, then of two
    case("top_16", x=(20, 64), k=16),  # the largest k whose lists are sorted again
    case("top_17", x=(20, 64), k=17),
    case("experts_300_softmax", x=(20, 300), k=33, softmax=True),
    case("experts_1024", x=(5, 1024), k=100),
    case("experts_1024_softmax", x=(64, 1024), k=8, softmax=True),  # of the gradient's tiles the fullest
    case("experts_2100_softmax", x=(64, 2100), k=17, softmax=True),
    case("experts_2500", x=(3, 2500), k=1024),
    case("tokens_2050", x=(2050, 16), k=2, renorm=1, zeros=True, tilings=("card", "cpu")),
    case("tokens_0", x=(0, 16), k=2),
    case("ties", x=(60, 64), k=8, ties=4),
    case("ties_everywhere", x=(7, 96), k=40, ties=1),
    case("large_logits", x=(40, 64), k=6, scale=300, zeros=True),
]
PERF_CASES = [
    case("deepseek_v2_lite", x=(4096, 64), k=8),
    case("qwen3_moe", x=(4096, 128), k=8, renorm=1),
]


def inputs(c, rng):
    x = rng.standard_normal(c.x) * c.get("scale", 1)
    if c.get("ties"):
        x = np.round(x * c.ties) / c.ties  # exact in every dtype
    elif x.size and x.shape[-1] < 2000:
        # far enough apart that every dtype keeps the order
        x = np.argsort(np.argsort(x, axis=-1), axis=-1) * 0.03125 * c.get("scale", 1) - 4
    result = {"x": x}
    if c.get("finished"):
        result["finished"] = np.isin(np.arange(c.x[0]), c.finished)
    return result


def options(c):
    return {"k": c.k, "renorm": c.get("renorm", 0)}


def names(c):
    return ("y", "expert_idx", "row_idx", *["softmax_result"] * c.get("softmax", False))


def forward(c, x, finished=None):
    return ref.forward(x, c.k, c.get("renorm", 0), finished)[: len(names(c))]


def gradient(c, dy, *dsoftmax, x, finished=None):
    return ref.gradient(dy, x, c.k, c.get("renorm", 0), finished, *dsoftmax)


def launch(c, run, x, dy, finished=None, dsoftmax_result=None):
    wanted = c.get("softmax", False)
    outs = run("moe_gating_top_k_softmax", (x, finished), output_softmax_result_flag=wanted, **options(c))
    grads = run("moe_gating_top_k_softmax_grad", (dy, x, outs[1], dsoftmax_result), **options(c))
    return outs[: len(names(c))], grads


OP = Op(
    ops.moe_gating_top_k_softmax,
    inputs=inputs,
    call=lambda c: {**options(c), "output_softmax_result_flag": c.get("softmax", False)},
    launch=launch,
    outputs=names,
    douts=("y",),
    float32=("softmax_result",),
    grads=("x",),
    forward=forward,
    gradient=gradient,
)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)


def launch_all(run):
    """More than a tile of tokens per core; the gradient takes a cotangent of softmax_result too."""
    x = np.linspace(-2, 2, 4000 * 100).astype(np.float16).reshape(-1, 100)
    finished = np.arange(4000) % 3 == 0
    _, experts, _, probabilities = run("moe_gating_top_k_softmax", [x, finished], k=3, output_softmax_result_flag=True)
    run("moe_gating_top_k_softmax_grad", [x[:, :3].copy(), x, experts, probabilities], k=3)


@pytest.mark.parametrize("library", ["fast", "checked"])
@pytest.mark.parametrize("renorm", [0, 1])
def test_the_gradient_skips_experts_that_are_not_there(renorm, library):
    """On a card nobody looks at expert_idx before: such a choice is as one whose dy is 0, other tokens are as ever."""
    random = np.random.default_rng(0)
    x, dy = (random.standard_normal(shape).astype(np.float32) for shape in ((6, 8), (6, 2)))
    experts = np.array([[1, 2]] * 6, np.int32)
    wrong = {(0, 0): -1, (1, 1): 1000, (2, 0): -(2**31), (3, 1): 2**31 - 1}
    without, beyond = dy.copy(), experts.copy()
    for at, expert in wrong.items():
        without[at], beyond[at] = 0, expert
    run = Launcher(library, check_values=False)
    (found,) = run("moe_gating_top_k_softmax_grad", (dy, x, beyond), k=2, renorm=renorm)
    (wanted,) = run("moe_gating_top_k_softmax_grad", (without, x, experts), k=2, renorm=renorm)
    rows = slice(4, 6) if renorm else slice(None)  # of fewer choices the probabilities differ
    np.testing.assert_array_equal(found[rows], wanted[rows])


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_equal_logits_take_the_lower_expert(mode):
    ms.set_context(mode=mode)
    x = np.array([[0, 1, 1, 1], [2, 2, 2, 2], [5, 5, 0, 0], [0, 3, -1, 3]], np.float32)
    _, index, row = ops.moe_gating_top_k_softmax(ms.Tensor(x), k=2)
    assert index.asnumpy().tolist() == [[1, 2], [0, 1], [0, 1], [1, 3]]
    assert row.asnumpy().tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_not_finite():
    """A row with NaN gives something in range, the other rows what they give alone."""
    x = np.random.default_rng(0).standard_normal((40, 24)).astype(np.float32)
    clean = ops.moe_gating_top_k_softmax(ms.Tensor(x), k=3)
    x[7, 5] = np.nan
    x[20] = np.nan
    x[31, ::2] = -np.inf
    y, index, _ = (out.asnumpy() for out in ops.moe_gating_top_k_softmax(ms.Tensor(x), k=3))
    assert ((index >= 0) & (index < 24)).all()
    others = ~np.isin(np.arange(40), (7, 20, 31))
    assert (y[others] == clean[0].asnumpy()[others]).all()
    assert (index[others] == clean[1].asnumpy()[others]).all()
    assert np.isnan(y[7]).all()
    assert np.isnan(y[20]).all()
    assert set(index[31]) == set(ref.best(x[31], 3))


def test_not_finite_gradient():
    """With renorm only the chosen experts have a gradient, whatever theirs is."""
    x = np.zeros((2, 6), np.float32)
    x[0, 2] = np.inf
    dx = ms.grad(lambda x: ops.moe_gating_top_k_softmax(x, k=2, renorm=1)[0].sum())(ms.Tensor(x)).asnumpy()
    assert np.isnan(dx[0, [0, 2]]).all()
    assert (dx[0, [1, 3, 4, 5]] == 0).all() and (dx[1] == 0).all()


def test_minus_infinity_before_padding():
    """Experts that a mask has ruled out still come before numbers that are no expert."""
    x = np.full((3, 5), -np.inf, np.float32)
    x[:, 2] = 1
    _, index, _ = ops.moe_gating_top_k_softmax(ms.Tensor(x), k=5)
    assert index.asnumpy().tolist() == [[2, 0, 1, 3, 4]] * 3


def test_gradient_of_softmax_result():
    x = np.random.default_rng(1).standard_normal((6, 10)).astype(np.float32)
    dy, dp = np.random.default_rng(2).standard_normal((2, 6, 10)).astype(np.float32)

    def loss(x):
        y, _, _, p = ops.moe_gating_top_k_softmax(x, k=4, output_softmax_result_flag=True)
        return (y * ms.Tensor(dy[:, :4])).sum() + (p * ms.Tensor(dp)).sum()

    expected = ref.gradient(dy[:, :4].astype(np.float64), x.astype(np.float64), 4, dsoftmax=dp.astype(np.float64))
    np.testing.assert_allclose(ms.grad(loss)(ms.Tensor(x)).asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"k": 9}, ValueError, r"'k' must be at most dim E of 'x' \(8\), but got 9"),
        ({"k": 0}, ValueError, "'k' must satisfy '1 <= k <= 1024', but got 0"),
        ({"k": 2.0}, TypeError, "'k' must be of type int"),
        ({"renorm": 2}, ValueError, "'renorm' must be one of 0, 1, but got 2"),
        ({"renorm": 1, "output_softmax_result_flag": True}, ValueError, "output_softmax_result_flag"),
        ({"finished": ms.Tensor(np.zeros(3, bool))}, ValueError, "finished"),
        ({"finished": ms.Tensor(np.zeros(4, np.int32))}, TypeError, "finished"),
    ],
)
def test_bad_input(mode, change, error, text):
    ms.set_context(mode=mode)
    with pytest.raises(error, match=text):
        ops.moe_gating_top_k_softmax(ms.ops.ones((4, 8), ms.float32), **{"k": 2, **change})
