# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The checked twin refuses kernels that break a rule of the device, and what CANN lacks does not compile."""

import re
import subprocess
import sys

import pytest
from launch import ROOT, library_path

sys.path.insert(0, str(ROOT))
from setup import FLAGS  # noqa: E402

INCLUDES = [f"-I{ROOT / 'kernels'}", f"-I{ROOT / 'kernels' / 'twin'}"]
CHECKED = [*FLAGS, "-g1", "-DMST_TWIN_CHECKED", *INCLUDES]


def test_wrong_kernels(tmp_path):
    library_path("checked")  # makes the objects of the twin
    objects = [
        ROOT / "build" / "obj" / "checked" / f"{source.stem}.o"
        for folder in (ROOT / "kernels" / "twin", ROOT / "kernels" / "twin" / "checked")
        for source in folder.glob("*.cpp")
        if source.stem != "runtime"
    ]
    program = tmp_path / "wrong_kernels"
    libraries = ROOT / "ms_ops_transformer" / "_lib"
    subprocess.run(["g++", *CHECKED, str(ROOT / "tests" / "cpp" / "wrong_kernels.cpp"), *map(str, objects), "-o",
                    str(program), f"-L{libraries}", "-lmst_runtime", f"-Wl,-rpath,{libraries}", "-ldl", "-pthread"],
                   check=True)  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed, 0 failed", done.stdout)[1]) > 25


FINE = "LocalTensor<float> f; LocalTensor<half> h; LocalTensor<bfloat16_t> b; LocalTensor<int32_t> i; "
MISSING = {
    "vector arithmetic on bfloat16": "Add(b, b, b, 16);",
    "exponential of bfloat16": "Exp(b, b, 16);",
    "division of integers": "Div(i, i, i, 16);",
    "logic on 32 bits": "And(i, i, i, 16);",
    "a cast from half to bfloat16": "Cast(b, h, RoundMode::CAST_RINT, 16);",
    "an implicit conversion of half": "half x = 1.0f; (void)x;",
    "arithmetic of half scalars": "half x(1.0f); x = x + x;",
    "operands of two types": "Add(f, f, h, 16);",
}


def compiles(statements, tmp_path):
    source = tmp_path / "program.cpp"
    source.write_text(f'#include "kernel_operator.h"\nusing namespace AscendC;\nvoid F() {{ {FINE} {statements} }}\n')
    command = ["g++", *CHECKED, "-Wno-unused", "-fsyntax-only", str(source)]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_what_exists_compiles(tmp_path):
    assert compiles("Add(f, f, f, 16); Cast(f, b, RoundMode::CAST_NONE, 16); Add(i, i, i, 16);", tmp_path)


@pytest.mark.parametrize("what", MISSING)
def test_what_the_card_lacks_does_not_compile(what, tmp_path):
    assert not compiles(MISSING[what], tmp_path)
