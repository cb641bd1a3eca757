"""Loops that end by their data, as far as they are unrolled: a run says whether they have ended by then."""

from __future__ import annotations

from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class UnrolledLoop:
    """A loop that may take more steps than it was unrolled for."""

    name: str
    steps: int

    def __str__(self) -> str:
        return (
            f"the Loop {self.name!r} has not ended after {self.steps} steps, for which it was unrolled: its end "
            "depends on data. Optimize the model again with limits=Limits(steps=N) or --limit steps=N"
        )


@dataclass(frozen=True)
class Endings:
    """Which of a graph's unrolled loops has not ended.

    Attributes:
        number: a scalar tensor that a run computes: 0, or the number from 1 on of a loop whose results are wrong.
        loops: those that it counts.
    """

    number: str
    loops: tuple[UnrolledLoop, ...]

    def complaint(self, number: int) -> str:
        """What a run says that has found such a number."""
        return str(self.loops[number - 1]) if 0 < number <= len(self.loops) else f"loop {number} has not ended"
