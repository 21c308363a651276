# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Reference of moe_gating_top_k_softmax in plain NumPy. Nothing sets a dtype: float64 inputs give the exact answer."""

import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def best(x, k):
    """The k largest, descending; of equal ones the lower index first."""
    return np.argsort(-np.asarray(x), axis=-1, kind="stable")[..., :k]


def forward(x, k, renorm=0, finished=None):
    """(y, expert_idx, row_idx, softmax_result)."""
    index = best(x, k)
    p = softmax(x)
    y = softmax(np.take_along_axis(x, index, -1)) if renorm else np.take_along_axis(p, index, -1)
    tokens = int(np.prod(x.shape[:-1]))
    row = (np.arange(k) * tokens + np.arange(tokens)[:, None]).reshape(index.shape)
    if finished is not None:
        index = np.where(finished[..., None], x.shape[-1], index)
    return y, index.astype(np.int32), row.astype(np.int32), p


def gradient(dy, x, k, renorm=0, finished=None, dsoftmax=None):
    """dx of sum(y * dy) + sum(softmax_result * dsoftmax)."""
    index = best(x, k)
    if finished is not None:
        dy = np.where(finished[..., None], 0, dy)
    dx = np.zeros_like(x)
    if renorm:
        y = softmax(np.take_along_axis(x, index, -1))
        np.put_along_axis(dx, index, y * (dy - np.sum(dy * y, axis=-1, keepdims=True)), -1)
        return dx
    p = softmax(x)
    g = np.zeros_like(x)
    np.put_along_axis(g, index, dy, -1)
    if dsoftmax is not None:
        g = g + dsoftmax
    return p * (g - np.sum(g * p, axis=-1, keepdims=True))
