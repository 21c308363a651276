# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score: what is added to the scores (real_shift, ALiBi, sink), soft cap, explicit dropout bits."""

import ref_flash_attention_score as ref
from flash_op import flash_launch, flash_op
from harness import case, suite

from ms_ops_transformer import ops


def _alibi(x):
    x["real_shift"][...] = ref.alibi_slopes(x["real_shift"].shape[-1])


def _far_sink(x):
    x["sink"][...] = [30.0, -30.0]


def _no_sink(x):
    x["sink"][...] = [float("-inf"), 0.5]


CASES = [
    case("tiny_pse", Sq=3, Skv=4, D=2, pse=(1, 2, 3, 4), graph="all"),
    case("tiny_sink", Sq=3, Skv=4, D=2, sink=True, at_least=4.0, softcap=1.0),
    case("pse_full", B=2, Sq=33, Skv=70, pse=(2, 2, 33, 70)),
    case("pse_full_type0", B=2, Sq=33, Skv=70, pse=(2, 2, 33, 70), pse_type=0, graph="all"),
    case("pse_over_batch", B=2, Sq=3, Skv=4, D=8, pse=(1, 2, 3, 4), pse_type=0),
    case("pse_over_batch_long", B=3, Sq=70, Skv=530, pse=(1, 2, 70, 530)),
    case("pse_over_rows", B=2, Sq=33, Skv=70, pse=(2, 2, 1, 70), pse_type=0),
    case("pse_over_rows_inner", B=2, N=4, Nkv=2, Sq=33, Skv=600, pse=(2, 4, 1, 600)),
    case("pse_over_all", B=2, N=3, Sq=2, Skv=140, pse=(1, 1, 1, 140), pse_type=0),
    case("pse_nobody_sees", Sq=20, Skv=300, pse=(1, 1, 1, 300), sparse_mode=2, zeros=True),
    case("pse_after_scale", N=1, Sq=3, Skv=4, pse=(1, 1, 3, 4), pse_type=0),
    case("pse_bsh_gqa", layout="BSH", B=2, N=4, Nkv=2, Sq=20, Skv=30, pse=(2, 4, 20, 30), sparse_mode=3),
    case("pse_causal", Sq=130, Skv=130, pse=(1, 2, 130, 130), sparse_mode=3),
    case("slopes", B=2, N=4, Sq=70, pse=(4,), pse_type=2, edit=_alibi, graph="all"),
    case("slopes_whole_block", N=2, Sq=64, pse=(2,), pse_type=2),
    case("slopes_six_heads", N=6, Sq=40, pse=(6,), pse_type=2, edit=_alibi, sparse_mode=3),
    case("slopes_per_batch", B=2, N=3, Sq=40, pse=(2, 3), pse_type=2),
    case("slopes_sqrt", B=2, N=3, Sq=70, pse=(2, 3), pse_type=3),
    case("slopes_start", N=3, Sq=70, pse=(3,), pse_type=2, q_start_idx=5, kv_start_idx=2),
    case("slopes_long", N=2, Sq=600, D=8, pse=(2,), pse_type=2, edit=_alibi, sparse_mode=3),
    case("softcap", N=1, Sq=6, D=8, sparse_mode=3, softcap=1.0, scale=2.0),
    case("softcap_long", Sq=70, Skv=600, softcap=3.0, sparse_mode=3, graph="all"),
    case("softcap_pse_inner", Sq=33, Skv=70, softcap=1.5, pse=(1, 2, 33, 70)),
    case("softcap_pse_outer", Sq=33, Skv=70, softcap=1.5, pse=(1, 2, 33, 70), pse_type=0),
    case("softcap_slopes", N=2, Sq=40, softcap=1.5, pse=(2,), pse_type=2),
    case("sink", N=3, Sq=4, Skv=5, D=8, sink=True, at_least=4.0, stats=True, graph="all"),
    case("sink_far", Sq=33, Skv=70, sink=True, at_least=4.0, edit=_far_sink, stats=True, zeros=True),
    case("sink_gqa_causal", B=2, N=4, Nkv=2, Sq=70, Skv=600, sink=True, at_least=4.0, sparse_mode=3),
    case("sink_empty_rows", Sq=30, Skv=20, sink=True, at_least=4.0, sparse_mode=3, stats=True),
    case("sink_of_minus_inf", Sq=30, Skv=20, sink=True, at_least=4.0, sparse_mode=3, edit=_no_sink, stats=True,
         zeros=True, graph="all"),
    case("sink_bsh_mask", layout="BSH", B=2, Sq=20, Skv=30, sink=True, at_least=4.0, mask=(2, 1, 20, 30)),
    case("drop_bits", N=2, Sq=5, Skv=6, D=8, drop=True, keep_prob=0.7, graph="all"),
    case("drop_bits_odd", B=2, N=3, Nkv=1, Sq=33, Skv=61, drop=True, keep_prob=0.4),
    case("drop_bits_long", Sq=70, Skv=1100, drop=True, keep_prob=0.9, sparse_mode=3),
    case("drop_bits_bsh", layout="BSH", B=2, Sq=20, Skv=30, drop=True, keep_prob=0.5, stats=True),
    case("drop_keeps_all", Sq=20, Skv=30, drop=True, keep_prob=1.0),
    case("super_blocks", N=2, Nkv=1, Sq=20, Skv=1500, D=1024, Dv=256, sparse_mode=3, softcap=2.0, sink=True,
         at_least=4.0, drop=True, keep_prob=0.8, pse=(1, 1, 20, 1500), dtypes=("float32",), tilings=("card", "cpu")),
    case("everything", B=2, N=4, Nkv=2, Sq=70, Skv=530, D=24, Dv=40, sparse_mode=4, pre_tokens=400, next_tokens=2,
         softcap=2.0, sink=True, at_least=4.0, drop=True, keep_prob=0.8, pse=(1, 4, 70, 530), pse_type=0, stats=True,
         graph="all"),
]  # fmt: skip

OP = flash_op(ops.flash_attention_score, launch=flash_launch)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)
