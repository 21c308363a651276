# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""First thing to run on a card: one call of every operator, gradients too, in every dtype, against the CPU's kernels.

python examples/ascend_smoke.py                     prints a table and ends with 1 if a row is not ok
python examples/ascend_smoke.py --op rms_norm       the operators whose names begin so
"""

import argparse
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

import mindspore as ms  # noqa: E402
from op_examples import example  # noqa: E402

import ms_ops_transformer as mst  # noqa: E402
from ms_ops_transformer import _level, _native  # noqa: E402
from ms_ops_transformer.op_info.registry import all_specs, get  # noqa: E402
from ms_ops_transformer.ops._custom import primitive  # noqa: E402

# Of the largest value of a result: what rounding explains, with another order of summation and another exp.
LIMITS = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="", help="only operators whose names begin so")
    parser.add_argument("--device", default="Ascend", choices=("Ascend", "CPU"), help="CPU tests this script itself")
    args = parser.parse_args()
    if args.device == "Ascend" and mst._ascend_package() is None:
        sys.exit("error: this build of ms_ops_transformer has no Ascend package; see docs/ascend.md")
    try:
        ms.set_device(args.device)
        ms.ops.zeros((1,), ms.float32).asnumpy()
    except Exception as error:  # MindSpore has no type of its own for this
        sys.exit(f"error: MindSpore cannot use the device {args.device}: {error}")
    rows = failed = 0
    for name, spec in all_specs().items():
        for column in range(spec.num_columns) if name.startswith(args.op) else ():
            types = ",".join(dtypes[column] for dtypes in spec.dtypes.values())
            try:
                worst = compare(spec, column)
                answer = f"{worst:9.2e}  {'ok' if worst <= limit(spec, column) else 'FAIL'}"
            except Exception as error:  # the table goes on: one operator must not hide the others
                answer = f"           FAIL  {(str(error).splitlines() or [repr(error)])[0][:120]}"
            rows += 1
            failed += "FAIL" in answer
            print(f"{name:38} {types:18} {answer}", flush=True)
    if rows == 0:
        sys.exit(f"error: no operator's name begins with '{args.op}'.")
    print(f"{failed} of {rows} failed.")
    sys.exit(bool(failed))


def limit(spec, column):
    """The limit of the coarsest floating type among the results; moves and indices are exact."""
    types = {spec.dtype_of(tensor, column) for tensor in (*spec.inputs, *spec.outputs)}
    return max((LIMITS[dtype] for dtype in types if dtype in LIMITS), default=0.0)


def compare(spec, column):
    """Runs the example of an operator on both; the largest difference, as a part of the largest value."""
    arrays, attrs = inputs_of(spec, column)
    absent = tuple(tensor.name for tensor, array in zip(spec.inputs, arrays) if array is None)
    want = run_natively(spec, column, arrays, attrs)
    mutable = [i for i, tensor in enumerate(spec.inputs) if tensor.mutable and arrays[i] is not None]
    tensors = [
        None if array is None else ms.Tensor(array, getattr(ms, spec.dtype_of(tensor, column)))
        for tensor, array in zip(spec.inputs, arrays)
    ]
    found = primitive(spec.name, absent, **attrs)(*tensors)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    found += [tensors[i] for i in mutable]
    if len(found) != len(want):
        return np.inf
    worst = 0.0
    for a, b in zip(found, want):
        a, b = a.astype(ms.float32).asnumpy().astype(np.float64), b.astype(np.float64)
        written = ~np.isnan(b)  # of a gradient that nobody asked for one element stays as it was
        if a.shape != b.shape or not np.isfinite(a[written]).all():
            return np.inf
        worst = max(worst, np.abs(a - b)[written].max(initial=0) / max(np.abs(b[written]).max(initial=0), 1e-6))
    return worst


def inputs_of(spec, column):
    """Arrays for the example, None where an input is absent; 16-bit floating types as float32, rounded later."""
    shapes, attrs = example(spec, column)
    random = np.random.default_rng(0)
    arrays = [None if value is None else values_of(random, *value) for value in shapes]
    forward = get(spec.folder)
    if forward.name != spec.name:  # what the gradient takes from the results of its operator
        by_name = dict(zip((tensor.name for tensor in spec.inputs), arrays))
        args = [by_name.get(tensor.name) for tensor in forward.inputs]
        if all(array is not None or tensor.optional for array, tensor in zip(args, forward.inputs)):
            names = {attr.name for attr in forward.attrs}
            defaults = {attr.name: attr.default for attr in forward.attrs}
            given = {**defaults, **{name: value for name, value in attrs.items() if name in names}}
            results = zip((tensor.name for tensor in forward.outputs), run_natively(forward, column, args, given))
            by_name.update({name: array for name, array in results if name in by_name})
            arrays = [by_name[tensor.name] for tensor in spec.inputs]
    return arrays, attrs


def values_of(random, shape, dtype):
    """Numbers around 0 for floating types, and for integers some that every operator takes."""
    if dtype in LIMITS:
        return random.standard_normal(shape).astype(np.float32)
    return (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)


def run_natively(spec, column, arrays, attrs):
    """The results of the CPU's kernel, mutable inputs behind them, as float32 where they are floating."""
    types = [spec.dtype_of(tensor, column) for tensor in spec.inputs]
    stored = [None if array is None else to_stored(array, dtype) for array, dtype in zip(arrays, types)]
    shapes = [None if array is None else (array.shape, dtype) for array, dtype in zip(arrays, types)]
    inferred = _native.infer(spec.name, shapes, attrs)
    outputs = [to_stored(np.full(shape, np.nan if dtype in LIMITS else 0), dtype) for shape, dtype in inferred]
    _native.launch(_level.library(), spec.name, stored, attrs, outputs)
    results = [to_numbers(array, dtype) for array, (_, dtype) in zip(outputs, inferred)]
    updated = [i for i, tensor in enumerate(spec.inputs) if tensor.mutable and stored[i] is not None]
    return results + [to_numbers(stored[i], types[i]) for i in updated]


def to_stored(array, dtype):
    """As the kernels take it: bfloat16 is the upper half of a float32, rounded to even."""
    if dtype != "bfloat16":
        return np.ascontiguousarray(array.astype(dtype))
    bits = np.ascontiguousarray(array.astype(np.float32)).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_numbers(array, dtype):
    """The other way."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if dtype in LIMITS else array


if __name__ == "__main__":
    main()
