# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Mixture of experts."""

from .moe_gating_top_k_softmax import moe_gating_top_k_softmax
