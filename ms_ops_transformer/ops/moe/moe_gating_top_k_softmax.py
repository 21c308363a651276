# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""moe_gating_top_k_softmax."""

from mindspore import ops as ms_ops

from .._check import required
from .._custom import bprop_of, primitive


@bprop_of("moe_gating_top_k_softmax")
def _moe_gating_top_k_softmax_bprop(attrs):
    has_softmax = attrs["output_softmax_result_flag"]
    has_finished = "finished" not in attrs["absent"]
    absent = () if has_softmax else ("dsoftmax",)
    grad = primitive("moe_gating_top_k_softmax_grad", absent, k=attrs["k"], renorm=attrs["renorm"])

    if has_softmax and has_finished:

        def bprop(x, finished, out, dout):
            return grad(dout[0], x, out[1], dout[3]), ms_ops.zeros_like(finished)

    elif has_softmax:

        def bprop(x, finished, out, dout):
            return grad(dout[0], x, out[1], dout[3]), None

    elif has_finished:

        def bprop(x, finished, out, dout):
            return grad(dout[0], x, out[1], None), ms_ops.zeros_like(finished)

    else:

        def bprop(x, finished, out, dout):
            return grad(dout[0], x, out[1], None), None

    return bprop


def moe_gating_top_k_softmax(x, finished=None, k=1, *, renorm=0, output_softmax_result_flag=False):
    r"""Chooses the k best experts of each token and weighs them by softmax.

    .. math::
        p = softmax(x), \quad y, expert\_idx = topk(p, k)

    or, with `renorm` 1, :math:`y = softmax(topk(x, k))`. The choice is descending; of equal logits the lower expert
    comes first. Softmax is computed in float32.

    Args:
        x (Tensor): Logits :math:`(\ldots, E)`; float32, float16 or bfloat16. A row must fit in local memory beside its
            sort: E up to about 5200 on the CPU and 4600 on Ascend, fewer with a large k.
        finished (Tensor): Tokens that need no expert :math:`(\ldots)`, bool: their expert_idx is E, their y that of the
            others, and they have no gradient. Default: ``None``.
        k (int): Experts per token, from 1 to E and at most 1024. Default: ``1``.

    Keyword Args:
        renorm (int): 0: softmax over all experts; 1: over the chosen. Default: ``0``.
        output_softmax_result_flag (bool): Whether to return p as well; not with `renorm` 1. Default: ``False``.

    Returns:
        Tuple of y :math:`(\ldots, k)`, like x; expert_idx, int32, like y; row_idx, int32, like y, with
        :math:`row\_idx_{i,j} = j \cdot T + i` for token i of all T tokens; and, if asked for, softmax_result
        :math:`(\ldots, E)`, float32.

    Raises:
        TypeError: If a dtype is not one of those above.
        ValueError: If k is not from 1 to E, finished has another shape than the tokens, or an option is not one of
            those above.
        RuntimeError: If E is too large for local memory.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import numpy as np
        >>> from mindspore import Tensor
        >>> from ms_ops_transformer import ops
        >>> x = Tensor(np.array([[0, 1, 1, -1], [2, 0, 0, 0]], np.float32))
        >>> y, expert_idx, row_idx = ops.moe_gating_top_k_softmax(x, k=2)
        >>> print(expert_idx)
        [[1 2]
         [0 1]]
        >>> print(row_idx)
        [[0 2]
         [1 3]]
    """
    required("MoeGatingTopKSoftmax", "x", x)
    absent = ("finished",) if finished is None else ()
    gating = primitive(
        "moe_gating_top_k_softmax", absent, k=k, renorm=renorm, output_softmax_result_flag=output_softmax_result_flag
    )
    y, expert_idx, row_idx, softmax_result = gating(x, finished)
    if output_softmax_result_flag:
        return y, expert_idx, row_idx, softmax_result
    return y, expert_idx, row_idx
