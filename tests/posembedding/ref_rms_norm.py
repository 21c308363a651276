# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Reference of rms_norm in plain NumPy. Nothing sets a dtype: float64 inputs give the exact answer."""

import numpy as np


def forward(x, gamma, epsilon):
    """(y, rstd); normalised over the axes of gamma."""
    axes = tuple(range(-gamma.ndim, 0))
    rstd = 1 / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


def gradient(dy, x, gamma, epsilon):
    """(dx, dgamma) of sum(y * dy)."""
    axes = tuple(range(-gamma.ndim, 0))
    rstd = forward(x, gamma, epsilon)[1]
    g = dy * gamma
    dx = rstd * (g - x * rstd * rstd * np.mean(g * x, axis=axes, keepdims=True))
    dgamma = np.sum(dy * x * rstd, axis=tuple(range(x.ndim - gamma.ndim)))
    return dx, dgamma
