# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""First thing to run on a card: every case of every operator, gradients too, against the CPU's kernels.

pip install '.[test]'                               the cases are those of the operators' tests
python examples/ascend_smoke.py                     prints a table and ends with 1 if a row is not ok
python examples/ascend_smoke.py --op rms_norm       the operators whose names begin so
"""

import argparse
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

import mindspore as ms  # noqa: E402
from all_cases import launches  # noqa: E402
from harness import NUMPY, to_numpy, to_tensor  # noqa: E402
from launch import Launcher  # noqa: E402
from op_examples import example  # noqa: E402

import ms_ops_transformer as mst  # noqa: E402
from ms_ops_transformer.op_info.registry import all_specs, get  # noqa: E402
from ms_ops_transformer.ops._custom import primitive  # noqa: E402

# Of the largest value of a result: what rounding explains, with another order of summation and another exp. What is
# copied, and whole numbers, must be the same.
LIMITS = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
LARGEST = float(np.finfo(np.float32).max)  # marks a row without keys


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="", help="only operators whose names begin so")
    parser.add_argument("--device", default="Ascend", choices=("Ascend", "CPU"), help="CPU tests this script itself")
    args = parser.parse_args()
    if not any(name.startswith(args.op) for name in all_specs()):
        sys.exit(f"error: no operator's name begins with '{args.op}'.")
    if args.device == "Ascend" and mst._ascend_package() is None:
        sys.exit("error: this build of ms_ops_transformer has no Ascend package; see docs/ascend.md")
    try:
        ms.set_device(args.device)
        ms.ops.zeros((1,), ms.float32).asnumpy()
    except Exception as error:  # MindSpore has no type of its own for this
        sys.exit(f"error: MindSpore cannot use the device {args.device}: {error}")
    run = Comparison(args.op)
    for name, spec in all_specs().items():
        for column in range(spec.num_columns) if name.startswith(args.op) else ():
            run.case = "example"
            inputs, attrs = inputs_of(spec, column)
            run(name, inputs, **attrs)
    for case in launches(run, every_dtype=True):
        run.case = case
    for (name, types), (count, failed, worst) in sorted(run.rows.items()):
        print(f"{name:38} {types:18} {count:4} launches {worst:9.2e}  {f'{failed} FAIL' if failed else 'ok'}")
    failures = sum(failed for _, failed, _ in run.rows.values())
    print(f"{failures} of {sum(count for count, _, _ in run.rows.values())} launches failed.")
    sys.exit(bool(failures))


class Comparison:
    """A `run` for launches: the results are those of the CPU's kernel, and the device's are held against them."""

    def __init__(self, prefix):
        self.prefix, self.case = prefix, ""
        self.cpu = Launcher("fast")
        self.rows = {}  # {(operator, types): [launches, failed ones, largest difference]}

    def __call__(self, op, inputs, **attrs):
        spec = get(op)
        if isinstance(inputs, dict):
            inputs = [inputs.get(tensor.name) for tensor in spec.inputs]
        inputs = [*inputs, *[None] * (len(spec.inputs) - len(inputs))]
        attrs = {**{attr.name: attr.default for attr in spec.attrs}, **attrs}
        before = [None if x is None else np.array(x) for x in inputs]
        outputs = self.cpu(op, inputs, **attrs)
        if op.startswith(self.prefix):
            updated = [x for tensor, x in zip(spec.inputs, inputs) if tensor.mutable and x is not None]
            self.compare(spec, before, attrs, [*outputs, *updated])
        return outputs

    def compare(self, spec, inputs, attrs, wanted):
        """Runs the device; an error there is told and must not hide what comes after."""
        given = [(tensor, x.dtype.name) for tensor, x in zip(spec.inputs, inputs) if x is not None]
        columns = range(spec.num_columns)
        column = next(i for i in columns if all(spec.dtype_of(tensor, i) == dtype for tensor, dtype in given))
        types = ",".join(dtypes[column] for dtypes in spec.dtypes.values())
        row = self.rows.setdefault((spec.name, types), [0, 0, 0.0])
        rounded = () if spec.moves else (x for x in (*inputs, *wanted) if x is not None)
        limit = max((LIMITS.get(x.dtype.name, 0.0) for x in rounded), default=0.0)
        try:
            difference = largest_difference(on_device(spec, inputs, attrs), wanted)
            trouble = "" if difference <= limit else f"differs by {difference:.2e}"
            row[2] = max(row[2], difference)
        except Exception as error:  # MindSpore has no type of its own for this
            trouble = (str(error).splitlines() or [repr(error)])[0][:200]
        row[0] += 1
        if trouble:
            row[1] += 1
            print(f"FAIL {spec.name} {self.case}: {trouble}", flush=True)


def on_device(spec, inputs, attrs):
    """Results of the device: outputs, then what was updated in place."""
    absent = tuple(tensor.name for tensor, x in zip(spec.inputs, inputs) if x is None)
    tensors = [None if x is None else to_tensor(x) for x in inputs]
    found = primitive(spec.name, absent, **attrs)(*tensors)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    found += [x for tensor, x in zip(spec.inputs, tensors) if tensor.mutable and x is not None]
    return [to_numpy(x) for x in found]


def largest_difference(found, wanted):
    """As a part of the largest value of a result; infinite where shapes, whole numbers or those not finite differ."""
    if [x.shape for x in found] != [x.shape for x in wanted]:
        return np.inf
    worst = 0.0
    for a, b in zip(found, wanted):
        if b.dtype.kind in "iub" and (a != b).any():
            return np.inf
        a, b = a.astype(np.float64), b.astype(np.float64)
        written = ~np.isnan(b)  # of a gradient that nobody asked for one element stays as it was
        number = written & np.isfinite(b) & (np.abs(b) < LARGEST)
        if (a[written & ~number] != b[written & ~number]).any() or not np.isfinite(a[number]).all():
            return np.inf
        worst = max(worst, np.abs(a - b)[number].max(initial=0) / max(np.abs(b[number]).max(initial=0), 1e-6))
    return worst


def inputs_of(spec, column):
    """Arrays for the example, None where an input is absent, and its attributes."""
    shapes, attrs = example(spec, column)
    random = np.random.default_rng(0)
    arrays = [None if value is None else values_of(random, *value) for value in shapes]
    forward = get(spec.folder)
    if forward.name != spec.name:  # what the gradient takes from the results of its operator
        by_name = dict(zip((tensor.name for tensor in spec.inputs), arrays))
        args = [by_name.get(tensor.name) for tensor in forward.inputs]
        if all(array is not None or tensor.optional for array, tensor in zip(args, forward.inputs)):
            names = {attr.name for attr in forward.attrs}
            given = {name: value for name, value in attrs.items() if name in names}
            results = zip((tensor.name for tensor in forward.outputs), Launcher("fast")(forward.name, args, **given))
            by_name.update({name: array for name, array in results if name in by_name})
            arrays = [by_name[tensor.name] for tensor in spec.inputs]
    return arrays, attrs


def values_of(random, shape, dtype):
    """Numbers around 0 for floating types, and for integers some that every operator takes."""
    if dtype in LIMITS:
        return random.standard_normal(shape).astype(NUMPY[dtype])
    return (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)


if __name__ == "__main__":
    main()
