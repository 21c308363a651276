# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The parts of train_llm.py: text, training step, checkpoints, comparison."""
