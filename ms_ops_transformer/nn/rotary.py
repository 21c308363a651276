# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding and its frequency scalings."""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from ..ops import rotary_position_embedding
from ._check import one_of, positive_float, positive_int

_MODES = {"half": 0, "interleave": 1}
_POSITION_AXIS = {"BSND": 1, "BNSD": 2, "SBND": 0, "TND": 0}


def _linear(freqs, base, scaling):
    """Positions divided by the factor."""
    return freqs / scaling["factor"], 1.0


def _ntk(freqs, base, scaling):
    """A larger base: the lowest frequency is divided by the factor, the highest stays."""
    dim = 2 * len(freqs)
    base = base * scaling["factor"] ** (dim / (dim - 2))
    return base ** -(np.arange(0, dim, 2, dtype=np.float64) / dim), 1.0


def _llama3(freqs, base, scaling):
    """Long wave lengths are divided by the factor, short ones stay, those between are blended."""
    factor, low, high = scaling["factor"], scaling.get("low_freq_factor", 1.0), scaling.get("high_freq_factor", 4.0)
    turns = scaling["original_max_position_embeddings"] * freqs / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - smooth) * freqs / factor + smooth * freqs, 1.0


def _yarn(freqs, base, scaling):
    """As llama3 with a ramp over the index of the frequency; the tables are scaled too."""
    factor, length = scaling["factor"], scaling["original_max_position_embeddings"]
    dim = 2 * len(freqs)

    def index_of(turns):
        return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(index_of(scaling.get("beta_fast", 32))), 0)
    high = min(math.ceil(index_of(scaling.get("beta_slow", 1))), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0.0, 1.0)
    amplitude = scaling.get("attention_factor")
    if amplitude is None:
        mscale, mscale_all_dim = scaling.get("mscale"), scaling.get("mscale_all_dim")
        amplitude = _yarn_amplitude(factor, 1)
        if mscale and mscale_all_dim:
            amplitude = _yarn_amplitude(factor, mscale) / _yarn_amplitude(factor, mscale_all_dim)
    return freqs / factor * ramp + freqs * (1 - ramp), amplitude


def _yarn_amplitude(factor, weight):
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


_SCALINGS = {"linear": _linear, "ntk": _ntk, "llama3": _llama3, "yarn": _yarn}
_NEEDS_LENGTH = ("llama3", "yarn")


