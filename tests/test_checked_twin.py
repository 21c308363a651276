# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The checked twin refuses kernels that break a rule of the device."""

import re
import subprocess
import sys

from launch import ROOT, library_path

sys.path.insert(0, str(ROOT))
from setup import FLAGS  # noqa: E402

INCLUDES = [f"-I{ROOT / 'kernels'}", f"-I{ROOT / 'kernels' / 'twin'}"]
CHECKED = [*FLAGS, "-g1", "-DMST_TWIN_CHECKED", *INCLUDES]


def build_checked(folder, name):
    """The program of tests/cpp/<name>*.cpp with the checked twin in it."""
    library_path("checked")  # makes the objects of the twin
    objects = [
        ROOT / "build" / "obj" / "checked" / f"{source.stem}.o"
        for source_folder in (ROOT / "kernels" / "twin", ROOT / "kernels" / "twin" / "checked")
        for source in source_folder.glob("*.cpp")
        if not source.stem.startswith("runtime")
    ]
    program = folder / name
    libraries = ROOT / "ms_ops_transformer" / "_lib"
    sources = (ROOT / "tests" / "cpp").glob(f"{name}*.cpp")
    subprocess.run(["g++", *CHECKED, *map(str, sources), *map(str, objects), "-o", str(program),
                    f"-L{libraries}", "-lmst_runtime", f"-Wl,-rpath,{libraries}", "-ldl", "-pthread"],
                   check=True)  # fmt: skip
    return program


def test_wrong_kernels(tmp_path):
    program = build_checked(tmp_path, "wrong_kernels")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed, 0 failed", done.stdout)[1]) == 86
