# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Benchmark runner: every operator over its PERF_CASES, against composed MindSpore, torch and the machine's own peak.

    python tests/benchmark/run.py                           everything
    python tests/benchmark/run.py --op rms_norm --quick     one operator, first case, float32

An operator's tests run first and a red one refuses its figures. All forms of a case alternate in one process, and the
peaks are measured in the same rounds; still only ratios within one run mean anything. Times are medians; a fraction of
a peak takes the best round of both. CPU figures say nothing about the card.

`ms` is a whole call from MindSpore, which composed MindSpore and torch are compared with; `kernel` is what of it the
rate and the fraction of the peak are of: for work that memory limits the kernel alone on buffers in use, else the call.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("GLOG_v", "3")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[1]))  # the source tree, if the package is not installed

import machine  # noqa: E402
import measure  # noqa: E402
from forms import FORMS  # noqa: E402
from goals import GOALS  # noqa: E402

PASSES = ("forward", "backward", "both")
ALL_DTYPES = ("float32", "float16", "bfloat16")


class Run:
    """What one run of this program found."""

    def __init__(self, options):
        from ms_ops_transformer import _native

        self.options = options
        self.threads = options.threads or _native.num_threads()
        if options.threads:
            _native.set_num_threads(options.threads)
        self.rows, self.calls, self.refused, self.model_ratio = {}, {}, [], None

    def operator(self, name):
        """Gate, then every case, dtype and pass."""
        module, path = measure.test_module(name)
        if not gate(module, path, self.environment()):
            self.refused.append(name)
            print(f"{name}: its tests fail, no figures")
            return
        cases = [c for c in module.PERF_CASES if self.options.case in (None, c.name)]
        for c in cases[:1] if self.options.quick else cases:
            for dtype in c.dtypes:
                if dtype in self.options.dtypes:
                    # what others need is asked once: their processes take longer than ours
                    self.case(name, module, c, dtype, others=c is cases[0] and dtype == "float32")

    def case(self, name, module, c, dtype, others):
        """The passes of one case in one dtype; `others`: with the memory that composed MindSpore and torch need."""
        memory = {} if self.options.quick else self.child(name, c, dtype, others)
        passes = c.get("passes", PASSES)
        if not passes:  # a case for its memory
            for which, forms in memory.items():
                self.rows[name, c.name, dtype, which] = {"extra_mb": forms["kernel"] / 1e6}
                print(
                    f"{name:26} {c.name:22} {dtype:9} {which:9} extra memory {forms['kernel'] / 1e6:.1f} MB", flush=True
                )
            return
        bench = measure.Bench(name, module, c, dtype, self.threads)
        for which in passes:
            if which not in self.options.passes or bench.amount(which) is None:
                continue
            times, peaks = measure.alternate(
                bench.closures(which), self.options.seconds, lambda which=which: self.peak(bench, which)
            )
            row = figures(bench, which, measure.summary(times), peaks)
            row.update({f"{form}_mb": b / 1e6 for form, b in memory.get(which, {}).items() if b is not None})
            if "kernel_mb" in row:
                row["extra_mb"] = row["kernel_mb"]
            self.rows[name, c.name, dtype, which] = row
            print(text(name, c.name, dtype, which, row), flush=True)

    def peak(self, bench, which):
        """The rate that the machine allows for this work: operations or bytes per second, in 1e9."""
        if bench.work["unit"] == "elements":
            return {"copy": machine.copy(bench.amount(which) // 2, self.threads, 0.06)}
        kinds = ("float32", "bfloat16", "bfloat16 AMX") if bench.dtype == "bfloat16" else ("float32",)
        return {kind: machine.flops(kind, self.threads, 0.03) for kind in kinds}

    def child(self, name, c, dtype, others):
        """{pass: {form: bytes}} of peak memory, one process per form."""
        found = {}
        jobs = [("kernel", "")]
        if others and c.get("passes", PASSES):
            jobs += [(form, which) for form in ("composed", "torch") for which in ("forward", "both")]
        for form, which in jobs:
            command = [sys.executable, __file__, "--memory", name, c.name, dtype, form, which]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **self.environment()})
            if done.returncode:
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            for one, value in (result if form == "kernel" else {which: result}).items():
                found.setdefault(one, {})[form] = value
        return found

    def environment(self):
        """For child processes."""
        return {"MS_OPS_NUM_THREADS": str(self.threads), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def gate(module, path, environment):
    """Runs the first cases of an operator's test module (or those in its QUICK) in PyNative mode, all dtypes."""
    if hasattr(module, "OP"):
        names = getattr(module, "QUICK", [c.name for c in module.CASES[:6]])
        chosen = [c for c in module.CASES if c.name in names]
        tests = [f"{path}::test_pynative[{c.name}-{dtype}]" for c in chosen for dtype in c.dtypes]
    else:
        tests = [str(path), "-k", "pynative"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=measure.TESTS.parent, env=environment)
    if done.returncode:
        print(done.stdout[-3000:])
    return done.returncode == 0


def figures(bench, which, found, peaks):
    """The figures of a row from the times of each form and the peaks measured between them."""
    amount, best = bench.amount(which), {kind: max(p[kind] for p in peaks) for kind in peaks[0]}
    vector = max(rate for kind, rate in best.items() if "AMX" not in kind)
    ours = found["ours"]
    kernel = found.get("kernel", ours)
    row = {
        "median_ms": ours["median"] * 1e3,
        "best_ms": ours["best"] * 1e3,
        "kernel_ms": kernel["median"] * 1e3,
        "rate": amount / kernel["median"] / 1e9,
        "unit": "GFLOP/s" if bench.work["unit"] == "flops" else "GB/s",
        "of_peak": amount / kernel["best"] / 1e9 / vector,
        "ns_per_work": ours["best"] * 1e9 / (amount or 1),
        "rounds": ours["rounds"],
        "peaks": best,
    }
    if best.get("bfloat16 AMX"):
        row["of_amx"] = amount / ours["best"] / 1e9 / best["bfloat16 AMX"]
    for form in ("composed", "torch"):
        if form in found:
            row[f"{form}_ms"] = found[form]["median"] * 1e3
            row[f"over_{form}"] = found[form]["median"] / ours["median"]
    return row


HEAD = f"{'operator':26} {'case':22} {'dtype':9} {'pass':9} {'ms':>9} {'kernel':>9} {'rate':>16} {'of peak':>8}"
HEAD += f" {'composed':>9} {'x':>6} {'torch':>9} {'x':>6} {'extra MB':>9} {'composed':>9} {'torch':>7}"


def text(op, case, dtype, which, row):
    """One line of the table."""

    def number(key, width, digits):
        return f"{row[key]:{width}.{digits}f}" if row.get(key) is not None else " " * (width - 1) + "-"

    line = f"{op:26} {case:22} {dtype:9} {which:9} {row['median_ms']:9.3f} {row['kernel_ms']:9.3f}"
    line += f" {row['rate']:8.1f} {row['unit']:7}"
    line += f" {row['of_peak']:8.2f} {number('composed_ms', 9, 2)} {number('over_composed', 6, 2)}"
    line += f" {number('torch_ms', 9, 2)} {number('over_torch', 6, 2)}"
    line += f" {number('extra_mb', 9, 1)} {number('composed_mb', 9, 0)} {number('torch_mb', 7, 0)}"
    return line + (f"  ({row['of_amx']:.2f} of AMX)" if "of_amx" in row else "")


def describe(run):
    """The machine and the versions, and its peaks."""
    import mindspore

    from ms_ops_transformer import __version__, _level

    size = 256 << 20
    facts = {
        "machine": machine.describe(),
        "threads": run.threads,
        "level": _level.level(),
        "versions": {
            "ms_ops_transformer": __version__,
            "mindspore": mindspore.__version__,
            "python": platform.python_version(),
        },
        "peaks": {kind: machine.flops(kind, run.threads, 0.5) for kind in machine.KINDS},
        "read": machine.read(size, run.threads, 0.5),
        "copy": machine.copy(size, run.threads, 1.0),
    }
    print(f"{facts['machine']}, {run.threads} threads, level {facts['level']}")
    print(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    print(
        "FMA peak "
        + ", ".join(f"{kind} {rate:.0f} GFLOP/s" if rate else f"no {kind}" for kind, rate in facts["peaks"].items())
        + f"; bandwidth read {facts['read']:.1f}, copy {facts['copy']:.1f} GB/s (256 MB)\n"
    )
    return facts


def example(environment):
    """tokens/s of the example model `small` over those of its composed form, from the table that the example prints."""
    program = measure.TESTS.parent / "examples" / "train_llm.py"
    command = [sys.executable, program, "--config", "small", "--compare-only"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, check=True)
    print("\n" + done.stdout)
    line = next(line for line in done.stdout.splitlines() if line.startswith("fused / composed"))
    return float(line.split()[-2].rstrip("x"))


def memory(name, case, dtype, form, which):
    """In a child process: prints the bytes as JSON."""
    module, _ = measure.test_module(name)
    c = next(c for c in module.PERF_CASES if c.name == case)
    bench = measure.Bench(name, module, c, dtype, int(os.environ["MS_OPS_NUM_THREADS"]))
    print(json.dumps(measure.kernel_memory(bench) if form == "kernel" else measure.form_memory(bench, form, which)))


def main():
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", choices=sorted(FORMS), help="operator; may be repeated (default: all)")
    parser.add_argument("--case", help="only the PERF_CASE of this name")
    parser.add_argument(
        "--dtype", action="append", dest="dtypes", choices=ALL_DTYPES, help="default: those of the case"
    )
    parser.add_argument("--pass", action="append", dest="passes", choices=PASSES, help="default: all three")
    parser.add_argument("--quick", action="store_true", help="first case of an operator, float32, no memory or calls")
    parser.add_argument("--threads", type=int, help="threads of the pool (default: the library's)")
    parser.add_argument("--seconds", type=float, default=4.0, help="time to spend on a row (default 4)")
    parser.add_argument("--model", action="store_true", help="also the example model `small`, fused against composed")
    parser.add_argument("--json", metavar="FILE", help="write everything there too")
    parser.add_argument("--memory", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        return memory(*options.memory)
    options.passes = options.passes or PASSES
    options.dtypes = options.dtypes or (ALL_DTYPES[:1] if options.quick else ALL_DTYPES)
    if options.quick:
        options.seconds = min(options.seconds, 1.0)

    run = Run(options)
    facts = describe(run)
    print(HEAD)
    for name in options.op or FORMS:
        run.operator(name)
    if options.model:
        run.model_ratio = example(run.environment())
    if not options.quick and not options.op:
        done = subprocess.run(
            [sys.executable, HERE / "calls.py"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, **run.environment()},
        )
        run.calls = json.loads(done.stdout.splitlines()[-1])
        for name, us in run.calls["pynative"].items():
            print(f"PyNative call of {name}: {us['ours']:.0f} us, empty ops.Custom {us['empty']:.0f} us")
        print(
            f"import: mindspore {run.calls['import']['mindspore']:.2f} s, ours adds {run.calls['import']['adds']:.2f} s"
        )
    lines = [goal.line(run) for goal in GOALS]
    shown = [line for line in lines if line[3] != "not measured" or not (options.op or options.quick)]
    if shown:
        print("\nGoals")
    for what, limit, value, verdict in shown:
        print(f"  {what:70} {limit:>10} {value:>10}  {verdict}")
    command = " ".join(["python", os.path.relpath(__file__), *sys.argv[1:]])
    print(f"\nRepeat: MS_OPS_NUM_THREADS={run.threads} {command}")
    if options.json:
        rows = [dict(zip(("op", "case", "dtype", "pass"), key), **row) for key, row in run.rows.items()]
        goals = [dict(zip(("goal", "limit", "measured", "verdict"), line)) for line in lines]
        result = {**facts, "rows": rows, "calls": run.calls, "goals": goals, "refused": run.refused, "command": command}
        Path(options.json).write_text(json.dumps(result, indent=1))
    return 1 if run.refused else 0


if __name__ == "__main__":
    sys.exit(main())
