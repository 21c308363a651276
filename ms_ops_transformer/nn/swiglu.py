# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Gated feed-forward block."""

import mindspore as ms
from mindspore import nn, ops

from ..ops import swiglu
from ._check import last_dim, positive_int


class SwiGLU(nn.Cell):
    r"""Gated feed-forward block of Llama-style models, or its activation alone.

    .. math::
        y = W_{down}\,(\mathrm{silu}(W_{gate} x) \odot W_{up} x)

    The two input projections run as one matrix product over the joined weights, which is what the fused activation
    reads; the parameters stay apart (`gate_proj`, `up_proj`, `down_proj`), as checkpoints have them.

    Args:
        hidden_size (int, optional): size H of `x`. ``None`` together with `ffn_hidden_size` ``None`` gives the
            activation alone, which halves the last axis. Default ``None``.
        ffn_hidden_size (int, optional): inner size F. Default ``None``.
        has_bias (bool): biases on the three projections. Default ``False``.
        params_dtype (mindspore.dtype): Default ``float32``.
        weight_init (Union[str, Initializer], optional): of the projections; ``None`` takes that of nn.Dense.

    Inputs:
        - **x** (Tensor) - shape (..., H), or (..., 2F) for the activation alone: gate, then up.

    Outputs:
        Tensor of shape (..., H), or (..., F).

    Raises:
        ValueError: if a size is not positive or only one of the two is given, the last axis to halve is odd, or that
            of `x` is not H.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import SwiGLU
        >>> print(SwiGLU(32, 88)(ms.ops.ones((2, 5, 32), ms.float32)).shape)
        (2, 5, 32)
        >>> print(SwiGLU()(ms.ops.ones((2, 8), ms.float32)).shape)
        (2, 4)
    """

    def __init__(
        self, hidden_size=None, ffn_hidden_size=None, has_bias=False, params_dtype=ms.float32, weight_init=None
    ):
        super().__init__()
        self.projected = hidden_size is not None or ffn_hidden_size is not None
        self.has_bias = has_bias
        if self.projected:
            self.hidden_size = positive_int("SwiGLU", "hidden_size", hidden_size)
            positive_int("SwiGLU", "ffn_hidden_size", ffn_hidden_size)
            options = {"has_bias": has_bias, "dtype": params_dtype, "weight_init": weight_init}
            self.gate_proj = nn.Dense(hidden_size, ffn_hidden_size, **options)
            self.up_proj = nn.Dense(hidden_size, ffn_hidden_size, **options)
            self.down_proj = nn.Dense(ffn_hidden_size, hidden_size, **options)
            self.matmul = ops.MatMul(transpose_b=True)

    def construct(self, x):
        if not self.projected:
            return swiglu(x)
        last_dim("SwiGLU", x, self.hidden_size)
        return self.down_proj(self.inner(x))

    def inner(self, x):
        """silu(gate(x)) * up(x)."""
        weight = ops.concat((self.gate_proj.weight, self.up_proj.weight)).astype(x.dtype)
        y = self.matmul(x.reshape(-1, x.shape[-1]), weight)
        if self.has_bias:
            y = y + ops.concat((self.gate_proj.bias, self.up_proj.bias)).astype(y.dtype)
        return swiglu(y).reshape(x.shape[:-1] + (-1,))
