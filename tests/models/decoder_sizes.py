# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The decoder that the tests build."""

SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "num_layers": 2,
    "num_attention_heads": 4,
    "num_query_groups": 2,
    "ffn_hidden_size": 112,
    "seq_length": 40,
}
