# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""From specs to MindSpore primitives: the only file that registers with MindSpore."""

import functools
import os
import threading

import mindspore as ms
from mindspore import nn, ops
from mindspore.ops import CustomRegOp, DataType

from .. import _ascend_package, _level, _native
from ..op_info import registry
from ..op_info.emit import ascend
from . import _check

_DTYPE_NAMES = {
    ms.float32: "float32",
    ms.float16: "float16",
    ms.bfloat16: "bfloat16",
    ms.int8: "int8",
    ms.uint8: "uint8",
    ms.int32: "int32",
    ms.int64: "int64",
    ms.bool_: "bool",
}
_MS_DTYPES = {name: dtype for dtype, name in _DTYPE_NAMES.items()}
_SEQUENCE = "a tuple"  # in place of a dtype
_BPROPS = {}
_ONE_CALL = threading.Lock()  # MindSpore hands the results of concurrent calls to the wrong thread
os.register_at_fork(before=_ONE_CALL.acquire, after_in_parent=_ONE_CALL.release, after_in_child=_ONE_CALL.release)
_CACHED_SHAPES = 1024  # results of inference that a primitive keeps


def bprop_of(name):
    """Decorator: the function makes the bprop of an operator from its attributes.

    It is called once per set of attributes with a dict of all of them and, under "absent", the names of the optional
    inputs that are None. The bprop must be a `def` with parameters (*inputs, out, dout) that returns one gradient per
    input, None for an input that is None.
    """

    def register(factory):
        _BPROPS[name] = factory
        return factory

    return register


@_check.at_build
def primitive(name, absent=(), **attrs):
    """The primitive of an operator with these attributes; `absent` names the optional inputs that will be None.

    It is one for the device target of the first call: that must be set before.
    """
    try:
        hash(tuple(attrs.values()))
    except TypeError:
        _check.attributes(registry.get(name), attrs)
    return _primitive(name, absent, **attrs)


# Without a bound: MindSpore itself keeps most of what belongs to a primitive (about 120 of 165 KB for attention), and
# keeps it again for one that is made anew.
@functools.lru_cache(None, typed=True)  # 1 and 1.0 are different attributes
def _primitive(name, absent, **attrs):
    spec = registry.get(name)
    values = _check.attributes(spec, attrs)
    _check_build(spec)
    target = ms.get_context("device_target")
    if target != "CPU":
        _check_ascend(spec, target)
    factory = _BPROPS.get(name)
    bprop = factory({**values, "absent": absent}) if factory else None
    if target == "CPU":
        reg_info = _cpu_info(spec, {**values, "absent": ",".join(absent)})
        return _Primitive(spec, values, absent, bprop, f"{_level.library()}:{spec.class_name}", reg_info)
    operator = _AscendPrimitive(spec, values, absent, None, ascend.api_name(spec), _ascend_info(spec))
    call = _OnAscend(operator, operator.lists, tuple(values.values()))
    return _with_bprop(call, bprop) if bprop else call


def _check_build(spec):
    if spec.name not in _native.ops():
        raise RuntimeError(f"'{spec.name}' is not in the native library: run 'python setup.py build_native'.")
    if _native.digest(spec.name) != spec.digest:
        raise RuntimeError(f"op_info of '{spec.name}' has changed: run 'python setup.py build_native'.")


def _check_ascend(spec, target):
    if target != "Ascend":
        raise RuntimeError(f"For '{spec.class_name}', the device target must be CPU or Ascend, but got {target}.")
    if _ascend_package() is None:
        raise RuntimeError(
            f"For '{spec.class_name}', the device target is Ascend, but this build of ms_ops_transformer runs on the "
            "CPU only: install it with ASCEND_HOME_PATH naming the CANN toolkit."
        )


def _info(spec, name):
    reg = CustomRegOp(name)
    for i, tensor in enumerate(spec.inputs):
        reg.input(i, tensor.name)
    for i, tensor in enumerate(spec.outputs):
        reg.output(i, tensor.name)
    return reg


def _cpu_info(spec, attrs):
    reg = _info(spec, spec.class_name)
    reg.dtype_format(*[DataType.None_None] * (len(spec.inputs) + len(spec.outputs)))  # dtypes are checked natively
    for name, value in attrs.items():
        reg.attr(name, "required", "all", value=value)
    return reg.target("CPU").get_op_info()


def _ascend_info(spec):
    """Says no values of attributes: MindSpore hands the aclnn function what a call is given, these included."""
    reg = _info(spec, ascend.api_name(spec))
    for column in range(spec.num_columns):
        types = [spec.dtype_of(tensor, column) for tensor in (*spec.inputs, *spec.outputs)]
        reg.dtype_format(*[(dtype, "DefaultFormat") for dtype in types])
    for attr in spec.attrs:
        reg.attr(attr.name, "required", attr.type.__name__)
    return reg.target("Ascend").get_op_info()


