# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The Cells against NumPy, in both modes; their options, dropout and errors."""

import math

import mindspore as ms
import numpy as np
import pytest

from ms_ops_transformer import nn
from ms_ops_transformer.models import composed

RNG = np.random.default_rng(0)
MODES = pytest.mark.parametrize("mode", ("graph", "pynative"))


@pytest.fixture(autouse=True)
def set_mode(request):
    mode = request.node.callspec.params.get("mode", "pynative") if hasattr(request.node, "callspec") else "pynative"
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)


def _x(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def _t(*arrays):
    return tuple(ms.Tensor(a) for a in arrays)


def _attention(q, k, v, causal=False, mask=None, bias=None, scale=None):
    """[B, N, S, D] in float64."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    s = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        s = s + bias
    hidden = np.zeros(s.shape[-2:], bool)
    if causal:
        hidden = np.triu(np.ones(s.shape[-2:], bool), 1 + s.shape[-1] - s.shape[-2])
    if mask is not None:
        hidden = hidden | mask
    s = np.where(hidden, -np.inf, s)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def _to_layout(x, layout):
    """[B, N, S, D] as the layout."""
    b, n, s, d = x.shape
    return {
        "BNSD": lambda: x,
        "BSND": lambda: x.transpose(0, 2, 1, 3),
        "SBH": lambda: x.transpose(2, 0, 1, 3).reshape(s, b, -1),
        "BSH": lambda: x.transpose(0, 2, 1, 3).reshape(b, s, -1),
    }[layout]().copy()


Q, K, V = _x(2, 4, 9, 8), _x(2, 2, 9, 8), _x(2, 2, 9, 8)
MASK = RNG.random((2, 1, 9, 9)) < 0.3
MASK[..., 0] = False


@MODES
@pytest.mark.parametrize("cells", (nn, composed), ids=("fused", "composed"))
@pytest.mark.parametrize("layout", ("BSH", "SBH", "BSND", "BNSD"))
def test_flash_attention(layout, cells, mode):
    cell = cells.FlashAttention(8, 4, causal=True, num_kv_heads=2, layout=layout)
    out = cell(*_t(*(_to_layout(a, layout) for a in (Q, K, V))), ms.Tensor(MASK)).asnumpy()
    np.testing.assert_allclose(out, _to_layout(_attention(Q, K, V, True, MASK), layout), rtol=1e-4, atol=1e-5)


@MODES
def test_flash_attention_score_masks(mode):
    q, k, v = _t(Q, K, V)
    expected = _attention(Q, K, V, mask=MASK)
    drop = nn.FlashAttentionScore()(q, k, v, attn_mask=ms.Tensor(MASK))
    keep = nn.FlashAttentionScore(mask_type="keep")(q, k, v, attn_mask=ms.Tensor(~MASK))
    keep8 = nn.FlashAttentionScore(mask_type="keep")(q, k, v, attn_mask=ms.Tensor((~MASK).astype(np.uint8)))
    for out in (drop, keep, keep8):
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-4, atol=1e-5)


@MODES
def test_flash_attention_score_scale_and_bias(mode):
    q, k, v = _t(Q, K, V)
    bias = _x(2, 1, 9, 9)
    out = nn.FlashAttentionScore()(q, k, v, attn_mask=ms.Tensor(bias), scale=0.3).asnumpy()
    np.testing.assert_allclose(out, _attention(Q, K, V, bias=bias, scale=0.3), rtol=1e-4, atol=1e-5)
    square = nn.FlashAttentionScore()(q, k, v, attn_mask=ms.Tensor(bias[0, 0])).asnumpy()
    np.testing.assert_allclose(square, _attention(Q, K, V, bias=bias[0, 0]), rtol=1e-4, atol=1e-5)


@MODES
def test_flash_attention_score_causal_and_packed(mode):
    q, k, v = _t(Q, K, V)
    out = nn.FlashAttentionScore(sparse_mode=3)(q, k, v).asnumpy()
    np.testing.assert_allclose(out, _attention(Q, K, V, True), rtol=1e-4, atol=1e-5)
    packed = [np.concatenate(a.transpose(0, 2, 1, 3)) for a in (Q, K, V)]
    out = nn.FlashAttentionScore(input_layout="TND", sparse_mode=3)(
        *_t(*packed), actual_seq_qlen=(9, 18), actual_seq_kvlen=(9, 18)
    ).asnumpy()
    expected = np.concatenate(_attention(Q, K, V, True).transpose(0, 2, 1, 3))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@MODES
def test_flash_attention_v2_alibi(mode):
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
    distance = np.abs(np.arange(9)[:, None] - np.arange(9))
    out = nn.FlashAttentionV2(pse_type=2)(*_t(Q, K, V), real_shift=ms.Tensor(slopes)).asnumpy()
    expected = _attention(Q, K, V, bias=-slopes[:, None, None] * distance)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@MODES
def test_flash_attention_score_softcap_and_sink(mode):
    sink = _x(4)
    out = nn.FlashAttentionScore(softcap=2.0)(*_t(Q, K, V), sink=ms.Tensor(sink)).asnumpy()
    k, v = np.repeat(K, 2, 1).astype(np.float64), np.repeat(V, 2, 1)
    s = 2 * np.tanh(Q @ k.swapaxes(-1, -2) / math.sqrt(8) / 2)
    p = np.exp(s)
    expected = p / (p.sum(-1, keepdims=True) + np.exp(sink)[:, None, None]) @ v
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def _dropout_outputs(mode, cell, *arguments):
    cell.set_train()
    return [cell(*arguments).asnumpy() for _ in range(2)]


@MODES
def test_dropout_moves_on_and_repeats_from_the_seed(mode):
    x = _t(*(_to_layout(a, "BSH") for a in (Q, K, V)))
    cell = nn.FlashAttention(8, 4, num_kv_heads=2, dropout=0.5, seed=3)
    first, second = _dropout_outputs(mode, cell, *x)
    assert not np.allclose(first, second)
    again = _dropout_outputs(mode, nn.FlashAttention(8, 4, num_kv_heads=2, dropout=0.5, seed=3), *x)
    assert np.array_equal(again[0], first) and np.array_equal(again[1], second)
    cell.set_train(False)
    plain = _to_layout(_attention(Q, K, V), "BSH")
    np.testing.assert_allclose(cell(*x).asnumpy(), plain, rtol=1e-4, atol=1e-5)


@MODES
def test_dropout_gradient_uses_the_mask_of_the_forward(mode):
    """v enters linearly: the sum of the output is the sum over v of its gradient, with the same mask."""
    q, k, v = _t(*(_to_layout(a, "BSH") for a in (Q, K, V)))
    cell = nn.FlashAttention(8, 4, num_kv_heads=2, dropout=0.5, seed=3)
    cell.set_train()
    value, gradient = (
        ms.value_and_grad(lambda v: cell(q, k, v).sum(), 0)(v)
        if mode == "pynative"
        else ms.value_and_grad(_Sum(cell, q, k), 0)(v)
    )
    assert abs(float((gradient * v).sum().asnumpy()) - float(value.asnumpy())) < 1e-3


class _Sum(ms.nn.Cell):
    def __init__(self, cell, q, k):
        super().__init__()
        self.cell, self.q, self.k = cell, q, k

    def construct(self, v):
        return self.cell(self.q, self.k, v).sum()


class _Block(ms.nn.Cell):
    def __init__(self, dropout=0.4):
        super().__init__()
        self.attention = nn.SelfAttention(16, 4, num_kv_heads=2, dropout=dropout)

    def construct(self, x, seed_offset=None):
        return self.attention(x, None, None, seed_offset)


class _Net(ms.nn.Cell):
    def __init__(self, recompute, given=True):
        super().__init__()
        self.state, self.given = nn.DropoutState(5), given
        self.block = _Block()
        if recompute:
            self.block.recompute()

    def construct(self, x):
        return (self.block(x, self.state() if self.given else None) ** 2).sum()


def _gradients(recompute):
    ms.set_seed(2)
    net = _Net(recompute)
    net.set_train()
    step = ms.value_and_grad(net, None, net.trainable_params())
    x = ms.Tensor(np.random.default_rng(1).standard_normal((2, 6, 16)).astype(np.float32))
    return [[g.asnumpy() for g in step(x)[1]] for _ in range(2)]


@MODES
def test_dropout_under_recompute(mode):
    for plain, recomputed in zip(_gradients(False), _gradients(True)):
        for a, b in zip(plain, recomputed):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@MODES
def test_own_dropout_stream_in_a_recomputed_cell_is_refused(mode):
    net = _Net(True, given=False)
    net.set_train()
    with pytest.raises(ValueError, match="'seed_offset' must be given"):
        net(ms.Tensor(_x(2, 6, 16)))


@MODES
def test_dropout_state(mode):
    state = nn.DropoutState(7, step=3)
    assert [state().asnumpy().tolist() for _ in range(3)] == [[7, 0], [7, 3], [7, 6]]
    assert not state.trainable_params()


@MODES
@pytest.mark.parametrize("cells", (nn, composed), ids=("fused", "composed"))
def test_rms_norm(cells, mode):
    cell = cells.RMSNorm(12, 1e-5)
    gain, x = _x(12), _x(3, 5, 12)
    cell.weight.set_data(ms.Tensor(gain))
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) * gain
    np.testing.assert_allclose(cell(ms.Tensor(x)).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    half = cells.RMSNorm(12, 1e-5, compute_dtype=ms.float32)
    half.weight.set_data(ms.Tensor(gain))
    out = half(ms.Tensor(x.astype(np.float16)))
    assert out.dtype == ms.float16
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=5e-3, atol=5e-3)


@MODES
@pytest.mark.parametrize("cells", (nn, composed), ids=("fused", "composed"))
def test_swiglu(cells, mode):
    x = _x(2, 3, 8)
    gate, up = x[..., :4].astype(np.float64), x[..., 4:]
    np.testing.assert_allclose(
        cells.SwiGLU()(ms.Tensor(x)).asnumpy(), gate / (1 + np.exp(-gate)) * up, rtol=1e-5, atol=1e-6
    )
    cell = cells.SwiGLU(8, 12, has_bias=True)
    for p in cell.get_parameters():
        p.set_data(ms.Tensor(_x(*p.shape)))
    w = {p.name: p.asnumpy().astype(np.float64) for p in cell.get_parameters()}
    gate = x @ w["gate_proj.weight"].T + w["gate_proj.bias"]
    up = x @ w["up_proj.weight"].T + w["up_proj.bias"]
    expected = (gate / (1 + np.exp(-gate)) * up) @ w["down_proj.weight"].T + w["down_proj.bias"]
    np.testing.assert_allclose(cell(ms.Tensor(x)).asnumpy(), expected, rtol=1e-4, atol=1e-4)


def _rotated(x, positions, base, interleave):
    """x [..., S, D], positions [S], one pair after the other."""
    d = x.shape[-1]
    y = x.astype(np.float64).copy()
    for i in range(d // 2):
        a, b = (2 * i, 2 * i + 1) if interleave else (i, i + d // 2)
        angle = positions * base ** (-2 * i / d)
        y[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
        y[..., b] = x[..., b] * np.cos(angle) + x[..., a] * np.sin(angle)
    return y


@MODES
@pytest.mark.parametrize("cells", (nn, composed), ids=("fused", "composed"))
@pytest.mark.parametrize("style", ("half", "interleave"))
def test_rotary(style, cells, mode):
    x = _x(2, 3, 5, 8)  # B N S D
    axes = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "SBND": (2, 0, 1, 3)}
    for layout, order in axes.items():
        cell = cells.RotaryEmbedding(8, max_positions=11, base=100.0, mode=style, layout=layout)
        given = ms.Tensor(x.transpose(order).copy())
        expected = _rotated(x, np.arange(5), 100.0, style == "interleave").transpose(order)
        np.testing.assert_allclose(cell(given).asnumpy(), expected, rtol=1e-5, atol=1e-5)
        shifted = _rotated(x, np.arange(5) + 6, 100.0, style == "interleave").transpose(order)
        np.testing.assert_allclose(
            cell(given, ms.Tensor(np.arange(6, 11, dtype=np.int32))).asnumpy(), shifted, rtol=1e-4, atol=1e-5
        )
        rows = np.stack((np.arange(5), np.arange(5) + 6)).astype(np.int32)
        both = np.stack(
            (
                _rotated(x[0], rows[0], 100.0, style == "interleave"),
                _rotated(x[1], rows[1], 100.0, style == "interleave"),
            )
        ).transpose(order)
        np.testing.assert_allclose(cell(given, ms.Tensor(rows)).asnumpy(), both, rtol=1e-4, atol=1e-5)


def test_rotary_tables_scaling():
    cos, _ = nn.rotary_tables(8, 6, 100.0)
    scaled, _ = nn.rotary_tables(8, 11, 100.0, scaling={"type": "linear", "factor": 2.0})
    np.testing.assert_allclose(scaled[::2], cos, atol=1e-6)
    ntk, _ = nn.rotary_tables(8, 6, 100.0, scaling={"type": "ntk", "factor": 4.0})
    np.testing.assert_allclose(ntk[:, 0], cos[:, 0], atol=1e-6)  # the fastest pair stays
    np.testing.assert_allclose(ntk[:, 3], np.cos(np.arange(6) * 100.0**-0.75 / 4), atol=1e-6)  # the slowest slows down


@MODES
def test_self_attention(mode):
    cell = nn.SelfAttention(16, 4, num_kv_heads=2, head_dim=6, qk_norm=True, qkv_bias=True, out_bias=True)
    for p in cell.get_parameters():
        p.set_data(ms.Tensor(_x(*p.shape)))
    w = {p.name: p.asnumpy().astype(np.float64) for p in cell.get_parameters()}
    x = _x(2, 7, 16)

    def heads(name, n, normed):
        y = (x @ w[f"{name}_proj.weight"].T + w[f"{name}_proj.bias"]).reshape(2, 7, n, 6).transpose(0, 2, 1, 3)
        if normed:
            y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) * w[f"{name}_norm.weight"]
            y = _rotated(y, np.arange(7), 10000.0, False)
        return y

    y = _attention(heads("q", 4, True), heads("k", 2, True), heads("v", 2, False), causal=True)
    expected = y.transpose(0, 2, 1, 3).reshape(2, 7, 24) @ w["o_proj.weight"].T + w["o_proj.bias"]
    np.testing.assert_allclose(cell(ms.Tensor(x)).asnumpy(), expected, rtol=1e-3, atol=1e-4)


BAD = {
    "head_dim": (
        lambda: nn.FlashAttention(0, 4),
        ValueError,
        "For 'FlashAttention', 'head_dim' must be at least 1, but got 0",
    ),
    "type": (lambda: nn.FlashAttention("8", 4), TypeError, "'head_dim' must be an int, but got '8'"),
    "groups": (
        lambda: nn.FlashAttention(8, 4, num_kv_heads=3),
        ValueError,
        r"a divisor of 'num_heads' \(4\), but got 3",
    ),
    "dropout": (
        lambda: nn.FlashAttention(8, 4, dropout=1.0),
        ValueError,
        r"'dropout' must be in \[0, 1\), but got 1.0",
    ),
    "layout": (lambda: nn.FlashAttention(8, 4, layout="TND"), ValueError, "'layout' must be one of .* but got 'TND'"),
    "keep": (lambda: nn.FlashAttentionScore(keep_prob=0.0), ValueError, "'keep_prob' must be above 0, but got 0.0"),
    "heads": (
        lambda: nn.FlashAttentionScore(input_layout="BSH"),
        ValueError,
        "'head_num' must be given .* BSH, but got None",
    ),
    "mask": (
        lambda: nn.FlashAttentionScore(mask_type="add"),
        ValueError,
        "'mask_type' must be one of .* but got 'add'",
    ),
    "pse": (lambda: nn.FlashAttentionV2(pse_type=4), ValueError, "'pse_type' must be one of 0, 1, 2, 3, but got 4"),
    "hidden": (lambda: nn.SelfAttention(18, 4), ValueError, r"multiple of 'num_heads' \(4\) .* but got 18"),
    "eps": (lambda: nn.RMSNorm(4, -1.0), ValueError, "'eps' must be at least 0, but got -1.0"),
    "odd": (lambda: nn.RotaryEmbedding(7), ValueError, "'head_dim' must be even, but got 7"),
    "style": (
        lambda: nn.RotaryEmbedding(8, mode="both"),
        ValueError,
        "'mode' must be one of 'half', 'interleave', but got",
    ),
    "kind of scaling": (
        lambda: nn.RotaryEmbedding(8, scaling={"type": "magic", "factor": 2.0}),
        ValueError,
        "must be one of 'none', 'default', 'linear', 'ntk', 'llama3', 'yarn', but got 'magic'",
    ),
    "scaling": (
        lambda: nn.RotaryEmbedding(8, scaling={"type": "yarn", "factor": 2}),
        ValueError,
        "must have the key 'original_max_position_embeddings'",
    ),
    "swiglu": (lambda: nn.SwiGLU(8), TypeError, "'ffn_hidden_size' must be an int, but got None"),
    "causal": (lambda: nn.FlashAttention(8, 4, causal="no"), TypeError, "'causal' must be True or False, but got 'no'"),
    "infinite": (lambda: nn.RMSNorm(4, float("inf")), ValueError, "'eps' must be finite, but got inf"),
    "ntk": (
        lambda: nn.RotaryEmbedding(2, scaling={"type": "ntk", "factor": 2.0}),
        ValueError,
        "'head_dim' must be at least 4 with 'ntk', but got 2",
    ),
    "bias": (lambda: nn.SelfAttention(16, 4, qkv_bias="x"), TypeError, "'qkv_bias' must be True or False, but got 'x'"),
    "dtype": (
        lambda: nn.SelfAttention(16, 4, params_dtype="x"),
        ValueError,
        "For 'SelfAttention', 'params_dtype' must be one of .*bfloat16.*, but got 'x'",
    ),
    "norm_dtype": (lambda: nn.RMSNorm(4, params_dtype=ms.int32), ValueError, "'params_dtype' must be one of .*nt32"),
    "huge": (lambda: nn.RMSNorm(2**70), ValueError, "'dim' must be an int of 64 bits, but got 1180591620717411303424"),
    "seed": (lambda: nn.DropoutState(0.5), TypeError, "'seed' must be an int, but got 0.5"),
    "composed": (lambda: composed.FlashAttention(8, 4, dropout=0.5), ValueError, "'dropout' must be 0, but got 0.5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_constructor_arguments(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()


@MODES
def test_wrong_last_dim(mode):
    for name, cell in (("SwiGLU", nn.SwiGLU(32, 64)), ("SelfAttention", nn.SelfAttention(32, 4))):
        with pytest.raises(
            ValueError, match=rf"For '{name}', the last dim of 'x' must be 'hidden_size' \(32\), but got 16"
        ):
            cell(ms.Tensor(_x(2, 5, 16)))


@pytest.mark.parametrize("shape", ((2, None, 32), (2, None, None), None), ids=("sequence", "width", "rank"))
def test_unknown_dims_pass_the_check_of_the_last(shape):
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = nn.SwiGLU(32, 64)
    x = ms.Tensor(_x(2, 5, 32))
    expected = cell(x).asnumpy()
    cell.set_inputs(ms.Tensor(shape=shape, dtype=ms.float32))
    np.testing.assert_array_equal(cell(x).asnumpy(), expected)


@MODES
def test_rotary_refuses_what_are_no_positions(mode):
    q, k = ms.Tensor(_x(1, 4, 2, 16)), ms.Tensor(_x(1, 4, 2, 16))
    with pytest.raises(TypeError, match="For 'RotaryEmbedding', 'positions' must be int32 or int64, but got Float32"):
        nn.RotaryEmbedding(16)(q, k)
    with pytest.raises(ValueError, match=r"but got 4. A SelfAttention takes a longer one as rotary=RotaryEmbedding"):
        nn.RotaryEmbedding(16, 3)(q)


@MODES
def test_what_is_no_tensor_is_named(mode):
    with pytest.raises(TypeError, match="For 'RmsNorm', 'x' must be a Tensor, but got <class 'numpy.ndarray'>"):
        nn.RMSNorm(16)(_x(4, 16))


@MODES
def test_wrong_number_of_kv_heads(mode):
    x = ms.Tensor(_x(1, 4, 32))
    with pytest.raises(ValueError, match=r"num_kv_heads \* head_dim \(2 \* 8\), but got 32"):
        nn.FlashAttention(8, 4, num_kv_heads=2)(x, x, x)


@MODES
def test_inputs_that_the_constructor_does_not_foresee(mode):
    x = ms.Tensor(_x(1, 4, 5, 16))
    with pytest.raises(ValueError, match=r"the last dim of 'k' must be head_dim \(8\), but got 16"):
        nn.FlashAttention(8, 4, layout="BNSD")(x, x, x)
    with pytest.raises(TypeError, match="For 'FlashAttention', 'k' must be a Tensor, but got None"):
        nn.FlashAttention(16, 4, layout="BNSD")(x, None, x)
    with pytest.raises(TypeError, match="For 'FlashAttentionScore', 'query' must be a Tensor, but got None"):
        nn.FlashAttentionScore()(None, x, x)
    flat = ms.Tensor(_x(1, 5, 16))
    with pytest.raises(ValueError, match="the last dim of 'query' must be a multiple of its 17 heads, but got 16"):
        nn.FlashAttentionScore(17, "BSH")(flat, flat, flat)


def _unknown(*shape):
    return ms.Tensor(shape=list(shape), dtype=ms.float32)


@pytest.mark.parametrize("masked", (False, True), ids=("causal", "causal_and_mask"))
@pytest.mark.parametrize(
    "layout, shape",
    [("BSH", [None] * 3), ("SBH", [None] * 3), ("BNSD", [None] * 4), ("BSND", [2, 9, None, 8]), ("BSH", None)],
    ids=["BSH", "SBH", "BNSD", "heads", "rank"],
)
def test_unknown_dims(layout, shape, masked):
    """N and the scale are numbers, which is enough."""
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = nn.FlashAttention(8, 4, causal=True, num_kv_heads=2, layout=layout)
    unknown = ms.Tensor(shape=shape, dtype=ms.float32)
    mask = (ms.Tensor(MASK),) if masked else ()
    cell.set_inputs(*(unknown,) * 3, *(ms.Tensor(shape=[None] * 4, dtype=ms.bool_) for _ in mask))
    out = cell(*_t(*(_to_layout(a, layout) for a in (Q, K, V))), *mask).asnumpy()
    expected = _attention(Q, K, V, True, MASK if masked else None)
    np.testing.assert_allclose(out, _to_layout(expected, layout), rtol=1e-4, atol=1e-5)


def test_unknown_dims_of_the_other_attention_cells():
    ms.set_context(mode=ms.GRAPH_MODE)
    score = nn.FlashAttentionScore(4, scale=0.3)
    score.set_inputs(*(_unknown(None, None, None, None),) * 3)
    np.testing.assert_allclose(score(*_t(Q, K, V)).asnumpy(), _attention(Q, K, V, scale=0.3), rtol=1e-4, atol=1e-5)
    cell, x = nn.SelfAttention(16, 4), ms.Tensor(_x(2, 7, 16))
    want = cell(x).asnumpy()
    cell.set_inputs(_unknown(None, None, None))
    np.testing.assert_allclose(cell(x).asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("heads, name", [(None, "head_num"), (4, "scalar_value")])
def test_unknown_dims_that_something_follows_from(heads, name):
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = nn.FlashAttentionScore(heads)
    cell.set_inputs(*(_unknown(2, None, 9, None),) * 3)
    with pytest.raises(ValueError, match=f"For 'FlashAttentionScore', '{name}' must be a number when"):
        cell(*_t(Q, K, V))
