# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""DecoderConfig: a dense decoder described by a MindFormers-style YAML or a Hugging Face config."""

import dataclasses
import math
from typing import Optional

# Every spelling in circulation of a field of DecoderConfig. A field's own name is always accepted.
ALIASES = {
    "num_heads": "num_attention_heads",
    "n_head": "num_attention_heads",
    "n_kv_heads": "num_query_groups",
    "num_key_value_heads": "num_query_groups",
    "head_dim": "kv_channels",
    "intermediate_size": "ffn_hidden_size",
    "num_hidden_layers": "num_layers",
    "n_layer": "num_layers",
    "rms_norm_eps": "layernorm_epsilon",
    "qkv_has_bias": "add_qkv_bias",
    "attention_bias": "add_qkv_bias",
    "out_proj_has_bias": "add_output_bias",
    "mlp_bias": "add_mlp_bias",
    "use_qk_norm": "qk_layernorm",
    "theta": "rotary_base",
    "rope_theta": "rotary_base",
    "rotary_emb_base": "rotary_base",
    "extend_method": "position_embedding_type",
    "attention_dropout_prob": "attention_dropout",
    "param_init_type": "params_dtype",
    "layernorm_compute_type": "layernorm_compute_dtype",
    "softmax_compute_type": "softmax_compute_dtype",
    "use_fused_rope": "apply_rope_fusion",
    "use_fused_swiglu": "bias_swiglu_fusion",
    "scaling_factor": "rotary_scaling_factor",
    "factor": "rotary_scaling_factor",
    "max_position_embedding": "max_position_embeddings",
    "init_method_std": "initializer_range",
    "tie_word_embedding": "tie_word_embeddings",
    "share_embeddings_and_output_weights": "tie_word_embeddings",
    "type": "model_type",
    "rope_parameters": "rope_scaling",
    "seq_len": "seq_length",
    "dtype": "params_dtype",
    "torch_dtype": "params_dtype",
}

# Keys without effect here: how a run is distributed, decoded or reported, how its weights lie in memory and which
# kernels it takes; not what the model computes.
_IGNORED_TEXT = """
    architectures auto_map auto_register transformers_version _name_or_path name_or_path model_name arch use_legacy
    checkpoint_name_or_path pretrained_model_dir pretrained_model_name_or_path trust_remote_code tokenizer_class
    bos_token_id eos_token_id pad_token_id sep_token_id ignore_token_id decoder_start_token_id use_cache use_past
    batch_size block_size num_blocks is_dynamic is_sample_acceleration pet_config quantization_config do_sample
    top_k top_p temperature repetition_penalty max_decode_length max_new_tokens max_length min_length return_dict
    output_attentions output_hidden_states chunk_size_feed_forward pretraining_tp parallel_config offset
    pp_interleave_num data_parallel data_parallel_size model_parallel tensor_parallel tensor_parallel_size
    tensor_model_parallel_size pipeline_stage pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size
    context_parallel context_parallel_size use_seq_parallel sequence_parallel expert_parallel
    expert_model_parallel_size vocab_emb_dp fine_grain_interleave disable_lazy_inline moe_config moe_grouped_gemm
    moe_permute_fusion use_gmm use_fused_ops_permute use_attn_mask_compression qkv_concat max_window_layers
    embedding_init_type calculate_per_token_loss use_contiguous_weight_layout_attention multiple_of
    ffn_dim_multiplier is_decoder is_encoder_decoder torchscript cross_attention_hidden_size add_cross_attention
    tie_encoder_decoder pruned_heads finetuning_task task_specific_params problem_type id2label label2id
    use_bfloat16 tf_legacy_loss prefix num_beams num_beam_groups diversity_penalty typical_p length_penalty
    no_repeat_ngram_size early_stopping encoder_no_repeat_ngram_size bad_words_ids num_return_sequences
    output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id remove_invalid_values
    exponential_decay_length_penalty suppress_tokens begin_suppress_tokens
    use_past_shard use_ring_attention compute_in_2d input_sliced_sig use_contiguous_weight_layout parallel_optimizer
    llm_backend boost_model_name
"""
IGNORED = frozenset(_IGNORED_TEXT.split())

