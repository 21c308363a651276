# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Runs kernels without MindSpore, on the fast or the checked twin, in buffers that show a write outside of them."""

import os
import pathlib
import subprocess
import sys
from contextlib import contextmanager
from functools import lru_cache

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
GUARD = 64  # bytes of 0xA5 before and after each buffer
_DTYPES = {"bfloat16": ml_dtypes.bfloat16}


@lru_cache(None)
def library_path(library):
    """The file of an instruction level ("fast": the best one), or of the checked build, made if needed."""
    import ms_ops_transformer
    from ms_ops_transformer import _native

    if library == "checked":
        if os.environ.get("MS_OPS_CHECKED_LIBRARY"):
            return os.environ["MS_OPS_CHECKED_LIBRARY"]
        subprocess.run([sys.executable, "setup.py", "build_native", "--checked"], cwd=ROOT, check=True)
        return str(ROOT / "build" / "lib" / "libmst_checked.so")
    level = (os.environ.get("MS_OPS_CPU_LEVEL") or _native.levels()[0]) if library == "fast" else library
    return str(pathlib.Path(ms_ops_transformer.__file__).parent / "_lib" / f"libmst_{level}.so")


@contextmanager
def native_threads(count):
    from ms_ops_transformer import _native

    _native.set_num_threads(count)
    try:
        yield
    finally:
        _native.set_num_threads(0)


class Launcher:
    """`run(op, inputs, **attrs)` on one library: outputs as a tuple. Without `check_values` as on a card, where nobody
    looks at what is inside of tensors.

    inputs: arrays in the order of the spec (missing ones at the end are None) or by name; attributes have the spec's
    defaults. Every buffer is guarded, outputs start as NaN (integers 0xA5), inputs must stay as they are.
    """

    def __init__(self, library, threads=1, check_values=True):
        self.library, self.threads, self.check_values = library, threads, check_values

    def __call__(self, op, inputs, **attrs):
        from ms_ops_transformer import _native
        from ms_ops_transformer.op_info import registry
        from ms_ops_transformer.op_info.emit import ascend

        spec = registry.get(op)
        if isinstance(inputs, dict):
            assert set(inputs) <= {t.name for t in spec.inputs}, set(inputs) - {t.name for t in spec.inputs}
            inputs = [inputs.get(t.name) for t in spec.inputs]
        inputs = [*inputs, *[None] * (len(spec.inputs) - len(inputs))]
        attrs = {**{a.name: a.default for a in spec.attrs}, **attrs}
        assert set(attrs) == {a.name for a in spec.attrs}, set(attrs) ^ {a.name for a in spec.attrs}

        buffers = [None if x is None else Guarded(x.shape, x.dtype, x) for x in inputs]
        views = [None if b is None else b.view for b in buffers]
        results = [Guarded(shape, _DTYPES.get(dtype, dtype)) for shape, dtype in _native.infer(op, views, attrs)]
        library, threads = library_path(self.library.removesuffix("_cpu")), self.threads
        platform = "ascend910b1" if self.library == "checked" else "cpu"
        if self.library == "checked" and ascend.waits_for_all_cores(spec, ROOT / "kernels"):
            threads = max(1, _native.plan(op, views, attrs, platform)["cores"])
        with native_threads(threads):
            outputs = [r.view for r in results]
            _native.launch(library, op, views, attrs, outputs, platform, self.check_values)
        for tensor, buffer in zip((*spec.inputs, *spec.outputs), (*buffers, *results)):
            assert buffer is None or buffer.intact(), f"{op}: wrote outside of '{tensor.name}'"
        for tensor, x, buffer in zip(spec.inputs, inputs, buffers):
            if x is not None and not tensor.mutable:
                assert buffer.view.tobytes() == x.tobytes(), f"{op}: input '{tensor.name}' was changed"
            elif x is not None:
                x[...] = buffer.view
        return tuple(np.array(r.view) for r in results)


class Guarded:
    """An array between guard bytes; aligned to 16 bytes and no better, as MindSpore's memory is."""

    def __init__(self, shape, dtype, values=None):
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.raw = np.full(size + 2 * GUARD + 64, 0xA5, np.uint8)
        self.start = GUARD + (16 - (self.raw.ctypes.data + GUARD)) % 64
        self.view = self.raw[self.start : self.start + size].view(dtype).reshape(shape)
        if values is not None:
            self.view[...] = values
        elif dtype.kind not in "iub":
            self.raw[self.start : self.start + size] = 0xFF  # NaN in every floating type

    def intact(self):
        outside = np.concatenate([self.raw[: self.start], self.raw[self.start + self.view.nbytes :]])
        return bool((outside == 0xA5).all())
