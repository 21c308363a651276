# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""`python -m ms_ops_transformer.op_info check [--cann DIR]`: does our side for Ascend compile against the real headers?

Compiles every kernel entry, for every dtype combination of its spec, with g++ in the CPU-debug mode of the header
trees below DIR: an installed CANN 8.x toolkit, or the sources of asc-devkit and asc-tools side by side; and every
registration against the host headers (of CANN 9 the sources of metadef and runtime). Nothing is linked or run, so it
needs neither a card nor a driver. An argument, a type or an instruction that the real API lacks is an error here
although our twin might accept it.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import host_check
from .emit import ascend

# The 910B as both header generations name it. No macro for a single core: the official mixed mode.
DEFINES = ("-D__CCE_KT_TEST__=1", "-DASCENDC_CPU_DEBUG=1", "-D__CCE_AICORE__=220", "-D__DAV_C220__")
DEVKIT_DEFINES = ("-D__NPU_ARCH__=2201",)
SKIPPED_FOLDERS = {".git", "docs", "examples", "tests", "src", "python", "lib64", "node_modules"}
NEEDED = ("tikicpulib.h", "stub_fun.h", "kern_fwk.h")  # the CPU-debug library's headers


@dataclass(frozen=True)
class HeaderTree:
    """One generation of the Ascend C headers: where it is and how to compile against it."""

    name: str
    root: Path
    flags: tuple
    missing: tuple  # headers that the tree lacks, so that nothing can be compiled

    @property
    def is_devkit(self):
        """Whether it is of CANN 9 or later."""
        return DEVKIT_DEFINES[0] in self.flags


def find_trees(directories, shim_dir):
    """Every header tree below `directories`. Forwarding headers that an install would create go to `shim_dir`."""
    found = _locate(directories)
    trees, seen = [], set()
    for header in found["kernel_operator.h"]:
        basic = header.parent
        if (basic / "interface").is_dir():
            make, root = _toolkit_tree, basic
        elif (basic.parent / "impl" / "basic_api").is_dir():
            make, root = _devkit_tree, basic.parent
        else:
            continue
        if root.resolve() not in seen:
            seen.add(root.resolve())
            trees.append(make(root, found, Path(shim_dir, str(len(trees)))))
    return trees


def _locate(directories):
    """{file name: paths} of the headers that tell where the include roots are."""
    found = {name: [] for name in ("kernel_operator.h", "securec.h", "acl_rt.h", *NEEDED)}
    for directory in directories:
        for folder, subfolders, files in os.walk(directory):
            subfolders[:] = sorted(set(subfolders) - SKIPPED_FOLDERS)
            for name in found.keys() & set(files):
                found[name].append(Path(folder, name))
    return found


def _toolkit_tree(basic, found, shim_dir):
    """CANN 8.x: `basic` is basic_api/ (or the tikcfw/ that links to it)."""
    high = next((p for p in (basic.parent / "highlevel_api", basic) if (p / "lib").is_dir()), basic)
    if not (high / "lib" / "matmul_intf.h").is_file():
        _write(shim_dir / "lib" / "matmul_intf.h", '#include "lib/matmul/matmul_intf.h"\n')
    roots = [shim_dir, basic, basic / "impl", basic / "interface", high, high / "lib", high / "impl"]
    roots += [high / "lib" / "matmul"]
    debug, missing = _debug_folders(basic, found, shim_dir, lambda path: not (path.parent / "simt_stub.h").exists())
    return HeaderTree(f"CANN {_version(basic) or '8'}", basic, DEFINES + _include(roots + debug), missing)


