# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Every way of multiplying bfloat16 that this CPU has (test_twin.py runs the one it would choose, on every level)."""

import os
import re
import subprocess

import pytest
from test_twin import build


@pytest.mark.parametrize("program", ["gemm_test", "matmul_test"])
@pytest.mark.parametrize("engine", ["amx", "dot", "expand"])
def test_engine(engine, program):
    env = {**os.environ, "MS_OPS_BF16_ENGINE": engine}
    done = subprocess.run(build("avx512", program), env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    if f"bfloat16 engine: {engine}" not in done.stdout:
        pytest.skip("this CPU does not have it")
    assert int(re.search(r"(\d+) passed, 0 failed", done.stdout)[1]) > 0
