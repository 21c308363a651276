# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Builds and installs ms_ops_transformer. Metadata is in pyproject.toml; what is compiled how is here.

pip install .                       a wheel with every instruction level of this architecture, and the operators for the
                                    card if ASCEND_HOME_PATH names a CANN toolkit
python setup.py build_native        compiles into the source tree only what changed
python setup.py build_native --checked              also build/lib/libmst_checked.so, which the tests use
python setup.py build_native --cxx aarch64-linux-gnu-g++ --out DIR      libraries of another architecture
"""

import concurrent.futures
import contextlib
import fcntl
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time

from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from op_info import ascend_package  # noqa: E402
from op_info.emit import cpu  # noqa: E402
from op_info.registry import all_specs  # noqa: E402
from op_info.spec import SpecError  # noqa: E402

KERNELS = ROOT / "kernels"
JOBS = 2  # compilers at once

# MindSpore's wheels use the old string ABI, and attributes come as strings. A level's code must never be shared with
# another level's: no unique symbols, and the linker script exports the entry points alone.
FLAGS = [
    "-std=c++17",
    "-fPIC",
    "-fno-gnu-unique",
    "-fmax-errors=8",
    "-Wall",
    "-Wextra",
    "-D_GLIBCXX_USE_CXX11_ABI=0",
    f"-I{KERNELS}",
    f"-I{KERNELS}/twin",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-unused-parameter",  # all kernels have the same parameters
    "-Wno-uninitialized",  # false alarms of GCC 12 in its AVX-512 headers
    "-Wno-maybe-uninitialized",
]
# Vectors are written by hand. What the compiler joins are the small fields of parameters, and then waits for the stores
# that have just written them one by one.
_FAST = "-O3 -fno-tree-slp-vectorize"
_AVX2 = "-mavx2 -mfma -mf16c"
LEVELS = {
    "x86_64": {
        "avx2": f"{_FAST} {_AVX2}",
        "avx512": f"{_FAST} {_AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512",
    },
    "aarch64": {"neon": _FAST},
}
# The checked build finds the kernel's line by walking the stack; two lines must not become one call. Of DWARF 5
# binutils 2.40 reads wrong files.
_CHECKED = "-O2 -g1 -gdwarf-4"
_CHECKED += " -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-crossjumping -fno-tree-tail-merge"
_CHECKED += " -DMST_TWIN_CHECKED"
CHECKED = {"x86_64": f"{_CHECKED} {_AVX2}", "aarch64": _CHECKED}


class CompileError(Exception):
    """A compiler or linker failed; its output is already printed."""


class Builder:
    """Compiles and links what is older than its sources."""

    def __init__(self, cxx, build_dir, keep_going=False, flags=""):
        self.cxx = shlex.split(cxx)
        self.flags = shlex.split(flags)
        self.build_dir = pathlib.Path(build_dir).resolve()
        self.keep_going = keep_going
        self.failed = []
        machine = subprocess.run([*self.cxx, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
        self.arch = machine.split("-")[0]
        if self.arch not in LEVELS:
            raise SystemExit(f"ms_ops_transformer needs x86_64 or aarch64, but {cxx} is for {self.arch}")

    @contextlib.contextmanager
    def _locked(self, name):
        """One process at a time compiles for one library; others wait and then find it done."""
        self.build_dir.mkdir(parents=True, exist_ok=True)
        with open(self.build_dir / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # ---- sources

    def _generate(self, name, text):
        path = self.build_dir / "gen" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            new = path.with_name(f"{name}.{os.getpid()}")
            new.write_text(text)
            new.replace(path)
        return path

    def runtime_sources(self):
        """Everything that does not depend on the instruction level; per op its tiling and its description."""
        others = ("native.cpp", "ascend_host.cpp")  # Python's module, and what CANN compiles
        common = [path for path in sorted((KERNELS / "common").glob("*.cpp")) if path.name not in others]
        groups = {"": common + sorted((KERNELS / "twin").glob("runtime*.cpp"))}
        for spec in all_specs().values():
            tiling = KERNELS / spec.family / spec.folder / f"{spec.folder}_tiling.cpp"
            if self.keep_going and not tiling.exists():
                continue
            try:
                desc = self._generate(f"{spec.name}_desc.cpp", cpu.desc_text(spec))
            except (SpecError, FileNotFoundError) as error:  # the header of the tiling is read
                if not self.keep_going:
                    raise CompileError(error) from None
                self.failed.append(str(error))
                continue
            groups.setdefault(spec.folder, sorted(tiling.parent.glob("*.cpp"))).append(desc)
        return groups

    def level_sources(self, checked=False):
        """The twin's instruction code and one generated entry per op."""
        twin = [path for path in sorted((KERNELS / "twin").glob("*.cpp")) if not path.name.startswith("runtime")]
        if checked:
            twin += sorted((KERNELS / "twin" / "checked").glob("*.cpp"))
        groups = {"": twin}
        for spec in all_specs().values():
            kernel = KERNELS / spec.family / spec.folder / f"{spec.name}_kernel.h"
            if self.keep_going and not kernel.exists():
                continue
            groups[spec.name] = [self._generate(f"{spec.name}_cpu.cpp", cpu.entry_text(spec))]
        return groups

    # ---- compiling

    def _is_fresh(self, target, command):
        """Whether the object was made by this command from files that are all older."""
        note = target.with_suffix(".cmd")
        depfile = target.with_suffix(".d")
        if not (target.exists() and note.exists() and depfile.exists()) or shlex.split(note.read_text()) != command:
            return False
        built = target.stat().st_mtime
        names = shlex.split(depfile.read_text().replace("\\\n", " ").split(":", 1)[1])
        return all(os.path.exists(name) and os.path.getmtime(name) <= built for name in names)

    def _is_skipped(self, source):
        """MS_OPS_BUILD_ONLY=rms_norm,swiglu compiles these ops alone; the others keep the objects they have."""
        only = os.environ.get("MS_OPS_BUILD_ONLY")
        return only and not any(source.name.startswith(name) for name in only.split(","))

    def _compile(self, source, config, flags):
        target = self.build_dir / "obj" / config / (source.stem + ".o")
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [*self.cxx, *FLAGS, *flags, *self.flags, "-MMD", "-MF", str(target.with_suffix(".d"))]
        command += ["-c", str(source), "-o", str(target)]
        if self._is_fresh(target, command) or (target.exists() and self._is_skipped(source)):
            return target
        start = time.time()
        done = subprocess.run(command, capture_output=True, text=True)
        print(f"  {config:8} {source.name} {time.time() - start:.1f} s", flush=True)
        if done.stderr:
            print(done.stderr, file=sys.stderr, flush=True)
        if done.returncode:
            target.unlink(missing_ok=True)
            return None
        os.utime(target, (start, start))  # an edit during the compilation counts as newer
        target.with_suffix(".cmd").write_text(shlex.join(command))
        return target

    def _compile_all(self, groups, config, flags):
        """Objects by group; a group (an op) that does not compile is left out when keep_going is set."""
        sources = [(group, source) for group, paths in groups.items() for source in paths]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda item: self._compile(item[1], config, flags), sources))
        objects = {group: [] for group in groups}
        for (group, source), result in zip(sources, results):
            if result is not None:
                objects[group].append(result)
                continue
            if not (self.keep_going and group):
                raise CompileError(f"{source.name} does not compile for {config}")
            self.failed.append(source.name)
        return {group: paths for group, paths in objects.items() if len(paths) == len(groups[group])}

    def _link(self, target, objects, flags, extra=()):
        inputs = [path for paths in objects.values() for path in paths]
        command = [*self.cxx, "-shared", "-o", str(target), *map(str, inputs), *flags]
        note = self.build_dir / "obj" / (target.name + ".cmd")
        newest = max(path.stat().st_mtime for path in [*inputs, *extra])
        fresh = target.exists() and note.exists() and shlex.split(note.read_text()) == command
        if fresh and target.stat().st_mtime > newest:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_suffix(".new")  # a running process keeps the old file
        done = subprocess.run(
            [str(new) if word == str(target) else word for word in command], capture_output=True, text=True
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr, flush=True)
            raise CompileError(f"{target.name} does not link")
        new.replace(target)
        note.write_text(shlex.join(command))
        print(f"  linked   {target.name}", flush=True)

    # ---- libraries

    def runtime(self, lib_dir):
        """libmst_runtime.so."""
        with self._locked("runtime"):
            objects = self._compile_all(self.runtime_sources(), "runtime", ["-O2"])
            flags = ["-Wl,-soname,libmst_runtime.so", "-Wl,--no-undefined", "-pthread"]
            self._link(lib_dir / "libmst_runtime.so", objects, flags)

    def level(self, lib_dir, level, runtime_dir=None):
        """libmst_<level>.so; the level `checked` is the twin that enforces the device's rules."""
        runtime_dir = runtime_dir or lib_dir
        with self._locked(level):
            flags = CHECKED[self.arch] if level == "checked" else LEVELS[self.arch][level]
            objects = self._compile_all(self.level_sources(level == "checked"), level, flags.split())
            specs = [spec for spec in all_specs().values() if spec.name in objects]
            names = " ".join(f"{symbol};" for spec in specs for symbol in cpu.exported_symbols(spec))
            script = self._generate(f"{level}.map", f"{{ global: {cpu.CHECKED_EXPORTS} {names} local: *; }};\n")
            flags = [f"-Wl,--version-script={script}", f"-L{runtime_dir}", "-lmst_runtime"]
            flags += ["-Wl,-rpath,$ORIGIN", "-Wl,--no-undefined", "-pthread"]
            self._link(lib_dir / f"libmst_{level}.so", objects, flags, [script])

    def native(self, package_dir):
        """The Python module."""
        import pybind11

        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        includes = ["-isystem", pybind11.get_include(), "-isystem", sysconfig.get_paths()["include"]]
        groups = {"": [KERNELS / "common" / "native.cpp"]}
        config = "py" + sysconfig.get_config_var("py_version_nodot")
        with self._locked(config):
            objects = self._compile_all(groups, config, ["-O2", "-fvisibility=hidden", *includes])
            flags = [f"-L{package_dir}/_lib", "-lmst_runtime", "-Wl,-rpath,$ORIGIN/_lib"]
            self._link(package_dir / f"_native{suffix}", objects, flags)

    def package(self, package_dir, levels=None):
        """Everything that a package directory holds."""
        start = time.time()
        print("ms_ops_transformer: compiling the kernels", flush=True)
        self.runtime(package_dir / "_lib")
        self.native(package_dir)
        for level in levels or LEVELS[self.arch]:
            self.level(package_dir / "_lib", level)
        print(f"ms_ops_transformer: compiled in {time.time() - start:.0f} s", flush=True)