def _devkit_tree(root, found, shim_dir):
    """asc-devkit, sources or installed asc/: `root` holds include/ and impl/."""
    include, impl = root / "include", root / "impl"
    _write(shim_dir / "lib" / "matmul_intf.h", '#include "adv_api/matmul/matmul_intf.h"\n')
    generator = impl / "adv_api" / "cmake" / "scripts" / "gen_kernel_tiling_data_def.py"
    if generator.is_file():  # sources: the tree's own generator makes kernel_tiling/kernel_tiling.h
        target = shim_dir / "kernel_tiling" / "kernel_tiling.h"
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, generator, include / "adv_api", target], check=True, capture_output=True)
    roots = [shim_dir, root, include]
    roots += [include / p for p in ("basic_api", "basic_api/reg_compute", "simt_api", "c_api", "adv_api")]
    roots += [impl] + [impl / p for p in ("basic_api", "simt_api", "c_api")]
    debug, missing = _debug_folders(root, found, shim_dir, lambda path: (path.parent / "simt_stub.h").exists())
    flags = DEFINES + DEVKIT_DEFINES + _include(roots + debug)
    return HeaderTree(f"asc-devkit {_version(root) or '9'}", root, flags, missing)


def _debug_folders(root, found, shim_dir, same_generation):
    """Folders of the CPU-debug and runtime headers, same generation first, then nearest to `root`; what is missing."""

    def rank(path):
        return not same_generation(path), -len(os.path.commonpath([path.resolve(), root.resolve()]))

    chosen = {name: min(paths, key=rank) for name, paths in found.items() if paths}
    folders = [chosen[name].parent for name in ("tikicpulib.h", "kern_fwk.h") if name in chosen]
    if "stub_fun.h" in chosen and chosen["stub_fun.h"].parent not in folders:
        # A copy, so that what it includes comes from this generation and not from its own folder.
        _write(shim_dir / "stub_fun.h", chosen["stub_fun.h"].read_text())
    if "acl_rt.h" in chosen:
        folders.append(chosen["acl_rt.h"].parent.parent)
    if "securec.h" in chosen:
        folders.append(chosen["securec.h"].parent)
    else:
        _write(shim_dir / "securec.h", _SECUREC)
    return list(dict.fromkeys(folders)), tuple(name for name in NEEDED if name not in chosen)


def _include(folders):
    return tuple(flag for folder in folders if folder.is_dir() for flag in ("-isystem", str(folder)))


def _version(root):
    """ "8.1.RC1" from the tree's version files or folder names, "" when nothing tells."""
    for folder in (root, *root.parents):
        for name in ("version.cmake", "version.info", "include/version/toolkit_version.h"):
            number = (folder / name).is_file() and re.search(r"\D\b(\d+\.\d+[\w.]*)\"?", _code(folder / name))
            if number:
                return number[1]
        number = re.fullmatch(r"(?:CANN-)?(\d+\.\d+[\w.]*)", folder.name)
        if number:
            return number[1]
    return ""


def _code(path):
    return "\n".join(line for line in path.read_text().splitlines() if not line.startswith("# "))


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# Declarations only, for a tree without the bounds-checked C library that CANN installs.
_SECUREC = """\
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
typedef int errno_t;
#define EOK 0
extern "C" {
int memcpy_s(void*, size_t, const void*, size_t);
int memset_s(void*, size_t, int, size_t);
int strcpy_s(char*, size_t, const char*);
int strncpy_s(char*, size_t, const char*, size_t);
int sprintf_s(char*, size_t, const char*, ...);
int snprintf_s(char*, size_t, size_t, const char*, ...);
int vsnprintf_s(char*, size_t, size_t, const char*, va_list);
}
"""

# What CANN's build generates beside every entry.
_PRELUDE = """\
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#ifndef GET_TILING_DATA_WITH_STRUCT
#define GET_TILING_DATA_WITH_STRUCT(type, name, address) \\
  type name;                                             \\
  memcpy(&name, address, sizeof(type))
#endif
"""


