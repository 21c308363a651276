# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Checks of arguments before an operator is built, and the texts of their errors. What depends on shapes and dtypes is
checked by the native library, in the same form: `For 'RmsNorm', 'epsilon' must be >= 0, but got -1.0.`"""

import dataclasses
import functools
import numbers
import re

from mindspore import Tensor
from mindspore import dtype as mstype

from ..op_info.spec import REQUIRED

at_build = functools.lru_cache(0)  # keeps nothing, but MindSpore evaluates what is cached when it builds a graph
FLOAT_MAX = 3.4028234663852886e38  # of float32
_ABSTRACT = {int: numbers.Integral, float: numbers.Real, bool: bool, str: str}


def attributes(spec, given):
    """The attributes by name: complete, of the spec's types, within the spec's rules."""
    unknown = set(given) - {attr.name for attr in spec.attrs}
    if unknown:
        raise TypeError(f"For '{spec.class_name}', unknown attribute '{min(unknown)}'.")
    values = {attr.name: _typed(spec, attr, given.get(attr.name, attr.default)) for attr in spec.attrs}
    for attr in spec.attrs:
        value = values[attr.name]
        if attr.choices and value not in attr.choices:
            choices = ", ".join(map(repr, attr.choices))
            raise ValueError(f"For '{spec.class_name}', '{attr.name}' must be one of {choices}, but got {value!r}.")
        if attr.check and not eval(attr.check, {"__builtins__": {}}, values):  # noqa: S307  from the spec
            raise ValueError(f"For '{spec.class_name}', '{attr.name}' must {_rule(attr)}, but got {value!r}.")
    return values


def attribute(spec, name, value, called):
    """One attribute, for a function whose callers know it as `called`."""
    attr = next(attr for attr in spec.attrs if attr.name == name)
    return _typed(spec, dataclasses.replace(attr, name=called), value)


def _typed(spec, attr, value):
    if isinstance(value, str) and value == REQUIRED and attr.default == REQUIRED:
        raise TypeError(f"For '{spec.class_name}', '{attr.name}' must be given.")
    is_bool = isinstance(value, bool)
    if not isinstance(value, _ABSTRACT[attr.type]) or (is_bool and attr.type is not bool):
        name, got = attr.type.__name__, type(value).__name__
        raise TypeError(f"For '{spec.class_name}', '{attr.name}' must be of type {name}, but got {value!r} ({got}).")
    if attr.type is int and not -(2**63) <= value < 2**63:
        raise ValueError(f"For '{spec.class_name}', '{attr.name}' must fit in 64 bits, but got {value}.")
    if attr.type is float and not -FLOAT_MAX <= value <= FLOAT_MAX:
        raise ValueError(f"For '{spec.class_name}', '{attr.name}' must be finite in float32, but got {value!r}.")
    return attr.type(value)


def _rule(attr):
    """ "epsilon >= 0" reads "be >= 0", anything else is quoted."""
    match = re.fullmatch(rf"{attr.name} ((?:[<>]=?|[!=]=) [-+.\w]+)", attr.check)
    return f"be {match[1]}" if match else f"satisfy '{attr.check}'"


def required(op, name, value):
    """Refuses all but tensors: an operator whose shapes were once unknown would hand None to MindSpore: a crash."""
    if value is None:
        raise TypeError(f"For '{op}', '{name}' must be a Tensor, but got None.")
    if not isinstance(value, Tensor):
        raise TypeError(f"For '{op}', '{name}' must be a Tensor, but got {type(value)}.")


def int64_tensor(op, name, value):
    """Lengths and the like: a list or tuple of int becomes an int64 tensor, a tensor or None stays as it is."""
    return _int64_tensor(op, name, tuple(value)) if isinstance(value, (list, tuple)) else value


@at_build
def _int64_tensor(op, name, values):
    for value in values:
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise TypeError(f"For '{op}', '{name}' must hold int, but got {value!r} ({type(value).__name__}).")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"For '{op}', '{name}' must hold values of 64 bits, but got {value}.")
    return _tensor_of(values)


@functools.lru_cache(256)
def _tensor_of(values):
    return Tensor(values, mstype.int64)
