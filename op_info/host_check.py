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


def find_host_tree(root, is_new, directories, skipped, shim_dir):
    """The host headers that belong to the kernel headers at `root`; of the sources of CANN 9 if is_new."""
    found = {name: [] for name in HEADERS + _MORE_HEADERS}
    for directory in directories:
        for folder, subfolders, files in os.walk(directory):
            subfolders[:] = sorted(set(subfolders) - skipped)
            for name in found:
                if Path(name).name in files and Path(folder, Path(name).name).as_posix().endswith("/" + name):
                    found[name].append(Path(folder, Path(name).name))

    def generation(path):  # the newer tiling context tells both apart, for all headers below the same tree
        contexts = found["exe_graph/runtime/tiling_context.h"]
        near = max(contexts, key=lambda other: len(os.path.commonpath([other, path])), default=None)
        return near is not None and ("SetSimdNumBlocks" in near.read_text()) == is_new

    roots, missing = [shim_dir], []
    for name, paths in found.items():
        paths = sorted(paths, key=lambda path: (not generation(path), -len(os.path.commonpath([path, root]))))
        if paths:
            roots.append(paths[0].parents[name.count("/")])
        elif name in HEADERS:
            missing.append(name)
    flags = [flag for folder in dict.fromkeys(roots) for flag in ("-isystem", str(folder))]
    if not found["graph/operator_reg.h"]:
        flags.append("-DNO_OPERATOR_IMPL")  # how the headers themselves do without the graph headers
    return HostTree(tuple(flags), tuple(missing))


def compile_host(sources, tree, kernels_dir, work_dir):
    """'' when every file of `sources` (name -> text or path) compiles in every pass, else the compiler's text."""
    (work_dir / "ascend_types.h").write_text(ascend.types_text())
    for name, source in sources.items():
        path = source if isinstance(source, Path) else Path(work_dir, name)
        if path != source:
            path.write_text(source)
        for flags in PASSES.values():
            command = [
                "g++",
                *_FLAGS,
                *flags,
                "-w",
                *tree.flags,
                "-I",
                str(kernels_dir),
                "-I",
                str(work_dir),
                str(path),
            ]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                return result.stderr or f"g++ ended with {result.returncode}"
    return ""


def host_sources(spec, kernels_dir):
    """What CANN compiles for the host of an operator, and of all of them if spec is None."""
    if spec is None:
        return {"ascend_host.cpp": Path(kernels_dir, "common", "ascend_host.cpp")}
    return {f"host_{ascend.entry_name(spec)}.cpp": ascend.op_host_text(spec, kernels_dir)}
