# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score: sizes, layouts, head counts, widths and special values, without options.

Sizes come from the tiles: 96 query rows (64 where a head is wide, 128 in the gradient), 256 keys, strips of 16 rows;
beyond two key blocks the running maximum is corrected more than once, beyond the keys that L1 holds a unit runs again.
On the card the gradient has blocks of 128 x 128, and beyond 128 keys a kv head may belong to several cores.
"""

import numpy as np
from flash_op import flash_launch, flash_op
from harness import case, suite

from ms_ops_transformer import ops


def _feature_tail(x):
    x["query"][..., :64] *= 0.05  # the information sits in features 64 to 79


def _huge_negative(x):
    x["query"][...] = 1.0
    x["key"][0, 0, :, 0] = -6.0e4 - 32.0 * np.arange(8)  # steps that float16 and bfloat16 can hold are coarse


def _large_scores(x):
    x["query"] *= 12.0
    x["key"] *= 12.0


def _nan_key(x):
    x["key"][0, 1, 70] = np.nan


def _nan_far_key(x):
    x["key"][0, 0, 290] = np.nan


def _inf_value(x):
    x["value"][0, 0, 70, 3] = np.inf
    x["value"][0, 1, 5, 0] = -np.inf


def _nan_query(x):
    x["query"][0, 0, 66] = np.nan


def _nan_dout(douts):
    douts["out"][0, 0, 66, 3] = np.nan
    douts["out"][0, 1, 10] = np.inf


WIDE = ("float32", "bfloat16")  # of rows that fill L1
CASES = [
    case("tiny", Sq=3, Skv=4, Nkv=1, D=3, Dv=2, graph="all"),
    case("one", Sq=1, N=1, D=1, Dv=1, zeros=True, at_least=1.0),
    case("single_token", Sq=1, N=1, D=16, zeros=True, at_least=4.0),
    case("scale_1", N=1, Sq=20, Skv=64, scale=1.0, at_least=4.0, tilings=("card", "cpu")),
    case("strip_minus_1", Sq=15, Skv=255),
    case("strip", Sq=16, Skv=256),
    case("strip_plus_1", Sq=17, Skv=257, graph="all"),
    case("tile_minus_1", Sq=95, Skv=1, zeros=True, at_least=4.0),
    case("tile", Sq=96, Skv=65),
    case("tile_plus_1", Sq=97, Skv=519),
    case("wide_tile_plus_1", N=1, Sq=65, Skv=1027, D=160),
    case("gradient_tile_minus_1", Sq=127, Skv=30),
    case("gradient_tile", Sq=128, Skv=512),
    case("gradient_tile_plus_1", Sq=129, Skv=64),
    case("two_tiles_plus", Sq=200, Skv=515),
    case(
        "super_blocks", N=2, Nkv=1, Sq=20, Skv=2300, D=1024, Dv=256, sparse_mode=3, dtypes=WIDE, tilings=("card", "cpu")
    ),
    case("pieces_of_key_blocks", N=1, Sq=400, Skv=2700, D=128, dtypes=("float16", "bfloat16")),
    case("rows_far_apart", layout="SBH", B=130, N=1, Sq=3, Skv=9, D=512, dtypes=("float32", "float16")),
    case("long_keys", Sq=5, N=1, Skv=2081, D=24),
    case("long_rows", Sq=700, N=1, Skv=33, D=24),
    case("causal", Sq=130, Skv=130, sparse_mode=3, graph="all"),
    case("causal_chunk", Sq=70, Skv=1100, sparse_mode=3),
    case("causal_left_up", Sq=70, Skv=45, sparse_mode=2),
    case("causal_ranges", N=4, Nkv=2, Sq=300, Skv=700, D=32, Dv=24, sparse_mode=3),  # a kv head of several cores
    case("keys_nobody_sees", Sq=20, Skv=300, sparse_mode=2, zeros=True),
    case("layout_bsh", layout="BSH", B=2, N=4, Nkv=2, Sq=33, Skv=70, graph="all"),
    case("layout_sbh", layout="SBH", B=2, N=4, Nkv=2, Sq=33, Skv=70, Dv=24),
    case("layout_bsnd", layout="BSND", B=2, N=4, Nkv=2, Sq=33, Skv=70),
    case("layout_bnsd", layout="BNSD", B=2, N=4, Nkv=2, Sq=33, Skv=70),
    case("layout_bsh_dv", layout="BSH", B=2, N=4, Nkv=1, Sq=18, Skv=19, D=24, Dv=16),
    case("mqa", N=6, Nkv=1, Sq=20, Skv=37),
    case("gqa_small", N=4, Nkv=2, Sq=3, Skv=5, D=8),
    case("gqa_batch", B=3, N=8, Nkv=2, Sq=70, Skv=257, D=8, sparse_mode=3),
    case("width_1", Sq=20, Skv=30, D=1, Dv=3),
    case("width_3_5", Sq=20, Skv=30, D=3, Dv=5),
    case("width_17", Sq=20, Skv=30, D=17),
    case("width_24_16", Sq=5, Skv=7, D=24, Dv=16),
    case("width_16_40", Sq=5, Skv=7, D=16, Dv=40),
    case("width_80", Sq=9, Skv=9, D=80, edit=_feature_tail),
    case("width_104", Sq=9, Skv=11, D=104),
    case("width_192_128", N=1, Sq=33, Skv=66, D=192, Dv=128),
    case("width_257", N=1, Sq=9, Skv=19, D=257, Dv=255),
    case("width_1024", N=1, Sq=5, Skv=19, D=1024, dtypes=("float16", "bfloat16")),
    case(
        "width_1024_float32", N=1, Sq=5, Skv=19, D=1024, dtypes=("float32",), tilings=("cpu",)
    ),  # L1 of the card is less
    case("tail_of_128", Sq=137, N=1, Skv=137, D=32, sparse_mode=3),
    case("statistics", Sq=20, Skv=600, stats=True, graph="all"),
    case("statistics_bsh", layout="BSH", B=2, N=4, Nkv=2, Sq=33, Skv=70, stats=True),
    case("scale_by_hand", Sq=9, Skv=10, scale=1.0),
    case("scale_negative", Sq=9, Skv=10, scale=-0.3),
    case("huge_negative_logits", Sq=3, N=1, Skv=8, D=1, Dv=4, scale=1.0, edit=_huge_negative, dtypes=("float32",)),
    case("large_scores", Sq=40, Skv=600, stats=True, edit=_large_scores),
    case("nan_key", Sq=80, Skv=80, sparse_mode=3, stats=True, edit=_nan_key),
    case("nan_far_key", N=4, Nkv=2, Sq=100, Skv=310, sparse_mode=3, edit=_nan_far_key),
    case("inf_value", Sq=80, Skv=80, sparse_mode=3, stats=True, edit=_inf_value),
    case("inf_value_in_blocks", Sq=400, Skv=1100, D=32, sparse_mode=3, edit=_inf_value),
    case("nan_query", Sq=80, Skv=80, sparse_mode=3, stats=True, edit=_nan_query),
    case("nan_dout", Sq=80, Skv=80, sparse_mode=3, edit_douts=_nan_dout),
    case("empty_batch", B=0, Sq=4, Skv=3),
    case("no_queries", Sq=0, Skv=3, zeros=True),
    case("no_keys", Sq=3, Skv=0, stats=True, zeros=True),
    case("rows_that_end_in_a_repeat", N=1, Sq=165, Skv=33, D=208, dtypes=("float16", "bfloat16")),
]


def _seed(x):
    x["seed_offset"] = np.array([7, 0], np.int64)


_PLAIN = {"N": 8, "Sq": 2048, "D": 128}
_ONE = ("float32",)
PERF_CASES = [  # tp4: the heads of one of four ranks
    case("llama2_7b_tp4", **_PLAIN),
    case("llama2_7b_tp4_causal", sparse_mode=3, **_PLAIN),
    case("gpt2", N=12, Sq=1024, D=64),
    case("gpt2_causal", N=12, Sq=1024, D=64, sparse_mode=3),
    case("qwen3_8b_tp4", N=8, Nkv=2, Sq=2048, D=128, sparse_mode=3),
    case("mistral_7b_tp4", N=8, Nkv=2, Sq=4096, D=128, sparse_mode=4, pre_tokens=1024, next_tokens=0, dtypes=_ONE),
    case("short", B=8, N=12, Sq=128, D=64),
    case("mask_tensor", mask=(1, 1, 2048, 2048), dtypes=_ONE, **_PLAIN),
    case("pse", pse=(1, 8, 2048, 2048), dtypes=_ONE, **_PLAIN),
    case("dropout", keep_prob=0.9, edit=_seed, dtypes=_ONE, **_PLAIN),
    case("packed", N=8, D=128, q_lens=(512, 1000, 24, 2048, 512), kv_lens=(512, 1000, 24, 2048, 512), dtypes=_ONE),
    case("odd_length", N=8, Sq=2047, D=128, dtypes=_ONE),
    case("odd_width", N=8, Sq=2048, D=121, dtypes=_ONE),
    case("long", N=1, Sq=32768, D=128, passes=(), dtypes=("float32", "bfloat16")),  # for its memory
]

OP = flash_op(ops.flash_attention_score, launch=flash_launch)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)


def _random_case(seed):
    """A shape and a set of options that the operator allows."""
    rng = np.random.default_rng(1000 + seed)
    pick = lambda *choices: choices[rng.integers(len(choices))]  # noqa: E731
    nkv, group = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    d, sq, skv = (int(rng.integers(1, high)) for high in (70, 150, 300))
    options = {"N": nkv * group, "Nkv": nkv, "B": int(rng.integers(1, 4)), "D": d, "Sq": sq, "Skv": skv,
               "Dv": pick(d, int(rng.integers(1, 70))), "layout": pick("BSH", "SBH", "BNSD", "BSND"),
               "sparse_mode": pick(0, 2, 3)}  # fmt: skip
    if rng.random() < 0.3:
        options.update(sparse_mode=4, pre_tokens=int(rng.integers(0, 40)), next_tokens=int(rng.integers(0, 40)))
    elif rng.random() < 0.3:
        options.update(sparse_mode=1, mask=pick((1, 1, sq, skv), (sq, skv), (options["B"], 1, sq, skv)))
    if rng.random() < 0.3:
        options.update(pse=pick((1, options["N"], sq, skv), (options["B"], options["N"], 1, skv)), pse_type=pick(0, 1))
    if rng.random() < 0.3:
        options["softcap"] = 2.0
    if rng.random() < 0.3:
        options.update(sink=True, at_least=4.0)
    if rng.random() < 0.3:
        options.update(drop=True, keep_prob=0.7)
    dtype = ("float32", "float16", "bfloat16")[seed % 3]
    return case(f"random_{seed}", dtypes=(dtype,), zeros=True, stats=bool(rng.random() < 0.3), **options)


# Graph mode sees these shapes in the named cases: compiling 50 more graphs would show nothing new.
RANDOM = [_random_case(seed) for seed in range(50)]
_, test_random_pynative, _, test_random_twin = suite(OP, RANDOM, reference=False)
