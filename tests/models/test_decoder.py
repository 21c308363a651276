# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The decoder: parity with transformers, configs in every spelling, safetensors, both modes, recompute, amp."""

import json

import mindspore as ms
import numpy as np
import pytest
import yaml

from ms_ops_transformer.models import (
    DecoderConfig,
    build_model,
    load_weights,
    read_safetensors,
    save_weights,
    write_safetensors,
)
from ms_ops_transformer.models.config import ALIASES, UNSUPPORTED

FUSED = pytest.mark.parametrize("fused", (True, False), ids=("fused", "composed"))
SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "num_layers": 2,
    "num_attention_heads": 4,
    "num_query_groups": 2,
    "ffn_hidden_size": 112,
    "seq_length": 40,
}
RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 97, (2, 33)).astype(np.int32)


def _set_mode(mode):
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)


def _model(fused=True, **options):
    ms.set_seed(1)
    np.random.seed(1)
    return build_model(DecoderConfig(**{**SIZES, **options}), fused=fused)


def _loss_and_gradients(model, ids=IDS):
    step = ms.value_and_grad(model, None, model.trainable_params())
    loss, gradients = step(ms.Tensor(ids[:, :-1]), ms.Tensor(ids[:, 1:]))
    return loss.asnumpy(), [g.asnumpy() for g in gradients]


# transformers


def _reference(kind, folder, **options):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    family = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind]
    config = getattr(transformers, f"{family}Config")(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=40,
        **options,
    )
    torch.manual_seed(0)
    reference = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    for p in reference.parameters():
        torch.nn.init.normal_(p, std=0.2) if p.ndim > 1 else torch.nn.init.uniform_(p, 0.5, 1.5)
    reference.save_pretrained(folder)
    with torch.no_grad():
        out = reference(torch.tensor(IDS, dtype=torch.long), labels=torch.tensor(IDS, dtype=torch.long))
    return out.logits.numpy(), out.loss.item()


HF_CASES = {
    "llama": ("llama", {}),
    "llama_linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
    "llama3": (
        "llama",
        {
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            }
        },
    ),
    "llama_yarn": (
        "llama",
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
    ),
    "llama_yarn_mscale": (
        "llama",
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
                "mscale": 1.0,
                "mscale_all_dim": 0.5,
            }
        },
    ),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {"head_dim": 24, "tie_word_embeddings": True}),
    "qwen3_bias": ("llama", {"attention_bias": True, "mlp_bias": True, "rope_theta": 500000.0}),
}


@FUSED
@pytest.mark.parametrize("name", HF_CASES)
def test_logits_match_transformers(name, fused, tmp_path):
    kind, options = HF_CASES[name]
    logits, loss = _reference(kind, tmp_path, **options)
    own = {"add_output_bias": True} if options.get("attention_bias") else {}
    model = build_model(DecoderConfig.from_yaml(tmp_path / "config.json", **own), fused=fused)
    load_weights(model, tmp_path)
    _set_mode("graph")
    out = model(ms.Tensor(IDS)).asnumpy()
    assert np.abs(logits).max() > 1
    np.testing.assert_allclose(out, logits, rtol=0, atol=1e-4)
    assert abs(float(model(ms.Tensor(IDS[:, :-1]), ms.Tensor(IDS[:, 1:])).asnumpy()) - loss) < 1e-4


# configs

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


# weights


def test_safetensors_round_trip(tmp_path):
    model, other = _model(qk_layernorm=True, add_qkv_bias=True), _model(qk_layernorm=True, add_qkv_bias=True, seed=5)
    for p in other.get_parameters():
        p.set_data(ms.ops.zeros_like(p))
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path)
    for p, q in zip(model.get_parameters(), other.get_parameters()):
        assert p.name == q.name and np.array_equal(p.asnumpy(), q.asnumpy())
    names = {p.name for p in model.get_parameters()}
    assert {
        "model.embed_tokens.weight",
        "model.layers.1.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_norm.weight",
        "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.input_layernorm.weight",
        "model.norm.weight",
        "lm_head.weight",
        "model.layers.0.post_attention_layernorm.weight",
    } <= names
    torch_file = pytest.importorskip("safetensors.torch").load_file(tmp_path / "model.safetensors")
    assert set(torch_file) == names


