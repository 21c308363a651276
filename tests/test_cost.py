# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The cost model against kernels costed by hand (tests/cpp/cost_kernels.cpp), and its command."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from launch import ROOT, Launcher, library_path
from op_examples import EXAMPLES
from test_checked_twin import build_checked

from ms_ops_transformer.op_info import cost
from ms_ops_transformer.op_info.registry import all_specs

TILES, TILE = 8, 16384  # of the copies, bytes
PRODUCT = 128  # side of the matrices


@pytest.fixture(scope="module", autouse=True)
def library():
    """The checked twin of this tree, wherever the package is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MS_OPS_CHECKED_LIBRARY", library_path("checked"))
        yield


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """{kernel: report} and {figure: value}."""
    program = build_checked(tmp_path_factory.mktemp("cost"), "cost_kernels")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures, *lines = done.stdout.splitlines()
    found = {name: json.loads(text) for name, text in (line.split(": ", 1) for line in lines)}
    return found, {rate["name"]: rate["value"] for rate in json.loads(figures)}


def _busy(report, pipe, key="busy"):
    return sum(item[key] for item in report["instructions"] if item["pipe"] == pipe)


def _in(f, size=TILE):
    return f["GM to UB: start"] + size / f["GM to UB"]


def _out(f):
    return f["UB to GM: start"] + TILE / f["UB to GM"]


def _round_trip(f):
    """From the start of a copy in to where its buffer is free again."""
    return _in(f) + f["GM to UB: latency"] + _out(f) + f["UB to GM: latency"]


def _issue(f):
    return f["issue of an instruction, flag or queue operation"]


def test_copy(reports):
    found, f = reports
    one = found["one buffer"]
    assert _busy(one, "MTE2") == pytest.approx(TILES * _in(f))
    assert _busy(one, "MTE3") == pytest.approx(TILES * _out(f))
    assert _busy(one, "MTE2", "bytes") == _busy(one, "MTE3", "bytes") == one["fromHbm"] == one["toHbm"] == TILES * TILE
    # AllocTensor and the copy are issued; then every tile waits for the buffer of the one before.
    assert one["coreCycles"] == pytest.approx(2 * _issue(f) + TILES * _round_trip(f))
    assert one["hbmCycles"] == pytest.approx(2 * TILES * TILE / (32 * 24))
    assert one["ubBytes"] == TILE


def test_two_buffers_overlap(reports):
    found, f = reports
    two = found["two buffers"]
    # Two chains of half the tiles, the second behind the first copy.
    assert two["coreCycles"] == pytest.approx(2 * _issue(f) + _in(f) + TILES / 2 * _round_trip(f))
    assert two["coreCycles"] < 0.7 * found["one buffer"]["coreCycles"]
    assert two["ubBytes"] == 2 * TILE


def test_rows_move_lines_and_come_from_hbm_once(reports):
    found, f = reports
    rows = found["rows twice"]
    assert _busy(rows, "MTE2") == pytest.approx(2 * _in(f, 32 * f["line of GM"]))
    assert rows["fromL2"] == 2 * 32 * 64
    assert rows["fromHbm"] == 32 * 64


def test_vector(reports):
    found, f = reports
    work = 1024 / f["Duplicate"]
    for name, waits in (("vector", 1), ("vector waits", 3)):
        assert _busy(found[name], "V") == pytest.approx(3 * work), name
        expected = _issue(f) + 3 * work + waits * f["start of a vector instruction"]
        assert found[name]["coreCycles"] == pytest.approx(expected), name


def _product_cycles(f):
    """fp32, one block: A and B to L1, to L0, Mmad, and out; nothing overlaps."""
    size = PRODUCT * PRODUCT * 4
    to_l1 = size / 102  # 64 KB
    mmad = PRODUCT**3 * 4 / 4096
    return [2 * to_l1, size / f["L1 to L0A"] + size / f["L1 to L0B"], mmad, size / f["L0C to GM"]]


def test_product(reports):
    found, f = reports
    product = found["product"]
    stages = _product_cycles(f)
    for pipe, cycles in zip(("cube MTE2", "cube MTE1", "cube M", "cube FIX"), stages):
        assert _busy(product, pipe) == pytest.approx(cycles), pipe
    messages = 2 * f["message between vector and cube core"]
    vector = 16384 / f["Duplicate"] + f["start of a vector instruction"]
    # The product, then what the vector has to do; ahead of it: at the same time.
    assert product["coreCycles"] == pytest.approx(2 * _issue(f) + messages + sum(stages) + vector)
    assert found["product ahead"]["coreCycles"] == pytest.approx(_issue(f) + messages + sum(stages))
    assert product["products"] == PRODUCT**3
    assert product["peakCubeCycles"] == pytest.approx(PRODUCT**3 * 4 / 4096 / 24)


def test_two_vector_cores_share_a_cube_core(reports):
    found, f = reports
    one, pair, pairs = (found[name] for name in ("product", "products of a pair", "products of two pairs"))
    # The slowest pipe of the cube core takes both one after the other.
    assert pair["coreCycles"] == pytest.approx(one["coreCycles"] + max(_product_cycles(f)))
    assert pairs["coreCycles"] == pytest.approx(pair["coreCycles"])


def test_sync_all(reports):
    found, f = reports
    vector = _issue(f) + 1024 / f["Duplicate"] + f["start of a vector instruction"]
    assert found["meeting"]["coreCycles"] == pytest.approx(2 * vector + f["SyncAll"])


# ---- operators


@pytest.mark.parametrize("spec", all_specs().values(), ids=lambda spec: spec.name)
def test_every_operator_has_a_cost(spec):
    shapes, attrs = EXAMPLES[spec.name]
    report = cost.run(cost.Call(spec.name, spec.dtypes[next(iter(spec.dtypes))][0], shapes, attrs))
    assert report["us"] > 0 and report["fromHbm"] + report["toHbm"] > 0
    assert 0 < report["ubBytes"] <= report["ubCapacity"]
    assert any(call.op == spec.name for call in cost.CASES.values()), (
        f"op_info/cost.py wants an entry for '{spec.name}' in CASES, and docs/ascend.md its row"
    )


def test_only_a_run_for_costs_counts_them():
    shape = {"input": (4, 64)}
    assert cost.run(cost.Call("swiglu", "float32", shape))["coreCycles"] > 0
    Launcher("checked")("swiglu", [np.ones(shape["input"], np.float32)])
    assert json.loads(cost._library().mst_cost_report())["coreCycles"] == 0


def test_bytes_of_a_norm():
    rows, D = 512, 1024
    report = cost.run(cost.Call("rms_norm", "float32", {"x": (rows, D), "gamma": (D,)}))
    assert report["fromHbm"] == 4 * (rows * D + D)
    assert report["toHbm"] == 4 * (rows * D + rows)
    assert report["products"] == 0


def test_flops_of_attention():
    B, N, S, D = 1, 2, 512, 64
    shapes = {name: (B, N, S, D) for name in ("query", "key", "value")}
    report = cost.run(cost.Call("flash_attention_score", "float16", shapes, {"head_num": N, "input_layout": "BNSD"}))
    assert report["products"] == 2 * B * N * S * S * D
    assert report["tflops"] == pytest.approx(4 * B * N * S * S * D / report["us"] / 1e6)


def test_a_slower_card_takes_longer():
    call = cost.Call("swiglu", "float16", {"input": (2048, 2048)})
    fast, slow = (cost.run(call, f"ascend910b{i}")["us"] for i in (1, 4))
    assert slow > 1.2 * fast


# ---- the command


def _command(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "ms_ops_transformer.op_info", "cost", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


RMS = ("rms_norm", "--dtype", "float32", "--shape", "x=64x256", "gamma=256")
ERRORS = {
    "operator": (("no_such_op",), "unknown operator 'no_such_op'"),
    "soc": ((*RMS, "--soc", "ascend310"), "unknown SoC 'ascend310'; there are ascend910b1"),
    "dtype": (("rms_norm", "--dtype", "int8", "--shape", "x=4x8", "gamma=8"), "'rms_norm' takes no 'int8'; there are"),
    "shape": (("rms_norm", "--shape", "x=4x8", "gamma=9"), "For 'RmsNorm', shape of 'gamma' must be"),
    "text of a shape": (("rms_norm", "--shape", "x=4,8"), "'x' must be integers with 'x' between them, but got '4,8'"),
    "missing": (("rms_norm", "--shape", "x=4x8"), "the shape of 'gamma' of 'rms_norm' must be given"),
    "input": ((*RMS, "--shape", "z=4"), "'rms_norm' has no input 'z'"),
    "attribute": ((*RMS, "--attr", "eps=1"), "'rms_norm' has no attribute 'eps'"),
    "type of an attribute": ((*RMS, "--attr", "epsilon=small"), "attribute 'epsilon' must be float, but got 'small'"),
    "negative shape": (("rms_norm", "--shape", "x=-4x8", "gamma=8"), "negative dimensions"),
    "nothing": ((), "an operator or --case must be given"),
}


@pytest.mark.parametrize("words, message", ERRORS.values(), ids=ERRORS)
def test_error(words, message):
    done = _command(*words)
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_error_without_the_library():
    done = _command(*RMS, MS_OPS_CHECKED_LIBRARY="/nowhere/libmst_checked.so")
    assert done.returncode == 1 and "python setup.py build_native --checked" in done.stderr


def test_command():
    done = _command(*RMS, "--attr", "epsilon=0.5")
    assert done.returncode == 0, done.stderr
    assert "rms_norm float32 on ascend910b1" in done.stdout and "rms_norm_kernel.h:" in done.stdout
    report = json.loads(_command(*RMS, "--json").stdout)
    assert report["toHbm"] == 64 * 256 * 4 + 64 * 4
    files = {row["line"].split(":")[0] for row in report["instructions"]}
    assert files <= {"rms_norm_kernel.h", "rms_norm_gamma.h", "row_ops.h", "kernel_util.h"}, files


def test_docs():
    """docs/ascend.md has the model's figures, and a row for every case."""
    lines = (ROOT / "docs" / "ascend.md").read_text().splitlines()
    assert [line for line in cost.rates_table() if line not in lines] == []
    for call in cost.CASES.values():
        assert any(line.startswith(f"| `{call.op}` | {call.dtype} | ") for line in lines), call.op
