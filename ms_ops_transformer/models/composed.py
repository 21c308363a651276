# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The Cells of ms_ops_transformer.nn, composed of MindSpore's own operators.

Same constructors and parameters, no kernel of this library: the other side of the comparison that
examples/train_llm.py prints, and the way to run a model part whose fused form is switched off in its YAML.
"""

import numpy as np
from mindspore import Tensor, nn, ops

from .. import nn as fused


class FlashAttention(fused.FlashAttention):
    """Scores, mask, softmax and product as separate operators: the score matrix is in memory."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.keep_prob < 1:
            raise ValueError(f"For 'composed.FlashAttention', 'dropout' must be 0, but got {1 - self.keep_prob}.")
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.product = ops.BatchMatMul()
        self.softmax = ops.Softmax(-1)

    def attend(self, q, k, v, attn_mask, keep_prob, seed_offset):
        shape = q.shape
        q, k, v = (
            self._to_bnsd(q, self.num_heads),
            self._to_bnsd(k, self.num_kv_heads),
            self._to_bnsd(v, self.num_kv_heads),
        )
        groups = self.num_heads // self.num_kv_heads
        if groups > 1:
            k, v = ops.repeat_interleave(k, groups, 1), ops.repeat_interleave(v, groups, 1)
        s = self.scores(q * self.scale, k)
        if self.causal:
            hidden = np.triu(np.full((q.shape[2], k.shape[2]), -1e4, np.float32), 1 + k.shape[2] - q.shape[2])
            s = s + Tensor(hidden).astype(s.dtype)
        if attn_mask is not None:
            s = ops.masked_fill(s, attn_mask.astype("bool"), -1e4)
        y = self.product(self.softmax(s), v)
        if self.layout == "BNSD":
            return y
        return (
            y.transpose(2, 0, 1, 3).reshape(shape) if self.layout == "SBH" else y.transpose(0, 2, 1, 3).reshape(shape)
        )

    def _to_bnsd(self, x, heads):
        if self.layout == "BNSD":
            return x
        if self.layout == "SBH":
            return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2, 0, 3)
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


class RMSNorm(fused.RMSNorm):
    """Square, mean, rsqrt and two products."""

    def normalise(self, x, gamma):
        return x * ops.rsqrt((x * x).mean(-1, True) + self.eps) * gamma


class RotaryEmbedding(fused.RotaryEmbedding):
    """Split, join, two products and a sum."""

    def rotate(self, x, cos, sin):
        if self.mode == 0:
            first, second = ops.split(x, x.shape[-1] // 2, -1)
            turned = ops.concat((-second, first), -1)
        else:
            pairs = x.reshape(x.shape[:-1] + (-1, 2))
            turned = ops.stack((-pairs[..., 1], pairs[..., 0]), -1).reshape(x.shape)
        return x * cos + turned * sin


class SwiGLU(fused.SwiGLU):
    """Two products, silu and a multiplication."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.silu = nn.SiLU()

    def construct(self, x):
        if not self.projected:
            gate, up = ops.split(x, x.shape[-1] // 2, -1)
            return self.silu(gate) * up
        return self.down_proj(self.silu(self.gate_proj(x)) * self.up_proj(x))
