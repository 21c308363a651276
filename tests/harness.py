# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""One table of cases per operator: every case x dtype x mode, forward and gradient, against a float64 reference.

A test module declares its cases, how inputs are made, the reference and how the operator is called:

    import ref_rms_norm as ref                       # beside the module: plain NumPy, no dtype in it
    from harness import Op, case, suite
    from ms_ops_transformer import ops

    CASES = [case("tiny", T=3, D=5), case("tail", T=33, D=96, graph="all"), case("eps", T=4, D=64, eps=1e-3)]

    def inputs(c, rng):                              # float64 arrays take the dtype under test, others stay as they are
        return {"x": rng.standard_normal((c.T, c.D)), "gamma": rng.standard_normal(c.D)}

    def launch(c, run, x, gamma, dy):                # the same through the kernels alone (fast and checked twin)
        y, rstd = run("rms_norm", (x, gamma), epsilon=c.get("eps", 1e-6))
        return (y, rstd), run("rms_norm_grad", (dy, x, rstd, gamma))

    OP = Op(ops.rms_norm, inputs=inputs, call=lambda c: {"epsilon": c.get("eps", 1e-6)}, launch=launch,
            outputs=("y", "rstd"), float32=("rstd",), grads=("x", "gamma"),
            forward=lambda c, x, gamma: ref.forward(x, gamma, c.get("eps", 1e-6)),            # -> (y, rstd)
            gradient=lambda c, dy, x, gamma: ref.gradient(dy, x, gamma, c.get("eps", 1e-6)))  # -> (dx, dgamma)
    test_reference, test_pynative, test_graph, test_twin = suite(OP, CASES)