# Keys that describe a model this decoder is not; each is accepted with a value that switches the thing off.
UNSUPPORTED = {
    "num_moe_experts": "a mixture of experts",
    "expert_num": "a mixture of experts",
    "n_routed_experts": "a mixture of experts",
    "num_experts": "a mixture of experts",
    "num_local_experts": "a mixture of experts",
    "multi_latent_attention": "latent attention",
    "q_lora_rank": "latent attention",
    "kv_lora_rank": "latent attention",
    "mtp_num_layers": "multi-token prediction",
    "mtp_depth": "multi-token prediction",
    "num_nextn_predict_layers": "multi-token prediction",
    "window_size": "sliding-window attention",
    "sliding_window": "sliding-window attention",
    "use_sliding_window": "sliding-window attention",
    "use_eod_attn_mask_compression": "packed sequences",
    "use_eod_reset": "packed sequences",
    "hidden_dropout": "dropout outside attention",
    "hidden_dropout_rate": "dropout outside attention",
    "hidden_dropout_prob": "dropout outside attention",
    "emb_dropout_prob": "dropout outside attention",
    "embed_dropout_prob": "dropout outside attention",
}

# Models whose keys look like ours and whose layers are not.
_OTHER_MODELS = {
    **dict.fromkeys(("chatglm", "chatglm2", "chatglm3", "glm", "glm4"), "rotates only half of each head"),
    "telechat": "has a bias in down_proj alone",
}

_DTYPES = ("float32", "float16", "bfloat16")
_DTYPE_FIELDS = ("params_dtype", "compute_dtype", "layernorm_compute_dtype", "softmax_compute_dtype", "rotary_dtype")
_INT_FIELDS = (
    "vocab_size",
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "ffn_hidden_size",
    "seq_length",
    "max_position_embeddings",
)
_BOOL_FIELDS = (
    "add_qkv_bias",
    "add_output_bias",
    "add_mlp_bias",
    "qk_layernorm",
    "tie_word_embeddings",
    "use_flash_attention",
    "fused_norm",
    "apply_rope_fusion",
    "bias_swiglu_fusion",
    "recompute",
)
# position_embedding_type, or extend_method of the legacy schema -> (rope or none, kind of scaling)
_POSITIONS = {
    "rope": ("rope", None),
    "rotary": ("rope", None),
    "none": ("none", None),
    "pi": ("rope", "linear"),
    "linear": ("rope", "linear"),
    "ntk": ("rope", "ntk"),
    "llama3": ("rope", "llama3"),
    "yarn": ("rope", "yarn"),
}


def _family(model_type):
    """'qwen2' for qwen2 and Qwen2Config."""
    return str(model_type).lower().removesuffix("config")


def _fail(key, rule, value):
    raise ValueError(f"For 'DecoderConfig', '{key}' must be {rule}, but got {value!r}.")


