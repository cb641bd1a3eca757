"""What verification says about a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass

PROVED = "proved"
TESTED = "tested"
FAILED = "failed"
VACUOUS = "vacuous"
UNKNOWN = "unknown"


def kind_of(rule: object) -> str:
    """The word for a kind of rule."""
    kinds = {
        "Rewrite": "rewrite",
        "Eliminate": "eliminate",
        "IndexRule": "index",
        "Keep": "keep",
        "Operator": "operator",
        "Table": "table",
    }
    return kinds.get(type(rule).__name__, "layout")


@dataclass(frozen=True)
class Counterexample:
    """One instance of a rule at which it is wrong.

    Attributes:
        summary: one line: what differs.
        lines: the whole instance, readable: shapes, attributes, values on both sides.
        snippet: Python that shows the difference again.
        data: the instance as plain data, from which it can be built again.
    """

    summary: str
    lines: tuple[str, ...]
    snippet: str
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RuleReport:
    """The verdict on one rule and what it rests on.

    Attributes:
        kind: rewrite, eliminate, index, keep, operator, table or layout.
        trials: instances with values at which both sides were compared; all satisfied the rule's guards.
        cases: the different shapes and attributes among them.
        satisfied: the share of generated instances that satisfied the guards; nothing else was counted.
        refused: instances that satisfied the guards, but that the engine turns down: the types of both sides differ.
        rounding: the greatest difference of both sides in float32 relative to the largest element, None if unmeasured.
        reason: why a verdict is no better than it is.
    """

    name: str
    kind: str
    span: Span
    verdict: str
    method: str
    assumptions: tuple[str, ...] = ()
    trials: int = 0
    cases: int = 0
    satisfied: float | None = None
    refused: int = 0
    rounding: float | None = None
    seconds: float = 0.0
    reason: str | None = None
    counterexample: Counterexample | None = None

    def data(self) -> dict[str, object]:
        """The report as JSON."""
        found = self.counterexample
        return {
            "name": self.name,
            "kind": self.kind,
            "file": self.span.file,
            "line": self.span.line,
            "column": self.span.column,
            "verdict": self.verdict,
            "method": self.method,
            "assumptions": list(self.assumptions),
            "trials": self.trials,
            "cases": self.cases,
            "satisfied_share": None if self.satisfied is None else round(self.satisfied, 4),
            "refused_by_type": self.refused,
            "float32_rounding": self.rounding,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
            "counterexample": None
            if found is None
            else {
                "summary": found.summary,
                "lines": list(found.lines),
                "snippet": found.snippet,
                "data": dict(found.data),
            },
        }


@dataclass(frozen=True)
class Verification:
    """The reports on all rules, in the order of the rule files."""

    rules: Sequence[RuleReport]
    seed: int
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether no rule failed and none is vacuous."""
        return not self.unsound

    @property
    def unsound(self) -> list[RuleReport]:
        """The rules that failed, and those that are vacuous."""
        return [r for r in self.rules if r.verdict in (FAILED, VACUOUS)]

    def counts(self) -> dict[str, int]:
        """How many rules have each verdict."""
        return {v: sum(r.verdict == v for r in self.rules) for v in (PROVED, TESTED, FAILED, VACUOUS, UNKNOWN)}

    @property
    def least_trials(self) -> int:
        """The fewest satisfied trials of any rule."""
        return min((r.trials for r in self.rules), default=0)

    @property
    def processor_seconds(self) -> float:
        """The time that all rules took together."""
        return sum(r.seconds for r in self.rules)

    def by_kind(self) -> dict[str, dict[str, int]]:
        """How many rules of each kind have each verdict that occurs."""
        found: dict[str, dict[str, int]] = {}
        for report in self.rules:
            verdicts = found.setdefault(report.kind, {})
            verdicts[report.verdict] = verdicts.get(report.verdict, 0) + 1
        return found

    def data(self) -> dict[str, object]:
        """The verification as JSON."""
        return {
            "rules": [r.data() for r in self.rules],
            "verdicts": self.counts(),
            "kinds": self.by_kind(),
            "least_trials": self.least_trials,
            "processor_seconds": round(self.processor_seconds, 2),
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
        }
