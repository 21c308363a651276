# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The cases of every operator, found in the modules of their tests, as launches of kernels."""

import importlib.util
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent


def modules():
    """The test modules of operators that say how their cases are launched."""
    for path in sorted(HERE.glob("*/test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "suite(OP, CASES)" not in text and "def launch_all(" not in text:
            continue
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location("cases_" + path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def launches(run, every_dtype=False, run_for_cpu=None):
    """Passes every launch to `run`, large cases in one dtype in turn or in all; yields the name of what comes next.
    To `run_for_cpu` those that are there for the tiling of the CPU."""
    for module in modules():
        name = module.__name__.removeprefix("cases_test_")
        if hasattr(module, "launch_all"):
            yield name
            module.launch_all(run)
        for i, c in enumerate(getattr(module, "CASES", ()) if hasattr(module, "OP") else ()):
            small = sum(np.size(x) for x in module.OP.make(c, np.random.default_rng(0)).values()) < 5000
            for dtype in c.dtypes if small or every_dtype else c.dtypes[i % len(c.dtypes) :][:1]:
                yield f"{name} {c.name}-{dtype}"
                ins, douts, _, _ = module.OP.draw(c, dtype)
                douts = {"d" + output: x for output, x in douts.items()}
                runs = {"card": run, "cpu": run_for_cpu}
                for tiling in c.get("tilings", ("card",)):
                    if each := runs[tiling]:
                        module.OP.launch(c, each, **{k: v.copy() for k, v in ins.items()}, **douts)