class _Primitive(ops.Custom):
    """An aot operator whose inference is the native one.

    Python infers whatever is known when a graph is built or a call is made, and so raises TypeError and ValueError. Of
    a dynamic graph it also tells MindSpore to ask <Op>InferShape of the library when the dims become known.
    """

    def __init__(self, spec, attrs, absent, bprop, func, reg_info):
        self._spec = spec
        self._is_absent = [tensor.name in absent for tensor in spec.inputs]
        self._inferred = {}
        self._native = _native.Op(spec.name, attrs)
        super().__init__(func, _unused, _unused, "aot", bprop, reg_info)
        if spec.mutable:
            self.add_prim_attr("side_effect_mem", True)

    def __infer__(self, *args):
        dtypes = [_dtype_name(arg["dtype"]) for arg in args]
        if _SEQUENCE in dtypes:
            self._reject(dtypes)
        key = (*dtypes, *[tuple(arg["shape"] or ()) for arg in args])
        known = self._inferred.get(key)
        if known is None:
            known = self._infer([arg["shape"] for arg in args], dtypes)
            if len(self._inferred) >= _CACHED_SHAPES:
                self._inferred.clear()
            self._inferred[key] = known
        return {"shape": known[0], "dtype": known[1], "value": None}

    def _infer(self, shapes, dtypes):
        if [dtype is None for dtype in dtypes] != self._is_absent:
            self._reject(dtypes)
        outputs = self._native.infer(shapes, dtypes)
        if any(dim < 0 for shape in shapes if shape for dim in shape):
            self.add_prim_attr("cpp_infer_shape", True)  # at run time Python cannot be asked
        if len(outputs) == 1:
            return outputs[0][0], _MS_DTYPES[outputs[0][1]]
        return tuple(shape for shape, _ in outputs), tuple(_MS_DTYPES[dtype] for _, dtype in outputs)

    def __call__(self, *args):
        # After use in a dynamic graph <Op>InferShape comes before __infer__, and is not told which inputs are None.
        if [arg is None for arg in args] != self._is_absent:
            self._reject([None if arg is None else "a tensor" for arg in args])
        with _ONE_CALL:
            return super().__call__(*args)

    def _reject(self, args):
        """Says what is wrong with the inputs: None, _SEQUENCE or anything else for a tensor."""
        name = self._spec.class_name
        if len(args) != len(self._is_absent):
            number = len(self._is_absent)
            raise TypeError(f"For '{name}', the number of inputs must be {number}, but got {len(args)}.")
        for tensor, arg in zip(self._spec.inputs, args):
            if arg == _SEQUENCE or (arg is None and not tensor.optional):
                raise TypeError(f"For '{name}', '{tensor.name}' must be a Tensor, but got {arg}.")
        raise ValueError(f"For '{name}', exactly the inputs that are None must be named in `absent`.")


class _AscendPrimitive(_Primitive):
    """The aclnn function of an operator: its calls also get the values of the attributes.

    CANN takes the values of a `host` input as a list, so that an empty one stands for None.
    """

    def __init__(self, spec, attrs, absent, bprop, func, reg_info):
        self.lists = tuple(tensor.host and tensor.name in absent for tensor in spec.inputs)
        super().__init__(spec, attrs, absent, bprop, func, reg_info)

    def __infer__(self, *args):
        none = {"shape": None, "dtype": None}
        return super().__infer__(*[none if is_list else arg for arg, is_list in zip(args, self.lists)])

    def _infer(self, shapes, dtypes):
        if any(dim < 0 for shape in shapes if shape for dim in shape):
            name = self._spec.class_name
            raise ValueError(f"For '{name}', shapes must be known when a graph is built for Ascend, but got {shapes}.")
        return super()._infer(shapes, dtypes)


class _OnAscend(nn.Cell):
    """Calls an aclnn function as a graph in every mode: call by call MindSpore passes on twelve arguments at most."""

    def __init__(self, operator, lists, values):
        super().__init__()
        self.operator = operator
        self.lists = lists
        self.values = values

    @ms.jit(jit_level="O0")
    def construct(self, *tensors):
        args = ()
        for tensor, is_list in zip(tensors, self.lists):
            args = args + (() if is_list else tensor,)
        return self.operator(*args, *self.values)


def _with_bprop(call, bprop):
    """The bprop of tensors alone, for a call whose operator takes more."""
    from mindspore.ops.function.grad.grad_func import custom_vjp  # not public, and of no use on the CPU

    cell = custom_vjp(call)
    cell.defbwd(bprop)
    return cell


def _unused(*_):
    """Stands for out_shape and out_dtype, which __infer__ gives."""


def _dtype_name(dtype):
    if dtype is None:
        return None
    if isinstance(dtype, (tuple, list)):
        return _SEQUENCE
    element = dtype.element_type() if hasattr(dtype, "element_type") else dtype
    return _DTYPE_NAMES.get(element) or str(element).lower()
