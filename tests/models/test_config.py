# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Configurations of the decoder in every spelling, and what is wrong with them."""

import json

import pytest
import yaml
from decoder_sizes import SIZES

from ms_ops_transformer.models import DecoderConfig, build_model
from ms_ops_transformer.models.config import ALIASES, UNSUPPORTED

LEGACY = """
use_legacy: True
recompute_config: {recompute: [1], select_recompute: False}
parallel_config: {data_parallel: 1}
model:
  arch: {type: LlamaForCausalLM}
  model_config:
    type: LlamaConfig
    batch_size: 1
    seq_length: 40
    hidden_size: 64
    num_layers: 2
    num_heads: 4
    n_kv_heads: 2
    vocab_size: 97
    intermediate_size: 112
    rms_norm_eps: 1.0e-5
    theta: 5000.0
    extend_method: "None"
    param_init_type: "float32"
    compute_dtype: "float16"
    layernorm_compute_type: "float32"
    qkv_has_bias: True
    use_past: False
"""
MCORE = """
use_legacy: False
recompute_config: {recompute: [1]}
model:
  model_config:
    model_type: llama
    architectures: ["LlamaForCausalLM"]
    seq_length: 40
    hidden_size: 64
    num_hidden_layers: 2
    num_attention_heads: 4
    num_key_value_heads: 2
    vocab_size: 97
    intermediate_size: 112
    rms_norm_eps: 1.0e-5
    rope_theta: 5000.0
    position_embedding_type: rope
    params_dtype: float32
    compute_dtype: float16
    layernorm_compute_dtype: float32
    add_qkv_bias: True
"""
PYNATIVE = """
training: {steps: 10}
parallelism: {tensor_parallel: 1}
recompute: {mode: None}
model:
  model_type: llama
  seq_length: 40
  hidden_size: 64
  num_layers: 2
  num_attention_heads: 4
  num_query_groups: 2
  kv_channels: 16
  vocab_size: 97
  ffn_hidden_size: 112
  layernorm_epsilon: 1.0e-5
  rotary_base: 5000.0
  params_dtype: float32
  compute_dtype: float16
  attention_bias: True
"""


def test_three_schemas_describe_one_model(tmp_path):
    configs = []
    for text in (LEGACY, MCORE, PYNATIVE):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        configs.append(DecoderConfig.from_yaml(path).to_dict())
    legacy, mcore, pynative = configs
    assert legacy["layernorm_epsilon"] == 1e-5 and legacy["compute_dtype"] == "float16" and legacy["add_qkv_bias"]
    assert (legacy["recompute"], mcore["recompute"], pynative["recompute"]) == ([1], [1], [])
    for config in configs:
        config.pop("recompute")
        config.pop("model_type")
    assert legacy == mcore == pynative


VALUES = {
    "num_attention_heads": 8,
    "num_query_groups": 4,
    "kv_channels": 24,
    "ffn_hidden_size": 80,
    "num_layers": 3,
    "layernorm_epsilon": 1e-4,
    "add_qkv_bias": True,
    "add_mlp_bias": True,
    "add_output_bias": True,
    "attention_dropout": 0.25,
    "qk_layernorm": True,
    "rotary_base": 2e4,
    "position_embedding_type": "linear",
    "params_dtype": "float16",
    "apply_rope_fusion": False,
    "bias_swiglu_fusion": False,
    "rotary_scaling_factor": 2.0,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "tie_word_embeddings": True,
    "model_type": "qwen3",
    "seq_length": 24,
    "rope_scaling": {"rope_type": "linear", "factor": 4.0},
    "layernorm_compute_dtype": "float16",
    "softmax_compute_dtype": "float16",
}


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_alias_equals_its_field(alias):
    field = ALIASES[alias]
    base = {k: v for k, v in SIZES.items() if k != field}
    by_alias = DecoderConfig.from_dict({**base, alias: VALUES[field]})
    assert by_alias == DecoderConfig.from_dict({**base, field: VALUES[field]})
    assert by_alias != DecoderConfig.from_dict(SIZES)


def test_config_round_trip(tmp_path):
    config = DecoderConfig(
        **SIZES, rope_scaling={"rope_type": "linear", "factor": 2.0}, recompute=[0], model_type="qwen3"
    )
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"model": {"model_config": config.to_dict()}}))
    assert DecoderConfig.from_yaml(tmp_path / "c.yaml") == config


def test_stock_recompute_and_overrides():
    values = {
        "recompute_config": {"recompute": True},
        "model": {"model_config": {**SIZES, "compute_dtype": "bfloat16"}},
    }
    config = DecoderConfig.from_dict(values, compute_dtype="float32", n_layer=3)
    assert (config.recompute, config.compute_dtype, config.num_layers) == ((0, 1, 2), "float32", 3)


