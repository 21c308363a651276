# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score beside torch's scaled_dot_product_attention, forward and gradient, on random cases."""

import mindspore as ms
import numpy as np
import pytest
import torch

from ms_ops_transformer import ops

LIMITS = {"float32": (2e-5, 2e-4), "float16": (2e-3, 1e-2), "bfloat16": (2e-2, 6e-2)}


@pytest.mark.parametrize("seed", range(24))
def test_sdpa(seed):
    rng = np.random.default_rng(seed)
    dtype = ("float32", "float16", "bfloat16")[seed % 3]
    nkv, group, b = (int(rng.integers(1, 4)) for _ in range(3))
    d, dv, sq, skv = (int(rng.integers(1, high)) for high in (130, 70, 200, 700))
    kind = ("full", "causal", "mask", "bias")[seed % 4]
    if kind == "causal":
        skv = sq
    n = nkv * group
    arrays = [rng.standard_normal(s).astype(np.float32)
              for s in ((b, n, sq, d), (b, nkv, skv, d), (b, nkv, skv, dv), (b, n, sq, dv))]  # fmt: skip
    lower = getattr(torch, dtype)
    t = [torch.tensor(x).to(lower).double() for x in arrays]
    q, k, v = (x.requires_grad_() for x in t[:3])
    theirs, ours = {"is_causal": kind == "causal"}, {"sparse_mode": 2 if kind == "causal" else 0}
    if kind == "mask":
        keep = rng.random((b, 1, sq, skv)) < 0.6
        keep[..., 0] = True  # torch gives NaN where nothing is kept
        theirs["attn_mask"], ours["attn_mask"] = torch.tensor(keep), ms.Tensor(~keep)
    if kind == "bias":
        bias = torch.tensor(rng.standard_normal((1, n, sq, skv)).astype(np.float32)).to(lower)
        theirs["attn_mask"] = bias.double()
        ours.update(real_shift=ms.Tensor(bias.float().numpy()).astype(getattr(ms, dtype)), pse_type=0)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=d**-0.5, enable_gqa=True, **theirs)
    y.backward(t[3])

    def loss(q, k, v, dy):
        out = ops.flash_attention_score(q, k, v, n, input_layout="BNSD", scalar_value=d**-0.5, **ours)
        return (out.astype(ms.float32) * dy).sum(), out

    low = [ms.Tensor(x).astype(getattr(ms, dtype)) for x in arrays[:3]]
    dy = ms.Tensor(t[3].float().numpy())
    (_, out), grads = ms.value_and_grad(loss, (0, 1, 2), None, has_aux=True)(*low, dy)
    forward, backward = LIMITS[dtype]
    for name, found, wanted, limit in zip(("out", "dq", "dk", "dv"), (out, *grads), (y, q.grad, k.grad, v.grad),
                                          (forward, *[backward] * 3)):  # fmt: skip
        wanted = wanted.detach().numpy()
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(found.astype(ms.float32).asnumpy(), wanted, rtol=0, atol=limit * scale, err_msg=name)
