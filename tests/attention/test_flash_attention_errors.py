# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score: every kind of bad input is an error with name, rule and value, in both modes, and early."""

import re

import mindspore as ms
import numpy as np
import pytest
from harness import build_cell, to_tensor
from launch import Guarded, library_path

from ms_ops_transformer import _native, ops
from ms_ops_transformer.op_info import registry


def x(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


BNSD = {"query": x(2, 4, 8, 16), "key": x(2, 2, 8, 16), "value": x(2, 2, 8, 16), "head_num": 4, "input_layout": "BNSD"}
TND = {"query": x(8, 4, 16), "key": x(9, 2, 16), "value": x(9, 2, 16), "head_num": 4, "input_layout": "TND",
       "actual_seq_qlen": (3, 8), "actual_seq_kvlen": (4, 9)}  # fmt: skip
BSH = {"query": x(2, 8, 64), "key": x(2, 8, 32), "value": x(2, 8, 32), "head_num": 4, "input_layout": "BSH"}


# name: (base, changes, error, what the text says besides "For 'FlashAttentionScore', ")
BAD = {
    "rank": (BNSD, {"query": x(2, 8, 64)}, ValueError, "rank of 'query' must be 4 .*got 3"),
    "rank_of_key": (BSH, {"key": x(2, 2, 8, 16)}, ValueError, "rank of 'key' must be 3 .*got 4"),
    "rank_packed": (TND, {"value": x(9, 32)}, ValueError, "rank of 'value' must be 3 .*got 2"),
    "heads": (BNSD, {"query": x(2, 3, 8, 16), "head_num": 3}, ValueError, r"dim N of 'query' .*multiple.*\(2\).*got 3"),
    "head_num": (BNSD, {"head_num": 5}, ValueError, "dim N of 'query' must be 5, but got 4"),
    "head_num_zero": (BNSD, {"head_num": 0}, ValueError, "'head_num' must .*got 0"),
    "head_num_type": (BNSD, {"head_num": 4.5}, TypeError, "'head_num' must be .*int.*got 4.5"),
    "heads_bsh": (BSH, {"head_num": 6}, ValueError, "last dim of 'query' .*multiple of.* 6 .*got 64"),
    "heads_of_key_bsh": (BSH, {"key": x(2, 8, 40)}, ValueError, r"last dim of 'key' .*\(16\).*got 40"),
    "batch": (BNSD, {"key": x(3, 2, 8, 16)}, ValueError, "dim B of 'key' must be 2, but got 3"),
    "width": (BNSD, {"key": x(2, 2, 8, 24)}, ValueError, "dim D of 'key' must be 16, but got 24"),
    "too_wide": (BNSD, {"query": x(2, 4, 8, 1025), "key": x(2, 2, 8, 1025)}, ValueError, "dim D .*1024.*got 1025"),
    "rows_of_value": (BNSD, {"value": x(2, 2, 9, 16)}, ValueError, "dim S of 'value' must be 8, but got 9"),
    "heads_of_value": (BNSD, {"value": x(2, 1, 8, 16)}, ValueError, "dim N of 'value' must be 2, but got 1"),
    "dtype_mixed": (BNSD, {"key": x(2, 2, 8, 16, dtype=np.float16)}, TypeError,
                    "dtype of 'key' .*float32.*got float16"),
    "dtype_integer": (BNSD, {n: x(2, 4, 8, 16, dtype=np.int32) for n in ("query", "key", "value")}, TypeError,
                      "dtype of 'query' .*got int32"),
    "layout": (BNSD, {"input_layout": "BDSN"}, ValueError, "'input_layout' must be one of .*got 'BDSN'"),
    "sparse_mode": (BNSD, {"sparse_mode": 9}, ValueError, "'sparse_mode' must .*got 9"),
    "sparse_mode_negative": (BNSD, {"sparse_mode": -1}, ValueError, "'sparse_mode' must .*got -1"),
    "mode7_padded": (BNSD, {"sparse_mode": 7}, ValueError, "'?sparse_mode'? .*7"),
    "mode1_without_mask": (BNSD, {"sparse_mode": 1}, ValueError, "'attn_mask' must be given with sparse_mode 1"),
    "mode6_without_prefix": (BNSD, {"sparse_mode": 6}, ValueError, "'prefix' must be given"),
    "prefix_length": (BNSD, {"sparse_mode": 6, "prefix": (1, 2, 3)}, ValueError,
                      r"shape of 'prefix' must be \[2\], but got \[3\]"),
    "prefix_range": (BNSD, {"sparse_mode": 6, "prefix": (1, 9)}, (ValueError, RuntimeError), "'prefix'.*8.*got 9"),
    "mask_shape": (BNSD, {"attn_mask": x(2, 3, 8, 8, dtype=bool)}, ValueError,
                   r"shape of 'attn_mask' .*got \[2, 3, 8, 8\]"),
    "mask_columns": (BNSD, {"attn_mask": x(8, 9, dtype=bool)}, ValueError, r"shape of 'attn_mask' .*got \[8, 9\]"),
    "mask_rank": (BNSD, {"attn_mask": x(8, dtype=bool)}, ValueError, "'attn_mask'"),
    "mask_dtype": (BNSD, {"attn_mask": x(8, 8)}, TypeError, "dtype of 'attn_mask' .*got float32"),
    "mask_compressed": (BNSD, {"attn_mask": x(1024, 2048, dtype=bool), "sparse_mode": 3}, ValueError,
                        r"'attn_mask' must be \[2048, 2048\] .*got \[1024, 2048\]"),
    "padding_mask": (BNSD, {"padding_mask": x(2, 8, dtype=bool)}, ValueError, "'padding_mask' .*reserved.* None"),
    "keep_prob_zero": (BNSD, {"keep_prob": 0.0}, ValueError, "'keep_prob' must .*got 0.0"),
    "keep_prob_above": (BNSD, {"keep_prob": 1.5}, ValueError, "'keep_prob' must .*got 1.5"),
    "keep_prob_negative": (BNSD, {"keep_prob": -0.1}, ValueError, "'keep_prob' must .*got -0.1"),
    "dropout_without_source": (BNSD, {"keep_prob": 0.5}, ValueError, "'drop_mask' or 'seed_offset' must be given"),
    "drop_mask_size": (BNSD, {"keep_prob": 0.5, "drop_mask": x(63, dtype=np.uint8)}, ValueError,
                       "'drop_mask' .*64 bytes.*got 63"),
    "drop_mask_dtype": (BNSD, {"keep_prob": 0.5, "drop_mask": x(64)}, TypeError, "dtype of 'drop_mask' .*got float32"),
    "seed_shape": (BNSD, {"keep_prob": 0.5, "seed_offset": x(3, dtype=np.int64)}, ValueError,
                   r"shape of 'seed_offset' must be \[2\], but got \[3\]"),
    "pse_shape": (BNSD, {"real_shift": x(2, 4, 8, 9)}, ValueError, r"shape of 'real_shift' .*got \[2, 4, 8, 9\]"),
    "pse_dtype": (BNSD, {"real_shift": x(2, 4, 8, 8, dtype=np.float16)}, TypeError,
                  "dtype of 'real_shift' .*got float16"),
    "pse_type": (BNSD, {"real_shift": x(2, 4, 8, 8), "pse_type": 4}, ValueError, "'pse_type' must .*got 4"),
    "pse_compressed": (BNSD, {"query": x(2, 4, 2048, 16), "key": x(2, 2, 2048, 16), "value": x(2, 2, 2048, 16),
                              "real_shift": x(2, 4, 1024, 2048), "sparse_mode": 3}, ValueError,
                       r"shape of 'real_shift' .*got \[2, 4, 1024, 2048\]"),
    "slopes_missing": (BNSD, {"pse_type": 3}, ValueError, "'real_shift' must be given with pse_type 3, but got None"),
    "slopes_shape": (BNSD, {"real_shift": x(3), "pse_type": 2}, ValueError,
                     r"shape of 'real_shift' must be \[4\] or \[2, 4\] with pse_type 2, but got \[3\]"),
    "slopes_dtype": (BNSD, {"real_shift": x(4, dtype=np.float16), "pse_type": 2}, TypeError,
                     "dtype of 'real_shift' must be float32 with pse_type 2 or 3, but got float16"),
    "sink_shape": (BNSD, {"sink": x(2)}, ValueError, r"shape of 'sink' must be \[4\], but got \[2\]"),
    "sink_dtype": (BNSD, {"sink": x(4, dtype=np.float16)}, TypeError, "dtype of 'sink' .*float32.*got float16"),
    "softcap_negative": (BNSD, {"softcap": -1.0}, ValueError, "'softcap' must .*got -1.0"),
    "softcap_infinite": (BNSD, {"softcap": 1e39}, ValueError, r"'softcap' must be finite .*got (1e\+39|inf)"),
    "scale_beyond_float32": (BNSD, {"scalar_value": 1e39}, ValueError,
                             r"'scalar_value' must be finite .*got (1e\+39|inf)"),
    "scale_type": (BNSD, {"scalar_value": "1"}, TypeError, "'scalar_value' must be of type float, but got '1'"),
    "empty_band": (BNSD, {"sparse_mode": 4, "pre_tokens": -1, "next_tokens": -1}, ValueError, "(pre|next)_tokens"),
    "band_beside_matrix": (BNSD, {"sparse_mode": 4, "pre_tokens": 20, "next_tokens": -9}, ValueError,
                           "(pre|next)_tokens"),
    "lengths_missing": (TND, {"actual_seq_qlen": None}, ValueError, "'actual_seq_qlen' must be given .*TND.*got None"),
    "kv_lengths_missing": (TND, {"actual_seq_kvlen": None}, ValueError, "'actual_seq_kvlen' must be given"),
    "lengths_without_packing": (BNSD, {"actual_seq_qlen": (8, 16)}, ValueError, "'actual_seq_qlen' must be None"),
    "lengths_type": (TND, {"actual_seq_qlen": (3.5, 8)}, TypeError, "'actual_seq_qlen' must hold int, but got 3.5"),
    "lengths_empty": (TND, {"actual_seq_qlen": (), "actual_seq_kvlen": ()}, ValueError,
                      "'actual_seq_qlen' must not be empty with 8 tokens"),
    "keys_without_a_sequence": (TND, {"query": x(0, 4, 16), "actual_seq_qlen": (), "actual_seq_kvlen": ()}, ValueError,
                                "'actual_seq_kvlen' must not be empty with 9 tokens"),
    "lengths_count": (TND, {"actual_seq_kvlen": (9,)}, ValueError, "'actual_seq_kvlen' .*2.*got 1"),
    "mode5_packed": (TND, {"sparse_mode": 5, "prefix": (1, 2), "attn_mask": x(8, 9, dtype=bool)}, ValueError,
                     "mode.* 5"),
    "head_num_list": (BNSD, {"head_num": [4]}, TypeError, r"'head_num' must be of type int, but got \[4\] \(list\)"),
    "sparse_mode_dict": (BNSD, {"sparse_mode": {"mode": 3}}, TypeError,
                         "'sparse_mode' must be of type int, but got {'mode': 3}"),
    "pse_type_text": (BNSD, {"pse_type": "2"}, TypeError, "'pse_type' must be of type int, but got '2'"),
    "return_lse": (BNSD, {"return_lse": "abc"}, TypeError, "'return_lse' must be of type bool, but got '?abc"),
    "return_softmax": (BNSD, {"return_softmax": 1}, TypeError, "'return_softmax' must be of type bool, but got 1"),
    "query_with_lengths": (TND, {"query": 3}, TypeError, "'query' must be a Tensor, but got <class 'int'>"),
    "query_with_prefix": (BNSD, {"query": "abc", "sparse_mode": 6, "prefix": (1, 2)}, TypeError,
                          "'query' must be a Tensor, but got <class 'str'>"),
    "slopes_text": (BNSD, {"real_shift": "abc", "pse_type": 2}, TypeError,
                    "'real_shift' must be a Tensor, but got <class 'str'>"),
    "padding_mask_number": (BNSD, {"padding_mask": 1.5}, ValueError, "'padding_mask' .*reserved.* None, but got 1.5"),
    "lengths_dict": (TND, {"actual_seq_qlen": (3, {"end": 8})}, TypeError,
                     "'actual_seq_qlen' must hold int, but got {'end': 8}"),
    "packed_pse_size": (TND, {"real_shift": x(5)}, ValueError, r"'real_shift' must .*\(148\), but got 5"),
    "packed_drop_mask_size": (TND, {"drop_mask": x(3, dtype=np.uint8), "keep_prob": 0.5}, ValueError,
                              "'drop_mask' .*19 bytes.*got 3"),
    "inner_precise": (BNSD, {"inner_precise": 7}, ValueError, "'inner_precise' must .*got 7"),
}  # fmt: skip

# The same for flash_attention, which deduces heads and scale.
SHORT = {name: value for name, value in BSH.items() if name != "input_layout"}
BAD_SHORT = {
    "layout": ({"layout": "BDSN", "causal": True, "attn_mask": x(8, 8, dtype=bool)}, ValueError,
               "'input_layout' must be one of .*got 'BDSN'"),
    "head_num_zero": ({"head_num": 0}, ValueError, "'head_num' must be >= 1, but got 0"),
    "head_num_type": ({"head_num": "4"}, TypeError, "'head_num' must be of type int, but got '4'"),
    "more_heads_than_features": ({"head_num": 65}, ValueError, "last dim of 'query' .*65 heads, but got 64"),
    "head_num_beside_a_dim": ({"layout": "BSND", **{n: x(2, 8, 4, 16) for n in ("query", "key", "value")},
                               "head_num": 3}, ValueError, "dim N of 'query' must be 3, but got 4"),
    "head_num_bool": ({"layout": "BNSD", **{n: x(2, 1, 8, 16) for n in ("query", "key", "value")}, "head_num": True},
                      TypeError, "'head_num' must be of type int, but got True"),
    "layout_list": ({"layout": ["BSH"]}, TypeError, r"'layout' must be of type str, but got \['BSH'\]"),
    "scale_list": ({"scale": [0.5]}, TypeError, r"'scale' must be of type float, but got \[0.5\]"),
    "rank": ({"layout": "BNSD", "query": x(16)}, ValueError, "rank of 'query' must be 4 .*got 1"),
    "no_features": ({n: x(2, 8, 0) for n in ("query", "key", "value")}, ValueError, "dim D of 'query' .*got 0"),
    "rank_with_mask": ({"query": x(8), "causal": True, "attn_mask": x(8, 8, dtype=bool)}, ValueError,
                       "rank of 'query' must be"),
    "key_rank_with_mask": ({"key": x(8), "causal": True, "attn_mask": x(8, 8, dtype=bool)}, ValueError,
                           "rank of 'key' must be"),
    "causal": ({"causal": "no"}, TypeError, "'causal' must be of type bool, but got '?no"),
    "seed": ({"seed_offset": 3, "keep_prob": 0.5}, ValueError, r"shape of 'seed_offset' must be \[2\], but got \[\]"),
}  # fmt: skip

# Values that only the kernel's entry can see when they come as tensors.
BAD_VALUES = {
    "lengths_short": ({"actual_seq_qlen": (3, 7)}, "last element of 'actual_seq_qlen' must be 8.*got 7"),
    "lengths_long": ({"actual_seq_kvlen": (4, 20)}, "last element of 'actual_seq_kvlen' must be 9.*got 20"),
    "lengths_decrease": ({"actual_seq_qlen": (9, 8)}, "'actual_seq_qlen' must .*not decrease.*8 after 9"),
    "lengths_negative": ({"actual_seq_qlen": (-1, 8)}, "'actual_seq_qlen' must .*-1"),
}


def _call(options, graph, function=ops.flash_attention_score):
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    tensors = {name: v for name, v in options.items() if isinstance(v, np.ndarray)}
    rest = {name: v for name, v in options.items() if name not in tensors}
    net = build_cell(function, tensors, rest)
    out = net((), *map(to_tensor, tensors.values()))
    return out.asnumpy()


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("base", [BNSD, TND, BSH], ids=["bnsd", "tnd", "bsh"])
def test_the_bases_are_right(base, graph):
    assert np.array_equal(_call(base, graph), base["query"])


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", BAD)
def test_error(name, graph):
    base, changes, error, text = BAD[name]
    with pytest.raises(error, match=f"For 'FlashAttentionScore'.*{text}"):
        _call({**base, **changes}, graph)


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", BAD_SHORT)
def test_error_of_flash_attention(name, graph):
    changes, error, text = BAD_SHORT[name]
    with pytest.raises(error, match=f"For 'FlashAttentionScore'.*{text}"):
        _call({**SHORT, **changes}, graph, ops.flash_attention)


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_none(name):
    tensors = {n: to_tensor(v) for n, v in BNSD.items() if isinstance(v, np.ndarray)}
    with pytest.raises(TypeError, match=f"For 'FlashAttentionScore', '{name}' must be a Tensor, but got None."):
        ops.flash_attention(**{**tensors, name: None}, layout="BNSD")
    with pytest.raises(TypeError, match=f"For 'FlashAttentionScore', '{name}' must be a Tensor, but got None."):
        ops.flash_attention_score(**{**tensors, name: None}, head_num=4, input_layout="BNSD", prefix=[1, 2])


@pytest.mark.parametrize("name", ["head_num", "return_lse"])
def test_a_tensor_is_no_attribute(name):
    q = to_tensor(x(2, 1, 8, 16))
    with pytest.raises(TypeError, match=f"For 'FlashAttentionScore', '{name}' must be of type .*, but got Tensor"):
        ops.flash_attention(q, q, q, **{name: ms.Tensor(1.0)}, layout="BNSD")


@pytest.mark.parametrize("scale", [float("nan"), float("-inf")])
def test_scale_is_finite(scale):
    x = to_tensor(BNSD["query"])
    with pytest.raises(ValueError, match=f"For 'FlashAttentionScore', 'scale' must be finite .*got {scale}."):
        ops.flash_attention(x, x, x, layout="BNSD", scale=scale)


def test_nested_lengths():
    with pytest.raises(TypeError, match=r"'actual_seq_qlen' must hold int, but got \(3, 8\)"):
        _call({**TND, "actual_seq_qlen": ((3, 8),)}, False)


def test_seed_of_more_than_64_bits():
    with pytest.raises(
        ValueError, match="For 'FlashAttentionScore', 'seed_offset' must hold .*64 bits, but got 1844674"
    ):
        _call({**BNSD, "keep_prob": 0.5, "seed_offset": (2**64, 0)}, False)


def test_tokens_near_the_limits_of_int64():
    ones = {name: np.ones_like(BNSD[name]) for name in ("query", "value")}
    options = {**BNSD, **ones, "sparse_mode": 4, "next_tokens": 2**63 - 1}
    assert np.array_equal(_call({**options, "pre_tokens": 2**63 - 1}, False), ones["query"])
    with pytest.raises(ValueError, match="'pre_tokens' and 'next_tokens' must leave a pair"):
        _call({**options, "pre_tokens": -(2**63)}, False)


# One in graph mode: MindSpore takes seconds to report what a kernel throws there.
@pytest.mark.parametrize("name, graph", [*((name, False) for name in BAD_VALUES), ("lengths_long", True)])
@pytest.mark.parametrize("as_tensor", [False, True], ids=["tuple", "tensor"])
def test_bad_lengths(name, as_tensor, graph):
    changes, text = BAD_VALUES[name]
    options = {**TND, **changes}
    if as_tensor:
        for key in ("actual_seq_qlen", "actual_seq_kvlen"):
            options[key] = np.array(options[key], np.int64)
    with pytest.raises((ValueError, RuntimeError), match=f"For 'FlashAttentionScore'.*{text}"):
        _call(options, graph)


@pytest.mark.parametrize("name", BAD_VALUES)
def test_nothing_is_written(name):
    changes, text = BAD_VALUES[name]
    options = {**TND, **changes}
    spec = registry.get("flash_attention_score")
    inputs = [options.get(t.name) for t in spec.inputs]
    inputs = [np.array(v, np.int64) if isinstance(v, tuple) else v for v in inputs]
    attrs = {a.name: options.get(a.name, a.default) for a in spec.attrs}
    right = [(v.shape, v.dtype.name) if v is not None else None for v in inputs]
    outputs = [Guarded(shape, dtype) for shape, dtype in _native.infer("flash_attention_score", right, attrs)]
    before = [o.raw.copy() for o in outputs]
    with pytest.raises(ValueError, match=re.compile(text)):
        _native.launch(library_path("fast"), spec.name, inputs, attrs, [o.view for o in outputs])
    assert all(np.array_equal(a, o.raw) for a, o in zip(before, outputs))


def test_a_bad_call_leaves_the_next_one_right():
    with pytest.raises(ValueError):
        _call({**BNSD, "head_num": 5}, False)
    assert _call(BNSD, False).shape == (2, 4, 8, 16)