def best_level():
    """The level of this CPU."""
    if os.uname().machine == "aarch64":
        return "neon"
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "avx512" if "avx512bw" in flags and "avx512dq" in flags and "avx512vl" in flags else "avx2"


class build_native(Command):  # noqa: N801  the name of the command
    """Compiles into the source tree what changed."""

    description = "compile the kernels into the source tree"
    user_options = [
        ("levels=", None, "instruction levels, separated by commas; 'all'; default: those there, or this CPU's best"),
        ("checked", None, "also the checked library of the tests"),
        ("keep-going", None, "leave out operators that do not compile"),
        ("cxx=", None, "the compiler; another architecture needs --out"),
        ("flags=", None, "more flags for the compiler, behind the level's"),
        ("out=", None, "where to put the libraries of another architecture"),
    ]
    boolean_options = ["checked", "keep-going"]

    def initialize_options(self):
        self.levels = None
        self.checked = False
        self.keep_going = False
        self.flags = ""
        self.cxx = os.environ.get("CXX", "g++")
        self.out = None

    def finalize_options(self):
        pass

    def run(self):
        build_dir = ROOT / "build" if self.out is None else pathlib.Path(self.out) / "build"
        builder = Builder(self.cxx, build_dir, self.keep_going, self.flags)
        all_levels = self.levels == "all" or (self.levels is None and self.out is not None)
        levels = list(LEVELS[builder.arch])
        if not all_levels:
            there = [level for level in levels if (ROOT / f"ms_ops_transformer/_lib/libmst_{level}.so").exists()]
            levels = self.levels.split(",") if self.levels else there or [best_level()]
        try:
            if self.out is None:
                package_dir = ROOT / "ms_ops_transformer"
                builder.package(package_dir, levels)
                runtime_dir, lib_dir = package_dir / "_lib", build_dir / "lib"
            else:
                runtime_dir = lib_dir = pathlib.Path(self.out).resolve()
                builder.runtime(lib_dir)
                for level in levels:
                    builder.level(lib_dir, level)
            if self.checked:
                lib_dir.mkdir(exist_ok=True)
                builder.level(lib_dir, "checked", runtime_dir)
        except (CompileError, SpecError) as error:
            raise SystemExit(f"error: {error}") from None
        if builder.failed:
            raise SystemExit(f"error: left out, since it does not compile: {', '.join(builder.failed)}")


