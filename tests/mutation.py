# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Whether the checked twin notices when a kernel forgets to synchronise, or makes a buffer too small.

    python tests/mutation.py [--op rms_norm]

A place is a line of a kernel with a PipeBarrier, EnQue, DeQue, SyncAll, a SetFlag or WaitFlag (or WaitPipe, which is
both), or an InitBuffer. The checked library can switch one place off, wherever a launch passes it: what stands there
orders nothing any more, and a buffer is 32 bytes smaller. The launches are those of the operators' own cases; a place
is caught if one of them breaks a rule. Nothing is compiled.
"""

import argparse
import collections
import ctypes
import pathlib

import all_cases
import numpy as np
from launch import Launcher, library_path

HERE = pathlib.Path(__file__).parent
KERNELS = HERE.parent / "kernels"


class Recorder(Launcher):
    """A `run` for launches that keeps what it was given."""

    def __init__(self, library, launches):
        super().__init__(library)
        self.launches = launches

    def __call__(self, op, inputs, **attrs):
        self.launches.append((op, _copies(inputs), attrs, self.library))
        return super().__call__(op, inputs, **attrs)


def _copies(inputs):
    if isinstance(inputs, dict):
        return {name: np.array(x) for name, x in inputs.items() if x is not None}
    return [None if x is None else np.array(x) for x in inputs]


class Checked:
    """The places of the checked library."""

    def __init__(self):
        self.library = ctypes.CDLL(library_path("checked"))
        self.library.mst_check_places.restype = ctypes.c_char_p

    def places(self):
        """Those that launches have passed since the last call: "kind file:line"."""
        return self.library.mst_check_places().decode().splitlines()

    def switch_off(self, place):
        kind, line = place.split(" ", 1) if place else ("", "")
        self.library.mst_check_switch_off(kind.encode(), line.encode())


def breaks_a_rule(launch):
    op, inputs, attrs, library = launch
    try:
        Launcher(library)(op, _copies(inputs), **attrs)
    except Exception as error:
        return str(error)
    return ""


class Survey:
    """Every place that the launches pass, and whether it is missed when it is off."""

    def __init__(self, ops=()):
        recorded = []
        recorder, recorder_for_cpu = Recorder("checked", recorded), Recorder("checked_cpu", recorded)
        collections.deque(all_cases.launches(recorder, run_for_cpu=recorder_for_cpu), maxlen=0)
        checked = Checked()
        checked.places()
        self.passing = collections.defaultdict(list)  # place: launches
        for launch in recorded:
            if ops and launch[0] not in ops:
                continue
            error = breaks_a_rule(launch)
            assert not error, f"{launch[0]}: {error}"
            for place in checked.places():
                self.passing[place].append(launch)
        self.caught = {}  # place: the rule
        for place, launches in self.passing.items():
            checked.switch_off(place)
            launches = sorted(launches, key=lambda launch: sum(x.size for x in _arrays(launch[1])))
            self.caught[place] = next(filter(None, map(breaks_a_rule, launches)), "")
        checked.switch_off("")
        self.survivors = sorted(place for place, rule in self.caught.items() if not rule)


def _arrays(inputs):
    return [x for x in (inputs.values() if isinstance(inputs, dict) else inputs) if x is not None]


def all_lines():
    """Every place in the sources of the kernels: "kind file:line"."""
    kinds = {"PipeBarrier<": "PipeBarrier", "EnQue(": "EnQue", "DeQue<": "DeQue", "SyncAll(": "SyncAll"}
    kinds |= {"SetFlag<": "flag", "WaitFlag<": "flag", "WaitPipe<": "flag", "InitBuffer(": "InitBuffer"}
    for path in sorted(KERNELS.rglob("*.h")):
        if "twin" in path.parts or path.name == "kernel_util.h":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text, kind in kinds.items():
                if text in line.split("//")[0]:
                    yield f"{kind} {path.name}:{number}"


def describe(place):
    """The place by its text and that before it, which change less often than the number of a line."""
    kind, line = place.split(" ", 1)
    name, number = line.split(":")
    (path,) = KERNELS.rglob(name)
    text = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()[: int(number)]]
    return f"{kind} {name}: {' | '.join(text[-2:])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", default=[], help="only launches of this operator")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what caught each place")
    args = parser.parse_args()
    survey = Survey(args.op)
    kinds = collections.Counter(place.split()[0] for place in survey.caught)
    missed = collections.Counter(place.split()[0] for place in survey.survivors)
    if args.verbose:
        for place, rule in sorted(survey.caught.items()):
            print(f"{place}: {rule}")
    for kind, count in sorted(kinds.items()):
        print(f"{kind:12} {count - missed[kind]} of {count} caught")
    total = len(survey.caught)
    print(f"{'all':12} {total - len(survey.survivors)} of {total} caught")
    for place in survey.survivors:
        print(f"survives: {place}")
    if not args.op:
        for place in sorted(set(all_lines()) - set(survey.caught)):
            print(f"no case passes: {place}")


if __name__ == "__main__":
    main()
