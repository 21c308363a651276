# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""A dense decoder (Llama, Qwen3) built from the Cells of this package."""

import dataclasses
import types

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import Normal, initializer

from .. import nn as fused_cells
from . import composed as composed_cells
from .config import DecoderConfig


class Embedding(nn.Cell):
    """Rows of a table; int32 or int64 ids of any shape."""

    def __init__(self, vocab_size, hidden_size, params_dtype, init):
        super().__init__()
        self.weight = Parameter(initializer(init, (vocab_size, hidden_size), params_dtype), name="weight")

    def construct(self, ids):
        return ops.gather(self.weight, ids, 0)


class DecoderLayer(nn.Cell):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config, parts, rotary, init):
        super().__init__()
        dtype = _dtype(config.params_dtype)
        norm = {"eps": config.layernorm_epsilon, "params_dtype": dtype, "compute_dtype": parts.norm_dtype}
        self.input_layernorm = parts.RMSNorm(config.hidden_size, **norm)
        self.self_attn = fused_cells.SelfAttention(
            config.hidden_size,
            config.num_attention_heads,
            config.num_query_groups,
            config.kv_channels,
            rotary=rotary,
            qk_norm=config.qk_layernorm,
            norm_eps=config.layernorm_epsilon,
            qkv_bias=config.add_qkv_bias,
            out_bias=config.add_output_bias,
            dropout=config.attention_dropout,
            params_dtype=dtype,
            weight_init=init,
            parts=parts,
        )
        self.post_attention_layernorm = parts.RMSNorm(config.hidden_size, **norm)
        self.mlp = parts.SwiGLU(
            config.hidden_size,
            config.ffn_hidden_size,
            has_bias=config.add_mlp_bias,
            params_dtype=dtype,
            weight_init=init,
        )

    def construct(self, x, attn_mask=None, positions=None, seed_offset=None):
        x = x + self.self_attn(self.input_layernorm(x), attn_mask, positions, seed_offset)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Cell):
    """Embedding, layers and the last norm: token ids to hidden states."""

    def __init__(self, config, parts):
        super().__init__()
        dtype, init = _dtype(config.params_dtype), Normal(config.initializer_range)
        rotary = None
        if config.position_embedding_type == "rope":
            rotary = parts.RotaryEmbedding(
                config.kv_channels,
                config.max_position_embeddings,
                config.rotary_base,
                scaling=config.rope_scaling,
                compute_dtype=parts.rotary_dtype,
            )
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, dtype, init)
        self.layers = nn.CellList([DecoderLayer(config, parts, rotary, init) for _ in range(config.num_layers)])
        self.norm = parts.RMSNorm(config.hidden_size, config.layernorm_epsilon, dtype, parts.norm_dtype)
        self.compute_dtype = _dtype(config.compute_dtype)
        self.dropout_state = None
        if config.attention_dropout:
            self.dropout_state = fused_cells.DropoutState(config.seed, step=config.num_layers)
        for index in config.recompute:
            self.layers[index].recompute()

    def construct(self, input_ids, attn_mask=None, positions=None):
        x = self.embed_tokens(input_ids).astype(self.compute_dtype)
        seed_offset = None
        if self.dropout_state is not None and self.training:
            seed_offset = self.dropout_state()  # here, outside the layers: a recomputed layer sees the same pair again
        for index, layer in enumerate(self.layers):
            x = layer(
                x, attn_mask, positions, None if seed_offset is None else seed_offset + ms.Tensor([0, index], ms.int64)
            )
        return self.norm(x)