def check_text(spec, kernels_dir):
    """One translation unit with the entry of `spec` once per dtype combination, each under its own name."""
    entry = ascend.kernel_entry(spec, kernels_dir)
    macros = ascend.dtype_macros(spec)
    symbols = list(spec.dtypes)
    parts = [_PRELUDE]
    for i in range(spec.num_columns):
        column = [dtypes[i] for dtypes in spec.dtypes.values()]
        defines = {macros[symbol]: ascend.CPP_TYPES[dtype] for symbol, dtype in zip(symbols, column)}
        defines[ascend.entry_name(spec)] = f"{ascend.entry_name(spec)}_{i}"
        parts += [f"#define {name} {value}\n" for name, value in defines.items()]
        parts += [f'#line 1 "{spec.name}<{", ".join(column)}>"\n', entry]
        parts += [f"#undef {name}\n" for name in defines]
    return "".join(parts)


def compile_entry(spec, tree, kernels_dir, work_dir):
    """'' when every entry of `spec` compiles against `tree`, else the compiler's text."""
    source = Path(work_dir, f"{spec.name}.cpp")
    source.write_text(check_text(spec, kernels_dir))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-include", "tikicpulib.h", *tree.flags]
    command += ["-I", str(kernels_dir), str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stderr or f"g++ ended with {result.returncode}"


def run(specs, kernels_dir, directories=(), show=print):
    """Checks `specs`; returns the number of failures."""
    sound = []
    for spec in specs:
        try:
            check_text(spec, kernels_dir)
            ascend.op_host_text(spec, kernels_dir)
            sound.append(spec)
        except (FileNotFoundError, KeyError, ValueError) as error:
            show(f"{spec.name}: {error}")
    failures = len(specs) - len(sound)
    show(f"{len(specs)} specs, their registrations and kernel entries checked, {failures} failed.")
    if not directories:
        show("Headers were not checked: name a CANN or asc-devkit tree with --cann DIR.")
        return failures
    with tempfile.TemporaryDirectory(prefix="mst_check_") as work_dir:
        return failures + _run_headers(sound, kernels_dir, directories, Path(work_dir), show)


def _run_headers(specs, kernels_dir, directories, work_dir, show):
    trees = find_trees(directories, work_dir)
    if not trees:
        show(f"No Ascend C headers (kernel_operator.h with its interface/ or impl/) below {', '.join(directories)}.")
        return 1
    failures = 0
    for tree in trees:
        show(f"\n{tree.name}: {tree.root}")
        if tree.missing:
            failures += 1
            show(
                f"  cannot compile: {', '.join(tree.missing)} not found; the CPU-debug library has it "
                "(tools/tikicpulib or tools/cpudebug of a CANN toolkit); name that directory with --cann too."
            )
            continue
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            jobs = [pool.submit(compile_entry, spec, tree, kernels_dir, work_dir) for spec in specs]
            errors = [job.result() for job in jobs]
        for spec, error in zip(specs, errors):
            entries = spec.num_columns * max(1, len(spec.variants))
            failures += _report(f"{spec.name:38} {entries:7} entries", error, show)
        failures += _run_host(specs, tree, kernels_dir, directories, work_dir, show)
    return failures


def _run_host(specs, tree, kernels_dir, directories, work_dir, show):
    host = host_check.find_host_tree(tree, directories)
    if host.missing:
        show(f"  registrations were not checked: {', '.join(host.missing)} not found below the directories given.")
        return 0
    errors = host_check.compile_host(host_check.host_files(specs, kernels_dir), host, kernels_dir, work_dir)
    passes = len(host_check.PASSES)
    return sum(_report(f"{name:44} {passes} passes", error, show) for name, error in errors.items())


def _report(what, error, show):
    """Whether it is a failure."""
    show(f"  {what}  {'FAIL' if error else 'ok'}")
    if error:
        show("    " + "\n    ".join(_first_errors(error)))
    return bool(error)


def _first_errors(text, count=12):
    """The compiler's error lines with the place each came from; templates make the rest unreadable."""
    lines = text.splitlines()
    chosen = [i for i, line in enumerate(lines) if " error: " in line or "required from here" in line]
    return [lines[i] for i in chosen[:count]] or lines[:count]
