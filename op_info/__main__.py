# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""`python -m ms_ops_transformer.op_info`: what each operator is, and everything that is derived from that."""

import argparse
import functools
import os
import sys

from . import ascend_package, cann_check, cost, parity
from .emit import ascend, cpu
from .registry import all_specs, get
from .report import Report
from .spec import ALL, REQUIRED, SpecError


def main():
    """Runs one command."""
    parser = argparse.ArgumentParser(prog="python -m ms_ops_transformer.op_info", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the operators")
    commands.add_parser("table", help="the table of README.md: dtypes and targets")
    show = commands.add_parser("show", help="the text that is generated from a spec")
    show.add_argument("op")
    stage = commands.add_parser("stage", help="writes the project that builds the operators for the card")
    stage.add_argument("--out", required=True, metavar="DIR", help="a new folder")
    stage.add_argument("--cann", required=True, metavar="HOME", help="the CANN toolkit that will build it")
    checks = commands.add_parser("check", help="checks the specs and what is generated from them")
    checks.add_argument("--cann", action="append", default=[], metavar="DIR", help="compile against the headers there")
    twin = commands.add_parser("twin", help="the table of docs/twin_api.md: what the twin offers")
    twin.add_argument("--cann", action="append", default=[], metavar="DIR", help="compare with the headers there")
    cost.add_arguments(commands.add_parser("cost", help="what a call would cost on the card, by the checked twin"))
    args = parser.parse_args()
    try:
        _run(args)
    except (SpecError, ascend_package.BuildError, cost.CostError) as error:
        sys.exit(f"error: {error}")


def _run(args):
    if args.command == "list":
        print("\n".join(all_specs()))
    elif args.command == "table":
        print(table())
    elif args.command == "twin":
        print("\n".join(parity.table(cpu.KERNELS / "twin", args.cann)))
    elif args.command == "show":
        print(show_text(get(args.op)))
    elif args.command == "cost":
        cost.command(args)
    elif args.command == "stage":
        ascend_package.stage(args.cann, args.out)
    else:
        sys.exit(not check(args.cann))


def show_text(spec):
    """The spec in words, then every generated file; what reads a header that is not written yet says so."""
    name = ascend.entry_name(spec)
    files = (
        (f"{spec.name}_desc.cpp: libmst_runtime.so", lambda: cpu.desc_text(spec)),
        (f"{spec.name}_cpu.cpp: libmst_<level>.so", lambda: cpu.entry_text(spec)),
        (f"op_host/{name}.cpp: compiled by CANN", lambda: ascend.op_host_text(spec)),
        (f"op_kernel/{name}.cpp: compiled by CANN", lambda: ascend.kernel_entry(spec, cpu.KERNELS)),
    )
    parts = [_describe(spec)]
    for title, generate in files:
        try:
            text = generate()
        except (FileNotFoundError, SpecError) as error:
            text = f"// not yet: {error}\n"
        parts.append(f"// ---- {title}\n{text}")
    return "\n".join(parts)


def _describe(spec):
    lines = [f"// {spec.class_name} ({spec.family}/{spec.folder})"]
    for role, tensors in (("input", spec.inputs), ("output", spec.outputs)):
        for tensor in tensors:
            flags = "".join(f", {flag}" for flag in ("optional", "mutable", "host") if getattr(tensor, flag))
            lines.append(f"//   {role:6} {tensor.name}: [{tensor.dims}] {tensor.dtype}{flags}")
    for attr in spec.attrs:
        default = "required" if attr.default == REQUIRED else f"default {attr.default!r}"
        rules = [f"one of {attr.choices}"] * bool(attr.choices) + [attr.check] * bool(attr.check)
        lines.append(f"//   attr   {attr.name}: {', '.join([attr.type.__name__, default, *rules])}")
    for symbol, column in spec.dtypes.items():
        lines.append(f"//   dtypes {symbol}: {', '.join(column)}")
    lines.append(
        f"//   targets {', '.join(spec.targets)}; variants {', '.join(spec.variants) or 'none'}; grad {spec.grad}"
    )
    return "\n".join(lines) + "\n"


def table():
    """One line per operator that users call: gradients are a column."""
    specs = all_specs()
    targets = sorted({target for spec in specs.values() for target in spec.targets})
    rows = [["operator", "family", "floating types", "gradient", *targets], ["---"] * (4 + len(targets))]
    for name, spec in specs.items():
        if name != spec.folder:  # a gradient, or another part of the operator its folder is named after
            continue
        floats = [dtype for dtype in ("float32", "float16", "bfloat16") if _takes(spec, dtype)]
        support = ["all" if spec.targets.get(t) == ALL else "some" if t in spec.targets else "-" for t in targets]
        rows.append([f"`{name}`", spec.family, ", ".join(floats), "yes" if spec.grad else "-", *support])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _takes(spec, dtype):
    return any(dtype in spec.dtypes.get(tensor.dtype, (tensor.dtype,)) for tensor in spec.inputs)


def check(cann_dirs=()):
    """Generates everything; with headers also compiles it and compares the twin's API. Whether all of it is sound."""
    report = Report(functools.partial(print, flush=True))
    report.show("Text for the CPU")
    for spec in all_specs().values():
        try:
            cpu.desc_text(spec)
            cpu.entry_text(spec)
        except (SpecError, OSError) as error:
            report.add(spec.name, [str(error)])
        else:
            report.add(spec.name)
    cann_check.run(list(all_specs().values()), cpu.KERNELS, cann_dirs, report)
    parity.run(cpu.KERNELS / "twin", cann_dirs, report)
    report.show(f"\n{report.summary()}")
    return report.sound


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(sys.argv[1:2] == ["check"])  # which did not come to its end