@dataclasses.dataclass
class DecoderConfig:
    """A dense Llama/Qwen3-style decoder. Field names are those of MindFormers; `ALIASES` lists the other spellings."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_attention_heads: int
    num_query_groups: Optional[int] = None  # None: num_attention_heads
    kv_channels: Optional[int] = None  # None: hidden_size / num_attention_heads
    ffn_hidden_size: Optional[int] = None  # None: 8/3 hidden_size, up to a multiple of 256
    model_type: str = "llama"
    seq_length: Optional[int] = None  # None: max_position_embeddings
    max_position_embeddings: Optional[int] = None  # None: seq_length, or 2048
    hidden_act: str = "silu"
    layernorm_epsilon: float = 1e-6
    add_qkv_bias: Optional[bool] = None  # None: True for qwen2
    add_output_bias: bool = False
    add_mlp_bias: bool = False
    qk_layernorm: Optional[bool] = None  # None: True for qwen3
    tie_word_embeddings: bool = False
    attention_dropout: float = 0.0
    initializer_range: float = 0.02
    position_embedding_type: str = "rope"
    rotary_base: float = 10000.0
    rotary_scaling_factor: float = 1.0
    rope_scaling: Optional[dict] = None
    params_dtype: str = "float32"
    compute_dtype: Optional[str] = None  # None: params_dtype
    layernorm_compute_dtype: str = "float32"
    softmax_compute_dtype: str = "float32"  # the kernels always use float32
    rotary_dtype: Optional[str] = None  # None: compute_dtype
    use_flash_attention: bool = True
    fused_norm: bool = True
    apply_rope_fusion: bool = True
    bias_swiglu_fusion: bool = True
    recompute: object = False  # True, or the indices of the layers to recompute
    seed: int = 0

    def __post_init__(self):
        for name in _INT_FIELDS:
            value = getattr(self, name)
            optional = name not in ("vocab_size", "hidden_size", "num_layers", "num_attention_heads")
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                _fail(name, "an int of at least 1", value)
        self.num_query_groups = self.num_query_groups or self.num_attention_heads
        if self.num_attention_heads % self.num_query_groups:
            _fail(
                "num_query_groups",
                f"a divisor of 'num_attention_heads' ({self.num_attention_heads})",
                self.num_query_groups,
            )
        if self.kv_channels is None:
            if self.hidden_size % self.num_attention_heads:
                _fail(
                    "hidden_size",
                    f"a multiple of 'num_attention_heads' ({self.num_attention_heads}) when 'kv_channels' is not given",
                    self.hidden_size,
                )
            self.kv_channels = self.hidden_size // self.num_attention_heads
        if self.ffn_hidden_size is None:
            self.ffn_hidden_size = -(-(8 * self.hidden_size // 3) // 256) * 256
        self.max_position_embeddings = self.max_position_embeddings or self.seq_length or 2048
        self.seq_length = self.seq_length or self.max_position_embeddings
        self.max_position_embeddings = max(self.max_position_embeddings, self.seq_length)
        if self.qk_layernorm is None:
            self.qk_layernorm = _family(self.model_type) == "qwen3"
        if self.add_qkv_bias is None:
            self.add_qkv_bias = _family(self.model_type) == "qwen2"
        if str(self.hidden_act).lower() not in ("silu", "swiglu", "swish"):
            _fail("hidden_act", "silu (or swiglu)", self.hidden_act)
        for name in (
            "layernorm_epsilon",
            "attention_dropout",
            "initializer_range",
            "rotary_base",
            "rotary_scaling_factor",
        ):
            value = getattr(self, name)
            try:
                setattr(self, name, float(value))
            except (TypeError, ValueError):
                _fail(name, "a number", value)
            if not math.isfinite(getattr(self, name)):
                _fail(name, "finite", value)
        for name in _BOOL_FIELDS[:-1]:
            if not isinstance(getattr(self, name), bool):
                _fail(name, "true or false", getattr(self, name))
        for name in _DTYPE_FIELDS:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, _dtype_name(name, value))
        self.compute_dtype = self.compute_dtype or self.params_dtype
        self._set_positions()
        self._set_recompute()

    def _set_positions(self):
        kind = str(self.position_embedding_type).lower()
        if kind not in _POSITIONS:
            _fail("position_embedding_type", "one of " + ", ".join(sorted(_POSITIONS)), self.position_embedding_type)
        self.position_embedding_type, scaling = _POSITIONS[kind]
        if self.rope_scaling is None and scaling is not None:
            self.rope_scaling = {
                "rope_type": scaling,
                "factor": self.rotary_scaling_factor,
                "original_max_position_embeddings": self.max_position_embeddings,
            }
        elif self.rope_scaling is None and self.rotary_scaling_factor != 1.0:
            self.rope_scaling = {"rope_type": "linear", "factor": self.rotary_scaling_factor}
        elif self.rope_scaling is not None:
            if not isinstance(self.rope_scaling, dict):
                _fail("rope_scaling", "a mapping", self.rope_scaling)
            self.rope_scaling = dict(self.rope_scaling)
            if scaling is not None and "type" not in self.rope_scaling:  # the dict of the legacy schema has none
                self.rope_scaling.setdefault("rope_type", scaling)
            if "rope_theta" in self.rope_scaling:  # newer Hugging Face configs keep the base here
                self.rotary_base = float(self.rope_scaling.pop("rope_theta"))
            self.rope_scaling.setdefault("original_max_position_embeddings", self.max_position_embeddings)

    def _set_recompute(self):
        value = self.recompute
        if isinstance(value, bool) or value is None:
            self.recompute = tuple(range(self.num_layers)) if value else ()
            return
        if not isinstance(value, (list, tuple)) or any(isinstance(i, bool) or not isinstance(i, int) for i in value):
            _fail("recompute", "true, false or a list of layer indices", value)
        for index in value:
            if not 0 <= index < self.num_layers:
                _fail("recompute", f"layer indices below 'num_layers' ({self.num_layers})", index)
        self.recompute = tuple(value)

    @classmethod
    def from_dict(cls, values, **overrides):
        """Config from a flat mapping, or from a whole MindFormers run file already read.

        Args:
            values (dict): the keys of ``model.model_config`` (or of a Hugging Face config.json), or a whole run file of
                one of the three schemas: ``model.model_config`` with or without ``use_legacy``, or ``model`` itself
                beside ``recompute`` and ``parallelism``.
            overrides: fields, in any spelling, that replace what `values` says.

        Raises:
            ValueError: for an unknown key, two spellings of one field with different values, or a value out of range.
        """
        if not isinstance(values, dict):
            raise TypeError(f"For 'DecoderConfig.from_dict', 'values' must be a dict, but got {type(values).__name__}.")
        fields = {}
        section = _model_section(values)
        model_type = section.get("model_type", section.get("type"))
        if _family(model_type) in _OTHER_MODELS:
            _fail(
                "model_type", f"of the Llama or Qwen kind (this one {_OTHER_MODELS[_family(model_type)]})", model_type
            )
        if section.get("use_sliding_window") is False:
            section.pop("sliding_window", None)
        if section.get("multiple_of") and not any(_field_of(key) == "ffn_hidden_size" for key in section):
            section["ffn_hidden_size"] = _ffn_size(section)
        for key, value in section.items():
            _take(fields, key, value)
        replaced = {}
        for key, value in overrides.items():
            _take(replaced, key, value)
        fields.update(replaced)
        fields = {key: value for key, (_, value) in fields.items()}
        compute_dtype = fields.get("compute_dtype", fields.get("params_dtype", "float32"))
        for key in ("residual_dtype", "fp32_residual_connection"):
            _check_residual(key, section.get(key), _dtype_name("compute_dtype", compute_dtype))
        for name in ("vocab_size", "hidden_size", "num_layers", "num_attention_heads"):
            if name not in fields:
                spellings = [name] + sorted(alias for alias, field in ALIASES.items() if field == name)
                hint = ""
                if values.get("pretrained_model_dir"):
                    hint = (
                        " The sizes are in the config.json of its 'pretrained_model_dir' "
                        f"('{values['pretrained_model_dir']}'): DecoderConfig.from_yaml reads that file too."
                    )
                raise ValueError(
                    f"For 'DecoderConfig', '{name}' must be given (spelled {' or '.join(spellings)}), but the "
                    f"model section has only {sorted(fields)}.{hint}"
                )
        return cls(**fields)

    @classmethod
    def from_yaml(cls, path, **overrides):
        """Config from a YAML (or JSON) file; see `from_dict`."""
        try:
            import yaml
        except ImportError as error:
            raise ImportError("DecoderConfig.from_yaml needs PyYAML (pip install pyyaml).") from error
        with open(path, encoding="utf-8") as file:
            values = yaml.safe_load(file)
        if not isinstance(values, dict):
            raise ValueError(
                f"For 'DecoderConfig.from_yaml', the file must hold a mapping, but '{path}' holds "
                f"{type(values).__name__}."
            )
        return cls.from_dict(values, **overrides)

    def to_dict(self):
        """The fields by their own names; `from_dict` reads it back."""
        values = dataclasses.asdict(self)
        values["recompute"] = list(self.recompute)
        return values


_FIELDS = frozenset(field.name for field in dataclasses.fields(DecoderConfig))


def _field_of(key):
    """The field a key spells, or None."""
    return key if key in _FIELDS else ALIASES.get(key)


def _ffn_size(section):
    """Inner size of the legacy schema: 8/3 of the hidden size, times `ffn_dim_multiplier`, up to a multiple."""
    multiple, hidden = section["multiple_of"], section.get("hidden_size")
    if isinstance(multiple, bool) or not isinstance(multiple, int) or multiple < 1 or not isinstance(hidden, int):
        _fail("multiple_of", "an int of at least 1 (beside 'hidden_size')", multiple)
    size = int((section.get("ffn_dim_multiplier") or 1) * (8 * hidden // 3))
    return -(-size // multiple) * multiple


def _check_residual(key, value, compute_dtype):
    """The sums over the layers are kept in the compute dtype: a wider one is not what would run."""
    if value and compute_dtype != "float32" and (value is True or _dtype_name(key, value) == "float32"):
        _fail(key, f"no wider than 'compute_dtype' ({compute_dtype}; float32 will do for it)", value)


def _take(fields, key, value):
    """Adds one key in any spelling to `fields`: {field: (spelling, value)}."""
    if key in UNSUPPORTED:
        experts = key.endswith("experts") or key == "expert_num"
        if value and str(value).lower() != "none" and not (experts and value == 1):
            raise ValueError(
                f"For 'DecoderConfig', '{key}' must be off: a dense decoder is without {UNSUPPORTED[key]}, but got "
                f"{value!r}."
            )
        return
    if key in ("normalization", "norm_type"):
        if str(value).lower() not in ("rmsnorm", "rms_norm", "fusedrmsnorm"):
            _fail(key, "RMSNorm", value)
        return
    if key in ("gated_linear_unit", "add_bias_linear", "untie_embeddings_and_output_weights"):
        if key == "gated_linear_unit" and value is not True:
            _fail(key, "true", value)
        if key == "add_bias_linear" and value:
            _take(fields, "add_output_bias", True)
            _take(fields, "add_mlp_bias", True)
        if key == "untie_embeddings_and_output_weights":
            _take(fields, "tie_word_embeddings", not value)
        return
    if key in ("residual_dtype", "fp32_residual_connection"):  # see _check_residual
        return
    if key == "rotary_pct":
        if value != 1:
            _fail(key, "1.0: the rotation covers whole heads", value)
        return
    if key == "layer_types":
        if any(kind != "full_attention" for kind in value or ()):
            _fail(key, "full_attention for every layer", value)
        return
    if key == "extend_method" and str(value).lower() == "none":  # rope as it is; not "no positions"
        return
    name = _field_of(key)
    if name is None:
        if key in IGNORED:
            return
        raise ValueError(
            f"For 'DecoderConfig', the key '{key}' is unknown (value {value!r}); "
            f"models/config.py lists the accepted spellings and the ignored keys."
        )
    if value is None:
        return
    if name == "rotary_scaling_factor" and isinstance(value, dict):
        name = "rope_scaling"
    if name in fields and fields[name][1] != value:
        raise ValueError(
            f"For 'DecoderConfig', '{fields[name][0]}' and '{key}' are the same setting and must agree, but got "
            f"{fields[name][1]!r} and {value!r}."
        )
    fields[name] = (key, value)


def _model_section(values):
    """The model's keys of any of the schemas, with the run file's recompute setting."""
    model = values.get("model")
    if not isinstance(model, dict):
        return dict(values)
    section = model.get("model_config", model)
    if not isinstance(section, dict):
        raise ValueError(f"For 'DecoderConfig', 'model.model_config' must be a mapping, but got {section!r}.")
    section = dict(section)
    if isinstance(values.get("moe_config"), dict):
        section.setdefault("expert_num", values["moe_config"].get("expert_num"))
    recompute = values.get("recompute_config", values.get("recompute"))
    if isinstance(recompute, dict) and "recompute" not in section:
        if "mode" in recompute:  # None, full or select
            mode = str(recompute["mode"]).lower()
            if mode not in ("none", "full", "select"):
                _fail("recompute.mode", "none, full or select", recompute["mode"])
            section["recompute"] = mode != "none"
        else:
            section["recompute"] = recompute.get("recompute") or bool(recompute.get("select_recompute"))
    return section


def _dtype_name(key, value):
    """'float16' for float16, fp16, mindspore.float16, torch.float16."""
    name = str(value).lower().rsplit(".", 1)[-1]
    name = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}.get(name, name)
    if name not in _DTYPES:
        _fail(key, "one of " + ", ".join(_DTYPES), value)
    return name
