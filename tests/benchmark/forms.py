# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What each operator is compared with: the same result composed of MindSpore operators, and in torch; and its floor.

A form takes the tensors of a case by the names that the operator's test module uses and returns the output alone.
Forms are built per case (`composed(c)`), None where there is nothing to compare with. `work(c)` gives the
floating-point operations ("flops") or the bytes moved ("bytes", per byte of an element "elements") of forward and
backward.
"""

from dataclasses import dataclass
from typing import Callable

import numpy as np

FORMS = {}


@dataclass(frozen=True)
class Forms:
    """How one operator is measured; see the head of the file."""

    work: Callable
    composed: Callable = lambda c: None
    torch: Callable = lambda c: None
    torch_dtypes: tuple = ("float32", "bfloat16")
    composed_dtypes: tuple = ("float32", "float16")  # MindSpore has next to no bfloat16 on the CPU
    grads: tuple = None  # inputs to differentiate by, if not all that have a gradient
    op: Callable = lambda module: module.OP  # how the module describes the operator
    kernel_only: bool = False  # forward is the kernel without MindSpore


def form(name, **options):
    """Decorator: the function is the `work` of operator `name`."""

    def register(work):
        FORMS[name] = Forms(work, **options)
        return work

    return register


# ---------------------------------------------------------------------------------------------- attention
def visible_pairs(c):
    """(query, key) pairs of all heads that no mask by position hides; a mask tensor hides nothing here."""
    heads = c.get("B", 1) * c.get("N", 2)
    lengths = list(zip(c.q_lens, c.kv_lens)) if c.get("q_lens") else [(c.Sq, c.get("Skv", c.Sq))]
    total = 0
    for sq, skv in lengths:
        i = np.arange(sq)
        if c.get("sparse_mode", 0) == 3:
            total += np.clip(i + 1 + skv - sq, 0, skv).sum()
        elif c.get("sparse_mode", 0) == 4:
            last = np.clip(i + skv - sq + c.next_tokens, -1, skv - 1)
            first = np.clip(i + skv - sq - c.pre_tokens, 0, skv)
            total += np.clip(last - first + 1, 0, None).sum()
        else:
            total += sq * skv
    return int(total) * heads


def _plain(c):
    return not any(c.get(key) for key in ("q_lens", "pse", "softcap", "sink", "mask")) and c.get("keep_prob", 1.0) == 1


def composed_attention(c):
    """Scores, mask, softmax, product; heads of keys and values repeated."""
    if not _plain(c) or c.get("sparse_mode", 0) not in (0, 3):
        return None
    from mindspore import Tensor, ops

    groups = c.get("N", 2) // c.get("Nkv", c.get("N", 2))
    scale = float(c.get("D", 16) ** -0.5)
    sq, skv = c.Sq, c.get("Skv", c.Sq)
    hidden = None
    if c.get("sparse_mode", 0) == 3:
        hidden = Tensor(np.triu(np.full((sq, skv), -1e4, np.float32), 1 + skv - sq))
    scores, product, softmax = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul(), ops.Softmax(-1)

    def attention(query, key, value):
        if groups > 1:
            key, value = ops.repeat_interleave(key, groups, 1), ops.repeat_interleave(value, groups, 1)
        s = scores(query * scale, key)
        if hidden is not None:
            s = s + hidden.astype(s.dtype)
        return product(softmax(s), value)

    return attention


def torch_attention(c):
    """torch.nn.functional.scaled_dot_product_attention."""
    if not _plain(c) or c.get("sparse_mode", 0) not in (0, 3) or c.Sq != c.get("Skv", c.Sq):
        return None
    from torch.nn.functional import scaled_dot_product_attention

    causal, gqa = c.get("sparse_mode", 0) == 3, c.get("Nkv", c.get("N", 2)) != c.get("N", 2)
    return lambda query, key, value: scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=gqa)


@form("flash_attention_score", composed=composed_attention, torch=torch_attention)
def attention_work(c):
    """Two products forward; backward repeats the first and adds four."""
    d = c.get("D", 16)
    dv, pairs = c.get("Dv", d), visible_pairs(c)
    return {"unit": "flops", "forward": 2 * (d + dv) * pairs, "backward": 2 * (3 * d + 2 * dv) * pairs}


# ---------------------------------------------------------------------------------------------- rows
def composed_rms_norm(c):
    """Square, mean, rsqrt, two products."""
    from mindspore import ops

    epsilon = c.get("epsilon", 1e-6)

    def rms_norm(x, gamma):
        return x * ops.rsqrt((x * x).mean(-1, True) + epsilon) * gamma

    return rms_norm


def torch_rms_norm(c):
    """torch.nn.functional.rms_norm."""
    from torch.nn.functional import rms_norm

    return lambda x, gamma: rms_norm(x, gamma.shape, gamma, c.get("epsilon", 1e-6))


def _size(c, name):
    return int(np.prod(c.sizes[name]))


@form("rms_norm", composed=composed_rms_norm, torch=torch_rms_norm, torch_dtypes=("float32", "float16", "bfloat16"))
def rms_norm_work(c):
    """x in, y out; dy and x in, dx out."""
    return {"unit": "elements", "forward": 2 * _size(c, "x"), "backward": 3 * _size(c, "x")}


def composed_swiglu(c):
    """Split, silu, product."""
    from mindspore import ops

    def swiglu(input):
        gate, up = ops.split(input, input.shape[-1] // 2, -1)
        return gate * ops.sigmoid(gate) * up

    return swiglu


def torch_swiglu(c):
    """Chunk, silu, product."""
    from torch.nn.functional import silu

    def swiglu(input):
        gate, up = input.chunk(2, -1)
        return silu(gate) * up

    return swiglu


@form("swiglu", composed=composed_swiglu, torch=torch_swiglu, torch_dtypes=("float32", "float16", "bfloat16"))
def swiglu_work(c):
    """The input in, half of it out; the output's gradient and the input in, the input's gradient out."""
    size = _size(c, "input")
    return {"unit": "elements", "forward": size * 3 // 2, "backward": size * 5 // 2}


def _rotate(c, concat, stack):
    half = c.get("mode", 0) == 0

    def rope(x, cos, sin):
        if half:
            middle = x.shape[-1] // 2
            turned = concat((-x[..., middle:], x[..., :middle]), -1)
        else:
            turned = stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
        return x * cos + turned * sin

    return rope


def composed_rope(c):
    """Split, join, two products, a sum."""
    from mindspore import ops

    return _rotate(c, ops.concat, ops.stack)


def torch_rope(c):
    """The same in torch."""
    import torch

    return _rotate(c, torch.concat, torch.stack)


@form(
    "rotary_position_embedding",
    composed=composed_rope,
    torch=torch_rope,
    torch_dtypes=("float32", "float16", "bfloat16"),
    grads=("x",),  # a model's tables are constants
)
def rope_work(c):
    """x in, y out; dy in, dx out."""
    return {"unit": "elements", "forward": 2 * _size(c, "x"), "backward": 2 * _size(c, "x")}


# ---------------------------------------------------------------------------------------------- moe, caches
def composed_gating(c):
    """Softmax and top-k."""
    from mindspore import ops

    def gating(x):
        values, _ = ops.topk(ops.softmax(x.astype("float32"), -1), c.k)
        return values.astype(x.dtype)

    return gating


def torch_gating(c):
    """Softmax and top-k."""
    import torch

    return lambda x: torch.topk(torch.softmax(x.float(), -1), c.k)[0].to(x.dtype)


@form("moe_gating_top_k_softmax", composed=composed_gating, torch=torch_gating)
def gating_work(c):
    """Scores in; values, experts and rows out."""
    return {"unit": "elements", "forward": _size(c, "x"), "backward": 2 * _size(c, "x")}


def torch_scatter(c):
    """index_copy_ of rows, in place."""

    def scatter(key, value, key_cache, value_cache, slot_mapping):
        for rows, cache in ((key, key_cache), (value, value_cache)):
            cache.view(-1, *rows.shape[1:]).index_copy_(0, slot_mapping.long(), rows)

    return scatter


class _Scatter:
    """The cache update in place, as its test module describes it."""

    def __init__(self, module):
        self.make = lambda c, rng: module.make(c, rng, np.float64)
        self.douts = ()

    def grads(self, c):
        return ()

    def names(self, c):
        return ()

    def launch(self, c, run, **inputs):
        return run("scatter_pa_kv_cache", inputs, cache_mode=c.get("mode", "Norm")), ()


@form(
    "scatter_pa_kv_cache",
    torch=torch_scatter,
    torch_dtypes=("float32", "float16", "bfloat16"),
    op=_Scatter,
    kernel_only=True,
)
def scatter_work(c):
    """Keys and values in, and out into the cache."""
    return {"unit": "elements", "forward": 2 * (_size(c, "key") + _size(c, "value")), "backward": 0}
