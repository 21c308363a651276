# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What a PyNative call costs beside an operator that does nothing, and what the import adds. Prints one JSON object.

Run as a process of its own by run.py: the mode of MindSpore and what is imported already would blur both figures.
"""

import json
import statistics
import subprocess
import sys
import time

import machine

CALLS, ROUNDS = 100, 40


def pynative():
    """{name: microseconds of a forward call above an empty ops.Custom with the same inputs and number of outputs}"""
    import mindspore as ms
    import numpy as np
    from mindspore import ops

    import ms_ops_transformer as mst

    ms.set_context(mode=ms.PYNATIVE_MODE)
    x, gamma = ms.Tensor(np.ones((4, 64), np.float32)), ms.Tensor(np.ones(64, np.float32))
    q = ms.Tensor(np.ones((1, 2, 16, 16), np.float32))
    cases = {
        "rms_norm": (lambda: mst.ops.rms_norm(x, gamma)[0], (x, gamma), 2),
        "swiglu": (lambda: mst.ops.swiglu(x), (x,), 1),
        "flash_attention_score": (
            lambda: mst.ops.flash_attention_score(q, q, q, head_num=2, input_layout="BNSD"),
            (q, q, q, *[None] * 9),
            3,
        ),
    }
    found = {}
    for name, (call, inputs, outputs) in cases.items():

        def like_first(*args, outputs=outputs):
            return args[0] if outputs == 1 else (args[0],) * outputs

        empty = ops.Custom(f"{machine.library()}:Empty", like_first, like_first, func_type="aot")
        times = {"ours": [], "empty": []}
        for _ in range(ROUNDS + 1):
            for form, run in (("ours", call), ("empty", lambda empty=empty, inputs=inputs: empty(*inputs))):
                begin = time.perf_counter()
                for _ in range(CALLS):
                    out = run()
                (out[0] if isinstance(out, tuple) else out).asnumpy()
                times[form].append((time.perf_counter() - begin) / CALLS * 1e6)
        ours, nothing = (statistics.median(times[form][1:]) for form in ("ours", "empty"))
        found[name] = {"ours": ours, "empty": nothing, "above": ours - nothing}
    return found


def imports(rounds=5):
    """Seconds that `import ms_ops_transformer` with its ops and Cells adds to `import mindspore`."""
    texts = {"mindspore": "import mindspore", "ours": "import mindspore, ms_ops_transformer as m; m.ops; m.nn"}
    times = {name: [] for name in texts}
    for _ in range(rounds):
        for name, text in texts.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - begin)
    base, ours = (statistics.median(times[name]) for name in texts)
    return {"mindspore": base, "with_ours": ours, "adds": ours - base}


if __name__ == "__main__":
    print(json.dumps({"pynative": pynative(), "import": imports()}))
