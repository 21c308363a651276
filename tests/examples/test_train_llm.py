# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""train_llm.py as a user runs it, on a model of a few thousand parameters."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "train_llm.py"
RUN = """
seed: 3
model:
  model_config: {vocab_size: 256, hidden_size: 32, n_layer: 2, n_head: 4, n_kv_heads: 2, intermediate_size: 48,
                 seq_length: 32, attention_dropout: %s}
train_dataset: {tokenizer: byte}
runner_config: {steps: 4, batch_size: 2, eval_every: 2, eval_batches: 1, save_every: 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("train_llm")
    (path / "run.yaml").write_text(RUN % 0.0)
    (path / "dropout.yaml").write_text(RUN % 0.2)
    text = path / "text"
    text.mkdir()
    for i in range(6):
        (text / f"{i}.txt").write_text("".join(chr(97 + (i * j * j) % 26) for j in range(3000)))
    return path


def _run(folder, *arguments, code=0):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def whole_run(folder):
    output = _run(folder, "--config", "dropout.yaml", "--text", "text", "--output", "whole", "--no-compare")
    return folder / "whole", output


def test_run_reports_and_saves(whole_run):
    path, output = whole_run
    assert "step 0 of 4: compiling the graph" in output and "step 1 of 4: loss" in output
    assert "\r" not in output and "it/s" not in output
    for step in (2, 4):
        assert re.search(rf"step {step}: train loss \d\.\d+, validation loss \d\.\d+, \d+ tokens/s", output)
        assert sorted(p.name for p in (path / f"step-00000{step}").iterdir()) == [
            "model.safetensors",
            "optimizer.safetensors",
            "state.json",
        ]
    assert json.loads((path / "step-000004" / "state.json").read_text())["position"] == 8


def test_resume_is_exact(folder, whole_run):
    shutil.copytree(whole_run[0], folder / "half")
    shutil.rmtree(folder / "half" / "step-000004")
    (folder / "half" / ".step-000003.1.tmp").mkdir()  # what a killed run leaves
    output = _run(folder, "--resume", "half", "--no-compare")  # the run knows its text
    assert "resumed from" in output and "step-000002" in output
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        whole, resumed = (p / "step-000004" / name for p in (whole_run[0], folder / "half"))
        assert whole.read_bytes() == resumed.read_bytes(), name
    assert not list((folder / "half").glob(".*"))


def test_resume_takes_the_run_as_it_is(folder, whole_run):
    shutil.copytree(whole_run[0], folder / "finished")
    (folder / "other").mkdir()
    resume = ("--resume", "finished", "--no-compare")
    assert "--steps must be larger than 4 to go on, but got 4" in _run(folder, *resume, code=1)
    assert f"was trained on {folder / 'text'}, but got {folder / 'other'}" in _run(
        folder, *resume, "--text", "other", code=1
    )
    assert "leave --config out" in _run(folder, *resume, "--config", "run.yaml", code=2)
    assert "finished 5 steps" in _run(folder, *resume, "--text", "text", "--steps", 5)
    assert "--steps must be larger than 5 to go on, but got 5" in _run(folder, *resume, code=1)


def test_comparison(folder):
    output = _run(folder, "--config", "run.yaml", "--text", "text", "--compare-only", "--compare-steps", 3)
    rows = {line.split()[0]: line for line in output.splitlines() if line.startswith(("fused", "composed"))}
    assert set(rows) == {"fused", "composed"}
    assert "same loss to 1e-04 over 3 steps: yes" in output
    assert re.search(r"fused / composed +diff \d\.\de[-+]\d+ +\d+\.\d\dx +\d+\.\d\dx +\d+\.\d\dx", output)


def test_pynative(folder):
    output = _run(folder, "--config", "run.yaml", "--text", "text", "--mode", "pynative", "--steps", 2, "--no-compare")
    assert "pynative mode" in output and "finished 2 steps" in output


def test_interrupt_leaves_whole_checkpoints(folder):
    command = [
        sys.executable,
        str(SCRIPT),
        "--config",
        "run.yaml",
        "--text",
        "text",
        "--steps",
        "1000000",
        "--no-compare",
        "--eval-every",
        "1000000",
        "--save-every",
        "1000000",
        "--output",
        "stopped",
    ]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    end = time.time() + 200
    while "tokens/s" not in (folder / "log").read_text() and time.time() < end and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, (folder / "log").read_text()[-2000:]
    names = sorted(os.listdir(folder / "stopped"))
    assert len(names) == 2 and names[0] == "run.yaml" and names[1].startswith("step-"), names


BAD = {
    "config": (("--config", "huge"), 2, "'huge' is neither a file nor one of small, tiny"),
    "steps": (("--steps", 0), 2, "must be at least 1, but got 0"),
    "resume": (("--resume", "nowhere"), 2, "'nowhere' is not the folder of a run"),
    "both": (("--no-compare", "--compare-only"), 2, "exclude each other"),
    "text": (("--text", "nowhere"), 1, "nowhere' does not exist"),
    "rate": (("--lr", -1), 1, "'learning_rate' must be at least 0, but got -1.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(folder, name):
    arguments, code, message = BAD[name]
    output = _run(folder, *arguments, code=code)
    assert message in output and "Traceback" not in output


@pytest.fixture
def examples_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))


@pytest.mark.parametrize("mode", ("graph", "pynative"))
def test_adamw_is_that_of_torch(mode, examples_path):
    torch = pytest.importorskip("torch")
    import mindspore as ms
    from llm.training import AdamW

    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (5,))]
    ours = [ms.Parameter(ms.Tensor(w), name=f"p{i}") for i, w in enumerate(weights)]
    optimizer = AdamW(ours, (0.9, 0.95), 1e-8, 0.1)
    theirs = [torch.nn.Parameter(torch.tensor(w)) for w in weights]
    groups = [{"params": [p], "weight_decay": 0.1 if p.ndim > 1 else 0.0} for p in theirs]
    reference = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-8)
    for _ in range(5):
        gradients = [rng.standard_normal(w.shape).astype(np.float32) for w in weights]
        for p, g in zip(theirs, gradients):
            p.grad = torch.tensor(g)
        reference.step()
        optimizer(ms.mutable(tuple(ms.Tensor(g) for g in gradients)), ms.Tensor(0.01, ms.float32))
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.asnumpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_batches_depend_on_the_position_alone(examples_path):
    from llm.data import Batches

    tokens = np.arange(1000, dtype=np.uint16)
    whole = Batches(tokens, 10, 4, seed=1)
    seen = [whole.next() for _ in range(60)]  # more than two epochs of 99 windows
    later = Batches(tokens, 10, 4, seed=1, position=4 * 30)
    for ids, labels in seen[30:]:
        again = later.next()
        assert np.array_equal(again[0], ids) and np.array_equal(again[1], labels) and np.array_equal(ids + 1, labels)
    starts = [int(row[0]) for ids, _ in seen for row in ids][:99]
    assert len(set(starts)) == 99
    with pytest.raises(ValueError, match="9 windows of 100 tokens, fewer than the batch size 10"):
        Batches(tokens, 100, 10, seed=1)


BAD_SETTINGS = {
    "rate": ("lr_schedule: {learning_rate: fast}", "'learning_rate' must be a number, but got 'fast'"),
    "warmup": ("lr_schedule: {warmup_steps: -3}", "'warmup_steps' must be an int of at least 0, but got -3"),
    "one_beta": ("optimizer: {betas: [0.9]}", r"'betas' must be two numbers, but got \[0.9\]"),
    "text": ("train_dataset: {text: 3}", "'text' must be the path of a folder, but got 3"),
    "betas": ("optimizer: {betas: [2, -1]}", r"'betas' must be at least 0 and below 1, but got \(2.0, -1.0\)"),
    "key": ("optimizer: {beta: 2}", "section 'optimizer' of .* has the unknown key 'beta'"),
    "model": ("model: 3", "must hold a mapping with the section 'model'"),
    "yaml": ("a: b: c", "must be YAML, but got: mapping values"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_run_file(name, tmp_path, examples_path):
    from llm.settings import Settings

    text, message = BAD_SETTINGS[name]
    model = "model: {vocab_size: 256, hidden_size: 16, num_layers: 1, num_heads: 2}\n" if name != "model" else ""
    (tmp_path / "run.yaml").write_text(model + text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Settings.from_yaml(tmp_path / "run.yaml")
