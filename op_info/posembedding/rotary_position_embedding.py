# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""RotaryPositionEmbedding: pairs of features turned by given cosines and sines; gradients of x and of the tables."""

from ..spec import ALL, Attr, OpSpec, Tensor

_TARGETS = {"ascend910b": ALL, "cpu": ALL}
# the tables may stay in float32 while the activations have 16 bits
_DTYPES = {
    "X": ("float32", "float16", "bfloat16", "float16", "bfloat16"),
    "T": ("float32", "float16", "bfloat16", "float32", "float32"),
}
_MODE = Attr("mode", int, default=0, choices=(0, 1, 2))  # half, interleave, quarter
_TABLES = (Tensor("cos", "*", "T"), Tensor("sin", "*", "T"))

SPEC = OpSpec(
    name="rotary_position_embedding",
    inputs=(Tensor("x", "*", "X"), *_TABLES),
    outputs=(Tensor("y", "*", "X"),),
    attrs=(_MODE, Attr("table_grad", bool, default=True)),  # whether cos and sin have a gradient
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
    grad="rotary_position_embedding_grad",
)

GRAD = OpSpec(
    name="rotary_position_embedding_grad",
    inputs=(Tensor("dy", "*", "X"), *_TABLES),
    outputs=(Tensor("dx", "*", "X"),),
    attrs=(_MODE,),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
)

TABLE_GRAD = OpSpec(
    name="rotary_position_embedding_table_grad",
    inputs=(Tensor("dy", "*", "X"), Tensor("x", "*", "X"), *_TABLES),  # of the tables only the shape matters
    outputs=(Tensor("dcos", "*", "T"), Tensor("dsin", "*", "T")),
    attrs=(_MODE,),
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
)
