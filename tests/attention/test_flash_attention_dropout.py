# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Dropout made from (seed, offset): what decides an element, how often it is kept, and that the gradient agrees."""

import mindspore as ms
import numpy as np
import pytest
from flash_op import flash_launch
from harness import NUMPY, case, to_numpy, to_tensor
from launch import Launcher, native_threads

from ms_ops_transformer import ops

B, N, SQ, SKV = 2, 3, 70, 530


def seeds(seed=7, offset=0):
    return ms.Tensor([seed, offset], ms.int64)


def kept(layout="BNSD", sq=SQ, skv=SKV, keep_prob=0.6, rng=None, dtype="float32", **options):
    """The keep bits [B, N, sq, skv]: with equal scores and the unit matrix as values, the output is the mask."""
    shape = {"BNSD": lambda s, d: (B, N, s, d), "BSND": lambda s, d: (B, s, N, d), "BSH": lambda s, d: (B, s, N * d),
             "SBH": lambda s, d: (s, B, N * d)}[layout]  # fmt: skip
    q, k = np.zeros(shape(sq, 4)), np.zeros(shape(skv, 4))
    v = np.broadcast_to(np.eye(skv), (B, N, skv, skv))
    if layout != "BNSD":
        v = v.swapaxes(1, 2)
    if layout == "SBH":
        v = v.swapaxes(0, 1)
    v = v.reshape(shape(skv, skv))
    q, k, v = (to_tensor(np.ascontiguousarray(x.astype(NUMPY[dtype]))) for x in (q, k, v))
    out = ops.flash_attention_score(q, k, v, N, input_layout=layout, keep_prob=keep_prob,
                                    seed_offset=seeds() if rng is None else rng, **options)  # fmt: skip
    out = to_numpy(out).astype(np.float32)
    if layout == "SBH":
        out = out.swapaxes(0, 1)
    out = out.reshape(B, sq, N, skv).swapaxes(1, 2) if layout != "BNSD" else out
    return out > 0


@pytest.fixture(scope="module")
def mask():
    return kept()


@pytest.mark.parametrize("layout", ["BSND", "BSH", "SBH"])
def test_every_layout(mask, layout):
    assert np.array_equal(kept(layout), mask)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_dtype(mask, dtype):
    assert np.array_equal(kept(dtype=dtype), mask)


def test_threads(mask):
    for threads in (1, 2, 3):
        with native_threads(threads):
            assert np.array_equal(kept(), mask)


def test_other_lengths_keep_the_same_elements(mask):
    assert np.array_equal(kept(sq=33, skv=129), mask[:, :, :33, :129])


def test_hidden_pairs_do_not_shift_the_others(mask):
    i, j = np.arange(SQ)[:, None], np.arange(SKV)[None, :]
    assert np.array_equal(kept(sparse_mode=2), mask & (j <= i))
    assert np.array_equal(kept(sparse_mode=3), mask & (j <= i + SKV - SQ))


def test_packed_members_are_batch_elements(mask):
    q, k = np.zeros((B * SQ, N, 4), np.float32), np.zeros((B * SKV, N, 4), np.float32)
    v = np.ascontiguousarray(np.broadcast_to(np.eye(SKV, dtype=np.float32)[:, None], (SKV, N, SKV)))
    v = np.concatenate([v] * B)
    out = ops.flash_attention_score(
        *map(ms.Tensor, (q, k, v)), N, input_layout="TND", keep_prob=0.6, seed_offset=seeds(),
        actual_seq_qlen=(SQ, 2 * SQ), actual_seq_kvlen=(SKV, 2 * SKV))  # fmt: skip
    assert np.array_equal(out.asnumpy().reshape(B, SQ, N, SKV).swapaxes(1, 2) > 0, mask)


