# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""`python -m ms_ops_transformer.op_info check [--cann DIR]`: does our side for Ascend compile against the real headers?

Compiles every kernel entry, for every dtype combination of its spec and every SoC that it claims, against the header
trees below DIR: an installed CANN 8.x toolkit, or the sources of asc-devkit and asc-tools side by side; with g++ in
their CPU-debug mode, and with clang++ as for the device (device_check.py). And every registration against the host
headers (of CANN 9 the sources of metadef and runtime). Nothing is linked or run, so it needs neither a card nor a
driver. An argument, a type or an instruction that the real API lacks is an error here although our twin might take it.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import device_check, host_check
from .emit import ascend

# How the headers are told what to compile for, of each SoC that a spec may claim.
SOCS = {
    "ascend910b": ("-D__CCE_AICORE__=220", "-D__DAV_C220__", "-D__NPU_ARCH__=2201"),
    "ascend950": ("-D__CCE_AICORE__=310", "-D__DAV_C310__", "-D__NPU_ARCH__=3510"),
}
ONLY_DEVKIT = ("ascend950",)  # which CANN 8 does not know
# No macro for a single core: the official mixed mode.
CPU_MODE = ("-D__CCE_KT_TEST__=1", "-DASCENDC_CPU_DEBUG=1", "-include", "tikicpulib.h")
MOST_LINES = 12  # of a compiler's errors
SKIPPED_FOLDERS = {".git", "docs", "examples", "tests", "src", "python", "lib64", "node_modules"}
MOST_FOLDERS = 8  # from --cann DIR down to a header that is searched for; of a toolkit and of the sources it is 5
NEEDED = ("tikicpulib.h", "stub_fun.h", "kern_fwk.h")  # the CPU-debug library's headers


@dataclass(frozen=True)
class HeaderTree:
    """One generation of the Ascend C headers: where it is and how to compile against it."""

    name: str
    root: Path
    is_devkit: bool  # of CANN 9 or later
    include: tuple
    missing: tuple  # headers that the tree lacks, so that nothing can be compiled

    def cpu_flags(self, soc):
        """Flags for g++ in CPU-debug mode."""
        return [*CPU_MODE, *SOCS[soc], *self.include]

    def not_run(self, soc=None):
        """Why nothing can be compiled, for that SoC; '' if something can."""
        if self.missing:
            return (
                f"{', '.join(self.missing)} not found; the CPU-debug library has it (tools/tikicpulib or "
                "tools/cpudebug of a CANN toolkit); name that directory with --cann too"
            )
        if soc and (soc not in SOCS or (soc in ONLY_DEVKIT and not self.is_devkit)):
            return f"{self.name} does not know {soc}"
        return ""


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
            depth = len(Path(folder).relative_to(directory).parts)
            subfolders[:] = sorted(set(subfolders) - SKIPPED_FOLDERS) if depth < MOST_FOLDERS else []
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
    return HeaderTree(f"CANN {_version(basic) or '8'}", basic, False, _include(roots + debug), missing)


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
    return HeaderTree(f"asc-devkit {_version(root) or '9'}", root, True, _include(roots + debug), missing)


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


def compile_in_cpu_mode(text, tree, soc, kernels_dir):
    """[] when g++ compiles a translation unit in CPU-debug mode, else what it says."""
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", *tree.cpu_flags(soc), "-I", str(kernels_dir)]
    result = subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    return first_errors(result.stderr or f"g++ ended with {result.returncode}") if result.returncode else []


def one_by_one(texts, errors_of):
    """{name: errors}, each text alone: none may live on what another includes."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(texts, pool.map(errors_of, texts.values())))


def together(texts, errors_of):
    """{name: errors}; the headers take nearly all of the time, so each text alone only if there is an error."""
    return one_by_one(texts, errors_of) if errors_of("".join(texts.values())) else dict.fromkeys(texts, [])


def run(specs, kernels_dir, directories, report):
    """Checks `specs`: the generated text, and what compiles against the header trees below `directories`."""
    sound = []
    report.show("Specs, registrations and kernel entries")
    for spec in specs:
        try:
            check_text(spec, kernels_dir)
            ascend.op_host_text(spec, kernels_dir)
        except (FileNotFoundError, KeyError, ValueError) as error:
            report.add(spec.name, [str(error)])
        else:
            sound.append(spec)
            report.add(f"{spec.name:38} for {', '.join(ascend.socs(spec))}")
    if not directories:
        report.show("Headers were not checked: name a CANN or asc-devkit tree with --cann DIR.")
        return
    report.show(f"Searching {', '.join(map(str, directories))} for Ascend C headers, {MOST_FOLDERS} folders deep")
    with tempfile.TemporaryDirectory(prefix="mst_check_") as work_dir:
        trees = find_trees(directories, work_dir)
        if not trees:
            why = "no Ascend C headers (kernel_operator.h with its interface/ or impl/)"
            report.add(f"everything below {', '.join(directories)}", not_run=why)
        for tree in trees:
            report.show(f"\n{tree.name}: {tree.root}")
            for soc in sorted({soc for spec in sound for soc in ascend.socs(spec)}):
                claiming = [spec for spec in sound if soc in ascend.socs(spec)]
                _run_entries(claiming, tree, soc, kernels_dir, Path(work_dir), report)
            _run_host(sound, tree, kernels_dir, directories, Path(work_dir), report)


def _run_entries(specs, tree, soc, kernels_dir, work_dir, report):
    """Every entry in both modes, and whether device mode refuses what it must."""
    why = tree.not_run(soc)
    why_device = why or ("" if device_check.compiler() else device_check.MISSING)
    texts = {spec.name: check_text(spec, kernels_dir) for spec in specs}
    in_cpu_mode = on_device = dict.fromkeys(texts, [])
    if not why:
        in_cpu_mode = one_by_one(texts, lambda text: compile_in_cpu_mode(text, tree, soc, kernels_dir))
    if not why_device:
        device = device_check.DeviceMode(tree, SOCS[soc], kernels_dir, work_dir)
        why_device = device.stopped and f"the headers alone do not compile: {device.stopped}"
    if not why_device:
        on_device = together(texts, lambda text: device.errors(text)[:MOST_LINES])
    for spec in specs:
        entries = f"{spec.name:38} {spec.num_columns * max(1, len(spec.variants)):2} entries, {soc}"
        report.add(f"{entries}, CPU mode   ", in_cpu_mode[spec.name], why)
        report.add(f"{entries}, device mode", on_device[spec.name], why_device)
    if not why_device:
        report.show(f"  device mode: {device.set_aside} errors that the headers have by themselves are set aside")
        for what, errors in device_check.wrong_programs(device).items():
            report.add(f"device mode {what}", errors)


def _run_host(specs, tree, kernels_dir, directories, work_dir, report):
    host = host_check.find_host_tree(tree, directories)
    files = host_check.host_files(specs, kernels_dir)
    why = f"{', '.join(host.missing)} not found" if host.missing else ""
    errors = dict.fromkeys(files, "") if why else host_check.compile_host(files, host, kernels_dir, work_dir)
    for name, error in errors.items():
        report.add(f"{name:38} {len(host_check.PASSES):2} passes", first_errors(error), why)


def first_errors(text):
    """The compiler's error lines with the place each came from; templates make the rest unreadable."""
    lines = text.splitlines()
    chosen = [line for line in lines if " error: " in line or "required from here" in line]
    return (chosen or lines)[:MOST_LINES]
