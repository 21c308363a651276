# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Fused transformer operators for MindSpore: `ops` holds functions, `nn` Cells, `models` decoders built of them."""

import importlib
import os
import pathlib
import sys

__version__ = "0.1.0"
_MODULES = ["models", "nn", "ops", "op_info"]

_HERE = pathlib.Path(__file__).resolve().parent


def _extend_path():
    """Finds the parts of the package that are elsewhere when it is used from its source tree."""
    if not (_HERE / "op_info").is_dir():
        __path__.append(str(_HERE.parent))  # op_info/ is beside the package there
    if not list(_HERE.glob("_native*.so")):  # not compiled in place: take an installed build
        for entry in sys.path:
            installed = pathlib.Path(entry or ".").resolve() / "ms_ops_transformer"
            if installed != _HERE and list(installed.glob("_native*.so")):
                __path__.append(str(installed))
                break


def _ascend_package():
    """The folder of the operators that CANN built, where there is one."""
    found = [path for entry in __path__ for path in pathlib.Path(entry).glob("_ascend/vendors/*")]
    return str(found[0]) if found else None


def _tell_cann():
    """CANN and MindSpore look for operators in the folders that this variable names, the first ones first."""
    others = [path for path in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if path]
    package = _ascend_package()
    if package is not None and package not in others:
        os.environ["ASCEND_CUSTOM_OPP_PATH"] = ":".join([package, *others])


_extend_path()
_tell_cann()


def __getattr__(name):
    # MindSpore is imported by the first use of ops, nn or models, also by dir() of the package, not before.
    if name in _MODULES or name == "_native":
        return importlib.import_module(f".{name}", __name__)
    if name == "__all__":
        parts = [importlib.import_module(f".{part}", __name__) for part in ("ops", "nn")]
        return globals().setdefault(
            name, [*_MODULES, "show_config", *(name for part in parts for name in part.__all__)]
        )
    if not name.startswith("_"):  # functions and Cells without saying where they are
        for part in ("ops", "nn"):
            module = importlib.import_module(f".{part}", __name__)
            if name in module.__all__:
                return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | set(__getattr__("__all__")))


def show_config():
    """Prints which build runs here: version, instruction level, threads, operators and their targets."""
    from . import _level, _native
    from .op_info.registry import all_specs

    print(f"ms_ops_transformer {__version__}")
    print(f"CPU level  {_level.level()} of {', '.join(_native.levels())} ({_level.library()})")
    print(f"threads    {_native.num_threads()}")
    package = _ascend_package()
    print(f"Ascend     {package or 'not in this build, which runs on the CPU only'}")
    built = _native.ops()
    width = max(map(len, all_specs()))
    for name, spec in all_specs().items():
        targets = [target for target in spec.targets if target == "cpu" or package]
        print(f"  {name:{width}} {', '.join(targets)}{'' if name in built else ' (not built)'}")
