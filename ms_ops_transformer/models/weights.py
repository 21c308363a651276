# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Weights as safetensors files with Hugging Face names."""

import json
import os

import mindspore as ms

_DTYPES = {ms.float32: "F32", ms.float16: "F16", ms.bfloat16: "BF16", ms.int64: "I64", ms.int32: "I32"}
_DERIVED = ("rotary_emb.inv_freq",)  # tables that old checkpoints carry


def write_safetensors(tensors, path, metadata=None):
    """Writes {name: Tensor} to one file, which appears under `path` only when it is complete."""
    path = os.fspath(path)
    header, offset = {"__metadata__": {"format": "pt", **(metadata or {})}}, 0
    for name, tensor in tensors.items():
        size = tensor.nbytes
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(tensor.get_bytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def read_safetensors(path):
    """{name: Tensor} of one file, or of all the .safetensors files of a directory."""
    path = os.fspath(path)
    if os.path.isdir(path):
        files = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".safetensors"))
    else:
        files = [path]
    if not files or not all(os.path.isfile(name) for name in files):
        raise FileNotFoundError(
            f"For 'read_safetensors', 'path' must be a .safetensors file or a directory with some, but got '{path}'."
        )
    tensors = {}
    for name in files:
        for key, value in ms.load_checkpoint(name, format="safetensors").items():
            tensors[key] = ms.Tensor(value)
    return tensors


def save_weights(model, path):
    """Writes a model's weights as one safetensors file; dropout counters are not weights and stay out."""
    write_safetensors(
        {p.name: p.value() for p in model.get_parameters() if not p.name.endswith("dropout_state.state")}, path
    )


def load_weights(model, path):
    """Loads a safetensors file (or a directory of shards) with Hugging Face names into a model.

    Raises:
        ValueError: if a name is missing or left over, or a shape differs.
    """
    tensors = {name: value for name, value in read_safetensors(path).items() if not name.endswith(_DERIVED)}
    parameters = {p.name: p for p in model.get_parameters() if not p.name.endswith("dropout_state.state")}
    if "lm_head.weight" not in parameters:  # tied: the file may repeat the embedding
        tensors.pop("lm_head.weight", None)
    missing, extra = sorted(parameters.keys() - tensors.keys()), sorted(tensors.keys() - parameters.keys())
    if missing or extra:
        raise ValueError(
            f"For 'load_weights', the names in the file must be those of the model, but got {len(missing)} missing "
            f"{missing[:3]} and {len(extra)} unexpected {extra[:3]} in '{path}'."
        )
    for name, parameter in parameters.items():
        if tuple(tensors[name].shape) != tuple(parameter.shape):
            raise ValueError(
                f"For 'load_weights', '{name}' must have the shape {tuple(parameter.shape)}, but got "
                f"{tuple(tensors[name].shape)}."
            )
    for name, parameter in parameters.items():
        parameter.set_data(tensors[name].astype(parameter.dtype))
