# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""README: its Python runs and its operator table is the generated one. Docstrings: complete, and their examples run."""

import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import ms_ops_transformer as mst
from ms_ops_transformer.op_info.registry import all_specs

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_readme_python(number, tmp_path):
    program = tmp_path / "block.py"
    program.write_text(BLOCKS[number], encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, env=_environment())
    assert done.returncode == 0, done.stderr


def test_readme_operator_table():
    table = re.search(r"<!-- operators -->\n(.*?)<!-- /operators -->", README, re.DOTALL)[1].strip()
    command = [sys.executable, "-m", "ms_ops_transformer.op_info", "table"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_environment())
    assert done.returncode == 0, done.stderr
    assert table == done.stdout.strip(), (
        "copy the output of `python -m ms_ops_transformer.op_info table` into README.md"
    )


@pytest.mark.parametrize(
    "name", ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "kernels/README.md", "docs/ascend.md")
)
def test_lines_are_short(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


def test_readme_has_commands_for_ci():
    command = [sys.executable, ROOT / ".ci" / "readme_commands.py"]
    commands = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "pip install '.[examples]' && python examples/train_llm.py" in commands
    assert "pip install '.[test]' && pytest tests" in commands


def _environment():
    # Without a path of their own, child processes find the package as this process did.
    paths = [str(pathlib.Path(mst.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "GLOG_v": "3"}


def _public():
    for module in (mst.ops, mst.nn):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield pytest.param(thing, id=f"{module.__name__.rsplit('.', 1)[1]}.{name}")


@pytest.mark.parametrize("thing", list(_public()))
def test_examples_of_docstrings(thing):
    text = inspect.getdoc(thing) or ""
    assert ">>>" in text, "a public name shows an example"
    test = doctest.DocTestParser().get_doctest(text, {}, thing.__name__, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    out = []
    runner.run(test, out=out.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)


@pytest.mark.parametrize("thing", list(_public()))
def test_docstring_says_what_users_need(thing):
    text = inspect.getdoc(thing) or ""
    parts = ["Supported Platforms:", "Examples:", "Raises:"]
    parts += ["Inputs:", "Outputs:"] if inspect.isclass(thing) else ["Args:", "Returns:"]
    missing = [part for part in parts if part not in text]
    assert not missing, f"{thing.__name__} lacks {missing}"


def test_every_operator_is_in_the_compile_proof():
    """A dated row for each; whether it is true, only headers can tell."""
    text = (ROOT / "docs" / "ascend.md").read_text(encoding="utf-8")
    proof = text[text.index("### Compile proof") : text.index("### Device mode")]
    assert re.search(r"^\d{4}-\d\d-\d\d, g\+\+ \d+.*clang\+\+ \d+", proof, re.MULTILINE)
    lines = [line for line in proof.splitlines() if line.startswith("| `")]
    rows = {cells[0].strip("`"): cells[1:] for cells in ([c.strip() for c in line.split("|")[1:-1]] for line in lines)}
    assert list(rows) == [*all_specs(), "ascend_host.cpp"]
    for spec in all_specs().values():
        entries, *verdicts = rows[spec.name]
        assert int(entries) == spec.num_columns * max(1, len(spec.variants)), spec.name
        assert len(verdicts) == 6 and set(verdicts) <= {"pass", "not run"}, spec.name
