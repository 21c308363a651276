# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Which of the libraries of this package fits this CPU."""

import functools
import os
import pathlib

try:
    from . import _native
except ModuleNotFoundError as error:
    raise ImportError(
        "ms_ops_transformer is not compiled: install it with 'pip install .', or run 'python setup.py build_native'."
    ) from error


_CHOICES = {"MS_OPS_BF16_ENGINE": ("amx", "dot", "expand"), "MS_OPS_LOG": ("tiling",)}


def _check_environment():
    """The library itself would find a wrong number of threads at the first call, and a wrong name never."""
    for name, choices in _CHOICES.items():
        value = os.environ.get(name)
        if value and value not in choices:
            raise ImportError(f"{name} must be one of {', '.join(choices)}, but got {value}.")
    if os.environ.get("MS_OPS_NUM_THREADS"):  # else the number is asked for when it is needed: it may yet change
        try:
            _native.num_threads()
        except ValueError as error:
            raise ImportError(str(error)) from None


_check_environment()


@functools.lru_cache(None)
def level():
    """The instruction level that runs: the best built one, or MS_OPS_CPU_LEVEL."""
    supported = _native.levels()
    if not supported:
        raise ImportError("ms_ops_transformer needs a CPU with AVX2, FMA and F16C.")
    wanted = os.environ.get("MS_OPS_CPU_LEVEL")
    if wanted and wanted not in supported:
        raise ImportError(f"MS_OPS_CPU_LEVEL must be one of {', '.join(supported)}, but got {wanted}.")
    for name in [wanted] if wanted else supported:
        if _path(name).exists():
            return name
    raise ImportError(f"{_path(wanted or supported[-1])} is missing: build it with 'python setup.py build_native'.")


def library():
    """The path of that level's library."""
    return str(_path(level()))


def _path(name):
    return pathlib.Path(_native.__file__).resolve().parent / "_lib" / f"libmst_{name}.so"
