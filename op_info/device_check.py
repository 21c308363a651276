# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Do the kernel entries compile as for the device: with address spaces, the compiler's 16-bit types, core by core?

CANN's device compiler is a clang. Here an upstream clang++ parses the same headers with CPU debugging off. What CANN's
has built in comes from the CPU-debug library: its declarations of the intrinsics name an address space for every
pointer, which g++ never sees. So `float* p = gmPointer`, or a pointer taken for what GetPhyAddr() of a LocalTensor
gives, is refused as on the device. Nothing is generated or run.
"""

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

CORES = ("VEC", "CUBE")  # the device compiler sees an entry once for each
OLDEST = 17  # the first clang with arithmetic on __bf16
MISSING = f"clang++ {OLDEST} or newer is missing"

_SPACES = ("gm", "ubuf", "cbuf", "ca", "cb", "cc", "fbuf", "biasbuf", "ssbuf")
# Names that the CPU-debug library and the headers in device mode both declare, each in its own way.
_BOTH = (
    "g_coreType", "g_tilingKey", "fp4x2_e2m1_t", "fp4x2_e1m2_t", "fp8_e5m2_t", "fp8_e4m3fn_t", "fp8_e8m0_t",
)  # fmt: skip


def prelude():
    """What comes before the headers: types, address spaces and intrinsics of the device compiler."""
    lines = [
        "#include <cmath>",
        "#include <cstddef>",
        "#include <cstdint>",
        "#include <cstring>",
        "#define ASCENDC_FP16_H  // the library's classes for these two stay out",
        "#define ASCENDC_BF16_H",
        "typedef _Float16 half;",
        "typedef __bf16 bfloat16_t;",
        "namespace bfloat16 { using Bf16T = bfloat16_t; }",
        *(f"#define {name} cpu_debug_{name}" for name in _BOTH),
        '#include "stub_def.h"',
        *(f"#undef {name}" for name in _BOTH),
    ]
    for number, space in enumerate(_SPACES, 1):
        lines += [f"#undef __{space}__", f"#define __{space}__ __attribute__((address_space({number})))"]
    lines += [
        '#include "stub_fun.h"',
        "// Declared there with the other operand's address space.",
        "void load_cbuf_to_cb(__cb__ bfloat16_t*, __cbuf__ bfloat16_t*, uint16_t, uint8_t, uint16_t, uint16_t,",
        "                     uint8_t, bool, addr_cal_mode_t);",
        "// CANN's build generates a copy; what it holds is not looked at.",
        "#define GET_TILING_DATA_WITH_STRUCT(type, name, address) type name{}",
    ]
    return "\n".join(lines) + "\n"


# A string is in GM for the device compiler, on the stack for clang: pointers to const char, which only the headers' own
# messages have, are left without address space.
_TEXT = re.compile(
    r"__attribute__\(\(address_space\(1\)\)\) const char\b|\bconst __attribute__\(\(address_space\(1\)\)\) char\b"
    r"|\bchar const __attribute__\(\(address_space\(1\)\)\)"
)


@lru_cache
def compiler():
    """The newest clang++ on PATH, None when there is none or only old ones."""
    found = {}
    for name in ("clang++", *(f"clang++-{version}" for version in range(OLDEST, 60))):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "-dumpversion"], capture_output=True, text=True).stdout.partition(".")[0]
            found[int(version) if version.isdigit() else 0] = path
    return found[max(found)] if found and max(found) >= OLDEST else None


class DeviceMode:
    """Compiles for one SoC against one header tree."""

    def __init__(self, tree, soc_flags, kernels_dir, work_dir):
        prelude_file = Path(work_dir, "device_prelude.h")
        prelude_file.write_text(prelude())
        self._flags = ["-include", str(prelude_file), *tree.include, *soc_flags, "-I", str(kernels_dir)]
        self._arch = next(flag for flag in soc_flags if flag.startswith("-D__DAV_")).rstrip("_")
        headers = '#include "kernel_operator.h"\n#include "lib/matmul_intf.h"\n'
        # What the headers alone do not compile: intrinsics that the library does not declare, strings in GM.
        self._own = {core: set(self._errors(headers, core)) for core in CORES}
        self.set_aside = max(map(len, self._own.values()))
        # Behind such an error nothing is looked at.
        self.stopped = next((e for own in self._own.values() for e in own if " error: " not in e or "fatal" in e), "")

    def errors(self, text):
        """The errors of a translation unit, with the instantiation each came from, on either core."""
        found = []
        for core in CORES:
            errors = self._errors(text, core)
            found += [line for error in errors if error not in self._own[core] for line in errors[error]]
        return found

    def _errors(self, text, core):
        """{error: its line and the lines that tell where it comes from}"""
        command = [compiler(), "-std=c++17", "-w", "-ferror-limit=0", "-fno-caret-diagnostics"]
        core_flags = [f"{self._arch}_{core}__", f"-D__DAV_{core}__"]
        done = subprocess.run(
            [*command, "-E", "-x", "c++", *self._flags, *core_flags, "-"], input=text, capture_output=True, text=True
        )
        if done.returncode == 0:
            text = _TEXT.sub(lambda match: match[0].replace("__attribute__((address_space(1)))", ""), done.stdout)
            command += ["-fsyntax-only", "-x", "c++-cpp-output", "-"]
            done = subprocess.run(command, input=text, capture_output=True, text=True)
        errors, current = {}, None
        for line in done.stderr.splitlines():
            if " error: " in line:
                current = errors.setdefault(line, [f"{line} [{core}]"])
            elif current and "requested here" in line:
                current.append(line)
        if done.returncode and not errors:
            errors[done.stderr] = [f"{compiler()} ended with {done.returncode}", *done.stderr.splitlines()[:4]]
        return errors


# Programs that g++ takes and the device compiler does not: if one of them compiles here, the mode proves nothing.
OPERANDS = (
    "GlobalTensor<float> gm; LocalTensor<float> ub; __gm__ float* x; __ubuf__ float* u; GM_ADDR bytes; float a[8];"
)
REFUSED = {
    "a pointer to GM as a plain one": "float* p = x; (void)p;",
    "a plain pointer as one to GM": "__gm__ float* p = a; (void)p;",
    "the address of a GlobalTensor as a plain pointer": "const float* p = gm.GetPhyAddr(); (void)p;",
    "the address of a LocalTensor as a pointer": "float* p = ub.GetPhyAddr(); (void)p;",
    "a GlobalTensor on the stack": "gm.SetGlobalBuffer(a);",
    "a pointer to UB as one to GM": "__gm__ float* p = u; (void)p;",
    "GM bytes as a plain struct": "auto p = reinterpret_cast<const int*>(bytes); (void)p;",
    "memcpy from GM": "memcpy(a, bytes, sizeof(a));",
}
TAKEN = "__gm__ float* p = reinterpret_cast<__gm__ float*>(bytes); gm.SetGlobalBuffer(p); a[0] = *p + ub.GetValue(0);"


def wrong_programs(device):
    """{what device mode does with a program: [] if it is so}"""
    programs = {"takes a right program": TAKEN, **{f"refuses {what}": code for what, code in REFUSED.items()}}
    text = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
    for number, statements in enumerate(programs.values()):
        text += f'#line 1 "program {number}"\nvoid F{number}() {{ {OPERANDS} {statements} }}\n'
    errors = "\n".join(device.errors(text))
    refused = {number for number in range(len(programs)) if f"program {number}:" in errors}
    return {
        what: [statements] if (number in refused) == (statements == TAKEN) else []
        for number, (what, statements) in enumerate(programs.items())
    }
