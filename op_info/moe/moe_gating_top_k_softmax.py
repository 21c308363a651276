# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""MoeGatingTopKSoftmax: the k best experts of each token and their softmax weights; and its gradient."""

from ..spec import ALL, Attr, OpSpec, Tensor

_TARGETS = {"ascend910b": ALL, "cpu": ALL}
_DTYPES = {"X": ("float32", "float16", "bfloat16")}
_ATTRS = (
    Attr("k", int, default=1, check="1 <= k <= 1024"),
    Attr("renorm", int, default=0, choices=(0, 1)),  # 1: softmax over the chosen logits only
)

SPEC = OpSpec(
    name="moe_gating_top_k_softmax",
    inputs=(Tensor("x", "... E", "X"), Tensor("finished", "...", "bool", optional=True)),
    outputs=(
        Tensor("y", "*", "X"),
        Tensor("expert_idx", "*", "int32"),
        Tensor("row_idx", "*", "int32"),
        Tensor("softmax_result", "*", "float32"),  # empty unless asked for
    ),
    attrs=(
        *_ATTRS,
        Attr("output_softmax_result_flag", bool, default=False, check="not (output_softmax_result_flag and renorm)"),
    ),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
    grad="moe_gating_top_k_softmax_grad",
)

GRAD = OpSpec(
    name="moe_gating_top_k_softmax_grad",
    inputs=(
        Tensor("dy", "... k", "X"),
        Tensor("x", "... E", "X"),
        Tensor("expert_idx", "... k", "int32"),
        Tensor("dsoftmax", "... E", "float32", optional=True),
    ),
    outputs=(Tensor("dx", "... E", "X"),),
    attrs=_ATTRS,
    dtypes=_DTYPES,
    targets=_TARGETS,
    value_check=True,
)
