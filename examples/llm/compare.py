# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Fused and composed model side by side: two processes that take steps in turn, so that both meet the same machine."""

import json
import signal
import statistics
import subprocess
import sys

from tqdm import tqdm

VARIANTS = ("fused", "composed")
_TOLERANCE = 1e-4


def peak_memory():
    """Highest resident memory of this process so far, bytes (VmHWM)."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def serve(step, answers):
    """The child: one line in, one step, one line out; until its input ends."""
    for index, _ in enumerate(sys.stdin):
        loss, seconds = step(index)
        print(json.dumps({"loss": loss, "seconds": seconds, "peak": peak_memory()}), file=answers, flush=True)


class _Child:
    def __init__(self, command, variant):
        self.variant = variant
        self.process = subprocess.Popen(
            command + ["--serve", variant], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers = []

    def step(self):
        try:
            self.process.stdin.write("step\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            hint = ""
            if code == -signal.SIGKILL:
                hint = " It was killed, most likely for want of memory: a smaller --batch-size needs less."
            raise RuntimeError(f"the process of the {self.variant} model ended with code {code}.{hint}")
        self.answers.append(json.loads(line))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def compare(command, steps, tokens_per_step):
    """Runs both variants for `steps` steps and returns {variant: {...}} with the differences."""
    children = []
    try:
        children = [_Child(command, variant) for variant in VARIANTS]
        for _ in tqdm(range(steps), desc="comparing fused and composed", unit="step", file=sys.stderr, disable=None):
            for child in children:
                child.step()
    finally:
        for child in children:
            child.close()
    result = {}
    for child in children:
        seconds = statistics.median(answer["seconds"] for answer in child.answers[min(2, steps - 1) :])
        result[child.variant] = {
            "losses": [answer["loss"] for answer in child.answers],
            "seconds": seconds,
            "tokens_per_second": tokens_per_step / seconds,
            "peak": child.answers[-1]["peak"],
        }
    fused, composed = result["fused"], result["composed"]
    result["loss_difference"] = max(abs(a - b) for a, b in zip(fused["losses"], composed["losses"]))
    result["speed_ratio"] = composed["seconds"] / fused["seconds"]
    result["memory_ratio"] = fused["peak"] / composed["peak"]
    return result


def table(result, fp32=True):
    """The result as text."""
    rows = [("model", "first loss", "last loss", "s/step", "tokens/s", "peak memory")]
    for variant in VARIANTS:
        row = result[variant]
        rows.append(
            (
                variant,
                f"{row['losses'][0]:.5f}",
                f"{row['losses'][-1]:.5f}",
                f"{row['seconds']:.3f}",
                f"{row['tokens_per_second']:.0f}",
                f"{row['peak'] / 2**20:.0f} MB",
            )
        )
    rows.append(
        (
            "fused / composed",
            "",
            f"diff {result['loss_difference']:.1e}",
            f"{1 / result['speed_ratio']:.2f}x",
            f"{result['speed_ratio']:.2f}x",
            f"{result['memory_ratio']:.2f}x",
        )
    )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    if fp32:
        verdict = "yes" if result["loss_difference"] <= _TOLERANCE else "NO"
        lines.append(f"same loss to {_TOLERANCE:.0e} over {len(result['fused']['losses'])} steps: {verdict}")
    return "\n".join(lines)
