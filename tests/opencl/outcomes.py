"""What the suite gave on each implementation of OpenCL, and the table of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What the suite gave on one implementation; `failed` has the tests by name, `missing` why none ran."""

    name: str
    platform: str = ""
    device: str = ""
    driver: str = ""
    workarounds: list[str] = field(default_factory=list)
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    missing: str = ""

    @property
    def passes(self) -> bool:
        """Whether it was run, some test was there, and nothing failed."""
        return not self.missing and not self.failed and self.passed > 0

    @property
    def verdict(self) -> str:
        """A word or a sentence."""
        if self.missing:
            return f"not run: {self.missing}"
        if self.failed:
            return f"{len(self.failed)} fail"
        return "passes" if self.passes else "nothing ran"


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: a line for each implementation, those that were not run with the reason."""
    lines = ["| implementation | driver | passed | failed | skipped | |", "|---|---|---:|---:|---:|---|"]
    for one in outcomes:
        numbers = ["-"] * 3 if one.missing else [str(one.passed), str(len(one.failed)), str(one.skipped)]
        lines.append("| " + " | ".join([one.name, one.driver or "-", *numbers, one.verdict]) + " |")
    passing = sum(one.passes for one in outcomes)
    return "\n".join([*lines, "", f"The suite passes on {passing} of {len(outcomes)}."])


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 where each implementation that was run passes; those that were not do not count, unless none was."""
    ran = [one for one in outcomes if not one.missing]
    return int(not ran or not all(one.passes for one in ran))
