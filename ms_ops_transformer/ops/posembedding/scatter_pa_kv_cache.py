# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""scatter_pa_kv_cache."""

from mindspore import Parameter
from mindspore import ops as ms_ops

from .._check import required
from .._custom import primitive


def scatter_pa_kv_cache(key, value, key_cache, value_cache, slot_mapping, cache_mode="Norm"):
    r"""Writes new tokens into the pages of a cache.

    :math:`cache[slot // block\_size, slot \% block\_size] = token` for each token in turn. A token with a negative slot
    is skipped; of tokens with the same slot the last one stays.

    A cache that is a Parameter is updated in place, in graph mode and in PyNative; a plain Tensor is left alone and an
    updated copy is returned.

    Args:
        key (Tensor): Keys :math:`(T, N, D)`; float32, float16, bfloat16 or int8.
        value (Tensor): Values :math:`(T, N, Dv)`, or ``None`` when there is one cache only.
        key_cache (Union[Parameter, Tensor]): Pages of keys, in the dtype of key: :math:`(blocks, block\_size, N, D)` in
            mode "Norm", :math:`(blocks, N, block\_size, D)` in mode "NHSD",
            :math:`(blocks, N \cdot D / c, block\_size, c)` in mode "PA_NZ", where c is the elements of 32 bytes.
        value_cache (Union[Parameter, Tensor]): Pages of values, or ``None`` with value.
        slot_mapping (Tensor): Slot of each token, :math:`(T,)`; int32 or int64.
        cache_mode (str): "Norm", "NHSD" or "PA_NZ". Default: ``"Norm"``.

    Returns:
        Tuple of the updated key_cache and value_cache (``None`` without value).

    Raises:
        TypeError: If a dtype is not one of those above, or only one of the caches is a Parameter.
        ValueError: If shapes do not fit, or there are more or fewer slots than tokens.
        RuntimeError: If a slot is beyond the cache; nothing is written then.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import numpy as np
        >>> from mindspore import Tensor
        >>> from ms_ops_transformer import ops
        >>> key = Tensor(np.ones((2, 1, 4), np.float32))
        >>> cache = Tensor(np.zeros((3, 2, 1, 4), np.float32))
        >>> slots = Tensor(np.array([5, -1], np.int32))
        >>> updated, _ = ops.scatter_pa_kv_cache(key, None, cache, None, slots)
        >>> print(updated.reshape(6, 4).sum(1))
        [0. 0. 0. 0. 0. 4.]
    """
    required("ScatterPaKvCache", "key", key)
    required("ScatterPaKvCache", "key_cache", key_cache)
    required("ScatterPaKvCache", "slot_mapping", slot_mapping)
    absent = ("value", "value_cache") if value is None and value_cache is None else ()
    if value is None and value_cache is not None:
        absent = ("value",)
    if value is not None and value_cache is None:
        absent = ("value_cache",)
    in_place = isinstance(key_cache, Parameter)
    if value_cache is not None and isinstance(value_cache, Parameter) != in_place:
        raise TypeError(
            "For 'ScatterPaKvCache', 'key_cache' and 'value_cache' must both be a Parameter or both be a Tensor, but "
            f"got {'a Parameter and a Tensor' if in_place else 'a Tensor and a Parameter'}."
        )
    if in_place:
        done = primitive("scatter_pa_kv_cache", absent, cache_mode=cache_mode)(
            key, value, key_cache, value_cache, slot_mapping
        )
        # Readers of the results wait for the update.
        return ms_ops.depend(key_cache, done), None if value_cache is None else ms_ops.depend(value_cache, done)
    key_cache_out, value_cache_out = primitive("scatter_pa_kv_cache_copy", absent, cache_mode=cache_mode)(
        key, value, key_cache, value_cache, slot_mapping
    )
    return key_cache_out, None if value_cache is None else value_cache_out
