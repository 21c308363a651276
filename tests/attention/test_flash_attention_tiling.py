# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Invariants of the tiling of flash_attention_score and its gradient, for the CPU and for the card."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ms_ops_transformer import _native
from ms_ops_transformer.op_info import registry

PLATFORMS = _native.platforms()
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@st.composite
def problems(draw):
    """(inputs by name, attributes, sizes): any layout, also packed, with the options that change a tiling."""
    size = {"nkv": draw(st.integers(1, 5)), "B": draw(st.integers(1, 9)), "dtype": draw(st.sampled_from(list(BYTES)))}
    size["N"] = size["nkv"] * draw(st.integers(1, 4))
    size["D"], size["Dv"] = draw(st.integers(1, 1024)), draw(st.integers(1, 1024))
    lengths = st.one_of(st.integers(1, 80), st.integers(1, 3000), st.just(70000))
    layout = draw(st.sampled_from(["BNSD", "BSH", "TND"]))
    attrs = {a.name: a.default for a in registry.get("flash_attention_score").attrs}
    attrs.update(head_num=size["N"], input_layout=layout, sparse_mode=draw(st.sampled_from([0, 2, 3])))
    inputs = {}
    if layout == "TND":
        pairs = [(draw(st.integers(0, 900)), draw(st.integers(0, 900))) for _ in range(size["B"])]
        ends = np.cumsum(np.array(pairs, np.int64), 0)
        size["rows"], size["Sq"], size["Skv"] = [p[0] for p in pairs], int(ends[-1, 0]), int(ends[-1, 1])
        size["all_keys"] = [p[1] for p in pairs]
        inputs["actual_seq_qlen"], inputs["actual_seq_kvlen"] = (np.ascontiguousarray(e) for e in ends.T)
    else:
        size["Sq"], size["Skv"] = draw(lengths), draw(lengths)
        size["rows"], size["all_keys"] = [size["Sq"]] * size["B"], [size["Skv"]] * size["B"]

    def shape(heads, rows, width):
        return {"BNSD": [size["B"], heads, rows, width], "BSH": [size["B"], rows, heads * width],
                "TND": [rows, heads, width]}[layout]  # fmt: skip

    inputs["query"] = (shape(size["N"], size["Sq"], size["D"]), size["dtype"])
    inputs["key"] = (shape(size["nkv"], size["Skv"], size["D"]), size["dtype"])
    inputs["value"] = (shape(size["nkv"], size["Skv"], size["Dv"]), size["dtype"])
    if draw(st.booleans()) and layout != "TND":
        inputs["real_shift"] = ([1, size["N"], 1, size["Skv"]], size["dtype"])
    if draw(st.booleans()):
        inputs["sink"] = ([size["N"]], "float32")
    if draw(st.booleans()):
        attrs["keep_prob"] = 0.5
        inputs["seed_offset"] = ([2], "int64")
    return inputs, attrs, size


def plan(op, inputs, attrs, platform):
    return _native.plan(op, [inputs.get(t.name) for t in registry.get(op).inputs], attrs, platform)


