# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""rms_norm."""

from .._check import required
from .._custom import bprop_of, primitive


@bprop_of("rms_norm")
def _rms_norm_bprop(attrs):
    grad = primitive("rms_norm_grad")

    def bprop(x, gamma, out, dout):
        dx, dgamma = grad(dout[0], x, out[1], gamma)  # rstd has no gradient of its own
        return dx, dgamma

    return bprop


def rms_norm(x, gamma, epsilon=1e-6):
    r"""Normalises by the root mean square over the axes of gamma.

    .. math::
        rstd = 1 / \sqrt{mean(x^2) + \epsilon}, \quad y = x \cdot rstd \cdot \gamma

    The mean and everything after it are computed in float32.

    Args:
        x (Tensor): Input :math:`(\ldots, *gamma.shape)`; float32, float16 or bfloat16.
        gamma (Tensor): Scale, the shape of x's last axes; the dtype of x, or float32.
        epsilon (float): Added to the mean inside the root, not negative. Default: ``1e-6``.

    Returns:
        Tuple of y, like x, and rstd, float32, with the shape of x where the normalised axes are 1.
        No gradient flows through rstd.

    Raises:
        TypeError: If a dtype is not one of those above.
        ValueError: If the shape of gamma is not that of x's last axes, or gamma is empty, or epsilon is negative.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import numpy as np
        >>> from mindspore import Tensor
        >>> from ms_ops_transformer import ops
        >>> x = Tensor(np.array([[3, 4]], np.float32))
        >>> y, rstd = ops.rms_norm(x, Tensor(np.array([1, 2], np.float32)))
        >>> print(y.shape, rstd.shape)
        (1, 2) (1, 1)
    """
    required("RmsNorm", "x", x)
    required("RmsNorm", "gamma", gamma)
    return primitive("rms_norm", epsilon=epsilon)(x, gamma)
