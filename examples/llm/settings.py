# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What a run file says beside the model: data, optimizer, length of the run."""

import dataclasses
import math
import os
from typing import Optional

import yaml

from ms_ops_transformer.models import DecoderConfig

# Sections of a MindFormers run file that have no meaning here: where and how a cluster runs it.
_OTHER_SECTIONS = {
    "use_legacy",
    "run_mode",
    "trainer",
    "context",
    "parallel",
    "parallel_config",
    "parallelism",
    "use_parallel",
    "callbacks",
    "profile",
    "output_dir",
    "load_checkpoint",
    "auto_trans_ckpt",
    "resume_training",
    "processor",
    "eval_dataset",
    "train_dataset_task",
    "eval_dataset_task",
    "recompute_config",
    "recompute",
    "training",
    "only_save_strategy",
    "src_strategy_path_or_dir",
    "micro_batch_interleave_num",
    "runner_wrapper",
    "metric",
}
_SECTIONS = {
    "seed": int,
    "model": dict,
    "train_dataset": dict,
    "runner_config": dict,
    "optimizer": dict,
    "lr_schedule": dict,
}


def _number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"'{name}' must be a number, but got {value!r}.") from None


@dataclasses.dataclass
class Settings:
    """One run."""

    model: DecoderConfig
    seed: int = 1234
    tokenizer: str = "byte"  # byte, or bpe (trained on the text, vocabulary as the model's)
    text: Optional[str] = None  # folder of the text; None: the Python standard library
    steps: int = 100
    batch_size: int = 8
    eval_every: int = 50
    eval_batches: int = 8
    save_every: int = 50
    learning_rate: float = 1e-3
    lr_end: float = 1e-4
    warmup_steps: int = 10
    betas: tuple = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    clip_grad: float = 1.0

    def __post_init__(self):
        for name in ("steps", "batch_size", "eval_every", "eval_batches", "save_every"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"'{name}' must be an int of at least 1, but got {value!r}.")
        for name in ("learning_rate", "lr_end", "weight_decay", "clip_grad", "eps"):
            value = _number(name, getattr(self, name))
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"'{name}' must be at least 0, but got {value!r}.")
            setattr(self, name, value)
        if isinstance(self.warmup_steps, bool) or not isinstance(self.warmup_steps, int) or self.warmup_steps < 0:
            raise ValueError(f"'warmup_steps' must be an int of at least 0, but got {self.warmup_steps!r}.")
        if self.text is not None:
            if not isinstance(self.text, str):
                raise ValueError(f"'text' must be the path of a folder, but got {self.text!r}.")
            self.text = os.path.abspath(self.text)
        if self.tokenizer not in ("byte", "bpe"):
            raise ValueError(f"'tokenizer' must be 'byte' or 'bpe', but got {self.tokenizer!r}.")
        if self.tokenizer == "byte" and self.model.vocab_size < 256:
            raise ValueError(
                f"'vocab_size' must be at least 256 for the byte tokenizer, but got {self.model.vocab_size}."
            )
        if not isinstance(self.betas, (list, tuple)) or len(self.betas) != 2:
            raise ValueError(f"'betas' must be two numbers, but got {self.betas!r}.")
        self.betas = tuple(_number("betas", beta) for beta in self.betas)
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"'betas' must be at least 0 and below 1, but got {self.betas}.")

    def rate(self, step):
        """Learning rate of a step: linear warm-up, then half a cosine down to `lr_end`."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        done = min(1.0, (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps))
        return self.lr_end + (self.learning_rate - self.lr_end) * 0.5 * (1 + math.cos(math.pi * done))

    @classmethod
    def from_yaml(cls, path, **overrides):
        """Reads a run file; overrides that are None are left out."""
        with open(path, encoding="utf-8") as file:
            try:
                values = yaml.safe_load(file)
            except yaml.YAMLError as error:
                raise ValueError(f"'{path}' must be YAML, but got: {error}") from error
        if not isinstance(values, dict) or not isinstance(values.get("model"), dict):
            raise ValueError(f"'{path}' must hold a mapping with the section 'model'.")
        fields = {"model": DecoderConfig.from_dict(values)}
        names = {field.name for field in dataclasses.fields(cls)}
        for section, content in values.items():
            if section == "model" or section in _OTHER_SECTIONS:
                continue
            if section not in _SECTIONS:
                raise ValueError(f"'{path}' has the unknown section '{section}'.")
            if not isinstance(content, _SECTIONS[section]):
                raise ValueError(
                    f"section '{section}' of '{path}' must be {_SECTIONS[section].__name__}, but got {content!r}."
                )
            for key, value in content.items() if isinstance(content, dict) else ((section, content),):
                if key == "type":
                    continue
                if key not in names:
                    raise ValueError(f"section '{section}' of '{path}' has the unknown key '{key}'.")
                fields[key] = value
        fields.update((key, value) for key, value in overrides.items() if value is not None)
        return cls(**fields)

    def to_yaml(self):
        """The run as a run file."""
        values = dataclasses.asdict(self)
        values.pop("model")
        values["betas"] = list(self.betas)
        sections = {
            "seed": values.pop("seed"),
            "model": {"model_config": self.model.to_dict()},
            "train_dataset": {name: values.pop(name) for name in ("tokenizer", "text")},
            "runner_config": values,
        }
        return yaml.safe_dump(sections, sort_keys=False)