def plan_if_it_fits(op, inputs, attrs, size, soc, rows):
    """The plan, or None where even `rows` rows of both head dims are too much for L1, which two vector cores share."""
    try:
        return plan(op, inputs, attrs, soc)
    except ValueError as error:
        assert "must fit L1 of" in str(error) and soc != "cpu"
        width = sum(-(-size[name] // 16) * 16 for name in ("D", "Dv"))
        assert 2 * rows * width * BYTES[size["dtype"]] > 0.8 * PLATFORMS[soc]["l1Bytes"], error
        return None


def check_units(tiling, units, platform):
    begin = tiling["unitBegin"][: tiling["cores"] + 1]
    assert 0 <= tiling["cores"] <= len(tiling["unitBegin"]) - 1
    assert tiling["cores"] <= platform["vectorCores"] * platform["tasksPerCore"]
    if tiling["cores"]:
        assert begin[0] == 0 and begin[-1] == units and all(a <= b for a, b in zip(begin, begin[1:])), begin
    else:
        assert units == 0


def left_bytes(rows, depth, most, element):
    """Of L1 for the left operand of a Matmul: up to two blocks of at most `most` rows and 256 bytes."""
    blocks = 2 if rows > most or depth * element > 256 else 1
    height = -(-rows // (16 * -(-rows // most))) * 16
    return blocks * height * min(256, -(-depth * element // 32) * 32)


def check_tiles(t, size, platform, l1Bytes):
    """`l1Bytes`: what the Matmul objects take, and a vector core in all."""
    assert t["qRows"] > 0 and t["kvCols"] > 0 and t["stripRows"] > 0
    assert t["qRows"] % t["stripRows"] == 0 or t["depth"] == 1
    assert t["chunkRows"] > 0 and t["chunkRows"] % t["qRows"] == 0
    assert t["superRows"] % 16 == 0
    assert t["dPad"] >= size["D"] and t["dvPad"] >= size["Dv"] and t["dPad"] % 16 == t["dvPad"] % 16 == 0
    assert t["scoreRow"] >= t["kvCols"] and t["scoreRow"] * 4 % 32 == 0
    if platform["soc"] != "cpu":
        lefts, own = l1Bytes
        assert lefts + 2 * own <= platform["l1Bytes"], f"{lefts} + 2 * {own} bytes of L1"
    assert t["workspaceBytes"] >= t["cores"] * t["coreWorkspaceBytes"] and t["coreWorkspaceBytes"] % 32 == 0


@settings(max_examples=300, deadline=None)
@given(problems(), st.sampled_from(sorted(PLATFORMS)))
def test_forward(problem, soc):
    inputs, attrs, size = problem
    t = plan_if_it_fits("flash_attention_score", inputs, attrs, size, soc, 32)
    if t is None:
        return
    if size["Sq"] == 0:
        assert t["cores"] == 0
        return
    element = BYTES[size["dtype"]]
    queries = -(-t["qRows"] // 16) * 16 * t["dPad"]
    own = (queries + t["superRows"] * (t["dPad"] + t["dvPad"])) * element
    check_tiles(t, size, PLATFORMS[soc], (left_bytes(t["qRows"], t["kvCols"], 128, element), own))
    # In L1: whole key blocks, or a part of one.
    assert t["superRows"] < t["kvCols"] or t["superRows"] % t["kvCols"] == 0
    # Scores of the first piece are written over probabilities of other pieces only, see tiling.cpp.
    last = (-(-t["kvCols"] // t["superRows"]) - 1) * t["superRows"]
    assert t["depth"] == 0 or t["scorePlaces"] == 4 or last * element >= t["superRows"] * 4
    assert t["walkRows"] % t["kvCols"] == 0 and (t["depth"] == 0 or t["walkRows"] >= max(size["all_keys"]))
    check_units(t, sum(size["nkv"] * -(-rows // t["chunkRows"]) for rows in size["rows"]), PLATFORMS[soc])


RANGES = 2  # kFlashGradRanges


def check_slots(t, size):
    """Where keys are cut into ranges: each core has a slot for every kv head that it shares, and one to work in."""
    ranges = [max(1, -(-keys // t["rangeKeys"])) for keys in size["all_keys"] for _ in range(size["nkv"])]
    ends = np.cumsum(ranges)
    assert ends[-1] == t["pairUnits"] and t["rangeKeys"] == t["superRows"] == t["keyRows"]
    assert t["chunkRows"] >= max(size["rows"])
    slots = []  # of each head, as its cores come
    for core in range(t["cores"]):
        begin, end = t["unitBegin"][core], min(t["unitBegin"][core + 1], t["pairUnits"])
        first, last = t["slotBegin"][core : core + 2]
        for head in range(len(ends)):
            head_begin = ends[head] - ranges[head]
            if max(begin, head_begin) < min(end, ends[head]):
                goes_on, is_shared = begin > head_begin, begin > head_begin or end < ends[head]
                assert first < last
                slots += [(head, first if goes_on else last - 1)] if is_shared else []
    assert len({slot for _, slot in slots}) == len(slots), slots  # what one core adds no other does
    for (head, slot), (next_head, next_slot) in zip(slots, slots[1:]):
        assert head != next_head or next_slot == slot + 1, slots
    G = size["N"] // size["nkv"]
    room = t["workspaceBytes"] - t["cores"] * t["coreWorkspaceBytes"]
    assert room == t["slotBegin"][t["cores"]] * G * t["chunkRows"] * t["dPad"] * 4


@settings(max_examples=300, deadline=None)
@given(problems(), st.sampled_from(sorted(PLATFORMS)))
def test_gradient(problem, soc):
    inputs, attrs, size = problem
    forward = registry.get("flash_attention_score")
    out, top, total = _native.infer(forward.name, [inputs.get(t.name) for t in forward.inputs], attrs)
    more = {"softmax_max": top, "softmax_sum": total, "attention_out": out, "dy": out}
    inputs = {**inputs, **{n: tuple(v) for n, v in more.items()}}
    t = plan_if_it_fits("flash_attention_score_grad", inputs, attrs, size, soc, 48)
    if t is None:
        return
    element, rows, keys = BYTES[size["dtype"]], t["qRows"], t["kvCols"]
    products = [(rows, size["D"]), (rows, size["Dv"]), (keys, rows), (keys, rows), (rows, keys)]
    lefts = sum(left_bytes(rows, depth, 128, element) for rows, depth in products)
    own = (rows + t["superRows"]) * (t["dPad"] + t["dvPad"]) + (t["keyCopies"] - 1) * t["superRows"] * t["dPad"]
    check_tiles(t, size, PLATFORMS[soc], (lefts, own * element))
    assert t["superRows"] % t["kvCols"] == 0
    check_units(t, t["pairUnits"] + t["pseUnits"] + t["sinkUnits"], PLATFORMS[soc])
    assert t["keyRows"] > 0 or size["Skv"] == 0
    assert t["sinkUnits"] == (size["N"] if "sink" in inputs else 0)
    assert soc == "cpu" or t["workspaceBytes"] <= PLATFORMS[soc]["l2Bytes"] or t["cut"] != RANGES
    if t["cut"] == RANGES:
        check_slots(t, size)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(1, 64))
def test_sums_are_split_the_same_way_by_any_number_of_threads(problem, threads):
    inputs, attrs, size = problem
    tilings = []
    try:
        for count in (1, threads):
            _native.set_num_threads(count)
            tilings.append(plan("flash_attention_score", inputs, attrs, "cpu"))
    finally:
        _native.set_num_threads(0)
    for name in ("qRows", "kvCols", "stripRows", "superRows", "walkRows"):
        assert tilings[0][name] == tilings[1][name], name
