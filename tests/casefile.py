# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Case files of tests/cpp/runner.cpp: every launch of a case, with what the fast library gives for it.

The harness holds those results against float64 in test_twin. Another build of the same kernels differs from them by
rounding, twice in a gradient, which here gets the statistics of the fast library; the limit is a few ulps of the
largest value and a multiple of the naive implementation's errors.
"""

import numpy as np
from harness import ulp
from launch import Launcher

ULPS = 32  # the statistics of heads of 1024 differ by 17: the rounding of a sum of as many products


class Recorder:
    """A `run` for Op.launch that notes each launch as one case."""

    def __init__(self, file, name, at_least, naive_errors):
        self.file, self.name, self.at_least, self.naive_errors = file, name, at_least, naive_errors
        self.count, self.run = 0, Launcher("fast")

    def __call__(self, op, inputs, **attrs):
        from ms_ops_transformer.op_info import registry

        spec = registry.get(op)
        if isinstance(inputs, dict):
            inputs = [inputs.get(t.name) for t in spec.inputs]
        inputs = [*inputs, *[None] * (len(spec.inputs) - len(inputs))]
        attrs = {**{a.name: a.default for a in spec.attrs}, **attrs}
        before = [None if x is None else np.array(x) for x in inputs]
        outputs = self.run(op, inputs, **attrs)
        lines, data = [f"case {self.name}:{self.count}", f"op {op}"], []
        for attr in spec.attrs:
            value = attrs[attr.name]
            code = {int: "i", float: "f", bool: "b", str: "s"}[attr.type]
            lines.append(f"attr {attr.name} {code} {int(value) if attr.type is bool else value}")
        for tensor, x in zip(spec.inputs, before):
            lines.append(f"input {tensor.name} " + ("none" if x is None else _type_and_shape(x)))
            data += [] if x is None else [x]
        for tensor, x in zip(spec.inputs, inputs):
            if tensor.mutable and x is not None:
                lines.append(f"updated {tensor.name} {self.limit(x)}")
                data.append(x)
        for tensor, x in zip(spec.outputs, outputs):
            dtype, *dims = _type_and_shape(x).split()
            lines.append(" ".join([f"output {tensor.name} {dtype} {self.limit(x)}", *dims]))
            data.append(x)
        content = b"".join(np.ascontiguousarray(x).tobytes() for x in data)
        self.file.write("\n".join([*lines, f"data {len(content)}\n"]).encode() + content)
        self.count += 1
        return outputs

    def limit(self, x):
        if x.dtype.kind in "iub":
            return 0.0
        values = np.abs(x.astype(np.float64))
        values = values[np.isfinite(values) & (values < np.finfo(np.float32).max)]
        naive = max((error for shape, error in self.naive_errors if shape == x.shape), default=0.0)
        return 8 * naive + ULPS * ulp(values.max(initial=max(1e-6, self.at_least)), x.dtype.name)


def _type_and_shape(x):
    return " ".join([x.dtype.name, *map(str, x.shape)])


def _error(ref, naive):
    finite = np.isfinite(ref) & np.isfinite(naive)
    finite &= np.abs(ref) < np.finfo(np.float32).max
    return float(np.abs(ref[finite] - naive[finite]).max(initial=0.0))


def write(path, op, cases):
    """The launches of (case, dtype) pairs into one file; returns how many."""
    count = 0
    with open(path, "wb") as file:
        for c, dtype in cases:
            ins, douts, results, gradients = op.prepare(c, dtype)
            errors = [(ref.shape, _error(ref, np.asarray(naive))) for _, ref, naive, *_ in (*results, *gradients)]
            recorder = Recorder(file, f"{c.name}-{dtype}", c.at_least, errors)
            op.launch(c, recorder, **{k: v.copy() for k, v in ins.items()}, **{"d" + n: d for n, d in douts.items()})
            count += recorder.count
    return count
