# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Reference of rotary_position_embedding in plain NumPy. Nothing sets a dtype: float64 inputs give the exact answer."""

import numpy as np


def turn(x, mode):
    """R(x); its transpose is -R."""
    if mode == 0:
        x1, x2 = np.split(x, 2, axis=-1)
        return np.concatenate([-x2, x1], axis=-1)
    if mode == 2:
        x1, x2, x3, x4 = np.split(x, 4, axis=-1)
        return np.concatenate([-x2, x1, -x4, x3], axis=-1)
    result = np.empty_like(x)
    result[..., 0::2] = -x[..., 1::2]
    result[..., 1::2] = x[..., 0::2]
    return result


def forward(x, cos, sin, mode):
    return x * cos + turn(x, mode) * sin


def reduce_to(x, shape):
    """Sum over the axes that broadcasting from `shape` to that of x repeats."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    return x.sum(axis=tuple(i for i, size in enumerate(shape) if size == 1 != x.shape[i]), keepdims=True)


def gradient(dy, x, cos, sin, mode):
    """(dx, dcos, dsin) of sum(y * dy)."""
    dx = dy * cos - turn(dy * sin, mode)
    return dx, reduce_to(dy * x, cos.shape), reduce_to(dy * turn(x, mode), sin.shape)
