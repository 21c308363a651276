# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The reference itself: worked examples, torch SDPA, central differences, and who may see a NaN."""

import numpy as np
import pytest
import ref_flash_attention_score as ref

Q = np.array([[1, 0], [0, 1], [1, 1]], float)
K = np.array([[1, 0], [0, 1], [1, -1], [2, 0]], float)
V = np.array([[1, 0], [0, 1], [1, 1], [2, 2]], float)


def rows(x):
    return ["".join("01"[v] for v in row) for row in x.astype(int)]


def test_masks_by_hand():
    assert rows(ref.dropped(2, 3, 5)) == ["01111", "00111", "00011"]
    assert rows(ref.dropped(3, 3, 5)) == ["00011", "00001", "00000"]
    assert rows(ref.dropped(4, 3, 5, pre=1, nxt=0)) == ["10011", "11001", "11100"]
    assert rows(ref.dropped(0, 4, 4, mask=np.zeros((4, 4)), pre=1, nxt=0)) == ["0111", "0011", "1001", "1100"]
    assert rows(ref.dropped(0, 4, 4, pre=1, nxt=0)) == ["0000"] * 4
    assert rows(ref.dropped(3, 4, 2)) == ["11", "11", "01", "00"]
    assert rows(ref.dropped(6, 3, 4, prefix=3)) == ["0001", "0001", "0000"]


@pytest.mark.parametrize("options, out, top, total", [
    ({}, [[1.244919, 1.152452], [0.847548, 1.0], [1.152452, 1.152452]], [1, 0.5, 1], [2.580941] * 3),
    ({"sparse_mode": 2}, [[1, 0], [0.377541, 0.622459], [0.616348, 0.616348]], [0.5] * 3, [1, 1.606531, 2.606531]),
    ({"sparse_mode": 3}, [[0.622459, 0.377541], [0.493520, 0.692804], [1.152452, 1.152452]], [0.5, 0.5, 1],
     [1.606531, 1.974410, 2.580941]),
    ({"sparse_mode": 3, "sink": np.array([0.3])}, [[0.412327, 0.250089], [0.348858, 0.489728], [0.966494, 0.966494]],
     [0.5, 0.5, 1], [2.425261, 2.793141, 3.077526]),
], ids=["plain", "left_up", "right_down", "sink"])  # fmt: skip
def test_attention_by_hand(options, out, top, total):
    r = ref.forward(*(x[None, None] for x in (Q, K, V)), layout="BNSD", head_num=1, scale=0.5, **options)
    np.testing.assert_allclose(r["out"][0, 0], out, atol=1e-6)
    np.testing.assert_allclose(r["max"][0, 0], top, atol=1e-6)
    np.testing.assert_allclose(r["sum"][0, 0], total, atol=1e-6)
    np.testing.assert_allclose(r["lse"], r["max"] + np.log(r["sum"]), atol=1e-12)


def test_alibi_slopes():
    np.testing.assert_allclose(ref.alibi_slopes(8), 2.0 ** -np.arange(1, 9))
    np.testing.assert_allclose(ref.alibi_slopes(6), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125])


def test_rows_without_keys():
    q, k, v = (np.ones((1, 1, 4, 2)), np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 3)))
    r = ref.forward(q, k, v, layout="BNSD", head_num=1, sparse_mode=3)
    assert (r["out"][0, 0, :2] == 0).all() and np.isneginf(r["lse"][0, 0, :2]).all()
    assert (r["max"][0, 0, :2] == -ref.FLT_MAX).all() and (r["sum"][0, 0, :2] == ref.FLT_MAX).all()
    r = ref.forward(q, k[:, :, :0], v[:, :, :0], layout="BNSD", head_num=1)
    assert r["out"].shape == (1, 1, 4, 3) and not any(np.any(r[n]) for n in ("out", "max", "sum"))
    assert np.isneginf(r["lse"]).all()


@pytest.mark.parametrize("causal", [False, True])
def test_against_torch(causal):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    q, k, v, dy = (rng.standard_normal(s) for s in ((2, 6, 37, 16), (2, 3, 37, 16), (2, 3, 37, 24), (2, 6, 37, 24)))
    t = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*t, is_causal=causal, scale=0.3, enable_gqa=True)
    y.backward(torch.tensor(dy))
    options = {"layout": "BNSD", "head_num": 6, "scale": 0.3, "sparse_mode": 3 if causal else 0}
    np.testing.assert_allclose(ref.forward(q, k, v, **options)["out"], y.detach(), atol=1e-12)
    grads = ref.gradient(dy, q, k, v, **options)
    for name, x in zip("qkv", t):
        np.testing.assert_allclose(grads[name], x.grad, atol=1e-12)


TINY = {
    "plain": {},
    "gqa": {"nkv": 1},
    "band": {"sparse_mode": 4, "pre": 1, "next": 1},
    "empty_rows": {"sparse_mode": 3, "sq": 5, "skv": 3},
    "mask": {"mask": (1, 1, 3, 4)},
    "pse1": {"pse": (2, 2, 3, 4)},
    "pse0_broadcast": {"pse": (1, 2, 1, 4), "pse_type": 0},
    "alibi": {"pse": (2,), "pse_type": 2, "skv": 3},
    "alibi_sqrt": {"pse": (2, 2), "pse_type": 3, "skv": 3},
    "dropout": {"keep_prob": 0.6},
    "softcap_pse1": {"softcap": 0.8, "pse": (2, 2, 3, 4)},
    "softcap_pse0": {"softcap": 0.8, "pse": (2, 2, 3, 4), "pse_type": 0},
    "sink": {"sink": True, "softcap": 2.0},
    "sink_empty_rows": {"sink": True, "sparse_mode": 3, "sq": 4, "skv": 2},
}