def launch_all(run):
    """By seed and offset on the tiles of the card; returns the results."""
    c = case("card", Sq=SQ, Skv=129, N=N, B=B, D=4, Dv=129, keep_prob=0.6)
    results = []
    for dtype in (np.float32, np.float16):
        x = {"query": np.zeros((B, N, SQ, 4), dtype), "key": np.zeros((B, N, 129, 4), dtype)}
        x["value"] = np.ascontiguousarray(np.broadcast_to(np.eye(129, dtype=dtype), (B, N, 129, 129)))
        results.append(flash_launch(c, run, **x, seed_offset=np.array([7, 0], np.int64))[0][0])
    return results


def test_tiles_of_the_card(mask):
    for out in launch_all(Launcher("checked")):
        assert np.array_equal(out > 0, mask[..., :129])


@pytest.mark.parametrize("keep_prob", [0.1, 0.5, 0.9, 0.999])
def test_rate(keep_prob):
    bits = kept(keep_prob=keep_prob)
    sigma = np.sqrt(keep_prob * (1 - keep_prob))
    assert abs(bits.mean() - keep_prob) < 5 * sigma / np.sqrt(bits.size) + 2**-16
    for axis in range(4):
        rest = tuple(a for a in range(4) if a != axis)
        rates = bits.mean(rest)
        size = bits.size / len(rates)
        assert np.abs(rates - keep_prob).max() < 6 * sigma / np.sqrt(size) + 4 / size + 2**-16


def test_neighbours_are_independent(mask):
    x = mask - mask.mean()
    for axis in range(4):
        for lag in (1, 2, 4, 8, 16, 64):
            if lag < x.shape[axis]:
                a, b = np.split(x, [x.shape[axis] - lag], axis)[0], np.split(x, [lag], axis)[1]
                correlation = (a * b).mean() / x.var()
                assert abs(correlation) < 6 / np.sqrt(a.size), (axis, lag)


def test_seed_and_offset_matter(mask):
    expected = 0.6**2 + 0.4**2  # agreement of independent masks
    for rng in (seeds(8), seeds(7, 1), seeds(7, 16), seeds(-7), seeds(2**40 + 7), seeds(7, 2**33)):
        assert abs((kept(rng=rng) == mask).mean() - expected) < 0.01
    assert np.array_equal(kept(rng=seeds()), mask)


def test_nothing_is_dropped_at_1():
    assert kept(keep_prob=1.0, rng=seeds(), sq=5, skv=9).all()


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
def test_gradient_uses_the_same_mask(mask, graph):
    """Generated bits and the same bits given as drop_mask: equal outputs and gradients."""
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    rng = np.random.default_rng(0)
    q = ms.Tensor(rng.standard_normal((B, N, SQ, 16)).astype(np.float32))
    k, v = (ms.Tensor(rng.standard_normal((B, N, SKV, 16)).astype(np.float32)) for _ in range(2))
    dy = ms.Tensor(rng.standard_normal((B, N, SQ, 16)).astype(np.float32))
    bits = ms.Tensor(np.packbits(mask, bitorder="little"))

    def explicit(q, k, v, source):
        out = ops.flash_attention_score(q, k, v, N, input_layout="BNSD", keep_prob=0.6, drop_mask=source)
        return (out * dy).sum(), out

    def generated(q, k, v, source):
        out = ops.flash_attention_score(q, k, v, N, input_layout="BNSD", keep_prob=0.6, seed_offset=source)
        return (out * dy).sum(), out

    results = []
    for fn, source in ((explicit, bits), (generated, seeds())):
        (_, out), grads = ms.value_and_grad(fn, (0, 1, 2), None, has_aux=True)(q, k, v, source)
        results.append([x.asnumpy() for x in (out, *grads)])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
    # The output is linear in v: <dy, out> = <dv, v> holds only if forward and backward drop the same elements.
    out, dv = results[1][0], results[1][3]
    np.testing.assert_allclose((dy.asnumpy() * out).sum(), (dv * v.asnumpy()).sum(), rtol=1e-4)
