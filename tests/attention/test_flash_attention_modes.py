# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention inside MindSpore: jit, recompute, mixed precision, dynamic shapes, threads, memory, views."""

import gc
import os
import pathlib
import subprocess
import sys
import threading

import mindspore as ms
import numpy as np
import pytest
import ref_flash_attention_score as ref
from harness import to_numpy
from mindspore import nn

from ms_ops_transformer import ops


def tensors(*shapes, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def qkv(s=40, skv=None, b=2, n=2, d=16, seed=0):
    skv = skv or s
    return tensors((b, n, s, d), (b, n, skv, d), (b, n, skv, d), seed=seed)


def expected(q, k, v, **options):
    wide = [x.astype(np.float64) for x in (q, k, v)]
    options = {"layout": "BNSD", "head_num": q.shape[1], "scale": q.shape[-1] ** -0.5, "sparse_mode": 3, **options}
    out = ref.forward(*wide, **options)["out"]
    return out, ref.gradient(np.ones_like(out), *wide, **options)


def attend(q, k, v):
    return ops.flash_attention(q, k, v, q.shape[1], layout="BNSD", causal=True)


def close(found, wanted, tolerance=2e-5):
    np.testing.assert_allclose(to_numpy(found).astype(np.float64), wanted, rtol=tolerance, atol=tolerance)


class Net(nn.Cell):
    """Attention between two multiplications, so that recomputation and casts have something to do."""

    def construct(self, q, k, v):
        return attend(q * 1.0, k, v) * 1.0


def check_net(net, arrays, tolerance=2e-5):
    x = [ms.Tensor(a) for a in arrays]
    out, grads = expected(*arrays)
    close(net(*x), out, tolerance)
    found = ms.grad(net, (0, 1, 2))(*x)
    for name, g in zip("qkv", found):
        close(g, grads[name], tolerance)


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
def test_flash_attention_defaults(graph):
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    check_net(Net(), qkv(33, 70))  # causal is bottom-right, scale 1/sqrt(D)


def test_flash_attention_options():
    q, k, v = qkv(20, 30)
    mask = np.random.default_rng(1).random((2, 1, 20, 30)) < 0.3
    out = ops.flash_attention(*map(ms.Tensor, (q, k, v)), 2, layout="BNSD", attn_mask=ms.Tensor(mask), scale=0.3)
    close(out, expected(q, k, v, sparse_mode=1, mask=mask, scale=0.3)[0])
    out, lse = ops.flash_attention(*map(ms.Tensor, (q, k, v)), 2, layout="BNSD", causal=True, attn_mask=ms.Tensor(mask),
                                   return_lse=True)  # fmt: skip
    later = np.arange(30) > np.arange(20)[:, None] + 10
    close(out, expected(q, k, v, sparse_mode=1, mask=mask | later)[0])
    assert lse.shape == (2, 2, 20)
    flat = [x.swapaxes(1, 2).reshape(2, x.shape[2], 32) for x in (q, k, v)]
    out = ops.flash_attention(*map(ms.Tensor, flat), 2, layout="BSH", causal=True)
    close(out, expected(*flat, layout="BSH", head_num=2, scale=0.25)[0])


def test_jit():
    script = pathlib.Path(__file__).with_name("capture_modes.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0 and done.stdout.count("ok") == 6, done.stdout + done.stderr[-4000:]


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_graph_levels(level):
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
    try:
        check_net(Net(), qkv())
    finally:
        ms.set_context(jit_config={"jit_level": "O0"})


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
def test_recompute(graph):
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    net = Net()
    net.recompute()
    check_net(net, qkv())


class Projected(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(32, 96, weight_init="normal", has_bias=False)

    def construct(self, x):
        q, k, v = ms.ops.split(self.dense(x), 32, 2)  # the rewriter of amp O1 loses the sign of -1
        return ops.flash_attention(q, k, v, 2, layout="BSH", causal=True).astype(ms.float32)


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_amp(level, graph):
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    net = Projected()
    net.dense.weight.set_data(ms.Tensor(tensors((96, 32), seed=3)[0] / 6))
    x = tensors((2, 20, 32), seed=4)[0]
    weight = net.dense.weight.asnumpy().astype(np.float64)
    q, k, v = np.split(x.astype(np.float64) @ weight.T, 3, -1)
    wanted = ref.forward(q, k, v, layout="BSH", head_num=2, scale=0.25, sparse_mode=3)["out"]
    net = ms.amp.auto_mixed_precision(net, level)

    def loss(x):
        return net(x).sum()

    step = ms.value_and_grad(loss, None, net.trainable_params())
    close(net(ms.Tensor(x)), wanted, 2e-5 if level == "O0" else 2e-2)
    loss, (grad,) = step(ms.Tensor(x))
    assert np.isfinite(loss.asnumpy()) and np.isfinite(grad.asnumpy()).all() and np.abs(grad.asnumpy()).max() > 0


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
def test_shapes_change_between_calls(graph):
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    net = Net()
    for s, skv in ((64, 64), (200, 200), (1, 33), (64, 64)):
        check_net(net, qkv(s, skv, b=1, n=1, d=8))


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "gradient"])
def test_dynamic_shapes(backward):
    """One graph for every length: the output shapes are inferred by the native library while it runs."""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    net.set_inputs(*[ms.Tensor(shape=(None, 2, None, 16), dtype=ms.float32)] * 3)
    if backward:
        inner, net = net, nn.Cell()
        net = Gradient(inner)
        net.set_inputs(*[ms.Tensor(shape=(None, 2, None, 16), dtype=ms.float32)] * 3)
    for s, skv, b in ((64, 64, 2), (20, 90, 1), (130, 130, 3)):
        arrays = qkv(s, skv, b=b)
        out, grads = expected(*arrays)
        found = net(*map(ms.Tensor, arrays))
        if backward:
            for name, g in zip("qkv", found):
                close(g, grads[name])
        else:
            close(found, out)


class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.gradient = ms.grad(net, (0, 1, 2))

    def construct(self, q, k, v):
        return self.gradient(q, k, v)


@pytest.mark.parametrize("shape, name", [((2, 2, 8, None), "scale"), (None, "head_num")], ids=["width", "rank"])
def test_attributes_that_follow_from_unknown_dims_are_refused(shape, name):
    """MindSpore would compute them while the graph runs, and then give gradients of 0."""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    net.set_inputs(*[ms.Tensor(shape=shape, dtype=ms.float32)] * 3)
    with pytest.raises(
        ValueError, match=f"For 'FlashAttentionScore', '{name}' must be a number when the graph is built"
    ):
        net(*map(ms.Tensor, qkv(8)))


class Packed(nn.Cell):
    def construct(self, q, k, v):
        return ops.flash_attention(
            q, k, v, 2, layout="TND", scale=0.25, actual_seq_qlen=(3, 8), actual_seq_kvlen=(3, 8)
        )


@pytest.mark.parametrize("shape", [(None, 2, 16), (None, None, 16), None], ids=["rows", "heads", "rank"])
def test_lengths_as_lists_with_unknown_dims(shape):
    ms.set_context(mode=ms.GRAPH_MODE)
    x = [ms.Tensor(a) for a in tensors((8, 2, 16), (8, 2, 16), (8, 2, 16))]
    net = Packed()
    net.set_inputs(*[ms.Tensor(shape=shape, dtype=ms.float32)] * 3)
    np.testing.assert_array_equal(to_numpy(net(*x)), to_numpy(Packed()(*x)))


class CausalAndMasked(nn.Cell):
    def construct(self, q, k, v, mask):
        return ops.flash_attention(q, k, v, layout="BNSD", causal=True, attn_mask=mask)


def test_causal_and_mask_with_unknown_lengths():
    ms.set_context(mode=ms.GRAPH_MODE)
    shapes = ((2, 2, None, 16),) * 3
    inputs = [ms.Tensor(shape=shape, dtype=ms.float32) for shape in shapes]
    net = CausalAndMasked()
    gradient = GradientWithMask(net)
    for cell in (net, gradient):
        cell.set_inputs(*inputs, ms.Tensor(shape=(2, 1, None, None), dtype=ms.bool_))
    for s, skv in ((8, 8), (5, 12)):
        arrays = qkv(s, skv)
        mask = np.random.default_rng(s).random((2, 1, s, skv)) < 0.3
        later = np.arange(skv) > np.arange(s)[:, None] + skv - s
        out, grads = expected(*arrays, sparse_mode=1, mask=mask | later)
        x = [*map(ms.Tensor, arrays), ms.Tensor(mask)]
        close(net(*x), out)
        for name, g in zip("qkv", gradient(*x)):
            close(g, grads[name])


class GradientWithMask(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.gradient = ms.grad(net, (0, 1, 2))

    def construct(self, q, k, v, mask):
        return self.gradient(q, k, v, mask)


def attend_two_heads(q, k, v):
    return ops.flash_attention(q, k, v, 2, layout="BNSD", causal=True, scale=0.25)


def test_dynamic_jit():
    net = ms.jit(attend_two_heads, dynamic=1)
    for s in (5, 64, 130, 7):
        q, k, v = qkv(s)
        close(net(*map(ms.Tensor, (q, k, v))), expected(q, k, v)[0])


def test_both_modes_give_the_same_bits():
    arrays = qkv(70, 300)
    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE, ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        net = Net()
        x = [ms.Tensor(a) for a in arrays]
        found.append([g.asnumpy() for g in (net(*x), *ms.grad(net, (0, 1, 2))(*x))])
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other))


