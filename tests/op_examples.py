# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""One valid call of every operator, by shapes: what the tests that are generated from the specs start from.

An input that is not named is None; attributes have the spec's defaults unless they are named after the shapes.
"""

_ATTENTION = {"query": (2, 4, 24, 16), "key": (2, 2, 32, 16), "value": (2, 2, 32, 8)}
_STATISTICS = (2, 4, 24, 8)
_BNSD = {"head_num": 4, "input_layout": "BNSD"}
_CACHE = {"key": (3, 2, 8), "key_cache": (5, 4, 2, 8), "slot_mapping": (3,)}


class _Examples(dict):
    def __missing__(self, name):
        raise AssertionError(f"tests/op_examples.py wants an entry for '{name}' in EXAMPLES")


EXAMPLES = _Examples(
    {
        "flash_attention_score": (_ATTENTION, _BNSD),
        "flash_attention_score_grad": (
            {
                **_ATTENTION,
                "softmax_max": _STATISTICS,
                "softmax_sum": _STATISTICS,
                "attention_out": (2, 4, 24, 8),
                "dy": (2, 4, 24, 8),
            },
            _BNSD,
        ),
        "moe_gating_top_k_softmax": ({"x": (6, 16)}, {"k": 2}),
        "moe_gating_top_k_softmax_grad": ({"dy": (6, 2), "x": (6, 16), "expert_idx": (6, 2)}, {"k": 2}),
        "rms_norm": ({"x": (4, 8, 64), "gamma": (64,)}, {}),
        "rms_norm_grad": ({"dy": (4, 8, 64), "x": (4, 8, 64), "rstd": (4, 8, 1), "gamma": (64,)}, {}),
        "rotary_position_embedding": ({"x": (2, 3, 5, 8), "cos": (1, 1, 5, 8), "sin": (1, 1, 5, 8)}, {}),
        "rotary_position_embedding_grad": ({"dy": (2, 3, 5, 8), "cos": (1, 1, 5, 8), "sin": (1, 1, 5, 8)}, {}),
        "rotary_position_embedding_table_grad": (
            {"dy": (2, 3, 5, 8), "x": (2, 3, 5, 8), "cos": (1, 1, 5, 8), "sin": (1, 1, 5, 8)},
            {},
        ),
        "scatter_pa_kv_cache": (_CACHE, {}),
        "scatter_pa_kv_cache_copy": (_CACHE, {}),
        "swiglu": ({"input": (4, 6, 16)}, {}),
        "swiglu_grad": ({"doutput": (4, 6, 8), "input": (4, 6, 16)}, {}),
    }
)


def example(spec, column=0):
    """([(shape, dtype) or None per input], attributes) of the example."""
    shapes, given = EXAMPLES[spec.name]
    assert set(shapes) <= {tensor.name for tensor in spec.inputs}, f"the example of '{spec.name}' has another input"
    inputs = [
        (shapes[tensor.name], spec.dtype_of(tensor, column)) if tensor.name in shapes else None
        for tensor in spec.inputs
    ]
    return inputs, {**{attr.name: attr.default for attr in spec.attrs}, **given}
