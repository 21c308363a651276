# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""What a check says, a line for each thing that it looked at."""


class Report:
    """Shows lines and counts verdicts. What was asked for and could not be looked at is no pass."""

    def __init__(self, show=print):
        self.show = show
        self.counts = {"ok": 0, "FAIL": 0, "not run": 0}

    def add(self, what, errors=(), not_run=""):
        """One verdict; the first of `errors` below it."""
        verdict = "FAIL" if errors else "not run" if not_run else "ok"
        self.counts[verdict] += 1
        self.show(f"  {what}  {verdict}{f': {not_run}' if verdict == 'not run' else ''}")
        for error in errors:
            self.show(f"    {error}")

    @property
    def sound(self):
        """Whether everything that was asked for was looked at and is right."""
        return not (self.counts["FAIL"] or self.counts["not run"])

    def summary(self):
        """The last line."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