def test_repeated_calls_give_the_same_bits():
    q, k, v = tensors((1, 4, 70, 16), (1, 1, 257, 16), (1, 1, 257, 16))
    runs = []
    for _ in range(10):
        grads = ms.grad(attend, (0, 1, 2))(*map(ms.Tensor, (q, k, v)))
        runs.append([g.asnumpy() for g in grads])
    assert all(np.array_equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run))


def test_views():
    base = tensors((2, 5, 3, 8))[0]
    q, k = tensors((2, 3, 4, 8), (2, 3, 5, 8), seed=1)
    v = ms.Tensor(base).transpose(0, 2, 1, 3)
    out = attend(ms.Tensor(q), ms.Tensor(k), v)
    close(out, expected(q, k, np.ascontiguousarray(base.transpose(0, 2, 1, 3)))[0])
    packed = tensors((2, 3, 20, 48), seed=2)[0]
    parts = [np.ascontiguousarray(packed[..., i : i + 16]) for i in (0, 16, 32)]
    t = ms.Tensor(packed)
    close(attend(t[..., :16], t[..., 16:32], t[..., 32:]), expected(*parts)[0])


def test_concurrent_calls():
    wrong = []

    def work(seed):
        q, k, v = qkv(16 + seed, 24 + 40 * seed, b=1, d=8, seed=seed)
        wanted = expected(q, k, v)[0]
        for _ in range(5):
            out = attend(*map(ms.Tensor, (q, k, v))).asnumpy()
            if not np.allclose(out, wanted, atol=2e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def resident_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def test_memory_is_flat_over_many_lengths():
    q, k, v = qkv(2, 200, b=1, n=1)

    def sweep():
        for i in range(300):
            length = 1 + i % 200
            attend(*map(ms.Tensor, (q, k[:, :, :length].copy(), v[:, :, :length].copy()))).asnumpy()
        gc.collect()
        return resident_mb()

    before = sweep()
    assert sweep() - before < 32


def test_memory_grows_with_the_length_not_its_square():
    s = 16384  # the scores would take 1 GB
    x = [ms.Tensor(a) for a in qkv(s, b=1, n=1, d=16)]
    ms.grad(attend, (0, 1, 2))(*(a[:, :, :64] for a in x))
    with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
        control.write("5")  # forget the peak so far
    before = resident_mb()
    grads = ms.grad(attend, (0, 1, 2))(*x)
    assert np.isfinite(grads[0].asnumpy()).all()
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    assert peak - before < 128


def test_partial_results_merge():
    """Two halves of the keys, merged by their lse, are the whole; a half without visible keys counts for nothing."""
    q, k, v = qkv(20, 30)
    mask = np.zeros((20, 30), bool)
    mask[3, :16] = mask[5, 16:] = mask[7] = True
    whole = expected(q, k, v, sparse_mode=1, mask=mask)[0]
    parts = []
    for part in (slice(0, 16), slice(16, 30)):
        arrays = (q, k[:, :, part].copy(), v[:, :, part].copy(), mask[:, part].copy())
        query, key, value, hidden = map(ms.Tensor, arrays)
        out, lse = ops.flash_attention_score(query, key, value, 2, attn_mask=hidden, input_layout="BNSD",
                                             scalar_value=0.25, return_lse=True)  # fmt: skip
        parts.append((out.asnumpy(), lse.asnumpy()))
    (out_a, lse_a), (out_b, lse_b) = parts
    assert np.isneginf(lse_a[:, :, [3, 7]]).all() and np.isneginf(lse_b[:, :, [5, 7]]).all()
    top = np.where(np.isneginf(np.maximum(lse_a, lse_b)), 0, np.maximum(lse_a, lse_b))
    a, b = np.exp(lse_a - top), np.exp(lse_b - top)
    total = np.where(a + b == 0, 1, a + b)
    merged = (a[..., None] * out_a + b[..., None] * out_b) / total[..., None]
    np.testing.assert_allclose(merged, whole, atol=2e-6)
