# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Swiglu: the first half of an axis, activated by silu, times the second half; and its gradient."""

from ..spec import ALL, Attr, OpSpec, Tensor

_TARGETS = {"ascend910b": ALL, "cpu": ALL}
_DTYPES = {"X": ("float32", "float16", "bfloat16")}

SPEC = OpSpec(
    name="swiglu",
    inputs=(Tensor("input", "*", "X"),),
    outputs=(Tensor("output", "*", "X"),),
    attrs=(Attr("dim", int, default=-1),),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
    grad="swiglu_grad",
)

GRAD = OpSpec(
    name="swiglu_grad",
    inputs=(Tensor("doutput", "*", "X"), Tensor("input", "*", "X")),
    outputs=(Tensor("dinput", "*", "X"),),
    attrs=(Attr("dim", int, default=-1),),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
)
