# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score: which pairs of query and key take part (attn_mask, sparse_mode, bands, prefix)."""

import numpy as np
from flash_op import flash_launch, flash_op
from harness import case, suite

from ms_ops_transformer import ops


def _hidden_rows(rng):
    mask = np.zeros((1, 1, 6, 8), bool)
    mask[0, 0, [2, 5]] = True
    mask[0, 0, 1, 3:] = True
    return mask


def _key_padding(*lengths, skv):
    return lambda rng: (np.arange(skv) >= np.array(lengths)[:, None])[:, None, None, :]


def _compressed(rng):
    return np.triu(np.ones((2048, 2048), bool), 1)


def _as_bytes(shape):
    return lambda rng: (rng.random(shape) < 0.4).astype(np.uint8)


def _whole_blocks(rng):
    """Hides a whole key block, the start of a row's keys, and every key of some rows."""
    mask = rng.random((1, 1, 70, 1100)) < 0.2
    mask[..., 512:1024] = True
    mask[:, :, :16, :512] = True
    mask[:, :, 33] = True
    return mask


def _padding_and_empty_row(rng):
    mask = np.zeros((2, 1, 6, 6), bool)
    mask[0, :, :, 4:] = True
    mask[1, :, 5] = True
    return mask


def _prefix_mask(*prefix, sq, skv, heads=1):
    def make(rng):
        i, j = np.arange(sq)[:, None], np.arange(skv)[None, :]
        mask = [(j > i + skv - sq) & (j >= p) for p in prefix]
        return np.stack([np.stack([m] * heads) for m in mask])

    return make


def _nan_in_padding(x):
    x["key"][0, :, 4:] = np.nan
    x["value"][0, :, 4:] = np.nan


def _nan_beyond_band(x):
    x["key"][0, 0, 100] = np.inf
    x["value"][0, 0, 100] = np.nan


CASES = [
    case("tiny_masked", Sq=3, Skv=5, D=2, mask=(1, 1, 3, 5), sparse_mode=1, graph="all"),
    case("tiny_band", Sq=4, Skv=5, D=2, sparse_mode=4, pre_tokens=1, next_tokens=1),
    case("hidden_rows", Sq=6, Skv=8, mask=_hidden_rows, stats=True, graph="all"),
    case("padding_and_empty_row", B=2, Sq=6, D=8, mask=_padding_and_empty_row, stats=True),
    case("polarity", N=1, Sq=4, Skv=6, D=8, mask=(4, 6)),
    case("shape_sq_skv", B=2, Sq=33, Skv=70, mask=(33, 70)),
    case("shape_1_1", B=2, Sq=33, Skv=70, mask=(1, 1, 33, 70)),
    case("shape_b_1", B=2, Sq=33, Skv=70, mask=(2, 1, 33, 70)),
    case("shape_b_n", B=2, N=3, Nkv=1, Sq=33, Skv=70, mask=(2, 3, 33, 70)),
    case("shape_b_n_1", B=2, Sq=33, Skv=70, mask=(2, 2, 1, 70)),
    case("bytes", B=2, Sq=33, Skv=70, mask=_as_bytes((2, 1, 33, 70)), sparse_mode=1),
    case("mask_bsh", layout="BSH", B=2, Sq=33, Skv=70, mask=(2, 1, 33, 70)),
    case("key_padding", B=2, Sq=1, Skv=700, mask=_key_padding(600, 640, skv=700), graph="all"),
    case("key_padding_rows", B=3, Sq=20, Skv=70, mask=_key_padding(70, 1, 33, skv=70), zeros=True),
    case("nan_in_padding", B=2, N=1, Sq=3, Skv=6, D=8, mask=_key_padding(4, 6, skv=6), edit=_nan_in_padding),
    case("whole_blocks", Sq=70, Skv=1100, mask=_whole_blocks, zeros=True),
    case("everything_hidden", Sq=20, Skv=30, mask=lambda rng: np.ones((20, 30), bool), stats=True, zeros=True),
    case("mask_with_band", Sq=40, Skv=50, mask=(40, 50), pre_tokens=10, next_tokens=3),
    case("band_needs_a_mask", Sq=40, Skv=50, pre_tokens=10, next_tokens=3),
    case("mode1_ignores_band", Sq=40, Skv=50, mask=(40, 50), sparse_mode=1, pre_tokens=1, next_tokens=1),
    case("mode2", Sq=5, Skv=3, D=8, sparse_mode=2, stats=True),
    case("mode2_long", Sq=600, N=1, Skv=530, D=8, sparse_mode=2),
    case("mode3_short_queries", Sq=2, N=1, Skv=5, D=8, sparse_mode=3, stats=True, graph="all"),
    case("mode3_gradient", Sq=3, Skv=7, D=8, sparse_mode=3),
    case("mode3_empty_rows", Sq=70, Skv=45, sparse_mode=3, stats=True),
    case("mode3_mostly_empty", Sq=600, N=1, Skv=5, D=8, sparse_mode=3, zeros=True),
    case("mode3_ignores_band", Sq=20, Skv=20, sparse_mode=3, pre_tokens=1, next_tokens=1),
    case("mode4_window", N=1, Sq=8, D=8, sparse_mode=4, pre_tokens=2, next_tokens=0, stats=True),
    case("mode4_wide", Sq=130, Skv=700, sparse_mode=4, pre_tokens=530, next_tokens=20),
    case("mode4_narrow", Sq=300, N=1, Skv=300, D=8, sparse_mode=4, pre_tokens=5, next_tokens=5, graph="all"),
    case("mode4_negative_next", Sq=70, Skv=70, sparse_mode=4, pre_tokens=40, next_tokens=-3, stats=True),
    case("mode4_negative_pre", Sq=70, Skv=70, sparse_mode=4, pre_tokens=-3, next_tokens=40, stats=True),
    case("mode4_short_keys", Sq=70, Skv=20, sparse_mode=4, pre_tokens=30, next_tokens=30),
    case("mode5", B=2, Sq=20, Skv=30, sparse_mode=5, prefix=(15, 30), mask=_prefix_mask(15, 30, sq=20, skv=30)),
    case("mode6", B=2, Sq=20, Skv=30, sparse_mode=6, prefix=(15, 30), graph="all"),
    case("mode6_long", B=2, N=1, Sq=600, Skv=600, D=8, sparse_mode=6, prefix=(100, 530)),
    case("mode6_empty_rows", B=2, Sq=30, Skv=20, sparse_mode=6, prefix=(0, 3), stats=True),
    case("compressed_2", Sq=65, Skv=40, sparse_mode=2, mask=_compressed),
    case("compressed_3", Sq=65, Skv=80, sparse_mode=3, mask=_compressed),
    case("compressed_4", Sq=65, Skv=80, sparse_mode=4, pre_tokens=20, next_tokens=5, mask=_compressed),
    case("nan_beyond_band", Sq=80, Skv=120, sparse_mode=2, edit=_nan_beyond_band),
    case("inner_precise", Sq=6, Skv=8, mask=_hidden_rows, inner_precise=2),
]

OP = flash_op(ops.flash_attention_score, launch=flash_launch)
test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)
