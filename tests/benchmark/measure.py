# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Times one case in all its forms, alternating, since no two minutes of a machine are alike; and its peak memory."""

import contextlib
import importlib.util
import statistics
import sys
import time
import zlib
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

import harness  # noqa: E402
from forms import FORMS  # noqa: E402


def test_module(name):
    """The test module of an operator: its OP, CASES and PERF_CASES."""
    from ms_ops_transformer.op_info import registry

    path = TESTS / registry.get(name).family / f"test_{name}.py"
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


class Bench:
    """One case in one dtype: inputs, and a function per form and pass that runs it once."""

    def __init__(self, name, module, c, dtype, threads):
        self.name, self.case, self.dtype, self.threads = name, c, dtype, threads
        self.forms = FORMS[name]
        self.op = self.forms.op(module)
        rng = np.random.default_rng(zlib.crc32(f"{name} {c.name}".encode()))
        store = harness.NUMPY[dtype]
        made = {k: v for k, v in self.op.make(c, rng).items() if v is not None}
        self.inputs = {k: v.astype(store) if v.dtype == np.float64 else v for k, v in made.items()}
        c.values["sizes"] = {k: v.shape for k, v in self.inputs.items()}
        self.grads = [g for g in self.forms.grads or self.op.grads(c) if g in self.inputs]
        self.work = self.forms.work(c)

    def amount(self, which):
        """Floating-point operations or bytes of a pass; None for one that does not exist."""
        parts = ("forward", "backward") if which == "both" else (which,)
        if "backward" in parts and not self.grads:
            return None
        scale = np.dtype(harness.NUMPY[self.dtype]).itemsize if self.work["unit"] == "elements" else 1
        return scale * sum(self.work[part] for part in parts)

    def closures(self, which, only=None):
        """{form: function that runs the pass once and waits for it}; backward alone is the kernel, or torch's.

        Where memory is the limit also "kernel", the pass without MindSpore: the bandwidth that it reaches is its own,
        while a call also allocates its outputs.
        """
        found = {}
        if only in (None, "ours"):
            if which == "backward" or self.forms.kernel_only:
                found["ours"] = self.kernel(which)
            else:
                found["ours"] = self._mindspore(self.op.fn, self.op.call(self.case), which)
                if self.work["unit"] == "elements" and only is None:
                    found["kernel"] = self.kernel(which)
        composed = self.forms.composed(self.case) if self.dtype in self.forms.composed_dtypes else None
        if composed is not None and which != "backward" and only in (None, "composed"):
            found["composed"] = self._mindspore(composed, {}, which)
        torch_form = self.forms.torch(self.case) if self.dtype in self.forms.torch_dtypes else None
        if torch_form is not None and only in (None, "torch"):
            found["torch"] = self._torch(torch_form, which)
        return found

    def _mindspore(self, fn, constants, which):
        import mindspore as ms

        ms.set_context(mode=ms.GRAPH_MODE)
        cell = _cell(fn, self.inputs, self.grads, constants, len(self.op.names(self.case)) > 1)
        tensors = [harness.to_tensor(self.inputs[name]) for name in cell.order]
        if which == "forward":
            return lambda: cell(*tensors).asnumpy()
        shape = self._output_shapes()[self.op.names(self.case)[0]]
        dout = harness.to_tensor(np.ones(shape, harness.NUMPY[self.dtype]))
        gradient = _gradient(cell)
        return lambda: gradient(dout, *tensors)[0].asnumpy()  # graph mode is done when the call returns

    def _torch(self, fn, which):
        import torch

        torch.set_num_threads(self.threads)
        tensors = {k: _torch_tensor(v).requires_grad_(k in self.grads) for k, v in self.inputs.items()}
        leaves = [tensors[name] for name in self.grads]
        if which == "forward":

            def run():
                with torch.no_grad():
                    return fn(**tensors)

            return run
        dout = torch.ones_like(fn(**tensors))
        if which == "both":
            return lambda: torch.autograd.grad(fn(**tensors), leaves, dout)
        out = fn(**tensors)
        return lambda: torch.autograd.grad(out, leaves, dout, retain_graph=True)

    def kernel(self, which):
        """The kernel of a pass alone, without MindSpore: the arguments are recorded once and launched again."""
        calls = self.record()
        names = {"forward": "", "backward": "_grad"}
        parts = [calls[self.name + names[part]] for part in names if which in (part, "both")]
        return lambda: [run() for run in parts]

    def record(self, around=lambda launch: launch()):
        """{operator: function that launches it again}; `around` runs each first launch."""
        calls = {}

        def run(op, inputs, **attrs):
            calls[op], outputs = _launch(op, inputs, attrs)
            around(calls[op])
            return outputs

        douts = {
            "d" + name: np.ones(shape, harness.NUMPY[self.dtype])
            for name, shape in self._output_shapes().items()
            if name in self.op.douts
        }
        self.op.launch(self.case, run, **self.inputs, **douts)
        return calls

    def _output_shapes(self):
        """{output: shape}, by letting the operator's `launch` come as far as its first kernel."""
        found = []

        def run(op, inputs, **attrs):
            found.extend(shape for shape, _ in _infer(op, inputs, attrs))
            raise _ShapesKnownError

        with contextlib.suppress(_ShapesKnownError):
            self.op.launch(self.case, run, **self.inputs, **dict.fromkeys(["d" + n for n in self.op.douts]))
        return dict(zip(self.op.names(self.case), found))


