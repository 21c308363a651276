# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
import mindspore as ms
import ml_dtypes
import numpy as np
import pytest
import ref_scatter_pa_kv_cache as ref
from harness import case, to_numpy, to_tensor
from launch import Launcher
from mindspore import nn

from ms_ops_transformer import ops

CASES = [
    case("skipped_slot", T=4, N=2, D=8, blocks=3, bs=2, slots=[3, -1, 0, -1], graph="all"),
    case("duplicates", T=5, N=1, D=16, blocks=2, bs=4, slots=[3, 5, 3, 5, 3]),
    case("decode", T=7, N=3, D=5, blocks=9, bs=16),
    case("run_of_slots", T=70, N=2, D=32, blocks=6, bs=16, slots=list(range(5, 75))),
    case("all_negative", T=3, N=1, D=8, blocks=2, bs=2, slots=[-1, -7, -1]),
    case("value_of_other_width", T=9, N=2, D=24, Dv=16, blocks=4, bs=8),
    case("long_tokens", T=6, N=8, D=640, blocks=3, bs=4),
    case("many_tokens", T=1500, N=1, D=8, blocks=100, bs=16, slots="shuffled"),
    case("int64_slots", T=6, N=2, D=8, blocks=3, bs=4, index=np.int64),
    case("nhsd", T=9, N=3, D=10, Dv=6, blocks=4, bs=8, mode="NHSD", graph="all"),
    case("nhsd_long_tokens", T=4, N=40, D=128, blocks=2, bs=4, mode="NHSD"),
    case("pa_nz", T=9, N=2, D=48, Dv=16, blocks=4, bs=8, mode="PA_NZ", graph="all"),
    case("tokens_0", T=0, N=2, D=8, blocks=3, bs=4),
    case("far_apart", T=64, N=2, D=64, blocks=512, bs=16, slots="shuffled"),
]
PERF_CASES = [
    case("prefill", T=8192, N=8, D=128, blocks=1024, bs=16, slots=list(range(8192))),
    case("scattered", T=8192, N=8, D=128, blocks=1024, bs=16, slots="shuffled"),
]


def cache_shape(c, width, element_bytes):
    if c.get("mode") == "PA_NZ":
        unit = 32 // element_bytes
        return c.blocks, c.N * width // unit, c.bs, unit
    if c.get("mode") == "NHSD":
        return c.blocks, c.N, c.bs, width
    return c.blocks, c.bs, c.N, width


def slots_of(c, rng):
    slots = c.get("slots")
    if slots is None or slots == "shuffled":
        slots = rng.permutation(c.blocks * c.bs)[: c.T]
    return np.array(slots, c.get("index", np.int32))


def make(c, rng, dtype):
    """The inputs in a storage dtype."""
    D, Dv = c.D, c.get("Dv", c.D)
    shapes = {
        "key": (c.T, c.N, D),
        "value": (c.T, c.N, Dv),
        "key_cache": cache_shape(c, D, np.dtype(dtype).itemsize),
        "value_cache": cache_shape(c, Dv, np.dtype(dtype).itemsize),
    }
    result = {name: (rng.standard_normal(shape) * 40).astype(dtype) for name, shape in shapes.items()}
    return {**result, "slot_mapping": slots_of(c, rng)}


def expected(c, ins):
    mode = c.get("mode", "Norm")
    return (
        ref.forward(ins["key"], ins["key_cache"], ins["slot_mapping"], mode),
        ref.forward(ins["value"], ins["value_cache"], ins["slot_mapping"], mode),
    )


def equal(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.tobytes() == wanted.tobytes()


def launch_all(run):
    for i, c in enumerate(CASES):
        ins = make(c, np.random.default_rng(0), DTYPES[i % len(DTYPES)])
        for op in ("scatter_pa_kv_cache_copy", "scatter_pa_kv_cache"):
            run(op, ins, cache_mode=c.get("mode", "Norm"))


DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.int8)
every = pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
some = pytest.mark.parametrize("c", [c for c in CASES if c.graph == "all"], ids=lambda c: c.name)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
modes = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