class DecoderForCausalLM(nn.Cell):
    r"""A dense decoder with its output projection.

    Parameters carry the names of Hugging Face checkpoints (``model.layers.0.self_attn.q_proj.weight``, ...).

    Args:
        config (DecoderConfig): the model.
        fused (bool): False composes every part of MindSpore's own operators. Default ``True``: the operators of this
            package, except those the config switches off (`use_flash_attention`, `fused_norm`, `apply_rope_fusion`,
            `bias_swiglu_fusion`).

    Inputs:
        - **input_ids** (Tensor) - int32 or int64, [B, S].
        - **labels** (Tensor, optional) - int32, [B, S]: the token after each position. Default ``None``.
        - **attn_mask** (Tensor, optional) - bool or uint8, 1 = drop, beside the causal rule; [B, 1, 1, S] for padding.
          Default ``None``.
        - **positions** (Tensor, optional) - int32 or int64, [S] or [B, S]. Default ``None``: 0, 1, 2, ...

    Outputs:
        Tensor: logits [B, S, V] in float32, or the mean cross entropy when labels are given.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.models import DecoderConfig, DecoderForCausalLM
        >>> config = DecoderConfig(vocab_size=64, hidden_size=32, num_layers=2, num_attention_heads=4, seq_length=16)
        >>> print(DecoderForCausalLM(config)(ms.ops.ones((1, 16), ms.int32)).shape)
        (1, 16, 64)
    """

    def __init__(self, config, fused=True):
        super().__init__()
        if not isinstance(config, DecoderConfig):
            raise TypeError(
                f"For 'DecoderForCausalLM', 'config' must be a DecoderConfig, but got {type(config).__name__}."
            )
        if config.compute_dtype == "bfloat16" and ms.get_context("device_target") == "CPU":
            raise ValueError(
                "For 'DecoderForCausalLM', 'compute_dtype' must be float32 or float16 on CPU, where MindSpore "
                "has no bfloat16 matrix product (build_model(path, compute_dtype='float32') replaces what a file "
                "says), but got bfloat16."
            )
        self.config = config
        self.model = Decoder(config, _parts(config, fused))
        self.lm_head = None
        if not config.tie_word_embeddings:
            self.lm_head = nn.Dense(
                config.hidden_size,
                config.vocab_size,
                has_bias=False,
                weight_init=Normal(config.initializer_range),
                dtype=_dtype(config.params_dtype),
            )
        self.matmul = ops.MatMul(transpose_b=True)
        self.cross_entropy = ops.SparseSoftmaxCrossEntropyWithLogits()
        if config.compute_dtype != config.params_dtype:
            for cell in self.cells_and_names():
                if isinstance(cell[1], nn.Dense):
                    cell[1].to_float(_dtype(config.compute_dtype))

    def construct(self, input_ids, labels=None, attn_mask=None, positions=None):
        x = self.model(input_ids, attn_mask, positions)
        x = x.reshape(-1, x.shape[-1])
        if self.lm_head is None:
            logits = self.matmul(x, self.model.embed_tokens.weight.astype(x.dtype))
        else:
            logits = self.lm_head(x)
        logits = logits.astype(ms.float32)
        if labels is not None:
            return self.cross_entropy(logits, labels.reshape(-1))
        return logits.reshape(input_ids.shape + (-1,))


def build_model(config, fused=True, **overrides):
    """A DecoderForCausalLM from a DecoderConfig, a mapping (any spelling), or the path of a YAML file.

    `overrides` are fields of DecoderConfig that replace what `config` says, as in `DecoderConfig.from_dict`.
    """
    if isinstance(config, dict):
        config = DecoderConfig.from_dict(config, **overrides)
    elif not isinstance(config, DecoderConfig):
        config = DecoderConfig.from_yaml(config, **overrides)
    elif overrides:
        config = dataclasses.replace(config, **overrides)
    return DecoderForCausalLM(config, fused)


def _parts(config, fused):
    """The Cells a model is built from, each fused or composed, and the dtypes some of them compute in."""
    switches = {
        "FlashAttention": config.use_flash_attention,
        "RMSNorm": config.fused_norm,
        "RotaryEmbedding": config.apply_rope_fusion,
        "SwiGLU": config.bias_swiglu_fusion,
    }
    parts = types.SimpleNamespace()
    for name, switch in switches.items():
        setattr(parts, name, getattr(fused_cells if fused and switch else composed_cells, name))

    def unless_compute(name):
        return None if name is None or name == config.compute_dtype else _dtype(name)

    parts.norm_dtype = unless_compute(config.layernorm_compute_dtype)
    parts.rotary_dtype = unless_compute(config.rotary_dtype)
    return parts


def _dtype(name):
    return getattr(ms, name)
