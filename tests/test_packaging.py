# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The wheel holds what it must, and the package works installed, in its source tree and in place."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
USE = """
import numpy as np, ms_ops_transformer
from ms_ops_transformer import _level, _native, op_info
from ms_ops_transformer.op_info.registry import get
x, gamma = np.ones((2, 8), np.float32), np.ones(8, np.float32)
y, rstd = np.zeros_like(x), np.zeros((2, 1), np.float32)
_native.launch(_level.library(), "rms_norm", [x, gamma], {"epsilon": 0.0}, [y, rstd])
assert (y == 1).all() and get("rms_norm").class_name == "RmsNorm"
for part in (ms_ops_transformer, op_info, _native):
    print(part.__file__)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def _run(cwd, path=None):
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run([sys.executable, "-c", USE], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [pathlib.Path(line) for line in done.stdout.split()]


def test_contents(site):
    (wheel,) = site.glob("*.whl")
    assert wheel.name.endswith(f"-linux_{os.uname().machine}.whl") and "-none-" not in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    levels = ("avx2", "avx512") if os.uname().machine == "x86_64" else ("neon",)
    for name in ("runtime", *levels):
        assert f"ms_ops_transformer/_lib/libmst_{name}.so" in names
    assert "ms_ops_transformer/_lib/libmst_checked.so" not in names
    for path in ROOT.glob("kernels/**/*"):
        if path.suffix in (".h", ".cpp"):
            assert f"ms_ops_transformer/{path.relative_to(ROOT)}" in names
    for top in ("ms_ops_transformer", "op_info"):
        for path in ROOT.glob(f"{top}/**/*.py"):
            inside = path.relative_to(ROOT / "ms_ops_transformer" if top == "ms_ops_transformer" else ROOT)
            assert f"ms_ops_transformer/{inside}" in names
    assert not [name for name in names if name.startswith(("tests", "op_info", "examples"))]
    for name in ("LICENSE", "NOTICE"):
        assert any(entry.endswith(f".dist-info/licenses/{name}") for entry in names)
    metadata = next(site.glob("*.dist-info/METADATA")).read_text()
    assert "Requires-Dist: numpy<2,>=1.26" in metadata and "Requires-Dist: mindspore>=2.10" in metadata


def test_libraries_need_nothing_of_this_machine(site):
    libraries = [*site.glob("ms_ops_transformer/_lib/*.so"), *site.glob("ms_ops_transformer/_native*.so")]
    for path in libraries:
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        paths = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "RUNPATH" in line or "RPATH" in line]
        assert all(path in ("$ORIGIN", "$ORIGIN/_lib") for path in paths), f"{path}: {paths}"


def test_installed(site, tmp_path):
    package = site / "ms_ops_transformer"
    assert all(package in path.parents for path in _run(tmp_path, site))


def test_source_tree_with_an_installed_build(site, tmp_path):
    """In the root of the sources the folder ms_ops_transformer/ hides the installed package."""
    for top in ("ms_ops_transformer", "op_info"):
        ignore = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / top, tmp_path / top, ignore=ignore)
    package, op_info, native = _run(tmp_path, site)
    assert package.parent == tmp_path / "ms_ops_transformer" and op_info.parent == tmp_path / "op_info"
    assert native.parent == site / "ms_ops_transformer"


def test_source_tree_without_any_build(tmp_path):
    for top in ("ms_ops_transformer", "op_info"):
        shutil.copytree(ROOT / top, tmp_path / top, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    code = (
        "import sys; sys.path[1:] = [path for path in sys.path[1:] if 'site-packages' not in path]\n"
        "import ms_ops_transformer._level"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "ImportError: ms_ops_transformer is not compiled" in done.stderr


def test_in_place(tmp_path):
    """As `pip install -e .` and `build_native` leave it: everything comes from the source tree."""
    if not list((ROOT / "ms_ops_transformer").glob("_native*.so")):
        pytest.skip("not built in place")
    assert all(ROOT in path.parents for path in _run(tmp_path, ROOT))