STOCK = """
pretrained_model_dir: ''
moe_config: {expert_num: 1}
model:
  model_config:
    type: LlamaConfig
    batch_size: 1
    seq_length: 40
    hidden_size: 64
    num_layers: 2
    num_heads: 4
    n_kv_heads: 2
    vocab_size: 97
    intermediate_size: 112
    rotary_pct: 1.0
    rotary_emb_base: 500000
    theta: 500000.0
    emb_dropout_prob: 0.0
    out_proj_has_bias: False
    use_ring_attention: True
    compute_in_2d: True
    use_past_shard: False
    use_contiguous_weight_layout: False
    residual_dtype: float32
    input_sliced_sig: True
    extend_method: LLAMA3
    scaling_factor: {factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_position_embeddings: 16}
"""


def test_stock_keys(tmp_path):
    (tmp_path / "run.yaml").write_text(STOCK)
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    assert DecoderConfig.from_yaml(tmp_path / "run.yaml") == DecoderConfig(
        **SIZES, model_type="LlamaConfig", rotary_base=5e5, rope_scaling=scaling
    )


def test_model_type_decides_what_is_not_said():
    for kind, bias, norm in (("qwen2", True, False), ("Qwen3Config", False, True), ("llama", False, False)):
        config = DecoderConfig.from_dict({**SIZES, "model_type": kind})
        assert (config.add_qkv_bias, config.qk_layernorm) == (bias, norm)


BAD = {
    "telechat": ({"type": "TelechatConfig"}, "'model_type' must be .* has a bias in down_proj alone.*'TelechatConfig'"),
    "glm": ({"model_type": "chatglm2"}, "'model_type' must be .* rotates only half of each head"),
    "rotary_pct": ({"rotary_pct": 0.5}, "'rotary_pct' must be 1.0.* got 0.5"),
    "residual": (
        {"residual_dtype": "float32", "compute_dtype": "float16"},
        r"'residual_dtype' must be no wider than 'compute_dtype' \(float16",
    ),
    "embedding_dropout": ({"emb_dropout_prob": 0.1}, "'emb_dropout_prob' must be off"),
    "moe_config": (
        {"model": {"model_config": SIZES}, "moe_config": {"expert_num": 8}},
        "'expert_num' must be off: a dense decoder is without a mixture of experts, but got 8",
    ),
    "sizes": (
        {"model": {"model_config": {"num_layers": 2}}, "pretrained_model_dir": "/models/q"},
        r"'vocab_size' must be given .* in the config.json of its 'pretrained_model_dir' \('/models/q'\)",
    ),
    "unknown": ({"hiden_size": 3}, "key 'hiden_size' is unknown"),
    "conflict": ({"num_heads": 8}, "'num_attention_heads' and 'num_heads' are the same setting .* 4 and 8"),
    "groups": ({"n_kv_heads": 3, "num_query_groups": None}, "'num_query_groups' must be a divisor .* got 3"),
    "experts": (
        {"num_experts": 8},
        "'num_experts' must be off: a dense decoder is without a mixture of experts, but got 8",
    ),
    "act": ({"hidden_act": "gelu"}, "'hidden_act' must be silu"),
    "dtype": ({"compute_dtype": "int8"}, "'compute_dtype' must be one of .* got 'int8'"),
    "layers": ({"n_layer": 0, "num_layers": None}, "'num_layers' must be an int of at least 1, but got 0"),
    "position": ({"extend_method": "magic"}, "'position_embedding_type' must be one of .* got 'magic'"),
    "recompute": ({"recompute": [5]}, "'recompute' must be layer indices below .* got 5"),
    "norm": ({"normalization": "LayerNorm"}, "'normalization' must be RMSNorm"),
    "infinite": ({"init_method_std": float("inf")}, "'initializer_range' must be finite, but got inf"),
    "missing": ({"vocab_size": None}, "'vocab_size' must be given"),
    "scaling": ({"rope_scaling": {"rope_type": "linear"}}, "must have the key 'factor'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_config(name):
    change, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        build_model({**SIZES, **change})


def test_every_unsupported_key_may_be_off():
    assert DecoderConfig.from_dict({**SIZES, **dict.fromkeys(UNSUPPORTED, None)}) == DecoderConfig(**SIZES)
    assert DecoderConfig.from_dict({**SIZES, **dict.fromkeys(UNSUPPORTED, False)}) == DecoderConfig(**SIZES)


def test_bfloat16_on_cpu_is_refused(tmp_path):
    values = {**SIZES, "compute_dtype": "bfloat16"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(values))
    for config in (values, tmp_path / "run.yaml", DecoderConfig(**values)):
        message = r"'compute_dtype' must be float32 or float16 on CPU.*build_model\(path, compute_dtype='float32'\)"
        with pytest.raises(ValueError, match=message):
            build_model(config)
        assert build_model(config, compute_dtype="float32").config == DecoderConfig(**SIZES)


def test_hugging_face_config_dict(tmp_path):
    transformers = pytest.importorskip("transformers")
    values = json.loads(transformers.Qwen3Config(num_hidden_layers=2).to_json_string(use_diff=False))
    config = DecoderConfig.from_dict(values)
    assert (config.qk_layernorm, config.kv_channels, config.num_layers) == (True, 128, 2)
