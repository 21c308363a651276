# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Reference of scatter_pa_kv_cache in plain NumPy: one token after the other."""


def split(cache, mode):
    """A view of a cache as [blocks, block_size, ...]."""
    return cache if mode == "Norm" else cache.swapaxes(1, 2)


def forward(tokens, cache, slots, mode="Norm"):
    """The updated cache."""
    cache = cache.copy()
    pages = split(cache, mode)
    block_size = pages.shape[1]
    for token, slot in zip(tokens, slots, strict=True):
        if slot >= 0:
            row = pages[slot // block_size, slot % block_size]
            row[...] = token.reshape(row.shape)
    return cache
