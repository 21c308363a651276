# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Do the registrations compile against the host headers of CANN? In each of the three ways in which CANN builds them:
for its code generator, for tiling and for inference of shapes."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .emit import ascend

PASSES = {"generator": (), "tiling": ("-DOP_TILING_LIB",), "inference": ("-DOP_PROTO_LIB",)}
_FLAGS = ("-std=c++17", "-fsyntax-only", "-D_GLIBCXX_USE_CXX11_ABI=0")
# Headers that tell where the include roots are: the file's path below its root.
HEADERS = ("register/op_def_registry.h", "exe_graph/runtime/tiling_context.h", "tiling/platform/platform_ascendc.h")
_MORE_HEADERS = ("external/ge_common/api_error_codes.h", "platform/soc_spec.h", "graph/operator_reg.h")


@dataclass(frozen=True)
class HostTree:
    """The host headers of one generation: how to compile against them, and which are missing."""

    flags: tuple
    missing: tuple


def find_host_tree(tree, directories):
    """The host headers below `directories` of the generation of `tree`, a tree of kernel headers."""
    found = {name: [] for name in HEADERS + _MORE_HEADERS}
    for directory in directories:
        for folder, _, files in os.walk(directory):
            for name in found:
                path = Path(folder, Path(name).name)
                if path.name in files and path.as_posix().endswith("/" + name):
                    found[name].append(path)

    def generation(path):  # the newer tiling context tells both apart, for all headers below the same tree
        contexts = found["exe_graph/runtime/tiling_context.h"]
        near = max(contexts, key=lambda other: len(os.path.commonpath([other, path])), default=None)
        return near is not None and ("SetSimdNumBlocks" in near.read_text()) == tree.is_devkit

    roots = [Path(flag) for flag in tree.include if Path(flag, "securec.h").is_file()]
    missing = []
    for name, paths in found.items():
        paths = sorted(paths, key=lambda path: (not generation(path), -len(os.path.commonpath([path, tree.root]))))
        if paths:
            roots.append(paths[0].parents[name.count("/")])
        elif name in HEADERS:
            missing.append(name)
    flags = [flag for folder in dict.fromkeys(roots) for flag in ("-isystem", str(folder))]
    if not found["graph/operator_reg.h"]:
        flags.append("-DNO_OPERATOR_IMPL")  # how the headers themselves do without the graph headers
    return HostTree(tuple(flags), tuple(missing))


def host_files(specs, kernels_dir):
    """{name: text} of what CANN compiles for the host: one file for all operators and one for each."""
    files = {"ascend_host.cpp": Path(kernels_dir, "common", "ascend_host.cpp").read_text()}
    for spec in specs:
        files[f"{ascend.entry_name(spec)}.cpp"] = ascend.op_host_text(spec, kernels_dir)
    return files


def compile_host(files, host, kernels_dir, work_dir):
    """{name: '' or the compiler's text} after compiling every file in every pass."""
    folder = work_dir / "host"
    folder.mkdir(exist_ok=True)
    (folder / "ascend_types.h").write_text(ascend.types_text())
    for name, text in files.items():
        (folder / name).write_text(text)
    all_files = folder / "all.cpp"  # the headers take nearly all of the time: each file alone only if there is an error
    all_files.write_text("".join(f'#include "{name}"\n' for name in files))
    if not _compile(all_files, host, kernels_dir):
        return dict.fromkeys(files, "")
    return {name: _compile(folder / name, host, kernels_dir) for name in files}


def _compile(source, host, kernels_dir):
    for flags in PASSES.values():
        command = ["g++", *_FLAGS, *flags, "-w", *host.flags, "-I", str(kernels_dir), "-I", str(source.parent)]
        result = subprocess.run([*command, str(source)], capture_output=True, text=True)
        if result.returncode:
            return result.stderr or f"g++ ended with {result.returncode}"
    return ""
