# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Text of any machine: the sources of the Python standard library (or any folder) as token arrays."""

import hashlib
import json
import os
import sysconfig

import numpy as np

_SKIPPED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
_SEPARATOR = b"\0"  # between files; also the id 0 of both tokenizers


def text_files(folder=None):
    """Sorted .py files of the standard library, or the .py, .txt and .md files of `folder`."""
    root = folder or sysconfig.get_paths()["stdlib"]
    endings = (".py", ".txt", ".md") if folder else (".py",)
    if not os.path.isdir(root):
        raise ValueError(f"the text folder '{root}' does not exist.")
    found = []
    for path, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        found += [os.path.join(path, name) for name in sorted(names) if name.endswith(endings)]
    if len(found) < 2:
        raise ValueError(f"the text folder '{root}' holds {len(found)} text files; at least 2 are needed.")
    return found


class Corpus:
    """Token arrays `train` and `valid`; every 20th file is kept for validation.

    Args:
        folder: where tokens and tokenizer are kept, so that later runs start at once.
        tokenizer: 'byte' or 'bpe'.
        vocab_size: size of the vocabulary of 'bpe'.
        text: a folder of text instead of the standard library.
        log: called with a line of progress.
    """

    def __init__(self, folder, tokenizer, vocab_size, text=None, log=print):
        files = text_files(text)
        texts = []
        for name in files:
            with open(name, "rb") as file:
                texts.append(file.read().replace(_SEPARATOR, b""))
        digest = hashlib.sha256(json.dumps([tokenizer, vocab_size]).encode())
        for item in texts:
            digest.update(hashlib.sha256(item).digest())
        step = min(20, len(texts))
        parts = {"train": [t for i, t in enumerate(texts) if i % step != step - 1], "valid": texts[step - 1 :: step]}
        cached = os.path.join(folder, f"tokens-{digest.hexdigest()[:16]}.npz")
        if not os.path.exists(cached):
            os.makedirs(folder, exist_ok=True)
            log(f"text: {len(files)} files, {sum(map(len, texts)) / 1e6:.1f} MB, tokenizer {tokenizer}")
            encode = _byte_tokens if tokenizer == "byte" else _bpe(folder, parts["train"], vocab_size, log)
            arrays = {name: encode(items) for name, items in parts.items()}
            temporary = f"{cached}.{os.getpid()}.tmp"
            try:
                with open(temporary, "wb") as file:
                    np.savez(file, **arrays)
                os.replace(temporary, cached)
            finally:
                if os.path.exists(temporary):
                    os.remove(temporary)
        with np.load(cached) as arrays:
            self.train, self.valid = arrays["train"], arrays["valid"]


def _byte_tokens(items):
    return np.frombuffer(_SEPARATOR.join(items), np.uint8)


def _bpe(folder, items, vocab_size, log):
    """Trains a byte-level BPE on the training files; returns its encoder."""
    try:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    except ImportError as error:
        raise ValueError("the tokenizer 'bpe' needs the package 'tokenizers' (pip install tokenizers).") from error
    path = os.path.join(folder, "tokenizer.json")
    log(f"training a BPE of {vocab_size} tokens")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|end|>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator((item.decode("utf-8", "replace") for item in items), trainer)
    temporary = f"{path}.{os.getpid()}.tmp"
    tokenizer.save(temporary)
    os.replace(temporary, path)

    def encode(texts):
        ids = []
        for start in range(0, len(texts), 64):
            for text in tokenizer.encode_batch([t.decode("utf-8", "replace") for t in texts[start : start + 64]]):
                ids += [np.asarray(text.ids, np.uint16), np.zeros(1, np.uint16)]
            log(f"tokens of {min(start + 64, len(texts))} of {len(texts)} files")
        return np.concatenate(ids)

    return encode


class Batches:
    """Windows of `length` + 1 tokens in an order that depends on (seed, epoch) alone: the position is all the state."""

    def __init__(self, tokens, length, batch_size, seed, position=0):
        self.tokens, self.length, self.batch_size, self.seed = tokens, length, batch_size, seed
        self.windows = (len(tokens) - 1) // length
        self.position = position  # windows handed out so far
        self._epoch, self._order = -1, None
        if self.windows < batch_size:
            raise ValueError(
                f"the text has {self.windows} windows of {length} tokens, fewer than the batch size {batch_size}."
            )

    def next(self):
        """(input ids, labels), int32 [batch, length] each."""
        rows = np.empty((self.batch_size, self.length + 1), np.int32)
        for row in rows:
            epoch, index = divmod(self.position, self.windows)
            if epoch != self._epoch:
                self._epoch, self._order = epoch, np.random.default_rng((self.seed, epoch)).permutation(self.windows)
            start = int(self._order[index]) * self.length
            row[:] = self.tokens[start : start + self.length + 1]
            self.position += 1
        return rows[:, :-1].copy(), rows[:, 1:].copy()
