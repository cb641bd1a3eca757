"""Why two kernels are not fused: the reason of each fusion rule that could have fused them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A rule that came to look at two kernels and left them apart.

    Attributes:
        rule: a `fuse` block or a table.
        first, second: the ONNX nodes of the kernel that writes and of the one that reads, or of any two.
        reason: the condition that failed.
        figure, limit: of a condition on a number, the number that was found and the one that the rule admits.
        passed: how many conditions held before it: of several refusals the one with the most came nearest.
    """

    rule: str
    first: frozenset[str]
    second: frozenset[str]
    reason: str
    figure: float | None = None
    limit: float | None = None
    passed: int = 0

    def concerns(self, one: str, other: str) -> bool:
        """Whether it is about these two ONNX nodes, in either order."""
        return (one in self.first and other in self.second) or (other in self.first and one in self.second)


@dataclass
class Refusals:
    """All refusals of one optimization, in the order in which they came about."""

    found: dict[Refusal, None] = field(default_factory=dict)

    def note(
        self,
        rule: str,
        first: Iterable[str],
        second: Iterable[str],
        reason: str,
        figures: tuple[float, float] | None = None,
        passed: int = 0,
    ) -> None:
        """Add one; `figures` are the number that was found and the one that the rule admits."""
        figure, limit = figures if figures is not None else (None, None)
        self.found[
            Refusal(
                rule=rule,
                first=frozenset(first),
                second=frozenset(second),
                reason=reason,
                figure=figure,
                limit=limit,
                passed=passed,
            )
        ] = None

    def nearest(self, one: Iterable[str], other: Iterable[str]) -> list[Refusal]:
        """The refusals that are about nodes of two sets, the one that came nearest first."""
        left, right = set(one), set(other)
        about = [
            refusal
            for refusal in self.found
            if (left & refusal.first and right & refusal.second) or (right & refusal.first and left & refusal.second)
        ]
        return sorted(about, key=lambda refusal: -refusal.passed)
