# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The machine's own limits, measured by machine.cpp: the floor that every figure of the runner is held against."""

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

_BUILD = tempfile.TemporaryDirectory(prefix="mst_benchmark_")


@functools.lru_cache(None)
def library():
    """Path of the helper library, compiled for this machine at first use."""
    target = Path(_BUILD.name, "machine.so")
    source = Path(__file__).with_name("machine.cpp")
    command = ["g++", "-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", target, source], check=True)
    return str(target)


@functools.lru_cache(None)
def _native():
    native = ctypes.CDLL(library())
    native.FlopsPerSecond.restype = native.ReadBytesPerSecond.restype = native.CopyBytesPerSecond.restype = (
        ctypes.c_double
    )
    return native


KINDS = {"float32": 0, "bfloat16": 1, "bfloat16 AMX": 2}


def flops(kind, threads, seconds=0.1):
    """GFLOP/s of one of KINDS; 0 where the machine lacks it."""
    return _native().FlopsPerSecond(KINDS[kind], threads, ctypes.c_double(seconds)) / 1e9


def read(size, threads, seconds=0.1):
    """GB/s of reading `size` bytes."""
    return _native().ReadBytesPerSecond(threads, ctypes.c_int64(size), ctypes.c_double(seconds)) / 1e9


def copy(size, threads, seconds=0.2):
    """GB/s of copying `size` bytes, read plus written."""
    return _native().CopyBytesPerSecond(threads, ctypes.c_int64(size), ctypes.c_double(seconds)) / 1e9


def describe():
    """Name of the CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine
