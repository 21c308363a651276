# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Checkpoints: a folder per step, which appears under its name only when it is complete."""

import json
import os
import re
import shutil

from ms_ops_transformer.models import load_weights, read_safetensors, save_weights, write_safetensors

_NAME = re.compile(r"step-(\d{6,})$")


def checkpoints(folder):
    """Complete checkpoints of a run, oldest first: [(step, path)]."""
    if not os.path.isdir(folder):
        return []
    found = [(int(match[1]), os.path.join(folder, match[0])) for match in map(_NAME.match, os.listdir(folder)) if match]
    return sorted(found)


def save(folder, trainer, state, keep=2):
    """Writes weights, optimizer and `state` (JSON: step, data position, seed); keeps the newest `keep` checkpoints."""
    path = os.path.join(folder, f"step-{state['step']:06d}")
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}.tmp")
    os.makedirs(temporary)
    try:
        save_weights(trainer.model, os.path.join(temporary, "model.safetensors"))
        write_safetensors(
            {name: p.value() for name, p in trainer.parameters().items()},
            os.path.join(temporary, "optimizer.safetensors"),
        )
        with open(os.path.join(temporary, "state.json"), "w", encoding="utf-8") as file:
            json.dump(state, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        if os.path.isdir(path):  # the same step again, after a resume from an older one
            shutil.rmtree(path)
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for _, old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def load(path, trainer):
    """Restores model and optimizer; returns the state."""
    with open(os.path.join(path, "state.json"), encoding="utf-8") as file:
        state = json.load(file)
    load_weights(trainer.model, os.path.join(path, "model.safetensors"))
    tensors, parameters = read_safetensors(os.path.join(path, "optimizer.safetensors")), trainer.parameters()
    if tensors.keys() != parameters.keys():
        differing = sorted(tensors.keys() ^ parameters.keys())
        raise ValueError(
            f"'{path}' holds the optimizer of another model: {len(differing)} names differ, {differing[:3]}."
        )
    for name, parameter in parameters.items():
        parameter.set_data(tensors[name])
    return state


def remove_leftovers(folder):
    """Removes what a killed run left half written."""
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if name.startswith(".step-") and name.endswith(".tmp"):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
