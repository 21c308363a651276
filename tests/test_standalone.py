# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The kernels outside Python: under address and undefined-behaviour sanitizers, and for aarch64 under emulation.

Case files come from the tables of the operators' own tests. A compiler or emulator that is missing is a failure.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import casefile
import pytest
from all_cases import modules
from harness import Op
from launch import ROOT, library_path

from ms_ops_transformer import _native

HERE = pathlib.Path(__file__).parent
# What a vector of vectors can break; the other checks of `undefined` triple the time of compilation.
SANITIZE = (
    "-fsanitize=address,alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow"
)
SANITIZE += " -fno-sanitize-recover=all"


def tables():
    """(family/module, operator, cases) of every test module with a table."""
    found = []
    for module in modules():
        op = getattr(module, "OP", None)
        if isinstance(op, Op) and op.launch is not None:
            found.append((module.__name__.removeprefix("cases_"), op, module.CASES))
    assert found, "no tables of cases"
    return found


def elements(c, op, dtype):
    return sum(x.size for x in op.prepare(c, dtype)[0].values())


@pytest.fixture(scope="module")
def case_files(tmp_path_factory):
    """[(file, number of launches, small)]: each case in one dtype in turn; `small` ones suit the emulator."""
    folder = tmp_path_factory.mktemp("cases")
    files = []
    for name, op, cases in tables():
        for small in (True, False):
            pairs = [(c, c.dtypes[i % len(c.dtypes)]) for i, c in enumerate(cases)]
            pairs = [(c, d) for c, d in pairs if (elements(c, op, d) < 20000) == small]
            path = folder / f"{name}-{'small' if small else 'large'}.cases"
            files.append((path, casefile.write(path, op, pairs), small))
    return files


def build(out, cxx, level, flags=""):
    """The libraries and the runner by one compiler."""
    for tool in cxx.split()[:1]:
        assert shutil.which(tool), f"{tool} is not installed: apt-get install g++ g++-aarch64-linux-gnu"
    command = [sys.executable, "setup.py", "build_native", "--cxx", cxx, "--out", out, "--levels", level]
    subprocess.run([*command, "--flags", flags], cwd=ROOT, check=True)
    return build_runner(pathlib.Path(out) / "runner", cxx, out)


def build_runner(path, cxx, libraries):
    includes = [f"-I{ROOT / 'kernels'}", f"-I{ROOT / 'kernels' / 'twin'}"]
    flags = ["-std=c++17", "-O1", "-g1", "-Wall", "-Wextra", "-D_GLIBCXX_USE_CXX11_ABI=0", *includes]
    link = [f"-L{libraries}", "-lmst_runtime", "-ldl", "-pthread", f"-Wl,-rpath,{libraries}"]
    subprocess.run([*cxx.split(), *flags, str(HERE / "cpp" / "runner.cpp"), "-o", str(path), *link], check=True)
    return path


def run(command, files, env):
    done = subprocess.run([*map(str, command), *[str(path) for path, count, _ in files if count]], env=env,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    passed = int(re.search(r"(\d+) passed, 0 failed", done.stdout)[1])
    assert passed == sum(count for _, count, _ in files) > 0


def test_other_levels(case_files, tmp_path):
    """The instruction levels of this CPU below the best one, which the other tests run."""
    paths = [pathlib.Path(library_path(level)) for level in _native.levels()[1:]]
    paths = [path for path in paths if path.exists()]
    if not paths:
        pytest.skip("only one level is built")
    runner = build_runner(tmp_path / "runner", "g++", paths[0].parent)
    for path in paths:
        run([runner, path], case_files, os.environ)


def test_sanitizers(case_files):
    """x86-64 AVX2 code (aarch64: NEON) with every memory access and operation watched."""
    out = os.environ.get("MS_OPS_SANITIZED_BUILD", str(ROOT / "build" / "sanitized"))
    level = "avx2" if os.uname().machine == "x86_64" else "neon"
    runner = build(out, f"g++ {SANITIZE}", level, "-O1")
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
           "UBSAN_OPTIONS": "print_stacktrace=1"}  # fmt: skip
    run([runner, pathlib.Path(out) / f"libmst_{level}.so"], case_files, env)


def test_aarch64(case_files):
    """NEON code, emulated."""
    out = os.environ.get("MS_OPS_AARCH64_BUILD", str(ROOT / "build" / "aarch64"))
    runner = build(out, "aarch64-linux-gnu-g++", "neon")
    emulator = []
    if os.uname().machine != "aarch64":
        qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        assert qemu, "qemu-aarch64 is not installed: apt-get install qemu-user"
        emulator = [qemu, "-L", "/usr/aarch64-linux-gnu"]
    small = [f for f in case_files if f[2]]
    run([*emulator, runner, pathlib.Path(out) / "libmst_neon.so"], small, os.environ)
