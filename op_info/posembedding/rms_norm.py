# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""RmsNorm: x scaled by the reciprocal root mean square over gamma's axes, and its gradient."""

from ..spec import ALL, Attr, OpSpec, Tensor

_TARGETS = {"ascend910b": ALL, "cpu": ALL}
# gamma may stay in float32 while the activations have 16 bits
_DTYPES = {
    "X": ("float32", "float16", "bfloat16", "float16", "bfloat16"),
    "G": ("float32", "float16", "bfloat16", "float32", "float32"),
}

SPEC = OpSpec(
    name="rms_norm",
    inputs=(Tensor("x", "*", "X"), Tensor("gamma", "*", "G")),
    outputs=(Tensor("y", "*", "X"), Tensor("rstd", "*", "float32")),
    attrs=(Attr("epsilon", float, default=1e-6, check="epsilon >= 0"),),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
    grad="rms_norm_grad",
)

GRAD = OpSpec(
    name="rms_norm_grad",
    inputs=(Tensor("dy", "*", "X"), Tensor("x", "*", "X"), Tensor("rstd", "*", "float32"), Tensor("gamma", "*", "G")),
    outputs=(Tensor("dx", "*", "X"), Tensor("dgamma", "*", "G")),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
)
