# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The counter that decides which elements a dropout drops."""

import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from ._check import positive_int


class DropoutState(nn.Cell):
    """A (seed, offset) pair that moves on with every call.

    An operator that drops elements derives them from (seed, offset) alone, so one pair given to the forward, the
    gradient and a recomputation drops the same elements. Reading the pair and moving it on is a side effect, which a
    recomputation would repeat: call this Cell outside any recomputed Cell, and hand its result in as an argument.

    Args:
        seed (int): Default ``0``.
        step (int): how far one call moves the offset; a model whose L layers use offset + 0 ... offset + L - 1 gives L.
            Default ``1``.

    Inputs:
        None.

    Outputs:
        Tensor, int64 [2]: the pair before it moved.

    Raises:
        TypeError: if `seed` is no int.
        ValueError: if `step` is not positive.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> from ms_ops_transformer.nn import DropoutState
        >>> state = DropoutState(seed=7)
        >>> print(state(), state())
        [7 0] [7 1]
    """

    def __init__(self, seed=0, step=1):
        super().__init__()
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"For 'DropoutState', 'seed' must be an int, but got {seed!r}.")
        self.state = Parameter(Tensor(np.array([seed, 0], np.int64)), name="state", requires_grad=False)
        self.step = Tensor(np.array([0, positive_int("DropoutState", "step", step)], np.int64))

    def construct(self):
        current = ops.add(self.state, 0)  # a copy: the Parameter itself changes below
        return ops.depend(current, ops.assign(self.state, current + self.step))
