# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Attention."""

from .flash_attention_score import flash_attention, flash_attention_score
