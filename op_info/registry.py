# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Finds the specs: every OpSpec of every module op_info/<family>/<op>.py."""

import dataclasses
import functools
import importlib
import pathlib

from .spec import OpSpec, SpecError

_FAMILIES = ("attention", "posembedding", "moe", "gmm", "mc2")


@functools.lru_cache(None)
def all_specs():
    """All specs by name, in the order of families and files; a gradient follows its operator."""
    here = pathlib.Path(__file__).parent
    specs = {}
    for family in _FAMILIES:
        for path in sorted((here / family).glob("[a-z]*.py")):
            module = importlib.import_module(f".{family}.{path.stem}", __package__)
            found = [value for value in vars(module).values() if isinstance(value, OpSpec)]
            if not found or found[0].name != path.stem:
                raise SpecError(f"op_info/{family}/{path.name} must define SPEC of '{path.stem}' first")
            for spec in found:
                if spec.name in specs:
                    raise SpecError(f"two specs are named '{spec.name}'")
                specs[spec.name] = dataclasses.replace(spec, family=family, folder=path.stem)
    for spec in specs.values():
        if spec.grad is not None and spec.grad not in specs:
            raise SpecError(f"the gradient '{spec.grad}' of '{spec.name}' has no spec")
    return specs


def get(name):
    """The spec of that name."""
    specs = all_specs()
    if name not in specs:
        raise SpecError(f"unknown operator '{name}'; there are {', '.join(specs)}")
    return specs[name]
