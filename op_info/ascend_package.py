# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Builds the operators for the card with a CANN toolkit: CANN's own CMake functions on a staged project."""

import os
import shutil
import subprocess
from pathlib import Path

from .emit import ascend, ascend_project
from .registry import all_specs

_COMMANDS = (
    ("--preset", "default"),
    ("--build", "build_out", "--target", "binary"),  # kernels
    ("--build", "build_out"),
    ("--install", "build_out"),
)


class BuildError(Exception):
    """No toolkit, or a build that failed after its output was shown."""


def stage(home, out):
    """Writes the project that the toolkit at `home` can build to the new folder `out`."""
    kind = ascend_project.toolkit_kind(home)
    if kind is None:
        raise BuildError(
            "ASCEND_HOME_PATH, or --cann of 'op_info stage', must name a CANN toolkit that builds operators, but "
            f"{home} has neither {ascend_project.TEMPLATE_FOLDER} (CANN 8) nor {ascend_project.ASC_FILE} (CANN 9)."
        )
    if Path(out).exists():
        raise BuildError(f"the project is written to a new folder, but {out} exists.")
    specs = [spec for spec in all_specs().values() if ascend.socs(spec)]
    ascend_project.stage(specs, out, kind, Path(home).resolve())


def build(home, work, target):
    """Builds in the folder `work` and puts the package to `target`/vendors."""
    shutil.rmtree(work, ignore_errors=True)
    stage(home, work)
    for arguments in _COMMANDS:
        command = ["cmake", *arguments]
        try:
            subprocess.run(command, cwd=work, env={**os.environ, "ASCEND_HOME_PATH": str(home)}, check=True)
        except FileNotFoundError:
            raise BuildError("an Ascend build needs cmake 3.19 or later, which is not installed.") from None
        except subprocess.CalledProcessError as error:
            raise BuildError(f"'{' '.join(command)}' in {work} ended with {error.returncode}.") from None
    built = Path(work, "installed", "packages", "vendors", ascend_project.VENDOR)
    if not list(built.glob("op_api/lib/*.so")):
        raise BuildError(f"the build ended without an error, but {built}/op_api/lib has no library.")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(built, Path(target, "vendors", ascend_project.VENDOR))