Limit: max|out - ref64| <= 2 max|naive - ref64| + 2 ulp of the largest value, where `naive` is the same reference run in
the operator's dtype: every NumPy operation rounds its result (`Rounded`), sums and products accumulate in float32.
"""

import inspect
import itertools
import tempfile
import zlib
from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest
from launch import Launcher
from rounded import Rounded

DTYPES = ("float32", "float16", "bfloat16")
NUMPY = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_SOURCES = tempfile.TemporaryDirectory(prefix="mst_cases_")  # graph mode reads the source of what it compiles
_COUNT = itertools.count()


class Case:
    """One named set of sizes and options; `c.T` reads one, `c.get("eps", 1e-6)` one that may be left out."""

    def __init__(self, name, dtypes, graph, zeros, ulps, at_least, values):
        self.name, self.dtypes, self.graph = name, dtypes, graph
        self.zeros, self.ulps, self.at_least, self.values = zeros, ulps, at_least, values

    def __getattr__(self, key):
        if key in self.__dict__.get("values", {}):
            return self.values[key]
        raise AttributeError(f"case '{self.name}' has no '{key}'")

    def get(self, key, default=None):
        return self.values.get(key, default)

    def __repr__(self):
        return f"case({self.name}: {self.values})"


def case(name, *, dtypes=DTYPES, graph="one", zeros=False, ulps=2, at_least=0.0, why="", **values):
    """graph="all": graph mode in every dtype, not one; zeros=True: most of an output is expected to be zero;
    at_least: the ulp is that of a number of at least this size, for results that cancel to zero; a limit of more than
    2 ulps needs a reason (why)."""
    assert ulps == 2 or why, f"case '{name}': a looser limit states its reason"
    return Case(name, tuple(dtypes), graph, zeros, ulps, at_least, values)


def _is_nan(x):
    return np.isnan(x.astype(np.float64)) if x.dtype.kind not in "iub" else np.zeros(x.shape, bool)


def ulp(value, dtype):
    """Distance of neighbours of `value` in a dtype."""
    info = ml_dtypes.finfo(NUMPY[dtype])
    return float(info.eps) * 2.0 ** np.floor(np.log2(max(abs(float(value)), float(info.tiny))))


def compare(name, out, ref, naive, dtype, c, exact=False, unit=None):
    """Fails with the place and the figures of the worst element; `unit`: the dtype whose ulp counts, if not `dtype`."""
    __tracebackhide__ = True
    out, ref = np.asarray(out), np.asarray(ref)
    assert out.shape == ref.shape, f"{name}: shape {out.shape}, expected {ref.shape}"
    if exact or ref.dtype.kind in "iub":
        # A move keeps every bit, NaN included.
        same = (out == ref) | (_is_nan(out) & _is_nan(ref))
        assert same.all(), f"{name}: {np.count_nonzero(~same)} of {same.size} differ, first at {np.argwhere(~same)[0]}"
        return
    out, ref, naive = out.astype(np.float64), ref.astype(np.float64), np.asarray(naive).astype(np.float64)
    with np.errstate(over="ignore"):
        stored = ref.astype(NUMPY[dtype]).astype(np.float64)  # what overflows the dtype is Inf
    for kind, test in (("NaN", np.isnan), ("+Inf", np.isposinf), ("-Inf", np.isneginf)):
        wrong = test(out) != test(stored)
        assert not wrong.any(), (
            f"{name}: {kind} misplaced at {np.argwhere(wrong)[0]} ({np.count_nonzero(wrong)} places)"
        )
    finite = np.isfinite(stored)
    marker = np.abs(ref) == np.finfo(np.float32).max  # a row without keys: exact, and no scale for the others
    assert (out[marker] == ref[marker]).all(), f"{name}: not the largest float at {np.argwhere(marker)[0]}"
    finite &= ~marker
    if not finite.any():
        return
    assert c.zeros or np.count_nonzero(ref[finite]) * 2 >= np.count_nonzero(finite), (
        f"{name}: mostly zeros, a vacuous case"
    )
    both = finite & np.isfinite(naive)
    naive_error = np.abs(naive[both] - ref[both]).max(initial=0.0)
    error = np.where(finite, np.abs(np.where(finite, out, 0) - np.where(finite, ref, 0)), 0)
    limit = 2 * naive_error + c.ulps * ulp(max(np.abs(ref[finite]).max(), c.at_least), unit or dtype)
    at = np.unravel_index(error.argmax(), error.shape)
    assert error[at] <= limit, (
        f"{name}: error {error[at]:.3e} > {limit:.3e} at {at}: {out[at]:.8g}, expected {ref[at]:.8g}"
    )


class Op:
    """How one operator is called, and its reference (see the head of the file).

    outputs: names of the results; grads: inputs that have a gradient (both may be functions of the case); float32:
    results that are float32 in every dtype; douts: those with a cotangent; exact: those that must match bit for bit.
    """

    def __init__(
        self,
        fn,
        *,
        inputs,
        forward,
        call=lambda c: {},
        gradient=None,
        grads=(),
        outputs=("out",),
        douts=None,
        float32=(),
        exact=(),
        launch=None,
    ):
        self.fn, self.make, self.call, self.launch = fn, inputs, call, launch
        self.forward, self.gradient = forward, gradient
        self.names = outputs if callable(outputs) else lambda c: tuple(outputs)
        self.grads = grads if callable(grads) else lambda c: tuple(grads)
        self.float32, self.exact = float32, exact
        self.douts = tuple(douts if douts is not None else outputs[:1])
        self.prepare = lru_cache(maxsize=512)(self._prepare)

    def draw(self, c, dtype):
        """(inputs, cotangents, float64 inputs, float64 results)"""
        rng = np.random.default_rng(zlib.crc32(f"{self.fn.__name__} {c.name}".encode()))
        store = NUMPY[dtype]
        ins = {
            k: v.astype(store) if v.dtype == np.float64 else v for k, v in self.make(c, rng).items() if v is not None
        }
        wide = {k: v.astype(np.float64) if v.dtype in NUMPY.values() else v for k, v in ins.items()}
        with np.errstate(all="ignore"):
            refs = _tuple(self.forward(c, **wide))
        douts = {}
        if any(g in ins for g in self.grads(c)):
            for name, ref in zip(self.names(c), refs):
                if name in self.douts:
                    douts[name] = rng.standard_normal(ref.shape).astype(store)
            if c.get("edit_douts"):
                c.edit_douts(douts)
        return ins, douts, wide, refs

    def _prepare(self, c, dtype):
        """(inputs, cotangents, [(name, ref, naive, dtype, unit, exact) per output], [... per gradient])"""
        ins, douts, wide, refs = self.draw(c, dtype)
        store = NUMPY[dtype]
        low = {k: (Rounded.of(v, store) if v.dtype == store else v) for k, v in ins.items()}
        results = []
        with np.errstate(all="ignore"):
            naives = _tuple(self.forward(c, **low))
            # Results kept in float32 were never rounded to the operator's dtype.
            single = {k: Rounded.of(v, np.float32) if v.dtype == store else v for k, v in ins.items()}
            singles = _tuple(self.forward(c, **single)) if self.float32 and store != np.float32 else naives
            for name, ref, naive, exact in zip(self.names(c), refs, naives, singles, strict=True):
                own = "float32" if name in self.float32 else dtype
                naive = exact if own == "float32" else naive
                results.append((name, ref, naive, own, own, name in self.exact))
            gradients = []
            grads = [g for g in self.grads(c) if g in ins]
            if grads:
                d64 = [d.astype(np.float64) for d in douts.values()]
                dlow = [Rounded.of(d, store) for d in douts.values()]
                pairs = [_tuple(self.gradient(c, *d, **x)) for d, x in ((d64, wide), (dlow, low))]
                for name, ref, naive in zip(grads, *pairs, strict=True):
                    own = "float32" if ins[name].dtype == np.float32 else dtype
                    # A float32 input's gradient is made of values that were stored in the operator's dtype.
                    gradients.append(("d" + name, ref, naive, own, dtype, False))
        return ins, douts, results, gradients

    def check(self, c, found, expected, where):
        assert len(found) == len(expected), f"{where}: {len(found)} results, expected {len(expected)}"
        for out, (name, ref, naive, dtype, unit, exact) in zip(found, expected):
            assert out.dtype == (NUMPY[dtype] if ref.dtype.kind == "f" else ref.dtype), (
                f"{where} {name}: dtype {out.dtype}"
            )
            compare(f"{where} {name}", out, ref, naive, dtype, c, exact, unit)

    def check_mindspore(self, c, dtype, graph):
        """Outputs and gradients of one call in graph mode or PyNative."""
        import mindspore as ms

        ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
        ins, douts, results, gradients = self.prepare(c, dtype)
        with_dout = tuple(self.names(c).index(name) for name in douts)
        net = build_cell(self.fn, ins, self.call(c), with_dout, [g[0][1:] for g in gradients])
        found = net(tuple(to_tensor(d.astype(np.float32)) for d in douts.values()), *map(to_tensor, ins.values()))
        outs, grads = found if gradients else (found, ())
        where = "graph" if graph else "pynative"
        self.check(c, [to_numpy(o) for o in _tuple(outs)], results, where)
        self.check(c, [to_numpy(g) for g in _tuple(grads)], gradients, where)

    def check_twin(self, c, dtype):
        """The kernels without MindSpore: fast library with 1 and 2 threads (same bits), then the checked one, with the
        tiling of the card unless the case says otherwise."""
        ins, douts, results, gradients = self.prepare(c, dtype)
        cotangents, first = {"d" + name: d for name, d in douts.items()}, None
        checked = {"card": "checked", "cpu": "checked_cpu"}
        tilings = [checked[tiling] for tiling in c.get("tilings", ("card",))]
        for library, threads in [("fast", 1), ("fast", 2), *((library, 1) for library in tilings)]:
            launcher = Launcher(library, threads)
            outs, grads = self.launch(c, launcher, **{k: v.copy() for k, v in ins.items()}, **cotangents)
            outs, grads = [x for x in outs if x is not None], [x for x in _tuple(grads) if x is not None]
            self.check(c, outs, results, library)
            self.check(c, grads, gradients, library)
            bits = [x.tobytes() for x in (*outs, *grads)]
            if threads == 2:
                assert bits == first, "1 and 2 threads give different bits"
            first = first or bits

    def check_reference(self, c):
        """The gradient of the reference against central differences, float64."""
        rng = np.random.default_rng(zlib.crc32(c.name.encode()))
        ins = {
            k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in self.make(c, rng).items() if v is not None
        }
        names = self.names(c)
        outs = dict(zip(names, _tuple(self.forward(c, **ins))))
        douts = {n: rng.standard_normal(o.shape) for n, o in outs.items() if n in self.douts}

        def loss(**changed):
            now = dict(zip(names, _tuple(self.forward(c, **{**ins, **changed}))))
            return sum((now[n] * d)[np.isfinite(now[n])].sum() for n, d in douts.items())

        grads = [g for g in self.grads(c) if g in ins]
        for name, gradient in zip(grads, _tuple(self.gradient(c, *douts.values(), **ins)), strict=True):
            numeric, x = np.zeros(ins[name].shape), ins[name]
            for at in np.ndindex(*x.shape):
                step = 1e-5 * max(1.0, abs(x[at]))
                up, down = x.copy(), x.copy()
                up[at] += step
                down[at] -= step
                numeric[at] = (loss(**{name: up}) - loss(**{name: down})) / (2 * step)
            assert gradient.shape == x.shape
            np.testing.assert_allclose(gradient, numeric, rtol=2e-6, atol=1e-7 + 1e-7 * np.abs(numeric).max(initial=0))


def _tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def to_tensor(x):
    import mindspore as ms

    if x.dtype == ml_dtypes.bfloat16:
        return ms.Tensor(x.astype(np.float32)).astype(ms.bfloat16)
    return ms.Tensor(np.ascontiguousarray(x))


def to_numpy(x):
    import mindspore as ms

    return x.astype(ms.float32).asnumpy().astype(ml_dtypes.bfloat16) if x.dtype == ms.bfloat16 else x.asnumpy()


def build_cell(fn, inputs, constants, with_dout=(0,), grads=()):
    """A Cell that calls fn(**inputs, **constants) and returns its outputs, or (outputs, gradients).

    The gradients are those of sum(output * cotangent), so the cotangents arrive at the operator as they are. The text
    of the Cell is written out because graph mode cannot bind keyword arguments from a dict.
    """
    import mindspore as ms
    from mindspore import nn

    names = list(inputs)
    args = ", ".join([f"{n}={n}" for n in names] + [f"{k}={v!r}" for k, v in constants.items()])
    text = f"def construct(self, douts, {', '.join(names)}):\n    outs = self.fn({args})\n"
    if not grads:
        text += "    return outs\n"
    else:
        text += "    results = outs if isinstance(outs, tuple) else (outs,)\n    loss = 0.0\n"
        for i, out in enumerate(with_dout):
            text += f"    loss = loss + (self.cast(results[{out}], self.f32) * douts[{i}]).sum()\n"
        text += "    return loss, outs\n"
    path = f"{_SOURCES.name}/cell{next(_COUNT)}.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    space = {"__name__": __name__}
    exec(compile(text, path, "exec"), space)  # noqa: S102
    assert inspect.getsource(space["construct"]) == text
    cell = type("CaseCell", (nn.Cell,), {"construct": space["construct"], "__module__": __name__})()
    cell.fn, cell.f32, cell.cast = fn, ms.float32, ms.ops.cast
    return _with_gradients(cell, tuple(1 + names.index(g) for g in grads)) if grads else cell


def _with_gradients(cell, positions):
    import mindspore as ms
    from mindspore import nn

    class Gradient(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gradient = ms.value_and_grad(cell, positions, None, has_aux=True)

        def construct(self, douts, *args):
            (_, outs), grads = self.gradient(douts, *args)
            return outs, grads

    return Gradient()


def suite(op, cases, reference=True):
    """(test_reference, test_pynative, test_graph, test_twin) of a table of cases; the first needs a tiny case."""
    assert len({c.name for c in cases}) == len(cases) > 0, "cases are named, each once"
    every = [pytest.param(c, d, id=f"{c.name}-{d}") for c in cases for d in c.dtypes]
    graph = [
        pytest.param(c, d, id=f"{c.name}-{d}")
        for i, c in enumerate(cases)
        for d in (c.dtypes if c.graph == "all" else c.dtypes[i % len(c.dtypes) :][:1])
    ]
    tiny = [
        c
        for c in cases
        if op.grads(c)
        and sum(v.size for k, v in op.make(c, np.random.default_rng(0)).items() if v is not None and k in op.grads(c))
        <= 200
    ]
    assert tiny or op.gradient is None or not reference, "central differences need a case with at most 200 elements"

    @pytest.mark.parametrize("c", [pytest.param(c, id=c.name) for c in tiny])
    def test_reference(c):
        op.check_reference(c)

    @pytest.mark.parametrize("c, dtype", every)
    def test_pynative(c, dtype):
        op.check_mindspore(c, dtype, graph=False)

    @pytest.mark.parametrize("c, dtype", graph)
    def test_graph(c, dtype):
        op.check_mindspore(c, dtype, graph=True)

    @pytest.mark.parametrize("c, dtype", every)
    def test_twin(c, dtype):
        op.check_twin(c, dtype)

    return test_reference, test_pynative, test_graph, test_twin