@every
@dtypes
def test_twin(c, dtype):
    for library, threads in (("fast", 1), ("fast", 2), ("checked", 1)):
        ins = make(c, np.random.default_rng(0), dtype)
        wanted = expected(c, ins)
        run = Launcher(library, threads)
        for found, out in zip(run("scatter_pa_kv_cache_copy", ins, cache_mode=c.get("mode", "Norm")), wanted):
            equal(found, out)
        run("scatter_pa_kv_cache", ins, cache_mode=c.get("mode", "Norm"))
        equal(ins["key_cache"], wanted[0])
        equal(ins["value_cache"], wanted[1])


@every
@dtypes
def test_functional_pynative(c, dtype):
    check_functional(c, dtype)


@some
@dtypes
def test_functional_graph(c, dtype):
    ms.set_context(mode=ms.GRAPH_MODE)
    check_functional(c, dtype)


class Scatter(nn.Cell):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def construct(self, key, value, key_cache, value_cache, slots):
        return ops.scatter_pa_kv_cache(key, value, key_cache, value_cache, slots, self.mode)


def check_functional(c, dtype):
    ins = make(c, np.random.default_rng(0), dtype)
    tensors = {name: to_tensor(x) for name, x in ins.items()}
    found = Scatter(c.get("mode", "Norm"))(*tensors.values())
    for out, wanted in zip(found, expected(c, ins)):
        equal(to_numpy(out), wanted)
    for name in ("key_cache", "value_cache"):
        equal(to_numpy(tensors[name]), ins[name])  # a plain Tensor is left alone


class Cached(nn.Cell):
    """Writes into its own caches, then reads them: in place, in both modes."""

    def __init__(self, key_cache, value_cache, mode):
        super().__init__()
        self.key_cache = ms.Parameter(key_cache, name="key_cache", requires_grad=False)
        self.value_cache = ms.Parameter(value_cache, name="value_cache", requires_grad=False)
        self.mode = mode

    def construct(self, key, value, slots):
        key_cache, value_cache = ops.scatter_pa_kv_cache(key, value, self.key_cache, self.value_cache, slots, self.mode)
        return ms.ops.cast(key_cache, ms.float32) * 2, ms.ops.cast(value_cache, ms.float32) * 2


@modes
@dtypes
@some
def test_in_place(mode, dtype, c):
    ms.set_context(mode=mode)
    rng = np.random.default_rng(1)
    ins = make(c, rng, dtype)
    cell = Cached(to_tensor(ins["key_cache"]), to_tensor(ins["value_cache"]), c.get("mode", "Norm"))
    for _ in range(3):  # each step continues on the caches of the one before
        ins.update({k: v for k, v in make(c, rng, dtype).items() if not k.endswith("cache")})
        wanted = expected(c, ins)
        doubled = cell(*(to_tensor(ins[name]) for name in ("key", "value", "slot_mapping")))
        for out, cache in zip(doubled, wanted):
            assert (out.asnumpy() == cache.astype(np.float32) * 2).all()  # the reader saw the update
        equal(to_numpy(cell.key_cache), wanted[0])
        equal(to_numpy(cell.value_cache), wanted[1])
        ins["key_cache"], ins["value_cache"] = wanted


@modes
def test_without_value(mode):
    """One cache only, as for latent attention."""
    ms.set_context(mode=mode)
    c = CASES[0]
    ins = make(c, np.random.default_rng(2), np.float32)
    wanted = expected(c, ins)[0]
    key, cache, slots = (to_tensor(ins[name]) for name in ("key", "key_cache", "slot_mapping"))
    updated, nothing = ops.scatter_pa_kv_cache(key, None, cache, None, slots)
    assert nothing is None
    equal(updated.asnumpy(), wanted)
    parameter = ms.Parameter(cache, name="cache")
    ops.scatter_pa_kv_cache(key, None, parameter, None, slots)
    equal(parameter.asnumpy(), wanted)


@modes
def test_slices_of_one_tensor(mode):
    """Keys and values that are views of one packed tensor."""
    ms.set_context(mode=mode)
    c = CASES[0]
    ins = make(c, np.random.default_rng(3), np.float32)
    packed = np.random.default_rng(4).standard_normal((4, 3, 2, 8)).astype(np.float32)
    ins["key"], ins["value"] = packed[:, 1], packed[:, 2]
    tensor = to_tensor(packed)
    found = ops.scatter_pa_kv_cache(
        tensor[:, 1], tensor[:, 2], *(to_tensor(ins[n]) for n in ("key_cache", "value_cache", "slot_mapping"))
    )
    for out, wanted in zip(found, expected(c, ins)):
        equal(out.asnumpy(), wanted)


