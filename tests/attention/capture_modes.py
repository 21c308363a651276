# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention under jit, every capture mode and level. A process of its own: while it traces, MindSpore reads the
source line of every frame of the stack, which those of pytest and runpy do not have."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import conftest  # noqa: E402, F401  environment of MindSpore
import mindspore as ms  # noqa: E402
import test_flash_attention_modes as modes  # noqa: E402


def run(capture, level):
    arrays = modes.qkv()
    x = [ms.Tensor(a) for a in arrays]
    out, grads = modes.expected(*arrays)
    options = {"capture_mode": capture, "jit_level": level}
    attend = ms.jit(modes.attend, **options)
    modes.close(attend(*x), out)
    inside = ms.jit(ms.grad(modes.attend, (0, 1, 2)), **options)
    for gradient in (inside, ms.grad(attend, (0, 1, 2))):
        for name, g in zip("qkv", gradient(*x)):
            modes.close(g, grads[name])


for capture in ("ast", "bytecode", "trace"):
    for level in ("O0", "O1"):
        run(capture, level)
        print(capture, level, "ok", flush=True)
