# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What we want to reach, and whether a run reached it. A goal that the run did not measure says so."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Goal:
    """`value(run)` is the measured figure (None: not measured); it must be at least or at most `limit`."""

    text: str
    value: Callable
    limit: float
    at_most: bool = False
    unit: str = ""

    def line(self, run):
        """(text, limit, measured, verdict)"""
        value = self.value(run)
        limit = f"{'<=' if self.at_most else '>='} {self.limit:g}{self.unit}"
        if value is None:
            return self.text, limit, "-", "not measured"
        reached = value <= self.limit if self.at_most else value >= self.limit
        return self.text, limit, f"{value:.3g}{self.unit}", "ok" if reached else "missed"


def row(op, case, dtype, which, key):
    """The figure `key` of one row."""
    return lambda run: run.rows.get((op, case, dtype, which), {}).get(key)


def quotient(above, below):
    """One figure over another."""

    def value(run):
        a, b = above(run), below(run)
        return None if a is None or not b else a / b

    return value


def worst(*values, best=min):
    """The least favourable of those measured."""

    def value(run):
        found = [v(run) for v in values]
        found = [v for v in found if v is not None]
        return best(found) if found else None

    return value


FA = "flash_attention_score"
D128, D64 = "llama2_7b_tp4", "gpt2"


def _attention():
    for case, width, peak, against in ((D128, 128, 0.82, 2.1), (D64, 64, 0.76, 2.0)):
        yield Goal(f"forward fp32 D {width}, of FMA peak", row(FA, case, "float32", "forward", "of_peak"), peak)
        yield Goal(f"forward fp32 D {width}, times torch", row(FA, case, "float32", "forward", "over_torch"), against)
        causal = row(FA, case + "_causal", "float32", "forward", "median_ms")
        yield Goal(
            f"forward fp32 D {width}, causal over full time",
            quotient(causal, row(FA, case, "float32", "forward", "median_ms")),
            0.56,
            at_most=True,
        )
    causal = D128 + "_causal"
    yield Goal("causal forward, times torch", row(FA, causal, "float32", "forward", "over_torch"), 2.3)
    yield Goal("causal forward, times composed", row(FA, causal, "float32", "forward", "over_composed"), 4.8)
    yield Goal("backward alone fp32, of FMA peak", row(FA, D128, "float32", "backward", "of_peak"), 0.80)
    yield Goal("causal forward + gradient, times torch", row(FA, causal, "float32", "both", "over_torch"), 2.3)
    yield Goal("causal forward + gradient, times composed", row(FA, causal, "float32", "both", "over_composed"), 4.5)
    yield Goal("forward bf16 D 128, of the bf16 vector peak", row(FA, D128, "bfloat16", "forward", "of_peak"), 0.75)
    yield Goal("forward bf16 D 128, of the AMX peak", row(FA, D128, "bfloat16", "forward", "of_amx"), 0.75)
    yield Goal("forward bf16 D 128, times torch", row(FA, D128, "bfloat16", "forward", "over_torch"), 4.0)
    yield Goal("forward bf16 D 64, of the bf16 vector peak", row(FA, D64, "bfloat16", "forward", "of_peak"), 0.65)
    yield Goal("backward bf16 D 128, of the bf16 vector peak", row(FA, D128, "bfloat16", "backward", "of_peak"), 0.70)
    yield Goal("forward fp16 D 128, of fp32 peak", row(FA, D128, "float16", "forward", "of_peak"), 0.75)
    plain = row(FA, D128, "float32", "forward", "ns_per_work")
    for case, text in (
        ("mask_tensor", "mask given as a tensor"),
        ("pse", "pse"),
        ("dropout", "dropout"),
        ("packed", "packed sequences"),
        ("odd_length", "odd S"),
    ):
        own = row(FA, case, "float32", "forward", "ns_per_work")
        yield Goal(
            f"forward fp32, {text}: time per element over the plain case", quotient(own, plain), 1.25, at_most=True
        )
    full = row(FA, D128, "float32", "forward", "best_ms")
    odd = quotient(row(FA, "odd_width", "float32", "forward", "best_ms"), full)
    yield Goal("forward fp32, D 121 over D 128", odd, 1.25, at_most=True)
    for form in ("composed", "torch"):
        short = [row(FA, "short", "float32", which, f"over_{form}") for which in ("forward", "both")]
        yield Goal(f"short sequences (S 128, B 8), times {form}", worst(*short), 1.0)
    for dtype, which, limit in (("float32", "forward", 32), ("bfloat16", "forward", 32), ("float32", "backward", 32)):
        memory = row(FA, "long", dtype, which, "extra_mb")
        yield Goal(f"extra memory {which} {dtype}, S 32768", memory, limit, True, " MB")
    # 16-bit types sum dK and dV in float32: 8 * Skv * D bytes per thread, two threads
    memory = row(FA, "long", "bfloat16", "backward", "extra_mb")
    yield Goal("extra memory backward bfloat16, S 32768", memory, 32 + 2 * 8 * 32768 * 128 / 1e6, True, " MB")


def _rows_ops():
    for op, case in (
        ("rms_norm", "llama_7b"),
        ("swiglu", "llama_7b"),
        ("rotary_position_embedding", "llama_7b_bnsd"),
        ("scatter_pa_kv_cache", "scattered"),
    ):
        passes = ("forward",) if op == "scatter_pa_kv_cache" else ("forward", "backward")
        for dtypes, limit in ((("float32",), 0.8), (("float16", "bfloat16"), 0.6)):
            figures = [row(op, case, dtype, which, "of_peak") for dtype in dtypes for which in passes]
            yield Goal(f"{op} {'/'.join(dtypes)}, of copy bandwidth", worst(*figures), limit)
    gating = "moe_gating_top_k_softmax", "deepseek_v2_lite", "float32", "forward"
    fast, against = row(*gating, "median_ms"), row(*gating, "over_composed")

    def share(run):  # either of the two will do
        ms, times = fast(run), against(run)
        return None if ms is None or times is None else max(0.4 / ms, times / 20)

    yield Goal("gating 4096 x 64 top-8: 0.4 ms or 20 times composed, share of the nearer", share, 1.0)


def _calls():
    yield Goal(
        "PyNative forward call above an empty ops.Custom",
        lambda run: max((v["above"] for v in run.calls.get("pynative", {}).values()), default=None),
        30,
        True,
        " us",
    )
    yield Goal("import adds", lambda run: run.calls.get("import", {}).get("adds"), 0.5, True, " s")
    yield Goal("example model small, tokens/s over composed", lambda run: run.model_ratio, 1.7)


GOALS = [*_attention(), *_rows_ops(), *_calls()]
