# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Runs kernels without MindSpore, on the fast or the checked twin, in buffers that show a write outside of them."""

import os
from contextlib import contextmanager

import ml_dtypes
import numpy as np

GUARD = 64  # bytes of 0xA5 before and after each buffer
_DTYPES = {"bfloat16": ml_dtypes.bfloat16}


def library_path(library):
    """What `_native.launch` loads: a level of the installed package, or the checked build of the tests."""
    from ms_ops_transformer import _native

    return _native.level() if library == "fast" else os.environ["MST_CHECKED_LIBRARY"]


@contextmanager
def native_threads(count):
    from ms_ops_transformer import _native

    before = _native.threads()
    _native.set_threads(count)
    yield
    _native.set_threads(before)


class Launcher:
    """`run(op, inputs, **attrs)` on one library; every buffer is guarded, outputs start as NaN (integers 0xA5)."""

    def __init__(self, library, threads=1, mutable=()):
        self.library, self.threads, self.mutable = library, threads, mutable

    def __call__(self, op, inputs, **attrs):
        from ms_ops_transformer import _native

        inputs = [None if x is None else np.asarray(x) for x in inputs]
        buffers = [None if x is None else _guarded(x.shape, x.dtype, x) for x in inputs]
        shapes = _native.infer(op, [_view(b) for b in buffers], attrs)
        results = [_guarded(shape, _DTYPES.get(dtype, dtype)) for shape, dtype in shapes]
        platform = "ascend910b1" if self.library == "checked" else "cpu"
        with native_threads(self.threads):
            _native.launch(
                library_path(self.library),
                op,
                [_view(b) for b in buffers],
                attrs,
                [_view(b) for b in results],
                platform,
            )
        for kind, group in (("input", buffers), ("output", results)):
            for i, b in enumerate(group):
                if b is not None:
                    raw, start, view = b
                    outside = np.concatenate([raw[:start], raw[start + view.nbytes :]])
                    assert (outside == 0xA5).all(), f"{op}: wrote outside {kind} {i}"
        for i, (x, b) in enumerate(zip(inputs, buffers)):
            if x is not None and i not in self.mutable:
                assert b[2].tobytes() == x.tobytes(), f"{op}: input {i} was changed"
        return tuple(np.array(b[2]) for b in results)


def _guarded(shape, dtype, values=None):
    """(raw bytes, start, view): 16 bytes aligned and no better, as MindSpore's memory."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.full(size + 2 * GUARD + 64, 0xA5, np.uint8)
    start = GUARD + (16 - (raw.ctypes.data + GUARD)) % 64
    view = raw[start : start + size].view(dtype).reshape(shape)
    if values is not None:
        view[...] = values
    elif dtype.kind not in "iub":
        raw[start : start + size] = 0xFF  # NaN in every floating type
    return raw, start, view


def _view(buffer):
    return None if buffer is None else buffer[2]
