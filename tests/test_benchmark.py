# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The benchmark runner: what it counts, and that no operator is left out."""

import pathlib
import sys

import numpy as np
import pytest
from harness import case

from ms_ops_transformer import ops
from ms_ops_transformer.op_info import registry

sys.path.insert(0, str(pathlib.Path(__file__).parent / "benchmark"))

import forms  # noqa: E402
import goals  # noqa: E402
import measure  # noqa: E402


class _Run:
    rows, calls, model_ratio = {}, {}, None


@pytest.mark.parametrize("sq, skv", [(5, 5), (3, 7), (7, 3), (1, 1)])
def test_pairs_are_those_that_the_mode_shows(sq, skv):
    i, j = np.arange(sq)[:, None], np.arange(skv)[None, :]
    causal = j <= i + skv - sq
    assert forms.visible_pairs(case("c", N=3, B=2, Sq=sq, Skv=skv, sparse_mode=3)) == 6 * causal.sum()
    band = (j <= i + skv - sq + 1) & (j >= i + skv - sq - 2)
    c = case("b", N=1, Sq=sq, Skv=skv, sparse_mode=4, pre_tokens=2, next_tokens=1)
    assert forms.visible_pairs(c) == band.sum()
    assert forms.visible_pairs(case("f", N=1, Sq=sq, Skv=skv)) == sq * skv
    assert forms.visible_pairs(case("p", N=2, q_lens=(sq, 0, 2), kv_lens=(skv, 4, 3))) == 2 * (sq * skv + 6)


def test_forward_work_of_attention_is_two_products():
    work = forms.FORMS["flash_attention_score"].work(case("c", N=8, Sq=64, D=32, Dv=16))
    assert work["forward"] == 2 * 8 * 64 * 64 * (32 + 16)
    assert work["backward"] == 2 * 8 * 64 * 64 * (3 * 32 + 2 * 16)


@pytest.mark.parametrize("name", [name for name in registry.all_specs() if hasattr(ops, name)])
def test_every_operator_is_measured(name):
    module, _ = measure.test_module(name)
    assert name in forms.FORMS
    assert len({c.name for c in module.PERF_CASES}) == len(module.PERF_CASES) > 0


def test_goals_name_cases_that_exist():
    cases = {name: [c.name for c in measure.test_module(name)[0].PERF_CASES] for name in forms.FORMS}
    asked = set()

    class Asked(dict):
        def get(self, key, default=None):
            asked.add(key)
            return default

    class Run(_Run):
        rows = Asked()

    for goal in goals.GOALS:
        assert goal.line(Run)[3] == "not measured"
    assert asked
    for op, name, dtype, which in asked:
        assert name in cases[op], f"{op} has no PERF_CASE '{name}'"
        assert dtype in ("float32", "float16", "bfloat16") and which in ("forward", "backward", "both")


def test_a_goal_is_reached_or_missed():
    class Run(_Run):
        rows = {("op", "case", "float32", "forward"): {"of_peak": 0.7}}

    value = goals.row("op", "case", "float32", "forward", "of_peak")
    assert goals.Goal("g", value, 0.6).line(Run)[3] == "ok"
    assert goals.Goal("g", value, 0.8).line(Run)[3] == "missed"
    assert goals.Goal("g", value, 0.8, at_most=True).line(Run)[3] == "ok"
