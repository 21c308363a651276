# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The twin's own C++ tests, compiled and run for every instruction level that this machine can run or emulate."""

import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from setup import FLAGS, LEVELS  # noqa: E402

TWIN = ROOT / "kernels" / "twin"
CPP = ROOT / "tests" / "cpp"
PROGRAMS = ("twin_test", "gemm_test", "matmul_test")


def target(level):
    """(compiler, flags, command prefix of the program) of a level."""
    arch = next(arch for arch, levels in LEVELS.items() if level in levels)
    if arch == platform.machine():
        cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if level == "avx512" and "avx512dq" not in cpu:
            pytest.skip("this CPU has no AVX-512")
        return "g++", LEVELS[arch][level], []
    if arch != "aarch64":
        pytest.skip("x86-64 is not emulated")
    tools = "aarch64-linux-gnu-g++", "qemu-aarch64"
    for tool in tools:
        assert shutil.which(tool), f"{tool} is not installed: apt-get install g++-aarch64-linux-gnu qemu-user"
    return tools[0], f"{LEVELS[arch][level]} -static", [tools[1]]


def compile_if_older(command, out, sources):
    if not out.exists() or out.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        subprocess.run([*command, "-o", str(out)], check=True)


def build(level, program):
    cxx, level_flags, prefix = target(level)
    folder = ROOT / "build" / "twin_test" / level
    folder.mkdir(parents=True, exist_ok=True)
    command = [cxx, *FLAGS, *shlex.split(level_flags)]
    headers = [*TWIN.rglob("*.h"), *CPP.glob("*.h"), ROOT / "setup.py"]
    sources = [*sorted(TWIN.glob("*.cpp")), *sorted(CPP.glob(f"{program}*.cpp"))]
    objects = []
    for source in sources:
        objects.append(folder / f"{source.stem}.o")
        compile_if_older([*command, "-c", str(source)], objects[-1], [source, *headers])
    compile_if_older([*command, *map(str, objects), "-pthread"], folder / program, objects)
    return [*prefix, str(folder / program)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("level", [level for levels in LEVELS.values() for level in levels])
def test_twin(level, program):
    command = build(level, program)
    emulated = len(command) > 1
    if emulated and program == "twin_test":
        command.append("--no-fork")
    env = {k: v for k, v in os.environ.items() if k != "MS_OPS_NUM_THREADS"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed, 0 failed", done.stdout)[1]) > 0
