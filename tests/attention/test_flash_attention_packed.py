# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score: packed sequences (layout TND)."""

import numpy as np
import pytest
from flash_op import call, flash_launch, flash_op, inputs
from harness import case, suite, to_numpy, to_tensor

from ms_ops_transformer import ops


def _nan_document(x):
    x["key"][9, 0] = np.nan
    x["value"][12, 1] = np.inf


CASES = [
    case("tiny_packed", q_lens=(2, 1), kv_lens=(3, 2), D=2, graph="all"),
    case("zero_length_query", q_lens=(3, 0, 4), kv_lens=(2, 3, 4), D=8, sparse_mode=3, graph="all"),
    case("zero_length_keys", q_lens=(3, 2, 4), kv_lens=(2, 0, 4), D=8, stats=True),
    case("zero_length_ends", q_lens=(0, 5, 0), kv_lens=(0, 6, 0), D=8, stats=True),
    case("gqa", q_lens=(33, 70), kv_lens=(70, 20), N=4, Nkv=2, stats=True),
    case(
        "short_documents",
        q_lens=(1,) * 10 + (2,),
        kv_lens=(1,) * 10 + (2,),
        N=1,
        D=8,
        sparse_mode=3,
        zeros=True,
        at_least=4.0,
    ),
    case("many_documents", q_lens=tuple(range(1, 40)), kv_lens=tuple(range(40, 1, -1)), D=8),
    case("two_members", q_lens=(2, 4), kv_lens=(4, 5), sparse_mode=3),
    case("width_104", q_lens=(3, 4), kv_lens=(6, 4), D=104, sparse_mode=3),
    case("value_width", q_lens=(13, 64), kv_lens=(16, 64), N=4, Nkv=1, D=24, Dv=40, sparse_mode=3),
    case("long_member", q_lens=(65, 3), kv_lens=(1030, 7), N=1, sparse_mode=3),
    case("long_members", q_lens=(150, 0, 70), kv_lens=(400, 30, 260), N=4, Nkv=2, D=32, sparse_mode=3),
    # The dq of so many rows, once for each core, is too much for L2 of the card: the gradient cuts rows and keys,
    case("one_of_many_rows", q_lens=(42000, *(128,) * 8), kv_lens=(2, *(1280,) * 8), N=3, Nkv=1, dtypes=("float16",)),
    # or gives each core whole heads.
    case("heads_of_many_rows", q_lens=(70000, *(512,) * 15), kv_lens=(2, *(300,) * 15), N=3, dtypes=("float32",)),
    case("nan_in_one_document", q_lens=(6, 5, 7), kv_lens=(6, 8, 7), D=8, edit=_nan_document, stats=True),
    case("mode2", q_lens=(20, 70), kv_lens=(30, 50), sparse_mode=2),
    case("mode4", q_lens=(20, 70), kv_lens=(30, 70), sparse_mode=4, pre_tokens=8, next_tokens=2, graph="all"),
    case("mode6", q_lens=(20, 30), kv_lens=(30, 30), sparse_mode=6, prefix=(12, 25)),
    case("mode7", q_lens=(20, 30, 0), kv_lens=(30, 40, 4), sparse_mode=7, pre_tokens=40, next_tokens=-2),
    case("mode8", q_lens=(0, 20, 30), kv_lens=(4, 25, 30), sparse_mode=8, pre_tokens=30, next_tokens=-2),
    case("pse_flat", q_lens=(3, 5), kv_lens=(4, 6), N=3, Nkv=1, pse="packed", pse_type=0),
    case("pse_inner", q_lens=(30, 50), kv_lens=(40, 60), pse="packed"),
    case("slopes", q_lens=(30, 50), kv_lens=(30, 50), N=4, pse=(4,), pse_type=2, sparse_mode=3),
    case("drop_bits", q_lens=(3, 50), kv_lens=(7, 60), drop=True, keep_prob=0.7),
    case("sink_softcap", q_lens=(3, 50), kv_lens=(7, 60), sink=True, at_least=4.0, softcap=2.0, stats=True),
]

OP = flash_op(ops.flash_attention_score, launch=flash_launch)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)


@pytest.mark.parametrize("kind", [list, np.int32, np.int64], ids=["list", "int32", "int64"])
def test_lengths_as_lists_and_tensors(kind):
    c = CASES[7]
    x = {name: to_tensor(v.astype(np.float32)) for name, v in inputs(c, np.random.default_rng(1)).items()}
    options = call(c)
    expected = to_numpy(ops.flash_attention_score(**x, **options))
    for name in ("actual_seq_qlen", "actual_seq_kvlen"):
        options[name] = list(options[name]) if kind is list else to_tensor(np.array(options[name], kind))
    assert np.array_equal(to_numpy(ops.flash_attention_score(**x, **options)), expected)


def test_packed_is_the_loop_over_its_members():
    c = case("loop", q_lens=(5, 70), kv_lens=(9, 80), N=4, Nkv=2, sparse_mode=3, D=24)
    x = {name: v.astype(np.float32) for name, v in inputs(c, np.random.default_rng(1)).items()}
    packed = to_numpy(ops.flash_attention_score(**{name: to_tensor(v) for name, v in x.items()}, **call(c)))
    for a, b, start, stop in ((0, 5, 0, 9), (5, 75, 9, 89)):
        part = {name: v[None, a:b] if name == "query" else v[None, start:stop] for name, v in x.items()}
        options = {"head_num": 4, "input_layout": "BSND", "sparse_mode": 3, "scalar_value": call(c)["scalar_value"]}
        one = ops.flash_attention_score(**{name: to_tensor(v) for name, v in part.items()}, **options)
        assert np.array_equal(to_numpy(one)[0], packed[a:b])