class _ShapesKnownError(Exception):
    pass


def _complete(spec, inputs, attrs):
    """Inputs in the order of the spec with None for what is missing, attributes with their defaults."""
    if isinstance(inputs, dict):
        inputs = [inputs.get(t.name) for t in spec.inputs]
    inputs = [*inputs, *[None] * (len(spec.inputs) - len(inputs))]
    return inputs, {**{a.name: a.default for a in spec.attrs}, **attrs}


def _infer(op, inputs, attrs):
    from ms_ops_transformer import _native
    from ms_ops_transformer.op_info import registry

    return _native.infer(op, *_complete(registry.get(op), inputs, attrs))


def _launch(op, inputs, attrs):
    """(function that launches the kernel, its outputs)"""
    import ml_dtypes

    from ms_ops_transformer import _level, _native
    from ms_ops_transformer.op_info import registry

    dtypes = {"bfloat16": ml_dtypes.bfloat16}
    outputs = tuple(np.ones(shape, dtypes.get(dtype, dtype)) for shape, dtype in _infer(op, inputs, attrs))
    inputs, attrs = _complete(registry.get(op), inputs, attrs)
    library = _level.library()
    return lambda: _native.launch(library, op, inputs, attrs, list(outputs), "cpu"), outputs


def _cell(fn, inputs, grads, constants, many):
    """A Cell that calls fn with the tensors that have a gradient as its inputs and the others as constants.

    The text is written out because graph mode cannot bind keyword arguments from a dict.
    """
    fixed = [name for name in inputs if grads and name not in grads]
    order = [name for name in inputs if name not in fixed]
    parts = [f"{n}={n}" for n in order] + [f"{n}=self.fixed_{n}" for n in fixed]
    parts += [f"{k}={v!r}" for k, v in constants.items()]
    text = f"def construct(self, {', '.join(order)}):\n    outs = self.fn({', '.join(parts)})\n"
    text += f"    return outs{'[0]' if many else ''}\n"
    space = _run_text(text)
    from mindspore import nn

    cell = type("Form", (nn.Cell,), {"construct": space["construct"], "__module__": __name__})()
    cell.fn, cell.order = fn, order
    for name in fixed:
        setattr(cell, "fixed_" + name, harness.to_tensor(inputs[name]))
    return cell


def _run_text(text):
    path = f"{harness._SOURCES.name}/bench{next(harness._COUNT)}.py"
    Path(path).write_text(text)
    space = {"__name__": __name__}
    exec(compile(text, path, "exec"), space)  # noqa: S102
    return space


def _gradient(cell):
    from mindspore import nn, ops

    class Gradient(nn.Cell):
        def __init__(self):
            super().__init__()
            self.cell = cell
            self.grad = ops.GradOperation(get_all=True, sens_param=True)

        def construct(self, dout, *args):
            return self.cell(*args), self.grad(self.cell)(*args, dout)  # one forward: equal calls are merged

    return Gradient()


def _torch_tensor(x):
    import ml_dtypes
    import torch

    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(x))


def alternate(closures, budget, probe, rounds=(3, 25)):
    """({form: [seconds]}, [what `probe` returned]): every form and the probe once per round, in turn."""
    spent = 0.0
    for run in closures.values():
        run()
        begin = time.perf_counter()
        run()
        spent += time.perf_counter() - begin
    count = int(min(rounds[1], max(rounds[0], budget / spent)))
    times, probes = {name: [] for name in closures}, []
    for _ in range(count):
        probes.append(probe())
        for name, run in closures.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return times, probes


def summary(times):
    """Median and best of each form."""
    return {name: {"median": statistics.median(t), "best": min(t), "rounds": len(t)} for name, t in times.items()}


# ---------------------------------------------------------------------------------------------- memory
def _status(key):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def peak_of(run):
    """Bytes by which the process grew at most while `run` ran."""
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def kernel_memory(bench):
    """{"forward": bytes, "backward": bytes} beyond inputs and outputs, in a process that ran nothing else.

    What a launch keeps for the next one (the local memory of the threads) counts for the later ones too.
    """
    found, kept = [], [0]

    def around(launch):
        before = _status("VmRSS")
        found.append(kept[0] + peak_of(launch))
        kept[0] += max(0, _status("VmRSS") - before)

    calls = bench.record(around)
    sizes = dict(zip(calls, found))
    names = {"forward": bench.name, "backward": bench.name + "_grad"}
    return {which: sizes[op] for which, op in names.items() if op in sizes}


def form_memory(bench, form, which):
    """Bytes of one pass of a form as a user runs it first: outputs and compilation included."""
    run = bench.closures(which, only=form).get(form)
    return None if run is None else peak_of(run)
