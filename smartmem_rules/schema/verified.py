"""What the commands print that verify rules, find new ones and write their reference."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from smartmem_rules.exchange.documents import with_fields_of
from smartmem_rules.fuzzing.campaigns.hunt import Finding
from smartmem_rules.verification.minimize import Cost, Redundant


class CounterexampleShown(TypedDict):
    """An instance at which a rule is wrong; `data` builds it again, `snippet` is Python that shows it."""

    summary: str
    lines: list[str]
    snippet: str
    data: dict[str, object]


class RuleVerdict(TypedDict):
    """The verdict on one rule and what it rests on.

    Attributes:
        trials: instances with values at which both sides were compared.
        cases: the different shapes and attributes among them.
        satisfied_share: of generated instances that satisfied the guards.
        refused_by_type: instances that the engine turns down because the types of both sides differ.
        float32_rounding: the greatest difference of both sides relative to the largest element.
        reason: why a verdict is no better than it is.
    """

    name: str
    kind: str
    file: str
    line: int
    column: int
    verdict: Literal["proved", "tested", "failed", "vacuous", "unknown"]
    method: str
    assumptions: list[str]
    trials: int
    cases: int
    satisfied_share: float | None
    refused_by_type: int
    float32_rounding: float | None
    seconds: float
    reason: str | None
    counterexample: CounterexampleShown | None


class Reads(TypedDict):
    """Reads of operators' definitions, and how many are proved to stay inside their tensors."""

    proved: int
    total: int


class Caught(TypedDict):
    """Mutants of one kind."""

    caught: int
    total: int


class Mutant(TypedDict):
    """A rule with an error planted in it."""

    rule: str
    change: str
    reason: str


class Mutants(TypedDict):
    """How many planted errors the verifier caught."""

    total: int
    caught: int
    kinds: dict[str, Caught]
    survivors: list[Mutant]
    equivalent: list[Mutant]
    discarded: list[Mutant]
    seconds: float


class VerifyReport(TypedDict):
    """A report on each rule; `mutants` with --mutants, `saved` counterexamples with --save."""

    rules: list[RuleVerdict]
    verdicts: dict[str, int]
    kinds: dict[str, dict[str, int]]
    least_trials: int
    processor_seconds: float
    seed: int
    seconds: float
    reads: Reads
    mutants: NotRequired[Mutants]
    saved: NotRequired[list[str]]


@with_fields_of(Redundant)
class RedundantRule(TypedDict):
    """A rule that follows from others, and its cost in the models of --on."""

    cost: Cost | None


class MinimalBase(TypedDict):
    """Rules that do not follow from each other, with --minimize; `together` is the cost of all others."""

    kept: list[str]
    unseen: list[str]
    redundant: list[RedundantRule]
    together: Cost | None
    models: list[str]


class FuzzReport(TypedDict):
    """What systems compute wrongly; `rules` are those that made equal models, with their verdicts."""

    models: int
    judged: int
    again: int
    found: dict[str, int]
    findings: list[Finding]
    rules: dict[str, str]


class DiscoveredRule(TypedDict):
    """A rewrite that does not follow from the rules there are, as text of a rule file."""

    name: str
    text: str
    proved: bool


class DiscoverReport(TypedDict):
    """A search for rewrites: terms and pairs looked at, and what became of the pairs."""

    rules: list[DiscoveredRule]
    terms: int
    pairs: int
    derivable: int
    refuted: int
    reorderings: int
    seconds: float


class ReferenceFiles(TypedDict):
    """The pages of the reference."""

    files: list[str]
