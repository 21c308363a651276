# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""swiglu."""

from .._check import required
from .._custom import bprop_of, primitive


@bprop_of("swiglu")
def _swiglu_bprop(attrs):
    grad = primitive("swiglu_grad", dim=attrs["dim"])

    def bprop(input, out, dout):
        return (grad(dout, input),)

    return bprop


def swiglu(input, dim=-1):
    r"""Gates the second half of an axis by the first, activated.

    .. math::
        a, b = split(input, 2, dim), \quad output = a \cdot \sigma(a) \cdot b

    Args:
        input (Tensor): Input of any shape, even along `dim`; float32, float16 or bfloat16.
        dim (int): The axis to split. Default: ``-1``.

    Returns:
        Tensor like input with half its size along `dim`.

    Raises:
        TypeError: If the dtype is not one of those above.
        ValueError: If input has no axis `dim`, or its size is odd.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import numpy as np
        >>> from mindspore import Tensor
        >>> from ms_ops_transformer import ops
        >>> print(ops.swiglu(Tensor(np.array([[0, 100, 5, 2]], np.float32))))
        [[  0. 200.]]
    """
    required("Swiglu", "input", input)
    return primitive("swiglu", dim=dim)(input)
