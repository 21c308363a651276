# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Invariants of tilings, on every platform: each row once, buffers within local memory, rows that begin at blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ms_ops_transformer import _native

UB_BYTES = {"ascend910b1": 196352, "cpu": 192 * 1024}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}

platforms = st.sampled_from(sorted(UB_BYTES))
dtypes = st.sampled_from(("float32", "float16", "bfloat16"))
sizes = st.one_of(st.integers(1, 40), st.integers(1, 3000))
check = settings(max_examples=150, deadline=None)


def up(size, unit):
    return -(-size // unit) * unit


def shares(total, cores):
    """[begin, end) of each core for contiguous shares."""
    return [(total * i // cores, total * (i + 1) // cores) for i in range(cores)]


def buffers_fit(platform, buffers):
    """`buffers`: bytes of each; every one begins at a block."""
    assert all(size > 0 for size in buffers)
    assert sum(up(size, 32) for size in buffers) <= UB_BYTES[platform]


def covers(pieces, size):
    """Intervals that follow each other and make up [0, size)."""
    at = 0
    for begin, end in pieces:
        assert begin == at <= end
        at = end
    assert at == size


def row_ops(rows, cols, spread=True):
    """A number per row (twice), that spread over a block, and the partial sums of a reduction."""
    rows = up(rows, 8)
    return [4 * rows, 4 * rows, 32 * rows * spread or 32, 4 * up(-(-cols // 64), 8)]


@check
@given(rows=st.integers(0, 5000), D=st.one_of(sizes, st.integers(1, 60000)), dtype=dtypes, platform=platforms)
def test_rms_norm(rows, D, dtype, platform):
    plan = _native.plan("rms_norm", [((rows, D), dtype), ((D,), dtype)], {"epsilon": 1e-6}, platform)
    assert (plan["cores"] == 0) == (rows == 0)
    if rows == 0:
        return
    covers(shares(rows, plan["cores"]), rows)
    item, tile = BYTES[dtype], plan["rowsPerTile"] * plan["pitch"]
    assert plan["pitch"] * item % 32 == 0
    assert plan["colsPerTile"] <= min(D, plan["pitch"])
    assert plan["rowsPerTile"] == 1 or plan["colsPerTile"] == D
    assert 1 <= plan["rowsPerTile"] <= 255
    is_short = plan["colsPerTile"] <= 256 and plan["pitch"] <= 255 * 8
    buffers_fit(
        platform,
        [item * tile] * 2 * plan["buffers"]
        + [4 * up(plan["rowsPerTile"], 8)] * plan["buffers"]
        + [4 * tile, 4 * (tile if is_short else min(tile, 2048))] * (item == 2)
        + [item * plan["gammaCols"], *[4 * plan["gammaCols"]] * (item == 2)]
        + row_ops(plan["rowsPerTile"], plan["colsPerTile"]),
    )
    assert plan["gammaCols"] in (up(D, 32 // item), plan["pitch"])


@check
@given(rows=st.integers(0, 20000), D=st.one_of(sizes, st.integers(1, 60000)), dtype=dtypes, platform=platforms)
def test_rms_norm_grad(rows, D, dtype, platform):
    inputs = [((rows, D), dtype), ((rows, D), dtype), ((rows, 1), "float32"), ((D,), dtype)]
    plan = _native.plan("rms_norm_grad", inputs, {}, platform)
    other = _native.plan("rms_norm_grad", inputs, {}, "cpu" if platform != "cpu" else "ascend910b1")
    assert (plan["chunks"], plan["rowsPerChunk"]) == (other["chunks"], other["rowsPerChunk"])  # by the problem alone
    covers(shares(rows, plan["chunks"]), rows)
    assert plan["rowsPerChunk"] == -(-rows // max(1, plan["chunks"]))
    assert plan["cores"] >= 1  # dgamma is written even without rows
    assert plan["workspaceBytes"] == plan["chunks"] * D * 4
    item, tile = BYTES[dtype], plan["rowsPerTile"] * plan["pitch"]
    assert plan["pitch"] * item % 32 == 0
    assert plan["sumCols"] % 8 == 0
    sums = 8 * 4 * plan["sumCols"]
    assert sums <= max(256, tile * item)
    assert plan["rowsPerChunk"] <= 512
    is_split, resident = plan["colsPerTile"] < D, plan["residentCols"]
    assert resident in (up(D, 32 // item), plan["pitch"])
    buffers_fit(
        platform,
        [max(item * tile, sums)] * 3 * plan["buffers"]
        + [4 * up(max(1, plan["rowsPerChunk"] if is_split else plan["rowsPerTile"]), 8)] * (plan["buffers"] + 1)
        + [4 * tile] * (3 if item == 2 else 0)
        + [item * resident, *[4 * resident] * plan["buffers"], *[4 * resident] * (item == 2)]
        + row_ops(plan["rowsPerTile"], plan["colsPerTile"])[1:],
    )


@check
@given(rows=st.integers(0, 3000), half=st.one_of(sizes, st.integers(1, 60000)), dtype=dtypes, platform=platforms)
def test_swiglu(rows, half, dtype, platform):
    item = BYTES[dtype]
    plans = {
        "swiglu": [((rows, 2 * half), dtype)],
        "swiglu_grad": [((rows, half), dtype), ((rows, 2 * half), dtype)],
    }
    for op, inputs in plans.items():
        plan = _native.plan(op, inputs, {"dim": -1}, platform)
        assert (plan["cores"] == 0) == (rows == 0)
        if rows == 0:
            continue
        rows_per_tile, cols = plan["rowsPerTile"], plan["colsPerTile"]
        assert plan["tiles"] == -(-rows // rows_per_tile) * -(-half // cols)
        covers(shares(plan["tiles"], plan["cores"]), plan["tiles"])
        assert plan["pitch"] * item % 32 == 0
        assert cols <= plan["pitch"]
        assert cols * item % 32 == 0 or cols == half
        assert 1 <= rows_per_tile <= 4095
        tile, float_tiles = rows_per_tile * plan["pitch"], 3 if item == 2 else 0
        moved = 3 if op == "swiglu" else 5
        work = 0 if op == "swiglu" else 2
        buffers_fit(platform, [item * tile] * moved * plan["buffers"] + [4 * tile] * (float_tiles + work))


@st.composite
def tables(draw):
    """Shapes of x and of tables that broadcast to it."""
    x = draw(st.lists(st.integers(1, 12), min_size=0, max_size=5))
    table = [size if draw(st.booleans()) else 1 for size in x]
    D = 2 * draw(st.one_of(st.integers(1, 70), st.integers(1, 500)))
    return (*x, D), (*table, D)


@check
@given(shapes=tables(), dtype=dtypes, platform=platforms, mode=st.sampled_from((0, 1)))
def test_rotary_position_embedding(shapes, dtype, platform, mode):
    x, table = shapes
    attrs = {"mode": mode, "table_grad": True}
    plan = _native.plan("rotary_position_embedding", [(x, dtype), (table, dtype), (table, dtype)], attrs, platform)
    item, rows = BYTES[dtype], int(np.prod(x[:-1]))
    V, inner, outer = plan["V"], plan["I"], plan["outer"]
    assert V * inner * outer == rows
    v_tiles, i_tiles = -(-V // plan["vPerTile"]), -(-inner // plan["iPerTile"])
    assert plan["tiles"] == v_tiles * outer * i_tiles
    covers(shares(plan["tiles"], plan["cores"]), plan["tiles"])
    assert plan["iPerTile"] == inner or plan["vPerTile"] == 1  # the rows of a tile are neighbours
    assert plan["vPerTile"] * plan["iPerTile"] <= 255
    assert (plan["pitch"] // (1 if mode else 2)) * item % 32 == 0
    # The rows of the tables that the kernel visits, against broadcasting.
    expected = np.broadcast_to(np.arange(int(np.prod(table[:-1]))).reshape(table[:-1]), x[:-1]).reshape(-1)
    visited = np.empty(rows, np.int64)
    for o in range(outer):
        row, rest = 0, o
        for axis in reversed(range(plan["axes"])):
            row += rest % plan["axisSize"][axis] * plan["axisTableStride"][axis]
            rest //= plan["axisSize"][axis]
        visited[o * V * inner : (o + 1) * V * inner] = np.repeat(row + np.arange(V), inner)
    assert (visited == expected).all()
    tile = plan["vPerTile"] * plan["iPerTile"] * plan["pitch"]
    tile_of_table = plan["vPerTile"] * plan["pitch"]
    buffers_fit(
        platform,
        [item * tile] * (2 + 2 * mode) * plan["buffers"]
        + [4 * tile] * (2 + mode) * (item == 2)
        + [item * tile_of_table] * 2
        + [4 * tile_of_table] * 2
        + [4 * plan["pitch"], *[up(-(-tile // 8), 32)] * mode],
    )


@check
@given(
    T=st.integers(0, 3000), heads=st.integers(1, 40), D=st.integers(1, 700), bs=st.integers(1, 128),
    dtype=st.sampled_from(sorted(BYTES)), platform=platforms, mode=st.sampled_from(("Norm", "NHSD")),
)  # fmt: skip
def test_scatter_pa_kv_cache(T, heads, D, bs, dtype, platform, mode):
    cache = (7, bs, heads, D) if mode == "Norm" else (7, heads, bs, D)
    inputs = [((T, heads, D), dtype), None, (cache, dtype), None, ((T,), "int64")]
    plan = _native.plan("scatter_pa_kv_cache", inputs, {"cache_mode": mode}, platform)
    item = BYTES[dtype]
    assert plan["cores"] >= 1
    row = heads * D * item << plan["groupShift"]
    assert row <= 16384 or plan["groupShift"] == 0
    assert 15 + plan["groupShift"] <= 32  # bits of a slot number that decide whose it is
    assert plan["slots"] == 7 * bs
    assert mode == "Norm" or up(D, 32 // item) <= plan["tileElements"]
    slots = plan["slotsPerTile"]
    buffers_fit(
        platform, [item * plan["tileElements"]] * plan["buffers"] + [8 * slots, *[4 * slots] * 5, slots // 8, 32]
    )


@check
@given(
    T=st.integers(0, 5000), E=st.integers(1, 2048), data=st.data(), dtype=dtypes, platform=platforms,
    softmax=st.booleans(),
)  # fmt: skip
def test_moe_gating_top_k_softmax(T, E, data, dtype, platform, softmax):
    k = data.draw(st.integers(1, min(E, 1024)))
    attrs = {"k": k, "renorm": 0, "output_softmax_result_flag": softmax}
    plan = _native.plan("moe_gating_top_k_softmax", [((T, E), dtype), ((T,), "bool")], attrs, platform)
    assert (plan["cores"] == 0) == (T == 0)
    item, rows = BYTES[dtype], plan["rowsPerTile"]
    if T:
        covers(shares(T, plan["cores"]), T)
    assert plan["expertPitch"] % 32 == 0
    assert E <= plan["expertPitch"] < E + 32
    assert plan["choicePitch"] * item % 32 == 0
    assert 1 <= rows <= 255
    assert rows * plan["expertPitch"] // 32 <= 255  # sorts of one instruction
    lists = plan["expertPitch"] // 32
    assert not plan["sortsAgain"] or (k <= 16 and lists > 1 and lists & (lists - 1) == 0)
    experts, choices = rows * plan["expertPitch"], up(rows * plan["choicePitch"], 32)
    buffers_fit(
        platform,
        [item * experts, item * choices, 4 * choices, 4 * choices] * plan["buffers"]
        + [4 * experts] * softmax * plan["buffers"]
        + [up(up(rows, 8), 32), 4 * experts, 4 * experts, 8 * experts]
        + (
            [4 * experts, 2 * experts, 2 * experts, 8 * choices]
            if plan["sortsAgain"]
            else [8 * plan["expertPitch"]] * 2 + [8 * (choices + 4 * up(plan["choicePitch"], 32))]
        )
        + [4 * choices, 4 * choices, 4 * choices]
        + row_ops(rows, plan["expertPitch"]),
    )


@pytest.mark.parametrize("platform", sorted(UB_BYTES))
def test_little_work_stays_on_one_core(platform):
    """Below 64 KB another core is not woken."""
    small = [((8, 256), "float32")]
    assert _native.plan("swiglu", small, {"dim": -1}, platform)["cores"] == 1
    assert _native.plan("rms_norm", [*small, ((256,), "float32")], {"epsilon": 1e-6}, platform)["cores"] == 1
