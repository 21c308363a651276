# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""FlashAttentionScore: softmax(scale * query key^T + bias, masked) value without the matrix of scores; its gradient.

Shapes follow input_layout and are checked by FlashAttentionProblemOf (kernels/attention/flash_attention_score).
"""

from ..spec import ALL, Attr, OpSpec, Tensor

_NO_LIMIT = 2147483647
_TARGETS = {"ascend910b": ALL, "cpu": ALL}
_DTYPES = {
    "X": ("float32", "float16", "bfloat16") * 2,
    "M": ("uint8",) * 3 + ("bool",) * 3,  # of attn_mask, 1 = drop
}
_INPUTS = (
    Tensor("query", "*", "X"),
    Tensor("key", "*", "X"),
    Tensor("value", "*", "X"),
    Tensor("real_shift", "*", "X", optional=True),  # pse of types 0 and 1
    Tensor("drop_mask", "*", "uint8", optional=True),  # one bit per score, 1 = keep
    Tensor("attn_mask", "*", "M", optional=True),
    Tensor("prefix", "*", "int64", optional=True, host=True),
    Tensor("actual_seq_qlen", "*", "int64", optional=True, host=True),  # cumulative, without a leading 0
    Tensor("actual_seq_kvlen", "*", "int64", optional=True, host=True),
    Tensor("sink", "*", "float32", optional=True),
    Tensor("seed_offset", "*", "int64", optional=True),
    Tensor("slopes", "*", "float32", optional=True),  # pse of types 2 and 3
)
_ATTRS = (
    Attr("head_num", int, check="head_num >= 1"),
    Attr("keep_prob", float, default=1.0, check="0 < keep_prob <= 1"),
    Attr("scale_value", float, default=1.0),
    Attr("pre_tokens", int, default=_NO_LIMIT),
    Attr("next_tokens", int, default=_NO_LIMIT),
    Attr("input_layout", str, default="BSH", choices=("BSH", "SBH", "BNSD", "BSND", "TND")),
    Attr("sparse_mode", int, default=0, choices=tuple(range(9))),
    Attr("inner_precise", int, default=0, choices=(0, 1, 2)),
    Attr("pse_type", int, default=1, choices=(0, 1, 2, 3)),
    Attr("q_start_idx", int, default=0),
    Attr("kv_start_idx", int, default=0),
    Attr("softcap", float, default=0.0, check="softcap >= 0"),
)

SPEC = OpSpec(
    name="flash_attention_score",
    inputs=_INPUTS,
    outputs=(
        Tensor("attention_out", "*", "X"),
        Tensor("softmax_max", "*", "float32"),
        Tensor("softmax_sum", "*", "float32"),
    ),
    attrs=_ATTRS,
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
    grad="flash_attention_score_grad",
)

GRAD = OpSpec(
    name="flash_attention_score_grad",
    inputs=(
        *_INPUTS,
        Tensor("softmax_max", "*", "float32"),
        Tensor("softmax_sum", "*", "float32"),
        Tensor("attention_out", "*", "X"),
        Tensor("dy", "*", "X"),
        # Gradient of the log-sum-exp in the first of the eight copies of softmax_max's.
        Tensor("dlse", "*", "float32", optional=True),
    ),
    outputs=(
        Tensor("dq", "*", "X"),
        Tensor("dk", "*", "X"),
        Tensor("dv", "*", "X"),
        Tensor("dreal_shift", "*", "X"),  # of one element without real_shift
        Tensor("dsink", "*", "float32"),  # of one element without sink
    ),
    attrs=_ATTRS,
    dtypes=_DTYPES,
    targets=_TARGETS,
    infer="custom",
)
