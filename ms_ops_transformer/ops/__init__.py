# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The operators as functions."""

import sys

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

# amp O1 rewrites the source of the functions that a Cell calls, and with it loses the names of their module. It leaves
# alone what comes from a module without a file.
for _module in {globals()[name].__module__ for name in __all__}:
    vars(sys.modules[_module]).pop("__file__", None)
