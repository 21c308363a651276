# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Reference of flash_attention_score in plain NumPy, forward and gradient, one (sequence, all heads) block at a time.

It follows the formula, not a kernel: the whole score matrix, no blocks, no running maximum. Nothing sets a dtype, so
float64 inputs give the exact answer and `rounded.Rounded` inputs the naive low-precision one. Options are those of
ops.flash_attention_score by shorter names (`_options`); `keep` is the dropout mask as booleans [B, N, Sq, Skv] (packed
layout: flat, sequence by sequence in the order n, i, j).
"""

import numpy as np

FLT_MAX = 3.4028234663852886e38
NO_LIMIT = 2147483647


def heads_first(x, layout, heads):
    """[B, S, ...] of any padded layout -> [B, heads, S, d]."""
    if layout == "BNSD":
        return x
    if layout == "SBH":
        x = x.swapaxes(0, 1)
    if layout in ("BSH", "SBH"):
        x = x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads)
    return x.swapaxes(1, 2)


def heads_back(x, layout):
    """The inverse of heads_first."""
    if layout == "BNSD":
        return x
    x = x.swapaxes(1, 2)
    if layout in ("BSH", "SBH"):
        x = x.reshape(x.shape[0], x.shape[1], x.shape[2] * x.shape[3])
    return x.swapaxes(0, 1) if layout == "SBH" else x


def dropped(mode, sq, skv, mask=None, pre=NO_LIMIT, nxt=NO_LIMIT, prefix=0, band=False):
    """The set of masked pairs of one sequence, [..., sq, skv]; `band`: the member of modes 7 and 8 that uses mode 4."""
    i, j = np.arange(sq)[:, None], np.arange(skv)[None, :]
    delta = skv - sq
    outside_band = (j > i + delta + nxt) | (j < i + delta - pre)
    if mode == 0:
        if mask is None:
            return np.zeros((sq, skv), bool)
        return np.asarray(mask).astype(bool) | (j > i + nxt) | (j < i - pre)
    if mode == 1:
        return np.asarray(mask).astype(bool)
    if mode == 4 or (mode in (7, 8) and band):
        return outside_band
    if mode in (2, 8):
        return j > i
    if mode in (3, 7):
        return j > i + delta
    assert mode in (5, 6), mode
    return (j > i + delta) & (j >= prefix)


def alibi(slopes, sq, skv, pse_type, q_start, kv_start):
    """[N, sq, skv] bias of pse types 2 and 3 from slopes [N]."""
    slopes = np.asarray(slopes)
    distance = np.abs(np.arange(sq)[:, None] + q_start - np.arange(skv)[None, :] - kv_start).astype(slopes.dtype)
    if pse_type == 3:
        distance = np.sqrt(distance)
    return -slopes[:, None, None] * distance


def alibi_slopes(heads):
    power = 2 ** int(np.floor(np.log2(heads)))
    first = [2.0 ** (-8 * (n + 1) / power) for n in range(power)]
    more = [2.0 ** (-8 * (n + 1) / (2 * power)) for n in range(0, 2 * power, 2)]
    return np.array(first + more[: heads - power])


def visible_matmul(weights, rows, visible):
    """weights @ rows; a pair outside `visible` contributes nothing, not even 0 * NaN."""
    if np.isfinite(np.asarray(weights)).all() and np.isfinite(np.asarray(rows)).all():
        return np.matmul(np.where(visible, weights, 0), rows)
    result = np.matmul(np.zeros_like(weights), np.zeros_like(rows))
    for at in np.ndindex(*weights.shape[:-1]):
        seen = visible[at]
        result[at] = np.matmul(weights[at][None, seen], rows[at[:-1]][seen])[0]
    return result


class _Sequence:
    """One batch element or one member of a packed batch: q [N, Sq, D], k [Nkv, Skv, D], v [Nkv, Skv, Dv]."""

    def __init__(self, q, k, v, drop, bias, keep, o):
        self.q, self.k, self.v, self.keep, self.o = q, k, v, keep, o
        group = q.shape[0] // k.shape[0] if k.shape[0] else 1
        self.kk, self.vv = np.repeat(k, group, axis=0), np.repeat(v, group, axis=0)
        n, sq, skv = q.shape[0], q.shape[1], k.shape[1]
        self.visible = ~np.broadcast_to(drop, (n, sq, skv))
        self.bias = bias
        score = np.matmul(q, self.kk.swapaxes(1, 2))
        inner = bias is not None and o["pse_type"] == 1
        score = (score + bias if inner else score) * o["scale"]
        self.tanh = None
        if o["softcap"]:
            self.tanh = np.tanh(score / o["softcap"])
            score = self.tanh * o["softcap"]
        if bias is not None and not inner:
            score = score + bias
        self._softmax(np.where(self.visible, score, -np.inf))
        weights = self.p if keep is None else self.p * keep / o["keep_prob"]
        self.dropped_p = weights
        self.out = visible_matmul(weights, self.vv, self.visible)

    def _softmax(self, score):
        n, sq, skv = score.shape
        sink = self.o["sink"]
        top = score.max(-1, keepdims=True) if skv else np.full_like(score, 0.0, shape=(n, sq, 1)) - np.inf
        if sink is not None:
            sink = np.asarray(sink)[:, None, None] + np.zeros_like(top)
            top = np.maximum(top, sink)
        self.empty = np.isneginf(top)
        base = np.where(self.empty, 0.0, top)
        e = np.where(self.visible, np.exp(score - base), 0.0)
        total = e.sum(-1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink - base)
        safe = np.where(self.empty, 1.0, total)
        self.p = e / safe
        self.p_sink = None if sink is None else np.exp(sink - base) / safe
        nothing = 0.0 if skv == 0 else FLT_MAX
        self.max = np.where(self.empty, -nothing, np.where(np.isnan(total), np.nan, top))[..., 0]
        self.sum = np.where(self.empty, nothing, total)[..., 0]
        self.lse = np.where(self.empty, -np.inf, top + np.log(safe))[..., 0]

    def gradient(self, dy, dlse):
        """dq, dk, dv (kv heads summed over their group), dbias [N, Sq, Skv], dsink [N]."""
        factor = 1.0 if self.keep is None else self.keep / self.o["keep_prob"]
        across = self.visible.swapaxes(1, 2)
        dv = visible_matmul(self.dropped_p.swapaxes(1, 2), dy, across)
        dp = np.matmul(dy, self.vv.swapaxes(1, 2)) * factor
        delta = (dy * self.out).sum(-1, keepdims=True)
        if dlse is not None:
            delta = delta - np.where(self.empty[..., 0], 0.0, dlse)[..., None]
        ds = np.where(self.visible, self.p * (dp - delta), 0.0)
        dsink = None if self.p_sink is None else -(self.p_sink * delta).sum((1, 2))
        dbias = ds
        if self.tanh is not None:
            ds = np.where(self.visible, ds * (1.0 - self.tanh * self.tanh), 0.0)
        if self.o["pse_type"] == 1:
            dbias = ds * self.o["scale"]
        dq = visible_matmul(ds, self.kk, self.visible) * self.o["scale"]
        dk = visible_matmul(ds.swapaxes(1, 2), self.q, across) * self.o["scale"]
        groups = (self.k.shape[0], self.q.shape[0] // max(1, self.k.shape[0]))
        dk, dv = (x.reshape(*groups, *x.shape[1:]).sum(1) for x in (dk, dv))
        return dq, dk, dv, dbias, dsink


def _options(o):
    known = {"layout": "BSH", "head_num": None, "scale": 1.0, "mask": None, "sparse_mode": 0, "pre": NO_LIMIT,
             "next": NO_LIMIT, "prefix": None, "q_lens": None, "kv_lens": None, "pse": None, "pse_type": 1,
             "q_start": 0, "kv_start": 0, "keep": None, "keep_prob": 1.0, "softcap": 0.0, "sink": None}  # fmt: skip
    assert set(o) <= set(known), set(o) - set(known)
    return {**known, **o}


def _at(value, b):
    return value[b] if isinstance(value, (list, tuple, np.ndarray)) else value


def _sequences(q, k, v, o):
    """Yields (b, _Sequence, places of the rows of q, of k, and of the pairs in a packed pse)."""
    heads, packed = o["head_num"], o["layout"] == "TND"
    if packed:
        ends_q, ends_kv = [0, *np.asarray(o["q_lens"])], [0, *np.asarray(o["kv_lens"])]
        blocks = [(slice(*ends_q[b : b + 2]), slice(*ends_kv[b : b + 2])) for b in range(len(ends_q) - 1)]
        q, k, v = (x.swapaxes(0, 1) for x in (q, k, v))
        parts = [(q[:, a], k[:, c], v[:, c]) for a, c in blocks]
    else:
        q = heads_first(q, o["layout"], heads)
        d = q.shape[-1]
        kv_heads = k.shape[2] // d if k.ndim == 3 else k.shape[1 if o["layout"] == "BNSD" else 2]
        k, v = (heads_first(x, o["layout"], kv_heads) for x in (k, v))
        parts = list(zip(q, k, v))
        blocks = [(b, b) for b in range(len(parts))]
    live = [b for b, part in enumerate(parts) if part[0].shape[1]]
    band = {7: live[-1:], 8: live[:1]}.get(o["sparse_mode"], [])
    pairs = 0
    for b, (qb, kb, vb) in enumerate(parts):
        sq, skv = qb.shape[1], kb.shape[1]
        mask, bias, keep = o["mask"], o["pse"], o["keep"]
        if mask is not None and o["sparse_mode"] in (0, 1, 5):
            mask = np.asarray(mask)
            mask = mask[..., :sq, :skv] if packed else mask[b % mask.shape[0]] if mask.ndim == 4 else mask
        drop = dropped(o["sparse_mode"], sq, skv, mask, o["pre"], o["next"],
                       _at(o["prefix"], b) if o["prefix"] is not None else 0, b in band)  # fmt: skip
        if o["sparse_mode"] == 5 and mask is not None:
            drop = mask.astype(bool)
        flat = slice(pairs, pairs + heads * sq * skv)
        pairs = flat.stop
        if bias is not None and o["pse_type"] in (2, 3):
            slopes = np.asarray(bias) if bias.ndim == 1 else np.asarray(bias)[b]
            bias = alibi(slopes, sq, skv, o["pse_type"], _at(o["q_start"], b), _at(o["kv_start"], b))
        elif bias is not None:
            bias = bias[flat].reshape(heads, sq, skv) if packed else bias[b % bias.shape[0]]
        if keep is not None:
            keep = keep.reshape(-1)[flat].reshape(heads, sq, skv)
        yield b, _Sequence(qb, kb, vb, drop, bias, keep, o), blocks[b], flat


def forward(q, k, v, **options):
    """{"out", "max", "sum", "lse"}: out in the layout of q, the statistics [B, N, Sq] or [T, N]."""
    o = _options(options)
    packed = o["layout"] == "TND"
    out = np.zeros_like(q, shape=(*q.shape[:-1], v.shape[-1]))
    if not packed:
        batch, sq = heads_first(q, o["layout"], o["head_num"]).shape[0:3:2]
        kv_heads = k.shape[-1] * o["head_num"] // q.shape[-1] if q.ndim == 3 else None
        dv = v.shape[-1] // kv_heads if q.ndim == 3 else v.shape[-1]
        out = np.zeros_like(q, shape=(batch, o["head_num"], sq, dv))
    stats = [np.zeros_like(q, shape=(*out.shape[:2],) if packed else out.shape[:3]) for _ in range(3)]
    for _, s, (rows, _), _ in _sequences(q, k, v, o):
        target = (lambda x: x.swapaxes(0, 1)) if packed else (lambda x: x)
        out[rows] = target(s.out)
        for whole, part in zip(stats, (s.max, s.sum, s.lse)):
            whole[rows] = target(part)
    return {"out": out if packed else heads_back(out, o["layout"]), **dict(zip(("max", "sum", "lse"), stats))}


def gradient(dout, q, k, v, dlse=None, **options):
    """{"q", "k", "v", "pse", "sink"}; dlse [B, N, Sq] or [T, N]; pse and sink None when they are absent or constant."""
    o = _options(options)
    packed, layout, heads = o["layout"] == "TND", o["layout"], o["head_num"]
    pse, sink = o["pse"], o["sink"]
    dpse = np.zeros_like(pse) if pse is not None and o["pse_type"] in (0, 1) else None
    dsink = None if sink is None else np.zeros_like(sink)
    grads, parts = None, []
    for b, s, (rows, cols), flat in _sequences(q, k, v, o):
        dy = dout[rows].swapaxes(0, 1) if packed else heads_first(dout, layout, heads)[b]
        d = None if dlse is None else (dlse[rows].swapaxes(0, 1) if packed else dlse[b])
        dq, dk, dv, dbias, ds = s.gradient(dy, d)
        parts.append((rows, cols, dq, dk, dv))
        if dpse is not None and packed:
            dpse[flat] = dbias.reshape(-1)
        elif dpse is not None:
            to = dpse[b % dpse.shape[0]]
            axes = tuple(a for a in range(3) if to.shape[a] == 1)
            to += dbias.sum(axes, keepdims=True) if axes else dbias
        if dsink is not None:
            dsink = dsink + ds
    if packed:
        grads = [np.zeros_like(x) for x in (q, k, v)]
        for rows, cols, dq, dk, dv in parts:
            for whole, at, part in zip(grads, (rows, cols, cols), (dq, dk, dv)):
                whole[at] = part.swapaxes(0, 1)
    elif parts:
        grads = [heads_back(np.stack([p[n] for p in parts]), layout) for n in (2, 3, 4)]
    else:
        grads = [np.zeros_like(x) for x in (q, k, v)]
    return {**dict(zip("qkv", grads)), "pse": dpse, "sink": dsink}
