# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What an operator is, as data. op_info/<family>/<op>.py holds one OpSpec per operator; everything that repeats its
names, shapes, dtypes or limits is derived from it."""

import dataclasses
import hashlib
import re

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
ALL = "all"  # every column of `dtypes`
REQUIRED = "<required>"  # the default of an attribute that the caller must give

_NAME = re.compile(r"[a-z][a-z0-9_]*$")
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


class SpecError(ValueError):
    """A spec that contradicts itself or is not there."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One input or output.

    dims: symbols separated by blanks ("... D", "T K", "T*K H"), "..." stands for any leading dims, a number for itself,
    "" is a scalar, "*" any shape (then ProblemOf checks it). dtype: a symbol of OpSpec.dtypes or a dtype name.
    """

    name: str
    dims: str
    dtype: str
    optional: bool = False  # an input that may be None
    mutable: bool = False  # an input that the operator updates in place
    host: bool = False  # an input whose values decide the plan: on the card the host must be able to read it


@dataclasses.dataclass(frozen=True)
class Attr:
    """One attribute: type is int, float, bool or str; check is a Python expression over the attributes' names."""

    name: str
    type: type
    default: object = REQUIRED
    choices: tuple = ()
    check: str = ""


@dataclasses.dataclass(frozen=True)
class OpSpec:
    """An operator. `family` and `folder` (of kernels/<family>/<folder>/) are filled in by the registry."""

    name: str
    inputs: tuple
    outputs: tuple
    attrs: tuple = ()
    dtypes: dict = dataclasses.field(default_factory=dict)  # symbol -> its dtype in each supported combination
    targets: dict = dataclasses.field(default_factory=dict)  # target -> ALL or the supported columns
    variants: tuple = ()
    value_check: bool = False  # <Op>CheckValues looks at indices and lengths before the kernel runs
    infer: str = None  # "custom": <Op>InferShape gives the output shapes
    grad: str = None  # name of the gradient's spec
    moves: bool = False  # results are made of bytes of inputs: nothing is rounded
    family: str = ""
    folder: str = ""

    def __post_init__(self):
        try:
            _check(self)
        except SpecError as error:
            raise SpecError(f"op_info of '{self.name}': {error}") from None

    @property
    def class_name(self):
        """The name in C++ and in error texts: rms_norm -> RmsNorm."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def num_columns(self):
        """How many combinations of dtypes are supported."""
        return len(next(iter(self.dtypes.values()))) if self.dtypes else 1

    @property
    def mutable(self):
        """Whether the operator writes into one of its inputs."""
        return any(tensor.mutable for tensor in self.inputs)

    def dtype_of(self, tensor, column):
        """The dtype of a tensor in one column."""
        return self.dtypes[tensor.dtype][column] if tensor.dtype in self.dtypes else tensor.dtype

    def attr(self, name):
        """The attribute of that name, or None."""
        return next((attr for attr in self.attrs if attr.name == name), None)

    @property
    def digest(self):
        """Changes with the spec: built libraries carry it, so that one built from another spec is noticed."""
        return hashlib.sha256(repr(dataclasses.replace(self, grad=None)).encode()).hexdigest()[:16]


def dim_tokens(dims):
    """ "T*K H" -> [["T", "K"], ["H"]]."""
    return [token.split("*") for token in dims.split()] if dims != "*" else []


def _check(spec):
    if not _NAME.match(spec.name):
        raise SpecError("the name must be snake_case")
    names = [tensor.name for tensor in spec.inputs + spec.outputs] + [attr.name for attr in spec.attrs]
    for name in names:
        if not _NAME.match(name):
            raise SpecError(f"'{name}' must be snake_case")
        if names.count(name) > 1:
            raise SpecError(f"the name '{name}' is used twice")
    if not spec.inputs or not spec.outputs:
        raise SpecError("at least one input and one output are needed")
    _check_dtypes(spec)
    _check_attrs(spec)
    _check_dims(spec)
    for tensor in spec.outputs:
        if tensor.optional or tensor.mutable or tensor.host:
            raise SpecError(f"output '{tensor.name}' cannot be optional, mutable or host")
    for target, columns in spec.targets.items():
        if columns != ALL and not all(0 <= column < spec.num_columns for column in columns):
            raise SpecError(f"target '{target}' names a column of dtypes that does not exist")
    if spec.infer not in (None, "custom"):
        raise SpecError(f"infer must be None or 'custom', but got {spec.infer!r}")


def _check_dtypes(spec):
    lengths = {len(column) for column in spec.dtypes.values()}
    if len(lengths) > 1:
        raise SpecError("the dtypes of all symbols must have equal length")
    for symbol, column in spec.dtypes.items():
        if not _SYMBOL.match(symbol) or symbol in DTYPES:
            raise SpecError(f"'{symbol}' is not a dtype symbol")
        for dtype in column:
            if dtype not in DTYPES:
                raise SpecError(f"unknown dtype '{dtype}' of symbol '{symbol}'")
        if not any(tensor.dtype == symbol for tensor in spec.inputs):
            raise SpecError(f"no input has the dtype symbol '{symbol}'")
    columns = list(zip(*spec.dtypes.values()))
    if len(set(columns)) != len(columns):
        raise SpecError("a combination of dtypes is listed twice")
    for tensor in spec.inputs + spec.outputs:
        if tensor.dtype not in spec.dtypes and tensor.dtype not in DTYPES:
            raise SpecError(f"'{tensor.name}' has the unknown dtype '{tensor.dtype}'")


def _check_attrs(spec):
    for attr in spec.attrs:
        if attr.type not in (int, float, bool, str):
            raise SpecError(f"attribute '{attr.name}' must be int, float, bool or str")
        if attr.default != REQUIRED and not isinstance(attr.default, attr.type):
            raise SpecError(f"the default of '{attr.name}' must be {attr.type.__name__}, but got {attr.default!r}")
        if attr.choices and attr.default != REQUIRED and attr.default not in attr.choices:
            raise SpecError(f"the default of '{attr.name}' is not among its choices")
    defaults = {attr.name: attr.default for attr in spec.attrs}
    for attr in spec.attrs:
        if attr.check and REQUIRED not in defaults.values() and not eval(attr.check, {}, dict(defaults)):  # noqa: S307
            raise SpecError(f"the default of '{attr.name}' breaks its check")


def _check_dims(spec):
    bound = {attr.name for attr in spec.attrs if attr.type is int}
    for tensor in spec.inputs:
        for factors in dim_tokens(tensor.dims):
            _check_token(tensor, factors)
            if len(factors) > 1 and not all(f in bound or f.isdigit() for f in factors):
                raise SpecError(
                    f"the product {'*'.join(factors)} of '{tensor.name}' must be of symbols bound before it"
                )
            bound.update(factors)
    always = {attr.name for attr in spec.attrs if attr.type is int}
    for tensor in spec.inputs:
        if not tensor.optional:
            always.update(f for factors in dim_tokens(tensor.dims) for f in factors)
    for tensor in spec.outputs:
        if tensor.dims == "*" and spec.infer != "custom":
            raise SpecError(f"output '{tensor.name}' of any shape needs infer='custom'")
        for factors in dim_tokens(tensor.dims):
            _check_token(tensor, factors)
            for factor in factors:
                if spec.infer is None and not factor.isdigit() and factor not in always:
                    raise SpecError(
                        f"dim {factor} of output '{tensor.name}' is not bound by an input that is always there"
                    )


def _check_token(tensor, factors):
    for factor in factors:
        if factor == "...":
            if tensor.dims.split()[0] != "..." or tensor.dims.count("...") > 1 or len(factors) > 1:
                raise SpecError(f"'...' of '{tensor.name}' must come first and once")
        elif not factor.isdigit() and not _SYMBOL.match(factor):
            raise SpecError(f"'{factor}' of '{tensor.name}' is not a dim")
