# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The naive implementation of an operator in a low precision, from its NumPy reference."""

import numpy as np


class Rounded(np.ndarray):
    """float32 values of which every NumPy operation rounds its result to a storage dtype: the naive implementation."""

    store = None

    def __array_finalize__(self, obj):
        self.store = getattr(obj, "store", None)

    @staticmethod
    def of(values, store):
        values = np.asarray(values, np.float32).astype(store).astype(np.float32)
        result = values.view(Rounded)
        result.store = store
        return result

    def _round(self, result):
        if isinstance(result, tuple):
            return tuple(self._round(r) for r in result)
        if isinstance(result, (np.ndarray, np.floating)) and np.asarray(result).dtype.kind == "f":
            return Rounded.of(result, self.store)
        return np.asarray(result) if isinstance(result, Rounded) else result

    def __array_ufunc__(self, ufunc, method, *args, out=None, **kwargs):
        plain = [np.asarray(a) if isinstance(a, Rounded) else a for a in args]
        if isinstance(kwargs.get("where"), Rounded):
            kwargs["where"] = np.asarray(kwargs["where"])
        store = next((a.store for a in args if isinstance(a, Rounded)), self.store)
        with np.errstate(all="ignore"):
            if ufunc is np.matmul and store == np.float32:
                result = _one_by_one(*plain)
            else:
                result = getattr(ufunc, method)(*plain, **kwargs)
        rounder = self if store is self.store else next(a for a in args if isinstance(a, Rounded))
        result = rounder._round(result)
        if out is not None:
            np.asarray(out[0])[...] = np.asarray(result)
            return out[0]
        return result

    def __array_function__(self, func, types, args, kwargs):
        return self._round(super().__array_function__(func, types, args, kwargs))


def _one_by_one(a, b):
    """a @ b in float32, one product added after the other: the order that errors grow with, and no library's own."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if a.ndim < 2 or b.ndim < 2:
        return np.matmul(a, b)
    total = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), np.float32)
    for i in range(a.shape[-1]):
        total += a[..., :, i, None] * b[..., None, i, :]
    return total
