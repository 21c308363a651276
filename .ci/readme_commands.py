# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Prints the commands of README.md in order: every fenced block marked `bash`. CI runs exactly these."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
for block in re.findall(r"^```bash\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL):
    print(block, end="")
