# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What a call of an operator would cost on the card: its kernel runs on the checked twin, which times every instruction
with the figures of kernels/twin/checked/rates.h. docs/ascend.md says what is counted and what is assumed."""

import ctypes
import dataclasses
import itertools
import json
import operator
import os
import pathlib

import numpy as np

from .emit import ascend, cpu
from .registry import get
from .spec import REQUIRED

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_BUILD = "python setup.py build_native --checked"
_BUSY = 0.8  # of the time: then a pipe is what bounds a core


class CostError(ValueError):
    """A call that cannot be costed; the text says why."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A call by shapes. `values`: lists of integers of inputs that need certain ones. `flops`: of matrix products, what
    the result needs if the kernel does more; 0: what it does."""

    op: str
    dtype: str
    shapes: dict
    attrs: dict = dataclasses.field(default_factory=dict)
    values: dict = dataclasses.field(default_factory=dict)
    flops: float = 0


def _attention(grad):
    rows = (1, 32, 4096, 128)
    shapes = {"query": rows, "key": rows, "value": rows}
    if grad:
        statistics = (1, 32, 4096, 8)
        shapes |= {"softmax_max": statistics, "softmax_sum": statistics, "attention_out": rows, "dy": rows}
    products = 5 if grad else 2
    return shapes, {"head_num": 32, "input_layout": "BNSD", "scale_value": 128**-0.5}, products * 2 * 32 * 4096**2 * 128


_ROPE = {"cos": (1, 1, 4096, 128), "sin": (1, 1, 4096, 128)}
_HEADS = (1, 32, 4096, 128)
_CACHE = {
    "key": (4096, 8, 128),
    "value": (4096, 8, 128),
    "key_cache": (1024, 16, 8, 128),
    "value_cache": (1024, 16, 8, 128),
    "slot_mapping": (4096,),
}
_STANDARD = {
    "flash_attention_score": ("float16", *_attention(False)),
    "flash_attention_score_grad": ("float16", *_attention(True)),
    "rms_norm": ("float16 float32", {"x": (4096, 4096), "gamma": (4096,)}, {}),
    "rms_norm_grad": (
        "float16 float32",
        {"dy": (4096, 4096), "x": (4096, 4096), "rstd": (4096, 1), "gamma": (4096,)},
        {},
    ),
    "rotary_position_embedding": ("float16 float32", {"x": _HEADS, **_ROPE}, {}),
    "rotary_position_embedding_grad": ("float16 float32", {"dy": _HEADS, **_ROPE}, {}),
    "rotary_position_embedding_table_grad": ("float16 float32", {"dy": _HEADS, "x": _HEADS, **_ROPE}, {}),
    "scatter_pa_kv_cache": ("float16", _CACHE, {}),
    "scatter_pa_kv_cache_copy": ("float16", _CACHE, {}),
    "moe_gating_top_k_softmax": ("float16 float32", {"x": (8192, 256)}, {"k": 8}),
    "moe_gating_top_k_softmax_grad": (
        "float16 float32",
        {"dy": (8192, 8), "x": (8192, 256), "expert_idx": (8192, 8)},
        {"k": 8},
    ),
    "swiglu": ("float16 float32", {"input": (4096, 8192)}, {}),
    "swiglu_grad": ("float16 float32", {"doutput": (4096, 4096), "input": (4096, 8192)}, {}),
}
# What the table of docs/ascend.md is made of.
CASES = {
    f"{op}-{dtype}": Call(op, dtype, shapes, attrs, flops=sum(flops))
    for op, (dtypes, shapes, attrs, *flops) in _STANDARD.items()
    for dtype in dtypes.split()
}


# ---- the checked library


def library_path():
    """The checked twin, which is part of a source tree and not of a wheel."""
    path = pathlib.Path(os.environ.get("MS_OPS_CHECKED_LIBRARY") or _ROOT / "build" / "lib" / "libmst_checked.so")
    if not path.is_file():
        raise CostError(
            f"the checked twin is needed and not at {path}: run '{_BUILD}' in the source tree, or set "
            "MS_OPS_CHECKED_LIBRARY to a libmst_checked.so"
        )
    return str(path)


def _library():
    from ms_ops_transformer import _native  # noqa: F401  brings the runtime that the library needs

    try:
        library = ctypes.CDLL(library_path())
    except OSError as error:
        raise CostError(f"the checked twin cannot be loaded: {error}") from None
    try:
        library.mst_cost_report.restype = library.mst_cost_rates.restype = ctypes.c_char_p
    except AttributeError:
        raise CostError(f"{library_path()} was built before there was a cost model: run '{_BUILD}'") from None
    return library


def rates():
    """The figures that the model has: name, value, unit, origin, note."""
    return json.loads(_library().mst_cost_rates())


# ---- a call


def _column(spec, dtype):
    wanted = dtype.split(",")
    columns = list(zip(*spec.dtypes.values()))
    for column, dtypes in enumerate(columns):
        if list(dtypes[: len(wanted)]) == wanted:
            return column
    there = ", ".join(dict.fromkeys(dtypes[0] for dtypes in columns))
    raise CostError(f"'{spec.name}' takes no '{dtype}'; there are {there} (for {', '.join(spec.dtypes)})")


def _floats(shape, rng):
    """Normal values; large arrays repeat themselves."""
    size = int(np.prod(shape))
    return np.resize(rng.standard_normal(min(size, 1 << 20), np.float32), size).reshape(shape)


# Of inputs that random values do not fit.
_FILL = {
    "softmax_max": lambda shape, call: np.full(shape, 4.0),
    "softmax_sum": lambda shape, call: np.full(shape, 256.0),
    "rstd": lambda shape, call: np.ones(shape),
    "slot_mapping": lambda shape, call: np.random.default_rng(0).permutation(shape[0]),
    "expert_idx": lambda shape, call: np.arange(int(np.prod(shape))).reshape(shape) % call.shapes["x"][-1],
}


def _array(tensor, dtype, call, rng):
    shape = call.shapes.get(tensor.name)
    if tensor.name in call.values:
        array = np.array(call.values[tensor.name])
    elif tensor.name in _FILL:
        array = _FILL[tensor.name](shape, call)
    elif dtype in ("float32", "float16", "bfloat16"):
        array = _floats(shape, rng)
    else:
        array = np.zeros(shape)
    if dtype == "bfloat16":  # _native takes its bits
        return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(array.astype(dtype))


def _attrs(spec, given):
    unknown = set(given) - {attr.name for attr in spec.attrs}
    if unknown:
        raise CostError(f"'{spec.name}' has no attribute '{min(unknown)}'")
    missing = [attr.name for attr in spec.attrs if attr.default == REQUIRED and attr.name not in given]
    if missing:
        raise CostError(f"attribute '{missing[0]}' of '{spec.name}' must be given")
    return {attr.name: given.get(attr.name, attr.default) for attr in spec.attrs}


def _inputs(spec, call):
    column = _column(spec, call.dtype)
    named = {*call.shapes, *call.values}
    unknown = named - {tensor.name for tensor in spec.inputs}
    if unknown:
        raise CostError(f"'{spec.name}' has no input '{min(unknown)}'")
    missing = [tensor.name for tensor in spec.inputs if not tensor.optional and tensor.name not in named]
    if missing:
        raise CostError(f"the shape of '{missing[0]}' of '{spec.name}' must be given")
    rng = np.random.default_rng(0)
    return [
        _array(tensor, spec.dtype_of(tensor, column), call, rng) if tensor.name in named else None
        for tensor in spec.inputs
    ]


def run(call, soc="ascend910b1"):
    """The report of one call: what the twin counted, and what follows from it."""
    from ms_ops_transformer import _native

    try:
        spec = get(call.op)
    except ValueError as error:
        raise CostError(str(error)) from None
    socs = [name for name in _native.platforms() if name != "cpu"]
    if soc not in socs:
        raise CostError(f"unknown SoC '{soc}'; there are {', '.join(socs)}")
    library, path = _library(), library_path()
    try:
        attrs, inputs = _attrs(spec, call.attrs), _inputs(spec, call)
        shapes = _native.infer(spec.name, inputs, attrs)
        cores = _native.plan(spec.name, inputs, attrs, soc)["cores"]
        outputs = [np.empty(shape, "uint16" if dtype == "bfloat16" else dtype) for shape, dtype in shapes]
        library.mst_cost_switch(1)
        try:
            # One after the other: then the same core is always the first to read what several share.
            _native.set_num_threads(cores if ascend.waits_for_all_cores(spec, cpu.KERNELS) else 1)
            _native.launch(path, spec.name, inputs, attrs, outputs, soc)
        finally:
            library.mst_cost_switch(0)
            _native.set_num_threads(0)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CostError(str(error)) from None
    if cores == 0:
        raise CostError(f"this call of '{spec.name}' has nothing to do")
    report = json.loads(library.mst_cost_report())
    return {"op": call.op, "dtype": call.dtype, **report, **_summary(report, call.flops)}


def _summary(report, flops):
    limits = {
        "L2 read": report["l2ReadCycles"],
        "L2 write": report["l2WriteCycles"],
        "core": report["coreCycles"],
    }
    bound = max(limits, key=limits.get)
    cycles = limits[bound]
    pipes = {}
    for item in report["instructions"]:
        pipe = pipes.setdefault(item["pipe"], {"count": 0, "bytes": 0, "busy": 0.0})
        for key in pipe:
            pipe[key] += item[key]
    flops = flops or 2 * report["products"]
    ideal = report["peakCubeCycles"] * flops / max(1, 2 * report["products"])
    if report["hbmCycles"] >= _BUSY * cycles:
        bound = "HBM"
    elif bound == "core":
        busiest = max(pipes, key=lambda pipe: pipes[pipe]["busy"])
        share = pipes[busiest]["busy"] / cycles
        bound = busiest if share >= _BUSY else f"waits ({busiest} {share:.0%})"
    seconds = cycles / report["mhz"] / 1e6
    return {
        "us": seconds * 1e6,
        "bound": bound,
        "pipes": pipes,
        "cubeUse": report["peakCubeCycles"] / cycles,
        "vectorUse": report["vectorBusy"] / cycles / report["vectorCores"],
        "hbmUse": report["hbmCycles"] / cycles,
        "roofline": max(ideal, report["hbmCycles"]) / cycles,
        "tflops": flops / seconds / 1e12,
        "gbps": (report["fromHbm"] + report["toHbm"]) / seconds / 1e9,
    }


# ---- text


def text(report, top=5):
    """The report of one call in words."""
    mhz = report["mhz"]
    us = report["us"]
    size = {key: f"{report[key] / 1e6:.1f} MB" for key in ("fromHbm", "toHbm", "fromL2", "toL2")}
    lines = [
        f"{report['op']} {report['dtype']} on {report['soc']}: {us:.1f} us, bound by {report['bound']}",
        f"  cores {report['cores']:.0f} of {report['vectorCores']:.0f}; vector busy {report['vectorUse']:.0%}; "
        f"cube {report['cubeUse']:.0%} of its peak ({report['tflops']:.0f} TFLOP/s)",
        f"  HBM {report['hbmUse']:.0%} of its bandwidth ({report['gbps']:.0f} GB/s: {size['fromHbm']} in, "
        f"{size['toHbm']} out); L2 {size['fromL2']} in, {size['toL2']} out",
        f"  roofline: {report['roofline'] * us:.1f} us ({report['roofline']:.0%})",
        f"  UB {_share(report['ubBytes'], report['ubCapacity'])}",
    ]
    if report["l1Bytes"]:
        lines.append(f"  L1 {_share(report['l1Bytes'], report['l1Capacity'])}, of two vector cores and Matmul")
    lines.append(f"slowest core ({report['slowestCore']:.0f}): {report['coreCycles'] / mhz:.1f} us")
    for pipe, sums in report["pipes"].items():
        lines.append(
            f"  {pipe:9} {sums['busy'] / mhz:9.1f} us {sums['busy'] / report['coreCycles']:4.0%}"
            f" {sums['count']:9.0f} instructions {sums['bytes'] / 1e6:10.2f} MB"
        )
        items = sorted((i for i in report["instructions"] if i["pipe"] == pipe), key=_weight, reverse=True)
        for item in items[:top]:
            lines.append(
                f"      {item['busy'] / mhz:9.1f} us, {item['idleBefore'] / mhz:8.1f} us idle before, "
                f"{item['count']:7.0f} x {item['name']} ({item['line']})"
            )
    return "\n".join(lines)


def _share(used, there):
    return f"{used:.0f} of {there:.0f} bytes ({used / there:.0%})"


def _weight(item):
    return item["busy"] + item["idleBefore"]


def _row(cells):
    return f"| {' | '.join(cells)} |"


def table(soc="ascend910b1", cases=CASES):
    """Lines of Markdown: all cases."""
    yield _row(
        ["operator", "dtype", "time, us", "bound by", "cube", "vector", "HBM", "TFLOP/s or GB/s", "of the roofline"]
    )
    yield _row(["---"] * 9)
    for call in cases.values():
        r = run(call, soc)
        speed = f"{r['tflops']:.0f} TFLOP/s" if r["products"] else f"{r['gbps']:.0f} GB/s"
        percent = [f"{r[key]:.0%}" for key in ("cubeUse", "vectorUse", "hbmUse")]
        yield _row([f"`{call.op}`", call.dtype, f"{r['us']:.1f}", r["bound"], *percent, speed, f"{r['roofline']:.0%}"])


def rates_table():
    """Lines of Markdown: the figures."""
    yield _row(["figure", "value", "unit", "origin", "note"])
    yield _row(["---"] * 5)
    same = operator.itemgetter("value", "unit", "origin", "note")
    for (value, unit, origin, note), group in itertools.groupby(rates(), same):
        names = ", ".join(rate["name"] for rate in group)
        yield _row([names, f"{value:g}" if unit else "-", unit or "-", origin, note or "-"])


# ---- command line


def add_arguments(parser):
    """Of `op_info cost`."""
    parser.add_argument("op", nargs="?")
    parser.add_argument("--soc", default="ascend910b1", help="ascend910b1 to ascend910b4")
    parser.add_argument("--dtype", default="float16", help="of the spec's dtype symbols, separated by commas")
    parser.add_argument("--shape", nargs="+", action="extend", default=[], metavar="INPUT=DIMS", help="x=4096x4096")
    parser.add_argument("--attr", nargs="+", action="extend", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--value", nargs="+", action="extend", default=[], metavar="INPUT=LIST", help="integers: 1024,4096"
    )
    parser.add_argument("--case", choices=CASES, metavar="NAME", help=f"in place of all that: {', '.join(CASES)}")
    parser.add_argument("--top", type=int, default=5, help="instructions to list per pipe")
    parser.add_argument("--json", action="store_true", help="print everything that was counted")
    parser.add_argument("--all", action="store_true", help="the table of docs/ascend.md: every case")
    parser.add_argument("--rates", action="store_true", help="the table of docs/ascend.md: the model's figures")


def command(args):
    """Prints what the arguments ask for; CostError if that is not possible."""
    if args.rates:
        print("\n".join(rates_table()))
    elif args.all:
        for line in table(args.soc):
            print(line, flush=True)
    else:
        report = run(CASES[args.case] if args.case else _call(args), args.soc)
        print(json.dumps(report, indent=1) if args.json else text(report, args.top))


def _call(args):
    if args.op is None:
        raise CostError("an operator or --case must be given")
    try:
        spec = get(args.op)
    except ValueError as error:
        raise CostError(str(error)) from None
    attrs = {}
    for name, value in map(_pair, args.attr):
        attr = spec.attr(name)
        if attr is None:
            raise CostError(f"'{spec.name}' has no attribute '{name}'")
        try:
            attrs[name] = value.lower() in ("1", "true") if attr.type is bool else attr.type(value)
        except ValueError:
            raise CostError(f"attribute '{name}' must be {attr.type.__name__}, but got '{value}'") from None
    shapes = {name: _integers(name, value, "x") for name, value in map(_pair, args.shape)}
    values = {name: _integers(name, value, ",") for name, value in map(_pair, args.value)}
    return Call(args.op, args.dtype, shapes, attrs, values)


def _pair(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise CostError(f"'{text}' must be NAME=VALUE")
    return name, value


def _integers(name, value, separator):
    try:
        return tuple(int(item) for item in value.split(separator))
    except ValueError:
        raise CostError(f"'{name}' must be integers with '{separator}' between them, but got '{value}'") from None
