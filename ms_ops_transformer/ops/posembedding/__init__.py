# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Positions, norms and caches."""

from .rms_norm import rms_norm
from .rotary_position_embedding import rotary_position_embedding
from .scatter_pa_kv_cache import scatter_pa_kv_cache
