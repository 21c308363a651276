# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Fails on a source file without the licence header, and on a file larger than people can read or git should carry."""

import sys
from pathlib import Path

SOURCES = {".py", ".h", ".cc", ".cpp", ".sh"}
HEADER = "Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0"
MAX_LINES = 500  # a longer file is split by idea
MAX_BYTES = 200 * 1024


def problems(path):
    """The complaints about one file."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        yield f"{path}: {len(data)} bytes, more than {MAX_BYTES}"
    if path.suffix not in SOURCES and path.parts[0] != ".ci":
        return
    lines = data.decode().splitlines()
    if lines and not any(HEADER in line for line in lines[:2]):
        yield f"{path}: the first line must be the licence header: {HEADER}"
    if len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines, more than {MAX_LINES}"


found = [text for name in sys.argv[1:] for text in problems(Path(name))]
print("\n".join(found))
sys.exit(bool(found))
