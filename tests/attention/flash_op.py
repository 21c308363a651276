# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score for the harness: how a case becomes inputs, a call, launches and the reference's options.

Sizes of a case: layout (BNSD), B (1), N (2), Nkv (N), Sq, Skv (Sq), D (16), Dv (D); packed: q_lens, kv_lens.
Options by the names of the public function; besides: mask (shape, or a function of rng), pse (shape), drop (explicit
keep bits), sink (True), prefix, stats (softmax_max, softmax_sum and lse are outputs, lse has a cotangent),
edit (a function that changes the inputs). Cases with a sink count in ulps of 4: its gradient is the sum of that many
numbers of about that size over all rows, which cancel.
"""

import math

import numpy as np
import ref_flash_attention_score as ref
from harness import Op

_OPTIONS = ("sparse_mode", "pre_tokens", "next_tokens", "pse_type", "q_start_idx", "kv_start_idx", "softcap",
            "keep_prob", "inner_precise")  # fmt: skip


def heads(c):
    n = c.get("N", 2)
    return n, c.get("Nkv", n)


def shapes(c):
    """Shapes of query, key, value and of the statistics."""
    n, nkv = heads(c)
    b, d = c.get("B", 1), c.get("D", 16)
    dv = c.get("Dv", d)
    if c.get("q_lens") is not None:
        tq, tkv = sum(c.q_lens), sum(c.kv_lens)
        return (tq, n, d), (tkv, nkv, d), (tkv, nkv, dv), (tq, n)
    sq, skv = c.Sq, c.get("Skv", c.Sq)

    def shape(heads, rows, width):
        return {"BNSD": (b, heads, rows, width), "BSND": (b, rows, heads, width), "BSH": (b, rows, heads * width),
                "SBH": (rows, b, heads * width)}[c.get("layout", "BNSD")]  # fmt: skip

    return shape(n, sq, d), shape(nkv, skv, d), shape(nkv, skv, dv), (b, n, sq)


def pairs(c):
    """Number of (head, query, key) triples: the bits of a dropout mask, the elements of a packed pse."""
    n, b = heads(c)[0], c.get("B", 1)
    if c.get("q_lens") is not None:
        return n * sum(x * y for x, y in zip(c.q_lens, c.kv_lens))
    return b * n * c.Sq * c.get("Skv", c.Sq)


def inputs(c, rng):
    q, k, v, _ = shapes(c)
    x = {name: rng.standard_normal(shape) for name, shape in (("query", q), ("key", k), ("value", v))}
    if c.get("pse") is not None:
        shape = (pairs(c),) if c.pse == "packed" else c.pse
        x["real_shift"] = rng.standard_normal(shape)
        if c.get("pse_type", 1) in (2, 3):  # slopes
            x["real_shift"] = np.abs(x["real_shift"]).astype(np.float32)
    if c.get("drop"):
        keep = rng.random(pairs(c)) < c.keep_prob
        x["drop_mask"] = np.packbits(keep, bitorder="little")
    if c.get("mask") is not None:
        x["attn_mask"] = c.mask(rng) if callable(c.mask) else rng.random(c.mask) < 0.4
    if c.get("sink"):
        x["sink"] = rng.standard_normal(heads(c)[0]).astype(np.float32)
    if c.get("edit"):
        c.edit(x)
    return x


def scale(c):
    return c.get("scale", 1 / math.sqrt(c.get("D", 16)))


def call(c):
    """Everything that is no tensor, by the names of the public function."""
    options = {"head_num": heads(c)[0], "input_layout": c.get("layout", "BNSD"), "scalar_value": scale(c)}
    options.update({name: c.get(name) for name in _OPTIONS if c.get(name) is not None})
    if c.get("q_lens") is not None:
        options["input_layout"] = "TND"
        options["actual_seq_qlen"] = tuple(int(n) for n in np.cumsum(c.q_lens))
        options["actual_seq_kvlen"] = tuple(int(n) for n in np.cumsum(c.kv_lens))
    if c.get("prefix") is not None:
        options["prefix"] = c.prefix
    if c.get("stats"):
        options.update(return_softmax=True, return_lse=True)
    return options


def _reference_options(c, x):
    o = call(c)
    names = {"scalar_value": "scale", "input_layout": "layout", "pre_tokens": "pre", "next_tokens": "next",
             "actual_seq_qlen": "q_lens", "actual_seq_kvlen": "kv_lens", "q_start_idx": "q_start",
             "kv_start_idx": "kv_start"}  # fmt: skip
    r = {names.get(name, name): value for name, value in o.items()}
    for name in ("return_softmax", "return_lse", "inner_precise"):
        r.pop(name, None)
    r.update(mask=x.get("attn_mask"), pse=x.get("real_shift"), sink=x.get("sink"))
    if r["mask"] is not None and r["mask"].shape == (2048, 2048) and r.get("sparse_mode", 0) > 1:
        r["mask"] = None  # the compressed form says nothing that the mode does not
    if "drop_mask" in x:
        keep = np.unpackbits(np.asarray(x["drop_mask"]), bitorder="little")[: pairs(c)].astype(bool)
        r["keep"] = keep if c.get("q_lens") is not None else keep.reshape(*_bns(c), c.get("Skv", c.Sq))
    return r


def _bns(c):
    return c.get("B", 1), heads(c)[0], c.Sq


def forward(c, query, key, value, **x):
    r = ref.forward(query, key, value, **_reference_options(c, x))
    top, total = (np.repeat(r[name][..., None], 8, -1) for name in ("max", "sum"))
    return (r["out"], top, total, r["lse"]) if c.get("stats") else (r["out"],)


def flash_launch(c, run, dout=None, dlse=None, **x):
    """Forward and gradient through the kernels alone, as the public function puts them together."""
    attrs = call(c)
    attrs["scale_value"] = attrs.pop("scalar_value")
    for name in ("return_softmax", "return_lse"):
        attrs.pop(name, None)
    for name in ("actual_seq_qlen", "actual_seq_kvlen", "prefix"):
        if name in attrs:
            x[name] = np.array(attrs.pop(name), np.int64)
    if c.get("pse_type", 1) in (2, 3) and "real_shift" in x:
        x["slopes"] = x.pop("real_shift")
    out, top, total = run("flash_attention_score", x, **attrs)
    outs = (out,)
    if c.get("stats"):
        with np.errstate(divide="ignore"):
            lse = np.where((total == 0) | (total >= ref.FLT_MAX), -np.inf, top + np.log(total))[..., 0]
        outs = (out, top, total, lse.astype(np.float32))
    if dout is None:
        return outs, ()
    saved = {"softmax_max": top, "softmax_sum": total, "attention_out": out, "dy": dout}
    if dlse is not None:
        saved["dlse"] = np.zeros_like(top)  # as the gradient of softmax_max
        saved["dlse"][..., 0] = dlse.astype(np.float32)
    dq, dk, dv, dshift, dsink = run("flash_attention_score_grad", {**x, **saved}, **attrs)
    names = grads(c)
    found = [dq, dk, dv]
    found += [dshift] if "real_shift" in names else []
    return outs, (*found, dsink) if "sink" in names else found


def gradient(c, dout, *more, query, key, value, **x):
    g = ref.gradient(dout, query, key, value, dlse=more[0] if more else None, **_reference_options(c, x))
    results = [g["q"], g["k"], g["v"]]
    results += [g[name] for name in ("pse", "sink") if g[name] is not None]
    return tuple(results)


def grads(c):
    more = ("real_shift",) if c.get("pse") is not None and c.get("pse_type", 1) in (0, 1) else ()
    return ("query", "key", "value", *more, *(("sink",) if c.get("sink") else ()))


def flash_op(fn, **more):
    return Op(fn, inputs=inputs, call=call, forward=forward, gradient=gradient, grads=grads, douts=("out", "lse"),
              outputs=lambda c: ("out", "max", "sum", "lse") if c.get("stats") else ("out",),
              float32=("max", "sum", "lse"), **more)  # fmt: skip
