# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The decoder: parity with transformers, safetensors, both modes, recompute, amp."""

import mindspore as ms
import numpy as np
import pytest
from decoder_sizes import SIZES

from ms_ops_transformer.models import (
    DecoderConfig,
    build_model,
    load_weights,
    read_safetensors,
    save_weights,
    write_safetensors,
)

FUSED = pytest.mark.parametrize("fused", (True, False), ids=("fused", "composed"))
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