def rotary_tables(head_dim, max_positions, base=10000.0, mode="half", scaling=None):
    r"""cos and sin of the angles :math:`position \cdot base^{-2i/D}`.

    Args:
        head_dim (int): D, even.
        max_positions (int): rows of the tables.
        base (float): Default ``10000.0``.
        mode (str): ``'half'`` repeats the D/2 angles, ``'interleave'`` doubles each. Default ``'half'``.
        scaling (dict, optional): ``type`` (or ``rope_type``) one of none, default, linear, ntk, llama3, yarn;
            ``factor``; and the further keys of Hugging Face's ``rope_scaling``. Default ``None``.

    Returns:
        Tuple of two float32 arrays [max_positions, head_dim].

    Raises:
        ValueError: if `scaling` has an unknown type or lacks a key.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> from ms_ops_transformer.nn import rotary_tables
        >>> cos, sin = rotary_tables(head_dim=64, max_positions=128)
        >>> print(cos.shape, sin[0].any())
        (128, 64) False
    """
    freqs = base ** -(np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    amplitude = 1.0
    scaling = dict(scaling or {})
    kind = str(scaling.get("rope_type", scaling.get("type", "none"))).lower()
    if kind not in ("none", "default"):
        one_of("RotaryEmbedding", "scaling['type']", kind, ("none", "default", *_SCALINGS))
        needed = ("factor",) + (("original_max_position_embeddings",) if kind in _NEEDS_LENGTH else ())
        for key in needed:
            if key not in scaling:
                raise ValueError(
                    f"For 'RotaryEmbedding', 'scaling' of type '{kind}' must have the key '{key}', "
                    f"but got {sorted(scaling)}."
                )
            positive_float("RotaryEmbedding", f"scaling['{key}']", scaling[key])
        if kind == "ntk" and head_dim < 4:
            raise ValueError(f"For 'RotaryEmbedding', 'head_dim' must be at least 4 with 'ntk', but got {head_dim}.")
        freqs, amplitude = _SCALINGS[kind](freqs, base, scaling)
    angles = np.outer(np.arange(max_positions, dtype=np.float64), freqs)
    angles = np.concatenate((angles, angles), -1) if mode == "half" else np.repeat(angles, 2, -1)
    return (np.cos(angles) * amplitude).astype(np.float32), (np.sin(angles) * amplitude).astype(np.float32)


class RotaryEmbedding(nn.Cell):
    r"""Rotates pairs of channels of queries or keys by an angle proportional to the position.

    .. math::
        y = x \odot \cos(p\,\theta) + R(x) \odot \sin(p\,\theta), \qquad \theta_i = base^{-2i/D}

    Args:
        head_dim (int): size D of the last axis, even.
        max_positions (int): number of positions in the tables. Default ``2048``.
        base (float): Default ``10000.0``.
        mode (str): ``'half'`` pairs channel i with i + D/2 (Llama, Qwen), ``'interleave'`` pairs 2i with 2i + 1.
        scaling (dict, optional): ``{'type': 'linear', 'factor': 2.0}``; types none, linear, ntk, llama3 and yarn, with
            the keys of Hugging Face's ``rope_scaling``. Default ``None``.
        layout (str): ``'BSND'``, ``'BNSD'``, ``'SBND'`` or ``'TND'``. Default ``'BSND'``.
        compute_dtype (mindspore.dtype, optional): `x` is cast to it before the operator and the result is cast back.
            Default ``None``: the dtype of `x`.

    Inputs:
        - **x** (Tensor) - shape by layout, float32, float16 or bfloat16.
        - **positions** (Tensor, optional) - int32 or int64, [S] or [B, S] ([T] for TND); each from 0 to
          `max_positions` - 1.
          Default ``None``: 0, 1, 2, ...

    Outputs:
        Tensor of the shape and dtype of `x`.

    Raises:
        TypeError: if the dtype of `positions` is another one.
        ValueError: if `head_dim` is odd, `mode`, `layout` or the scaling is unknown, or the sequence is longer than
            `max_positions`.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import RotaryEmbedding
        >>> y = RotaryEmbedding(64, max_positions=128)(ms.ops.ones((2, 16, 4, 64), ms.float32))
        >>> print(y.shape)
        (2, 16, 4, 64)
    """

    def __init__(
        self, head_dim, max_positions=2048, base=10000.0, mode="half", scaling=None, layout="BSND", compute_dtype=None
    ):
        super().__init__()
        positive_int("RotaryEmbedding", "head_dim", head_dim)
        if head_dim % 2:
            raise ValueError(f"For 'RotaryEmbedding', 'head_dim' must be even, but got {head_dim}.")
        self.max_positions = positive_int("RotaryEmbedding", "max_positions", max_positions)
        self.mode = _MODES[one_of("RotaryEmbedding", "mode", mode, tuple(_MODES))]
        self.layout = one_of("RotaryEmbedding", "layout", layout, tuple(_POSITION_AXIS))
        self.position_axis = _POSITION_AXIS[layout]
        self.compute_dtype = compute_dtype
        cos, sin = rotary_tables(
            head_dim, max_positions, positive_float("RotaryEmbedding", "base", base), mode, scaling
        )
        self.cos, self.sin = Tensor(cos), Tensor(sin)

    def construct(self, x, positions=None):
        if positions is not None and positions.dtype not in (ms.int32, ms.int64):
            raise TypeError(f"For 'RotaryEmbedding', 'positions' must be int32 or int64, but got {positions.dtype}.")
        dtype = x.dtype
        if self.compute_dtype is not None:
            x = x.astype(self.compute_dtype)
        cos = self._table(self.cos, x, positions)
        sin = self._table(self.sin, x, positions)
        return self.rotate(x, cos.astype(x.dtype), sin.astype(x.dtype)).astype(dtype)

    def rotate(self, x, cos, sin):
        """The operator itself: cos and sin broadcast to x."""
        return rotary_position_embedding(x, cos, sin, self.mode, table_grad=False)

    def _table(self, table, x, positions):
        """Rows of a table for the positions of x, with unit axes where they broadcast."""
        if positions is None:
            length = x.shape[self.position_axis]
            if length > self.max_positions:
                raise ValueError(
                    f"For 'RotaryEmbedding', the sequence must be at most 'max_positions' "
                    f"({self.max_positions}), but got {length}. A SelfAttention takes a longer one as "
                    f"rotary=RotaryEmbedding(head_dim, max_positions)."
                )
            rows = table if length == self.max_positions else table[:length]
        else:
            rows = table[positions]
        if self.layout == "TND":
            return rows.expand_dims(1)
        batched = rows.ndim == 3
        if self.layout == "BSND":
            return rows.expand_dims(2) if batched else rows.expand_dims(1).expand_dims(0)
        if self.layout == "BNSD":
            return rows.expand_dims(1) if batched else rows.expand_dims(0).expand_dims(0)
        return rows.transpose(1, 0, 2).expand_dims(2) if batched else rows.expand_dims(1).expand_dims(1)