class Build(build):
    """What an earlier build left behind is not part of this one."""

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildExt(build_ext):
    """pip install: every level, and the kernels' sources for an Ascend build."""

    def run(self):
        in_place = self.inplace or self.editable_mode
        package_dir = (ROOT if in_place else pathlib.Path(self.build_lib).resolve()) / "ms_ops_transformer"
        toolkit = os.environ.get("ASCEND_HOME_PATH")
        try:
            if toolkit:  # first: a wrong path is told at once
                ascend_package.build(toolkit, ROOT / "build" / "ascend", package_dir / "_ascend")
            Builder(os.environ.get("CXX", "g++"), ROOT / "build").package(package_dir)
        except (CompileError, SpecError, ascend_package.BuildError) as error:
            raise SystemExit(f"error: {error}") from None
        if not in_place:
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(KERNELS, package_dir / "kernels", ignore=ignore, dirs_exist_ok=True)

    def get_outputs(self):
        return []

    def get_output_mapping(self):
        return {}


def packages():
    """Import name -> folder: op_info is installed inside the package."""
    found = {}
    for top, name in (("ms_ops_transformer", "ms_ops_transformer"), ("op_info", "ms_ops_transformer.op_info")):
        for path in sorted((ROOT / top).rglob("__init__.py")):
            parts = path.parent.relative_to(ROOT / top).parts
            found[".".join((name, *parts))] = str(path.parent.relative_to(ROOT))
    return found


if __name__ == "__main__":
    setup(
        packages=list(packages()),
        package_dir=packages(),
        ext_modules=[Extension("ms_ops_transformer._native", sources=[])],
        cmdclass={"build": Build, "build_ext": BuildExt, "build_native": build_native},
    )
