# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Paths and the mode of MindSpore: a test that switches to graph mode does not leave the next one there."""

import os
import sys
import tempfile

import pytest

os.environ.setdefault("MS_OM_PATH", tempfile.mkdtemp(prefix="mst_ms_"))  # where MindSpore drops its failure dumps
os.environ.setdefault("GLOG_v", "3")  # errors only: MindSpore warns about every private call it makes itself
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
pytest.register_assert_rewrite("harness")


@pytest.fixture(autouse=True)
def pynative():
    yield
    if "mindspore" in sys.modules:
        import mindspore as ms

        ms.set_context(mode=ms.PYNATIVE_MODE)
