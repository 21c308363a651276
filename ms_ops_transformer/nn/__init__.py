# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Cells that hold parameters and compose the operators."""

from .attention import FlashAttention, FlashAttentionScore, FlashAttentionV2, SelfAttention
from .dropout import DropoutState
from .norm import RMSNorm
from .rotary import RotaryEmbedding, rotary_tables
from .swiglu import SwiGLU

__all__ = [
    "DropoutState",
    "FlashAttention",
    "FlashAttentionScore",
    "FlashAttentionV2",
    "RMSNorm",
    "RotaryEmbedding",
    "SelfAttention",
    "SwiGLU",
    "rotary_tables",
]
