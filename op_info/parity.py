# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Does the twin promise only what the real Ascend C headers keep?

Every public declaration of the twin becomes small programs (probes) that compile only where the same thing exists: the
address of a function as exactly our type, and calls with our arguments, defaults given and left out, for every element
type that the twin takes; order and types of fields and what constructors make of them; the values of enumerators and
constants. So the text of the real headers is not read: the compiler answers. Arguments of one type that change places
it cannot tell apart.
"""

import itertools
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import cann_check, twin_api

ELEMENTS = (
    "float", "half", "bfloat16_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
    "uint64_t",
)  # fmt: skip
# Arguments to try for template parameters that are no element types, by "class or function.parameter" or parameter.
ARGUMENTS = {
    "TQueBind.src": ("TPosition::GM",),
    "TQueBind.dst": ("TPosition::VECIN",),
    "TQue.pos": ("TPosition::VECIN", "TPosition::VECOUT"),
    "TSCM.pos": ("TPosition::GM",),
    "TBuf.pos": ("TPosition::VECCALC",),
    "InitBuffer.pos": ("TPosition::VECCALC",),
    "InitBuffer.T": ("TQue<TPosition::VECIN, 1>", "TQueBind<TPosition::GM, TPosition::TSCM, 1>"),
    "MatmulType.POSITION": ("TPosition::GM", "TPosition::TSCM"),
    "MatmulType.FORMAT": ("CubeFormat::ND", "CubeFormat::NZ"),
    "depth": ("1", "2"),
    "srcUserPos": ("TPosition::GM",),
    "dstUserPos": ("TPosition::VECIN",),
    "evt": ("HardEvent::MTE2_V", "HardEvent::V_S"),
    "event": ("HardEvent::MTE2_V", "HardEvent::V_S"),
    "pipe": ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3", "PIPE_ALL"),
    "CrossCoreSetFlag.pipe": ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX"),
    "modeId": ("0", "1", "2"),
    "A_TYPE": ("matmul::MatmulType<TPosition::GM, CubeFormat::ND, half, true>",),
    "B_TYPE": (
        "matmul::MatmulType<TPosition::GM, CubeFormat::ND, half, true>",
        "matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, half, true>",
    ),
    "C_TYPE": ("matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>",),
}
PRELUDE = """\
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include <cstddef>
#include <type_traits>
using namespace AscendC;
void Differs() __attribute__((error("a field gets another value")));
"""
SOC = "ascend910b"  # whose instructions the twin has
LANGUAGE = ("-std=c++17", "-w", "-fno-diagnostics-show-caret")


@dataclass(frozen=True)
class Probe:
    """A program for one declaration and one choice of template arguments."""

    declaration: twin_api.Declaration
    what: str  # address, call, type, value, order, fields
    arguments: tuple  # ((template parameter, argument), ...)
    code: str

    def __str__(self):
        chosen = ", ".join(f"{name} = {argument}" for name, argument in self.arguments)
        return f"{self.what} of {self.declaration}" + f" with {chosen}" * bool(chosen)


# --- compiling


def twin_command(twin_dir):
    """Compiles against the twin."""
    return ["g++", *LANGUAGE, "-I", str(twin_dir.parent), "-I", str(twin_dir)]


def tree_command(tree):
    """Compiles against real headers, as the kernels are compiled by `check`."""
    return ["g++", *LANGUAGE, *tree.cpu_flags(SOC)]


def failing(codes, command, work_dir):
    """{index: first error} of the programs that do not compile, all in one file as far as possible.

    An error that two programs share is reported once, so what is left is compiled again until nothing fails.
    """
    failed = {}
    source = Path(work_dir, "probes.cpp")
    while True:
        left = [i for i in range(len(codes)) if i not in failed]
        source.write_text(PRELUDE + "".join(_placed(i, codes[i]) for i in left))
        result = subprocess.run([*command, str(source)], capture_output=True, text=True)
        if result.returncode == 0:
            return failed
        before = len(failed)
        for at, error in _errors(result.stderr):
            failed.setdefault(at, error)
        if len(failed) == before:
            raise RuntimeError(f"the compiler stopped outside the probes:\n{result.stderr[:4000]}")


def _placed(number, code):
    """`code` under a file name of its own, by which errors are assigned to it."""
    return f'#line 1 "probe {number}"\nnamespace probe_{number} {{\n{code}\n}}\n'


def _errors(text):
    """(number of the program, text) of each error; one inside a template belongs to the program that needs it."""
    needed_by = None
    for line in text.splitlines():
        place = re.match(r"probe (\d+):", line)
        if " error: " in line:
            number = int(place[1]) if place else needed_by
            if number is not None:
                yield number, line.split(" error: ", 1)[1]
            needed_by = None
        elif place and "required from" in line:
            needed_by = int(place[1])


def differences(probes, command, work_dir):
    """{probe: error} of those that do not compile."""
    failed = {}
    for folded in (False, True):  # fields are compared by the optimizer, which only runs where all else is right
        group = [probe for probe in probes if (probe.what == "fields") == folded]
        mode = ["-O2", "-S", "-o", os.devnull] if folded else ["-fsyntax-only"]
        errors = failing([probe.code for probe in group], [*command, *mode], work_dir)
        failed.update({group[i]: error for i, error in errors.items()})
    return failed


def offered(twin_dir, work_dir):
    """Every probe that the twin passes, and the declarations for which it passes none (there should be none)."""
    command = twin_command(twin_dir)
    probes = probes_of(twin_dir)
    # What the twin refuses (a type that an instruction lacks) one probe finds out, the first.
    first = {}
    for probe in probes:
        first.setdefault((probe.declaration, probe.arguments), probe)
    refused = failing([probe.code for probe in first.values()], [*command, "-fsyntax-only"], work_dir)
    refused = {key for i, key in enumerate(first) if i in refused}
    probes = [probe for probe in probes if (probe.declaration, probe.arguments) not in refused]
    errors = differences(probes, command, work_dir)
    if errors:
        raise RuntimeError("\n".join(f"the twin fails its own probe, {probe}: {errors[probe]}" for probe in errors))
    taken = {probe.declaration for probe in probes}
    return probes, [declaration for declaration in twin_api.declarations(twin_dir)[0] if declaration not in taken]


# --- from declarations to programs


def probes_of(twin_dir):
    """Probes of every declaration, also for types that the twin refuses."""
    declared, aliases = twin_api.declarations(twin_dir)
    probes, fields = [], {}
    for declaration in declared:
        if declaration.kind == "field":
            fields.setdefault(declaration.owner, []).append(declaration)
    for declaration in declared:
        owner = declaration.owner if declaration.owner and declaration.owner.kind == "class" else None
        for number, chosen in enumerate(_choices(declaration)):
            setup = [_named(p, chosen[p.name]) for scope in (owner, declaration) if scope for p in scope.template]
            if owner:
                setup.append(f"using Class = {_instance(owner, chosen)};")
                setup += [f"using {a.name} = {a.value};" for a in aliases.get(owner, ()) if a.name not in chosen]
            codes = list(_codes(declaration, owner, chosen, fields))
            if owner and number == 0 and declaration.name == owner.name and owner in fields:
                codes += _field_codes(declaration, owner, fields[owner])
            for what, code in codes:
                probes.append(Probe(declaration, what, tuple(chosen.items()), "\n".join([*setup, code])))
    return probes


def _choices(declaration):
    """Template arguments of the declaration and its class: {parameter: argument} for every combination to try."""
    scopes = [scope for scope in (declaration.owner, declaration) if scope]
    named = [(f"{scope.name}.{p.name}", p) for scope in scopes for p in scope.template]
    lists = []
    for key, p in named:
        default = (p.default,) if p.default else ELEMENTS if _is_type(p) else ()
        lists.append(ARGUMENTS.get(key) or ARGUMENTS.get(p.name) or default)
    for combination in itertools.product(*lists):
        yield {p.name: argument for (_, p), argument in zip(named, combination)}


def _is_type(parameter):
    return parameter.type in ("typename", "class")


def _named(parameter, argument):
    """Makes the name of a template parameter usable in what follows."""
    if _is_type(parameter):
        return f"using {parameter.name} = {argument};"
    return f"constexpr {parameter.type} {parameter.name} = {argument};"


def _template_arguments(declaration, chosen, only_needed=False):
    used = [p for p in declaration.template if not (only_needed and p.default)]
    return f"<{', '.join(p.name if _is_type(p) else chosen[p.name] for p in used)}>" if declaration.template else ""


def _instance(declaration, chosen):
    return f"::{declaration.qualified}{_template_arguments(declaration, chosen)}"


def _codes(d, owner, chosen, fields):
    """(what, code) of each probe of a declaration."""
    if d.kind == "function":
        yield from _function_codes(d, owner, chosen)
    elif d.kind == "field":
        yield "type", f"static_assert(std::is_same_v<decltype(Class::{d.name}), {d.type}>);"
        at = fields[owner].index(d)
        if at:
            yield "order", f"static_assert(offsetof(Class, {fields[owner][at - 1].name}) < offsetof(Class, {d.name}));"
    elif d.kind == "enumerator":
        yield "value", f"static_assert(static_cast<int64_t>(::{d.qualified}) == {d.value});"
    elif d.kind == "enum":
        scoped, _, base = d.type.partition(" ")
        converts = f"std::is_convertible_v<::{d.qualified}, int>"
        yield "type", f"static_assert({converts} == {'false' if scoped else 'true'});"
        if base:
            yield "type", f"static_assert(std::is_same_v<std::underlying_type_t<::{d.qualified}>, {base}>);"
    elif d.kind == "constant":
        name = f"Class::{d.name}" if owner else f"::{d.qualified}"
        yield "type", f"static_assert(std::is_same_v<decltype({name}), const {d.type}>);"
        if "," not in d.value:  # not an aggregate
            yield "value", f"static_assert({name} == {chosen.get(d.value, d.value)});"
    elif d.kind == "alias":
        name = f"typename Class::{d.name}" if owner else _instance(d, chosen)
        yield "type", f"static_assert(std::is_same_v<{name}, {d.value}>);"
    elif d.kind == "class":
        yield "type", f"static_assert(sizeof({_instance(d, chosen)}) != 0);"
        if d.value.startswith("public "):
            base = d.value[len("public ") :]
            yield "type", f"static_assert(std::is_base_of_v<{base}, {_instance(d, chosen)}>);"
    elif d.kind == "namespace":
        yield "type", f"namespace N = ::{d.qualified}; using namespace N;"
    elif d.kind == "macro":
        yield "value", f"#ifndef {d.name}\n#error no such macro\n#endif"


def _function_codes(d, owner, chosen):
    types = ", ".join(p.type for p in d.parameters)
    if owner and d.name == owner.name:
        yield "call", _calls(d, lambda names: f"Class c{{{names}}}; (void)c;")
        return
    if d.name.startswith("operator "):  # a conversion
        yield "call", f"void F(const Class& c) {{ (void)static_cast<{d.name[len('operator ') :]}>(c); }}"
        return
    template = "template " if owner and d.template else ""
    prefix = f"Class::{template}" if owner else f"::{'::'.join((*d.scope, ''))}"
    full = _template_arguments(d, chosen)
    for arguments in dict.fromkeys((full, _template_arguments(d, chosen, only_needed=True))):
        target = f"c.{template}{d.name}{arguments}" if owner else f"{prefix}{d.name}{arguments}"
        first = "const " * d.const + "Class& c, " if owner else ""
        yield "call", _calls(d, lambda names, target=target: f"{target}({names});", first)
    # With every template argument: where one is left out, CANN may have a second template of the same type.
    result = "Class" if owner and d.type == owner.name else d.type
    pointer = "(Class::*p)" if owner else "(*p)"
    yield "address", f"{result} {pointer}({types}){' const' * d.const} = &{prefix}{d.name}{full};"


def _calls(d, statement, first=""):
    """A function with our parameters that makes every call they allow, each default given and left out."""
    types = [re.sub(r"\[.*\]$", "*", p.type) for p in d.parameters]
    parameters = ", ".join(f"{type_} a{i}" for i, type_ in enumerate(types))
    needed = sum(not p.default for p in d.parameters)
    calls = (statement(", ".join(f"a{i}" for i in range(n))) for n in range(needed, len(types) + 1))
    return f"void F({(first + parameters).rstrip(', ')}) {{ {' '.join(f'{{ {call} }}' for call in calls)} }}"


def _field_codes(constructor, owner, fields):
    """Do the fields get the same values from this constructor as in a copy of our struct?"""
    if any("Tensor" in field.type for field in fields):
        return
    setup, names = [], []
    for i, p in enumerate(constructor.parameters):
        if "[" in p.type:
            setup.append(f"{p.type.replace('[', f' a{i}[')} = {{11, 12, 13, 14}};")
            names.append(f"a{i}")
        else:
            names.append(f"static_cast<{p.type}>({i + 1})")
    copy = re.sub(rf"\b{owner.name}\b", "Ours", owner.body)
    compared = [f"{f.name}[1]" if "[" in f.type else f.name for f in fields]
    tests = " ".join(f"if (!(c.{name} == o.{name})) Differs();" for name in compared)
    made = f"Class c{{{', '.join(names)}}}; Ours o{{{', '.join(names)}}};"
    yield "fields", f"struct Ours {copy};\nvoid F() {{ {' '.join(setup)} {made} {tests} }}"


# --- what must not compile

# Operands of the programs below.
OPERANDS = """\
LocalTensor<float> f; LocalTensor<half> h; LocalTensor<bfloat16_t> b; LocalTensor<int8_t> i8; LocalTensor<uint8_t> u8;
LocalTensor<int16_t> i16; LocalTensor<int32_t> i; LocalTensor<uint32_t> u; LocalTensor<int64_t> i64;
GlobalTensor<float> gm; TPipe pipe; TQue<TPosition::VECIN, 1> queue; TBuf<> buffer; half x(1.0f); uint64_t mask[2];
"""
LACKS = {
    "vector arithmetic on bfloat16": "Add(b, b, b, 16);",
    "bfloat16 by a scalar": "Muls(b, b, bfloat16_t(2.0f), 16);",
    "maximum of bfloat16": "Max(b, b, b, 16);",
    "exponential of bfloat16": "Exp(b, b, 16);",
    "sum of bfloat16": "ReduceSum(b, b, b, 16);",
    "comparison of bfloat16": "Compare(u8, b, b, CMPMODE::LT, 128);",
    "selection of bfloat16": "Select(b, u8, b, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 16);",
    "sorting bfloat16": "Sort32(b, b, u, 1);",
    "division of integers": "Div(i, i, i, 16);",
    "addition of 8-bit integers": "Add(i8, i8, i8, 32);",
    "addition of 64-bit integers": "Add(i64, i64, i64, 16);",
    "addition of unsigned integers": "Add(u, u, u, 16);",
    "absolute value of int32": "Abs(i, i, 16);",
    "root of int32": "Sqrt(i, i, 16);",
    "shifting float": "ShiftLeft(f, f, 1.0f, 16);",
    "sum of int32": "ReduceSum(i, i, i, 16);",
    "maximum of int32": "ReduceMax(i, i, i, 16);",
    "sums of repeats of int32": "WholeReduceSum(i, i, 64, 1, 1, 1, 8);",
    "filling 8-bit integers": "Duplicate(i8, static_cast<int8_t>(1), 32);",
    "sorting int32": "Sort32(i, i, u, 1);",
    "a cast from half to bfloat16": "Cast(b, h, RoundMode::CAST_RINT, 16);",
    "a cast from int8 to float": "Cast(f, i8, RoundMode::CAST_NONE, 16);",
    "a cast from int32 to bfloat16": "Cast(b, i, RoundMode::CAST_RINT, 16);",
    "a cast from uint32 to float": "Cast(f, u, RoundMode::CAST_RINT, 16);",
    "operands of two types": "Add(f, f, h, 16);",
    "a scalar of another type": "Adds(f, f, 1, 16);",
    "filling with a scalar of another type": "Duplicate(f, 1, 16);",
    "comparison with a scalar of another type": "CompareScalar(u8, f, 1, CMPMODE::LT, 64);",
    "an axpy of integers": "Axpy(i, i, 1, 16);",
    "a copy between types": "DataCopy(f, h, 16);",
    "a copy from global to global memory": "DataCopy(gm, gm, 16);",
    "a padded copy without padding": "DataCopyPad(f, gm, DataCopyExtParams());",
    "a tensor as one of another type": "LocalTensor<half> other = f;",
    "a flag without event": "SetFlag(0);",
    "a flag without id": "SetFlag<HardEvent::MTE2_V>();",
    "a barrier without pipe": "PipeBarrier();",
    "an atomic add without type": "SetAtomicAdd();",
    "a tensor of no type from a queue": "queue.AllocTensor();",
    "allocation in place from a queue": "queue.AllocTensor<float>(f);",
    "a buffer with a number of parts": "pipe.InitBuffer(buffer, 2, 1024);",
    "a queue without a number of buffers": "pipe.InitBuffer(queue, 1024);",
    "a gather by signed offsets": "Gather(f, f, i, 0u, 64u);",
    "a 16-bit pattern for 32-bit elements": "uint64_t n; GatherMask(f, f, i16, false, 0, GatherMaskParams(), n);",
    "two of the sizes of SoftmaxConfig": "SoftmaxConfig config(true, 1u); (void)config;",
    "a 64-bit integer into a half": "h.SetValue(0, int64_t{1});",
}
# What the headers let pass in CPU-debug mode: they check these types at run time, or have a class for what is a type of
# the device compiler.
LACKS_ON_THE_CARD = {
    "logic on 32 bits": "And(i, i, i, 16);",
    "logic on float": "Or(f, f, f, 16);",
    "an implicit conversion of half": "half y = 1.0f; (void)y;",
    "a half as a float": "float y = x; (void)y;",
    "arithmetic of half scalars": "x = x + x;",
}


def lacking_code(statements):
    """A program of LACKS."""
    return f"void F() {{ {OPERANDS} {statements} }}"


# --- reports


def run(twin_dir, directories, report):
    """Compares the twin with every header tree below `directories`, name by name."""
    if not directories:
        return
    trees, probes, results = _compare(twin_dir, directories)
    names = {}
    for probe in probes:  # members and enumerators under their type
        declaration = probe.declaration.owner or probe.declaration
        names.setdefault(declaration.qualified, []).append(probe)
    for tree, (errors, taken) in zip(trees, results):
        report.show(f"\n{tree.name}: the API of the twin")
        for name, group in names.items():
            wrong = [f"{probe}\n      {errors[probe]}" for probe in group if probe in errors]
            declared = len({probe.declaration for probe in group})
            what = f"{name:38} {declared:3} declared, {len(group):4} probes"
            report.add(what, wrong[:5], tree.not_run(SOC))
        for what, statements in LACKS.items():
            missed = [f"these headers take what the twin refuses: {statements}"] if what in taken else []
            report.add(f"no {what}", missed, tree.not_run(SOC))


def table(twin_dir, directories=()):
    """Lines of a Markdown table: every declaration of the twin, the types it takes, and what each header tree says."""
    trees, probes, results = _compare(twin_dir, directories)
    yield f"| {' | '.join([*(tree.name for tree in trees), 'declaration', 'for'])} |"
    yield "| --- " * (len(trees) + 2) + "|"
    by_declaration = {}
    for probe in probes:
        by_declaration.setdefault(probe.declaration, []).append(probe)
    for declaration, group in by_declaration.items():
        verdicts = [
            "not run" if tree.not_run(SOC) else "differs" if any(probe in errors for probe in group) else "same"
            for tree, (errors, _) in zip(trees, results)
        ]
        text = str(declaration).replace("|", "\\|")
        yield f"| {' | '.join([*verdicts, f'`{text}`', _types_of(group)])} |"


def _types_of(group):
    """The element types that a declaration takes: "float, half"; of two parameters "float, half / int32_t; ..."."""
    taken = dict.fromkeys(tuple(a for _, a in probe.arguments if a in ELEMENTS) for probe in group)
    rest_of = {}
    for first, *rest in filter(None, taken):
        rest_of.setdefault(first, []).append("/".join(rest))
    firsts_of = {}
    for first, rest in rest_of.items():
        firsts_of.setdefault(tuple(rest), []).append(first)
    return "; ".join(f"{_list(firsts)} / {_list(rest)}".removesuffix(" / ") for rest, firsts in firsts_of.items())


def _list(types):
    return "all types" if len(types) == len(ELEMENTS) else ", ".join(types)


def _compare(twin_dir, directories):
    """The trees, the twin's probes, and of each tree {probe: error} and which of LACKS it has after all."""
    with tempfile.TemporaryDirectory(prefix="mst_parity_") as work:
        work_dir = Path(work)
        trees = cann_check.find_trees(directories, work_dir)
        probes, untested = offered(twin_dir, work_dir)
        if untested:
            raise RuntimeError(f"no template arguments to try for {'; '.join(map(str, untested))}")

        def compare(item):
            number, tree = item
            if tree.not_run(SOC):
                return {}, []
            own_dir = work_dir / f"probes_{number}"
            own_dir.mkdir()
            errors = differences(probes, tree_command(tree), own_dir)
            codes = [lacking_code(statements) for statements in LACKS.values()]
            refused = failing(codes, [*tree_command(tree), "-fsyntax-only"], own_dir)
            return errors, [what for i, what in enumerate(LACKS) if i not in refused]

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return trees, probes, list(pool.map(compare, enumerate(trees)))
