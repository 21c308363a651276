# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The operators as functions."""

from . import attention, gmm, moe, posembedding
from .attention import *
from .gmm import *
from .moe import *
from .posembedding import *

__all__ = [
    name
    for family in (attention, gmm, moe, posembedding)
    for name, value in vars(family).items()
    if callable(value) and not name.startswith("_")
]
