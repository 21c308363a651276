# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The twin's API: its table is complete, what CANN lacks does not compile, and a difference of headers is found."""

import re
import shutil
from pathlib import Path

import pytest

from ms_ops_transformer.op_info import parity, twin_api

ROOT = Path(__file__).parents[1]
TWIN = ROOT / "kernels" / "twin"
TABLE = ROOT / "docs" / "twin_api.md"
REMEDY = "python -m ms_ops_transformer.op_info twin --cann DIR tells what to write into docs/twin_api.md"


def _rows():
    """Cells of the table's rows, without the head."""
    lines = TABLE.read_text().splitlines()
    rows = [line.strip("|").replace("\\|", "\0").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip().replace("\0", "|") for cell in row] for row in rows][2:]


def test_table_has_every_declaration():
    declared = [str(declaration) for declaration in twin_api.declarations(TWIN)[0]]
    assert len(declared) > 500
    assert [row[-2].strip("`") for row in _rows()] == declared, REMEDY


def test_table_has_the_types_of_every_declaration():
    cells = [[cell.strip() for cell in line.strip("|").replace("\\|", "\0").split("|")] for line in parity.table(TWIN)]
    assert [[row[-2], row[-1]] for row in _rows()] == [[a.replace("\0", "|"), b] for a, b in cells[2:]], REMEDY


def test_table_is_a_dated_result():
    """Whether it is true, only headers can tell."""
    text = TABLE.read_text()
    assert re.search(r"\(\d{4}-\d\d-\d\d, ", text[: text.index("|")])
    assert re.search(r"^\| \D+ \d+\.\d[^|]*\| \D+ \d+\.\d[^|]*\| declaration \| for \|$", text, re.MULTILINE)
    assert {cell for row in _rows() for cell in row[:-2]} <= {"same", "not run"}


def test_types_of_two_parameters_are_folded():
    takes = {row[-2]: row[-1] for row in _rows()}
    assert max(map(len, takes.values())) < 700
    select = next(types for text, types in takes.items() if "AscendC::Select(" in text)
    assert select == "float, half / all types"


@pytest.fixture(scope="module", params=["fast", "checked"])
def refused(request, tmp_path_factory):
    """What the twin does not compile."""
    programs = {**parity.LACKS, **parity.LACKS_ON_THE_CARD}
    flags = ["-DMST_TWIN_CHECKED"] if request.param == "checked" else []
    codes = [parity.lacking_code(statements) for statements in [*programs.values(), FINE]]
    command = [*parity.twin_command(TWIN), *flags, "-fsyntax-only"]
    failed = parity.failing(codes, command, tmp_path_factory.mktemp("lacks"))
    return {([*programs, FINE])[i] for i in failed}


FINE = "Add(f, f, f, 16); Cast(f, b, RoundMode::CAST_NONE, 16); Add(i, i, i, 16); Adds(h, h, x, 16);"


def test_what_exists_compiles(refused):
    assert FINE not in refused


@pytest.mark.parametrize("what", [*parity.LACKS, *parity.LACKS_ON_THE_CARD])
def test_what_cann_lacks_does_not_compile(what, refused):
    assert what in refused


@pytest.fixture
def copy(tmp_path):
    """The twin's headers, to be changed."""
    shutil.copytree(TWIN, tmp_path / "kernels" / "twin", ignore=shutil.ignore_patterns("*.cpp"))
    return tmp_path / "kernels" / "twin"


def _change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_new_overload_is_seen(copy):
    _change(
        copy / "sync.h", "inline void SetAtomicNone()", "inline void SetAtomicNone(int) {}\ninline void SetAtomicNone()"
    )
    ours = [str(declaration) for declaration in twin_api.declarations(TWIN)[0]]
    theirs = [str(declaration) for declaration in twin_api.declarations(copy)[0]]
    assert [text for text in theirs if text not in ours] == ["void AscendC::SetAtomicNone(int)"]


# What other headers may have done: the name that must be reported, the header, our text, theirs.
CHANGES = {
    "a function under another name": ("SetAtomicNone", "sync.h", "void SetAtomicNone()", "void SetAtomicOff()"),
    "a parameter of another type": (
        "ReinterpretCast", "tensor.h", "ReinterpretCast() const", "ReinterpretCast(int how) const"),
    "another result": ("GetBlockIdx", "sync.h", "int64_t GetBlockIdx()", "int32_t GetBlockIdx()"),
    "a default that must be given": ("SetOrgShape", "lib/matmul_intf.h", "int orgKc = 0)", "int orgKc)"),
    "fields in another order": (
        "srcStride", "data_copy.h", "uint16_t blockLen = 0;\n  uint16_t srcStride = 0;",
        "uint16_t srcStride = 0;\n  uint16_t blockLen = 0;"),
    "a field of another type": ("rsv", "data_copy.h", "uint32_t rsv = 0;", "int32_t rsv = 0;"),
    "a field with another default": (
        "DataCopyParams", "data_copy.h", "uint16_t blockCount = 1;", "uint16_t blockCount = 2;"),
    "a constructor with another order": (
        "BrcbRepeatParams", "repeat.h", "dstRepStride(dstRepStrideIn), dstBlkStride(dstBlkStrideIn)",
        "dstRepStride(dstBlkStrideIn), dstBlkStride(dstRepStrideIn)"),
    "an enumerator of another value": ("CAST_ODD", "types.h", "CAST_ODD,", "CAST_ODD = 7,"),
    "a constant of another value": ("DEFAULT_BLK_NUM", "types.h", "DEFAULT_BLK_NUM = 8", "DEFAULT_BLK_NUM = 16"),
    "an instruction with fewer types": (
        "Sort32", "sort.h", 'static_assert(detail::kIsFloatOrHalf<T>', "static_assert(std::is_same_v<T, half>"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_difference_is_found(change, copy, tmp_path):
    name, header, ours, theirs = CHANGES[change]
    probes = [
        probe
        for probe in parity.probes_of(TWIN)
        if name in (probe.declaration.name, probe.declaration.owner and probe.declaration.owner.name)
        and not set(dict(probe.arguments).values()) & (set(parity.ELEMENTS) - {"float"})
    ]
    assert parity.differences(probes, parity.twin_command(copy), tmp_path) == {}
    _change(copy / header, ours, theirs)
    found = parity.differences(probes, parity.twin_command(copy), tmp_path)
    assert found
    assert all(name in str(probe) for probe in found)
