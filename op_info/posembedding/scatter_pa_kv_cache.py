# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""ScatterPaKvCache: new tokens written into a paged cache, in place or into a copy."""

from ..spec import ALL, Attr, OpSpec, Tensor

_COMMON = {
    "attrs": (Attr("cache_mode", str, default="Norm", choices=("Norm", "NHSD", "PA_NZ")),),
    "dtypes": {
        "X": ("float32", "float16", "bfloat16", "int8") * 2,
        "I": ("int32",) * 4 + ("int64",) * 4,
    },
    "targets": {"ascend910b": ALL, "cpu": ALL},
    "value_check": True,
    "infer": "custom",
    "moves": True,
}


def _inputs(mutable):
    return (
        Tensor("key", "T N D", "X"),
        Tensor("value", "T N Dv", "X", optional=True),
        Tensor("key_cache", "*", "X", mutable=mutable),
        Tensor("value_cache", "*", "X", optional=True, mutable=mutable),
        Tensor("slot_mapping", "T", "I"),
    )


SPEC = OpSpec(
    name="scatter_pa_kv_cache",
    inputs=_inputs(mutable=True),
    outputs=(Tensor("done", "1", "int32"),),  # something for readers of the caches to depend on
    **_COMMON,
)

# Without value, value_cache_out is empty.
COPY = OpSpec(
    name="scatter_pa_kv_cache_copy",
    inputs=_inputs(mutable=False),
    outputs=(Tensor("key_cache_out", "*", "X"), Tensor("value_cache_out", "*", "X")),
    **_COMMON,
)
