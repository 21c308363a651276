# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Models built from the Cells of this package."""

from .config import DecoderConfig
from .decoder import DecoderForCausalLM, build_model
from .weights import load_weights, read_safetensors, save_weights, write_safetensors

__all__ = [
    "DecoderConfig",
    "DecoderForCausalLM",
    "build_model",
    "load_weights",
    "read_safetensors",
    "save_weights",
    "write_safetensors",
]