def test_safetensors_dtypes_and_atomicity(tmp_path):
    tensors = {
        "half": ms.Tensor([1.5, -2], ms.bfloat16),
        "fp16": ms.Tensor([[3]], ms.float16),
        "n": ms.Tensor(7, ms.int64),
    }
    write_safetensors(tensors, tmp_path / "t.safetensors")
    back = read_safetensors(tmp_path / "t.safetensors")
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape
        assert np.array_equal(back[name].astype(ms.float32).asnumpy(), tensor.astype(ms.float32).asnumpy())
    with pytest.raises(KeyError):
        write_safetensors({"bad": ms.Tensor([1], ms.float64)}, tmp_path / "bad.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["t.safetensors"]


def test_bad_weights(tmp_path):
    model = _model()
    save_weights(model, tmp_path / "model.safetensors")
    before = [p.asnumpy() for p in model.get_parameters()]
    with pytest.raises(ValueError, match="1 unexpected|3 missing|missing"):
        load_weights(_model(qk_layernorm=True), tmp_path / "model.safetensors")
    with pytest.raises(
        ValueError, match=r"'lm_head.weight' must have the shape|embed_tokens.weight' must have the shape"
    ):
        load_weights(_model(vocab_size=98), tmp_path / "model.safetensors")
    with pytest.raises(FileNotFoundError, match="nothing.safetensors"):
        load_weights(model, tmp_path / "nothing.safetensors")
    assert all(np.array_equal(a, p.asnumpy()) for a, p in zip(before, model.get_parameters()))


# training


@FUSED
def test_graph_equals_pynative_and_recompute(fused):
    results = {}
    for mode in ("pynative", "graph"):
        for recompute in (False, True):
            _set_mode(mode)
            results[mode, recompute] = _loss_and_gradients(_model(fused, recompute=recompute))
    loss, gradients = results["pynative", False]
    assert all(np.abs(g).max() > 0 for g in gradients)
    for other_loss, other_gradients in results.values():
        assert abs(loss - other_loss) < 1e-5
        for a, b in zip(gradients, other_gradients):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_fused_equals_composed():
    _set_mode("graph")
    options = {"qk_layernorm": True, "add_qkv_bias": True, "add_mlp_bias": True, "tie_word_embeddings": True}
    loss, gradients = _loss_and_gradients(_model(True, **options))
    other_loss, other_gradients = _loss_and_gradients(_model(False, **options))
    assert abs(loss - other_loss) < 1e-5
    for a, b in zip(gradients, other_gradients):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_switches_compose_single_parts():
    from ms_ops_transformer import nn
    from ms_ops_transformer.models import composed

    model = _model(use_flash_attention=False, apply_rope_fusion=False)
    layer = model.model.layers[0]
    assert isinstance(layer.self_attn.core, composed.FlashAttention)
    assert isinstance(layer.self_attn.rotary, composed.RotaryEmbedding)
    assert type(layer.mlp) is nn.SwiGLU and type(layer.input_layernorm) is nn.RMSNorm


@pytest.mark.parametrize("mode", ("graph", "pynative"))
def test_loss_falls(mode):
    _set_mode(mode)
    model = _model()
    optimizer = ms.nn.AdamWeightDecay(model.trainable_params(), learning_rate=3e-3)
    step = ms.nn.TrainOneStepCell(model, optimizer)
    step.set_train()
    losses = [float(step(ms.Tensor(IDS[:, :-1]), ms.Tensor(IDS[:, 1:])).asnumpy()) for _ in range(12)]
    assert losses[-1] < losses[0] - 0.5, losses


def _dropout_run(mode, recompute):
    _set_mode(mode)
    model = _model(attention_dropout=0.3, recompute=recompute, seed=11)
    model.set_train()
    first = _loss_and_gradients(model)
    second = _loss_and_gradients(model)
    model.set_train(False)
    quiet = _loss_and_gradients(model)
    return first, second, quiet, model.model.dropout_state.state.asnumpy()


def test_dropout_is_the_same_in_both_modes_and_under_recompute():
    runs = [_dropout_run(mode, recompute) for mode in ("pynative", "graph") for recompute in (False, True)]
    first, second, quiet, state = runs[0]
    assert (
        abs(first[0] - second[0]) > 1e-4 and abs(first[0] - quiet[0]) > 1e-4
    )  # another mask each time, none in evaluation
    assert state.tolist() == [11, 2 * SIZES["num_layers"]]
    for run in runs[1:]:
        assert run[3].tolist() == state.tolist()
        for (loss, gradients), (other_loss, other_gradients) in zip(runs[0][:3], run[:3]):
            assert abs(loss - other_loss) < 1e-5
            for a, b in zip(gradients, other_gradients):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("mode", ("graph", "pynative"))
@pytest.mark.parametrize("level", ("O0", "O1", "O2", "O3"))
def test_amp_levels(level, mode):
    _set_mode(mode)
    exact = _model().set_train(False)(ms.Tensor(IDS)).asnumpy()
    model = ms.amp.auto_mixed_precision(_model(), level)
    logits = model(ms.Tensor(IDS)).astype(ms.float32).asnumpy()
    np.testing.assert_allclose(logits, exact, rtol=0, atol=1e-5 if level == "O0" else 5e-3)


@pytest.mark.parametrize("mode", ("graph", "pynative"))
def test_compute_dtype_float16(mode):
    _set_mode(mode)
    exact = _loss_and_gradients(_model())
    loss, gradients = _loss_and_gradients(_model(compute_dtype="float16", rotary_dtype="float32"))
    assert abs(loss - exact[0]) < 5e-3
    for a, b in zip(gradients, exact[1]):
        assert a.dtype == np.float32 and np.abs(a - b).max() < 0.05 * np.abs(b).max() + 1e-4


def test_padding_mask_and_positions():
    _set_mode("graph")
    model = _model()
    full = model(ms.Tensor(IDS[:, :20])).asnumpy()
    left = np.concatenate((np.zeros((2, 5), np.int32), IDS[:, :20]), 1)  # five padding tokens before the text
    mask = np.zeros((2, 1, 1, 25), bool)
    mask[..., :5] = True
    positions = np.broadcast_to(np.maximum(np.arange(25) - 5, 0), (2, 25)).astype(np.int32)
    padded = model(ms.Tensor(left), None, ms.Tensor(mask), ms.Tensor(positions)).asnumpy()
    np.testing.assert_allclose(padded[:, 5:], full, rtol=0, atol=1e-4)


def test_too_long_sequence():
    with pytest.raises(ValueError, match=r"at most 'max_positions' \(40\), but got 41"):
        _model()(ms.Tensor(np.zeros((1, 41), np.int32)))


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