def tiny(sq=3, skv=4, nkv=2, **options):
    rng = np.random.default_rng(11)
    x = {"q": (2, 2, sq, 3), "k": (2, nkv, skv, 3), "v": (2, nkv, skv, 2)}
    x = {n: rng.standard_normal(s) for n, s in x.items()}
    if "mask" in options:
        options["mask"] = rng.random(options["mask"]) < 0.3
    if "pse" in options:
        x["pse"] = rng.standard_normal(options.pop("pse"))
    if options.pop("sink", False):
        x["sink"] = rng.standard_normal(2)
    if "keep_prob" in options:
        options["keep"] = rng.random((2, 2, sq, skv)) < options["keep_prob"]
    return x, {"layout": "BNSD", "head_num": 2, "scale": 0.7, **options}


@pytest.mark.parametrize("name", TINY)
def test_central_differences(name):
    x, options = tiny(**TINY[name])
    rng = np.random.default_rng(5)
    r = ref.forward(**x, **options)
    dout, dlse = rng.standard_normal(r["out"].shape), rng.standard_normal(r["lse"].shape)

    def loss(**changed):
        r = ref.forward(**{**x, **changed}, **options)
        return (r["out"] * dout).sum() + (np.where(np.isfinite(r["lse"]), r["lse"], 0) * dlse).sum()

    grads = ref.gradient(dout, dlse=dlse, **x, **options)
    for key, found in grads.items():
        if found is None:
            continue
        numeric = np.zeros_like(found)
        for at in np.ndindex(*found.shape):
            up, down = x[key].copy(), x[key].copy()
            up[at] += 1e-5
            down[at] -= 1e-5
            numeric[at] = (loss(**{key: up}) - loss(**{key: down})) / 2e-5
        np.testing.assert_allclose(found, numeric, atol=1e-8, err_msg=key)


def test_layouts_and_packing_agree():
    rng = np.random.default_rng(7)
    lens_q, lens_kv = (3, 0, 5), (2, 4, 6)
    q, k, v, dy = (rng.standard_normal(s) for s in ((8, 4, 3), (12, 2, 3), (12, 2, 5), (8, 4, 5)))
    options = {"head_num": 4, "scale": 0.4, "sparse_mode": 3}
    ends = {"q_lens": np.cumsum(lens_q), "kv_lens": np.cumsum(lens_kv)}
    packed = ref.forward(q, k, v, layout="TND", **ends, **options)
    packed_grads = ref.gradient(dy, q, k, v, layout="TND", **ends, **options)
    a = c = 0
    for lq, lkv in zip(lens_q, lens_kv):
        part = [x[None, s : s + n] for x, s, n in ((q, a, lq), (k, c, lkv), (v, c, lkv))]
        one = ref.forward(*part, layout="BSND", **options)
        np.testing.assert_array_equal(packed["out"][a : a + lq], one["out"][0])
        np.testing.assert_array_equal(packed["lse"][a : a + lq], one["lse"][0].T)
        grads = ref.gradient(dy[None, a : a + lq], *part, layout="BSND", **options)
        np.testing.assert_array_equal(packed_grads["k"][c : c + lkv], grads["k"][0])
        flat = [x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]) for x in part]
        bsh = ref.forward(*flat, layout="BSH", **options)
        np.testing.assert_array_equal(bsh["out"].reshape(one["out"].shape), one["out"])
        sbh = ref.gradient(dy[None, a : a + lq].reshape(1, lq, 20).swapaxes(0, 1), *(x.swapaxes(0, 1) for x in flat),
                           layout="SBH", **options)  # fmt: skip
        np.testing.assert_array_equal(sbh["q"].swapaxes(0, 1).reshape(grads["q"].shape), grads["q"])
        a, c = a + lq, c + lkv


def test_band_members_of_packed_modes():
    rng = np.random.default_rng(9)
    q, k, v = (rng.standard_normal((9, 1, 2)) for _ in range(3))
    ends = {"q_lens": [4, 9, 9], "kv_lens": [4, 9, 9], "layout": "TND", "head_num": 1}
    last = ref.forward(q, k, v, sparse_mode=7, pre=100, next=-2, **ends)["out"]
    first = ref.forward(q, k, v, sparse_mode=8, pre=100, next=-2, **ends)["out"]
    plain = ref.forward(q, k, v, sparse_mode=3, **ends)["out"]
    assert (last[:4] == plain[:4]).all() and (last[4:6] == 0).all()
    assert (first[4:] == plain[4:]).all() and (first[:2] == 0).all()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_reaches_only_what_sees_it():
    x, options = tiny(sq=4, skv=4)
    x["k"][0, 0, 2] = np.nan
    x["v"][1, 1, 3] = np.inf
    r = ref.forward(**x, **options, sparse_mode=3)["out"]
    assert np.array_equal(np.isnan(r[0, 0]).all(-1), [False, False, True, True])
    assert np.array_equal(np.isfinite(r[1, 1]).all(-1), [True, True, True, False])
    assert np.isfinite(r[0, 1]).all() and np.isfinite(r[1, 0]).all()
    grads = ref.gradient(np.ones_like(r), **x, **options, sparse_mode=3)
    assert np.isfinite(grads["q"][0, 0, :2]).all() and np.isnan(grads["q"][0, 0, 2:]).all()
    assert np.isnan(grads["v"][0, 0]).all()  # rows 2 and 3 see every key up to their own
    assert np.isfinite(grads["k"][1, 0]).all()
