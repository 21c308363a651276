# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""rotary_position_embedding."""

from mindspore import ops as ms_ops

from .._check import required
from .._custom import bprop_of, primitive


@bprop_of("rotary_position_embedding")
def _rotary_position_embedding_bprop(attrs):
    grad = primitive("rotary_position_embedding_grad", mode=attrs["mode"])
    if not attrs["table_grad"]:

        def bprop(x, cos, sin, out, dout):
            return grad(dout, cos, sin), ms_ops.zeros_like(cos), ms_ops.zeros_like(sin)

        return bprop
    table_grad = primitive("rotary_position_embedding_table_grad", mode=attrs["mode"])

    def bprop_with_tables(x, cos, sin, out, dout):
        dcos, dsin = table_grad(dout, x, cos, sin)
        return grad(dout, cos, sin), dcos, dsin

    return bprop_with_tables


def rotary_position_embedding(x, cos, sin, mode=0, *, table_grad=True):
    r"""Turns pairs of features by angles whose cosines and sines are given.

    .. math::
        y = x \cdot cos + R(x) \cdot sin

    - mode 0, half: :math:`R(x) = [-x_2, x_1]` of the two halves of the last axis.
    - mode 1, interleave: :math:`R(x)_{2i} = -x_{2i+1}, R(x)_{2i+1} = x_{2i}`.
    - mode 2, quarter: half, within each half of the last axis.

    The tables are used as they are: the two entries of a pair may differ. The result is computed in float32.

    Args:
        x (Tensor): Input :math:`(\ldots, D)`; float32, float16 or bfloat16. D is even, in mode 2 a multiple of 4.
        cos (Tensor): Cosines :math:`(\ldots, D)`, broadcast to the shape of x; the dtype of x, or float32.
        sin (Tensor): Sines, like `cos`.
        mode (int): Which features are a pair: 0, 1 or 2. Default: ``0``.

    Keyword Args:
        table_grad (bool): Whether `cos` and `sin` have a gradient; otherwise theirs is zero. Default: ``True``.

    Returns:
        Tensor like x.

    Raises:
        TypeError: If a dtype is not one of those above.
        ValueError: If the last axis of x does not suit the mode, cos does not broadcast to x, sin has another shape
            than cos, or mode is another number.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import numpy as np
        >>> from mindspore import Tensor
        >>> from ms_ops_transformer import ops
        >>> x = Tensor(np.array([[1, 2, 3, 4]], np.float32))
        >>> cos, sin = Tensor(np.zeros((1, 4), np.float32)), Tensor(np.ones((1, 4), np.float32))
        >>> print(ops.rotary_position_embedding(x, cos, sin))
        [[-3. -4.  1.  2.]]
    """
    required("RotaryPositionEmbedding", "x", x)
    required("RotaryPositionEmbedding", "cos", cos)
    required("RotaryPositionEmbedding", "sin", sin)
    return primitive("rotary_position_embedding", mode=mode, table_grad=table_grad)(x, cos, sin)
