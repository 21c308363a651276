# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Every Cell under automatic mixed precision, whose O1 rewrites the source of Cells and of what they call."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, amp

from ms_ops_transformer import nn
from ms_ops_transformer.models import DecoderConfig, DecoderForCausalLM, composed

RNG = np.random.default_rng(0)
MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


def _x(*shape):
    return Tensor(RNG.standard_normal(shape).astype(np.float32))


BSH, BNSD, BSND, TND = _x(2, 3, 64), _x(2, 4, 3, 16), _x(2, 3, 4, 16), _x(6, 4, 16)
KEEP = Tensor(np.tril(np.ones((3, 3), bool)))
DROP = Tensor(np.eye(3, k=-1, dtype=bool))
ENDS = Tensor([2, 6], ms.int64)
IDS = Tensor(RNG.integers(0, 32, (1, 8)).astype(np.int32))
CONFIG = {"vocab_size": 32, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2, "seq_length": 8}

# name: (the Cell, its inputs)
CELLS = {
    "FlashAttention": (lambda: nn.FlashAttention(16, 4, causal=True), (BSH,) * 3),
    "FlashAttention_BNSD": (lambda: nn.FlashAttention(16, 4, causal=True, layout="BNSD"), (BNSD,) * 3 + (DROP,)),
    "FlashAttentionScore": (nn.FlashAttentionScore, (BNSD,) * 3),
    "FlashAttentionScore_BSND": (lambda: nn.FlashAttentionScore(None, "BSND", mask_type="keep"), (BSND,) * 3 + (KEEP,)),
    "FlashAttentionScore_TND": (
        lambda: nn.FlashAttentionScore(4, "TND"),
        (TND,) * 3 + (None,) * 5 + (ENDS, ENDS),
    ),
    # Not slopes or a sink: they are float32, and O2 and O3 make halves of all inputs.
    "FlashAttentionV2": (lambda: nn.FlashAttentionV2(pse_type=0), (BNSD,) * 3 + (None, None, _x(1, 4, 3, 3))),
    "RMSNorm": (lambda: nn.RMSNorm(64), (BSH,)),
    "RotaryEmbedding": (lambda: nn.RotaryEmbedding(16, 32), (BSND,)),
    "SelfAttention": (lambda: nn.SelfAttention(64, 4, 2, qk_norm=True, qkv_bias=True), (BSH,)),
    "SwiGLU": (lambda: nn.SwiGLU(64, 32, has_bias=True), (BSH,)),
    "SwiGLU_activation": (nn.SwiGLU, (BSH,)),
    "composed.FlashAttention": (lambda: composed.FlashAttention(16, 4, causal=True), (BSH,) * 3),
    "composed.RMSNorm": (lambda: composed.RMSNorm(64), (BSH,)),
    "composed.RotaryEmbedding": (lambda: composed.RotaryEmbedding(16, 32), (BSND,)),
    "composed.SwiGLU": (lambda: composed.SwiGLU(64, 32), (BSH,)),
    "Decoder": (lambda: DecoderForCausalLM(DecoderConfig(**CONFIG)), (IDS,)),
}


class Nested(ms.nn.Cell):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def construct(self, *inputs):
        return self.cell(*inputs)


class Loss(ms.nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, weights, *inputs):
        return (self.net(*inputs).astype(ms.float32) * weights).sum()


def _gradients(net, weights, inputs):
    """Of the first input, or of the parameters where that one holds ids."""
    if inputs[0].dtype == ms.float32:
        return (ms.grad(Loss(net), 1)(weights, *inputs),)
    return ms.grad(Loss(net), None, net.trainable_params())(weights, *inputs)


def _near(found, want):
    found, want = found.astype(ms.float32).asnumpy(), want.asnumpy()
    assert found.shape == want.shape
    assert np.abs(found - want).max() <= 2e-2 * max(1, np.abs(want).max())


def test_the_cells_are_all_here():
    missing = set(nn.__all__) - {name.split("_")[0] for name in CELLS}
    assert missing == {"DropoutState", "rotary_tables"}, "a Cell of tensors of integers, and a function of numbers"


@MODES
@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("name", CELLS)
def test_amp(name, level, mode, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # O1 writes its sources there
    ms.set_context(mode=mode)
    build, inputs = CELLS[name]
    ms.set_seed(1)
    plain = build()
    want = plain(*inputs)
    weights = _x(*want.shape)
    gradients = _gradients(plain, weights, inputs)
    assert np.abs(gradients[0].asnumpy()).max() > 0.1
    for wrap in (Nested,) if level in ("O2", "O3") else (Nested, lambda cell: cell):
        ms.set_seed(1)
        net = amp.auto_mixed_precision(wrap(build()), level)
        _near(net(*inputs), want)
        for found, right in zip(_gradients(net, weights, inputs), gradients):
            _near(found, right)
