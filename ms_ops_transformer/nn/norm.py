# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""RMSNorm."""

import mindspore as ms
from mindspore import Parameter, nn
from mindspore.common.initializer import initializer

from ..ops import rms_norm
from ._check import parameter_dtype, positive_float, positive_int


class RMSNorm(nn.Cell):
    r"""Root mean square normalisation of the last axis, with a learnt gain.

    .. math::
        y = \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}} \odot weight

    Args:
        dim (int): size D of the last axis.
        eps (float): added to the mean square. Default ``1e-6``.
        params_dtype (mindspore.dtype): dtype of `weight`. Default ``float32``.
        compute_dtype (mindspore.dtype, optional): `x` is cast to it before the operator and the result is cast back;
            ``None`` computes in the dtype of `x` (the sums are float32 in any case). Default ``None``.

    Inputs:
        - **x** (Tensor) - shape (..., D), float32, float16 or bfloat16.

    Outputs:
        Tensor of the shape and dtype of `x`.

    Raises:
        ValueError: if `dim` is not positive or `eps` is negative.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import RMSNorm
        >>> y = RMSNorm(4)(ms.Tensor([[1.0, 1.0, 1.0, 1.0]], ms.float32))
        >>> print(y.shape)
        (1, 4)
    """

    def __init__(self, dim, eps=1e-6, params_dtype=ms.float32, compute_dtype=None):
        super().__init__()
        self.dim = positive_int("RMSNorm", "dim", dim)
        self.eps = positive_float("RMSNorm", "eps", eps, zero=True)
        self.compute_dtype = compute_dtype
        self.weight = Parameter(initializer("ones", (dim,), parameter_dtype("RMSNorm", params_dtype)), name="weight")

    def construct(self, x):
        dtype = x.dtype
        if self.compute_dtype is not None:
            x = x.astype(self.compute_dtype)
        gamma = self.weight
        if gamma.dtype != ms.float32:
            gamma = gamma.astype(x.dtype)
        return self.normalise(x, gamma).astype(dtype)

    def normalise(self, x, gamma):
        """The operator itself; gamma is float32 or in the dtype of x."""
        return rms_norm(x, gamma, self.eps)[0]

    def extend_repr(self):
        return f"dim={self.dim}, eps={self.eps}"
