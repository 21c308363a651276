# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Checks of the Cells' arguments: name, rule, value."""

import math

from mindspore import dtype as mstype
from mindspore.ops.functional import isconstant


def _fail(error, cell, argument, rule, value):
    raise error(f"For '{cell}', '{argument}' must be {rule}, but got {value!r}.")


def positive_int(cell, argument, value):
    """An int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(TypeError, cell, argument, "an int", value)
    if value < 1:
        _fail(ValueError, cell, argument, "at least 1", value)
    if value >= 2**63:
        _fail(ValueError, cell, argument, "an int of 64 bits", value)
    return value


def positive_float(cell, argument, value, zero=False):
    """A float above zero (or at least zero)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _fail(TypeError, cell, argument, "a number", value)
    if not value >= 0 or (value == 0 and not zero):
        _fail(ValueError, cell, argument, "at least 0" if zero else "above 0", value)
    if value == math.inf:
        _fail(ValueError, cell, argument, "finite", value)
    return float(value)


def boolean(cell, argument, value):
    """True or False."""
    if not isinstance(value, bool):
        _fail(TypeError, cell, argument, "True or False", value)
    return value


def parameter_dtype(cell, value):
    """The dtype of parameters."""
    return one_of(cell, "params_dtype", value, (mstype.float32, mstype.float16, mstype.bfloat16))


def one_of(cell, argument, value, choices):
    """One of `choices`."""
    if value not in choices:
        _fail(ValueError, cell, argument, "one of " + ", ".join(repr(c) for c in choices), value)
    return value


def dropout_rate(cell, argument, value):
    """A rate in [0, 1)."""
    value = positive_float(cell, argument, value, zero=True)
    if value >= 1:
        _fail(ValueError, cell, argument, "in [0, 1)", value)
    return value


def keep_probability(cell, argument, value):
    """A probability in (0, 1]."""
    value = positive_float(cell, argument, value)
    if value > 1:
        _fail(ValueError, cell, argument, "in (0, 1]", value)
    return value


def last_dim(cell, x, size):
    """The last dim of the input, where it is known when the graph is built."""
    dim = x.shape[-1]
    if isconstant(dim) and dim != size:
        raise ValueError(f"For '{cell}', the last dim of 'x' must be 'hidden_size' ({size}), but got {dim}.")


def kv_heads(cell, num_heads, num_kv_heads):
    """Number of key/value heads: `num_heads` when None, else a divisor of it."""
    if num_kv_heads is None:
        return num_heads
    positive_int(cell, "num_kv_heads", num_kv_heads)
    if num_heads % num_kv_heads:
        _fail(ValueError, cell, "num_kv_heads", f"a divisor of 'num_heads' ({num_heads})", num_kv_heads)
    return num_kv_heads