@pytest.mark.parametrize("library", ["fast", "checked"])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("cache_mode", ["Norm", "PA_NZ", "NHSD"])
def test_the_kernel_skips_slots_that_are_not_there(cache_mode, in_place, library):
    """On a card nobody looks at the slots before; the last run of tokens begins in the cache and ends behind it."""
    slots = [0, 6, -9, 2**31 - 1, -(2**31), 1000, 5, 6, 7]
    c = case("beyond", T=9, N=2, D=8, blocks=3, bs=2, slots=slots, mode=cache_mode)
    ins = make(c, np.random.default_rng(5), np.float32)
    wanted = expected(c, {**ins, "slot_mapping": np.array([0, -1, -1, -1, -1, -1, 5, -1, -1])})
    caches = ins["key_cache"].copy(), ins["value_cache"].copy()
    tensors = (ins["key"], ins["value"], *caches, ins["slot_mapping"])
    run = Launcher(library, 2, check_values=False)
    if in_place:
        run("scatter_pa_kv_cache", tensors, cache_mode=cache_mode)
    else:
        caches = run("scatter_pa_kv_cache_copy", tensors, cache_mode=cache_mode)
    for found, out in zip(caches, wanted):
        equal(found, out)


@modes
@pytest.mark.parametrize("in_place", [False, True])
def test_slot_beyond_the_cache(mode, in_place):
    """All slots are looked at before anything is written."""
    ms.set_context(mode=mode)
    c = CASES[0]
    ins = make(c, np.random.default_rng(5), np.float32)
    ins["slot_mapping"] = np.array([0, 1, 6, 2], np.int32)
    cell = Cached(to_tensor(ins["key_cache"]), to_tensor(ins["value_cache"]), "Norm") if in_place else Scatter("Norm")
    names = ("key", "value", "slot_mapping") if in_place else tuple(ins)
    with pytest.raises(RuntimeError, match="'slot_mapping' must be less than 3 blocks times 2 slots, but got 6"):
        for out in cell(*(to_tensor(ins[name]) for name in names)):
            out.asnumpy()
    if in_place:
        equal(to_numpy(cell.key_cache), ins["key_cache"])
        equal(to_numpy(cell.value_cache), ins["value_cache"])


@modes
@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"slot_mapping": (3,)}, ValueError, "slot_mapping"),  # more key rows than slots
        ({"key_cache": (3, 2, 2, 9)}, ValueError, "shape of 'key_cache' must be"),
        ({"key_cache": (3, 2, 16)}, ValueError, "rank of 'key_cache' must be 4, but got 3"),
        ({"value_cache": (4, 2, 2, 8)}, ValueError, "'value_cache' must have 3 blocks of 2 slots"),
        ({"value_cache": None}, ValueError, "'value' and 'value_cache' must both be given"),
        ({"key": (4, 8)}, ValueError, "key"),
        ({"mode": "BNSD"}, ValueError, "'cache_mode' must be one of 'Norm', 'NHSD', 'PA_NZ', but got 'BNSD'"),
    ],
)
def test_bad_input(mode, change, error, text):
    ms.set_context(mode=mode)
    shapes = {"key": (4, 2, 8), "value": (4, 2, 8), "key_cache": (3, 2, 2, 8), "value_cache": (3, 2, 2, 8)}
    shapes = {**shapes, "slot_mapping": (4,), **change}
    cache_mode = shapes.pop("mode", "Norm")
    tensors = {
        name: shape and ms.ops.zeros(shape, ms.int32 if name == "slot_mapping" else ms.float32)
        for name, shape in shapes.items()
    }
    with pytest.raises(error, match=text):
        ops.scatter_pa_kv_cache(*tensors.values(), cache_mode=cache_mode)


def test_one_parameter_only():
    key, cache = ms.ops.ones((4, 2, 8), ms.float32), ms.ops.ones((3, 2, 2, 8), ms.float32)
    with pytest.raises(TypeError, match="must both be a Parameter or both be a Tensor"):
        ops.scatter_pa_kv_cache(key, key, ms.Parameter(cache, name="cache"), cache, ms.ops.zeros(4, ms.int32))
