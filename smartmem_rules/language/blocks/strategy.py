"""`strategy` blocks: in which phases rule sets run, and what ends each phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.blocks.keys import BlockRecord, Value, phases
from smartmem_rules.records import dataclass

LIMITS = ("rounds", "enodes", "seconds")


class PhaseError(SmartmemError):
    """A phase is not written as one; `place` is the number of the value that is wrong."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Rule sets that run together until they give nothing new.

    Attributes:
        rounds: after so many rounds the phase ends; in each, all rules are applied to all that was there before it.
        enodes: the phase ends when the e-graph has more rows than this, looked at after each round.
        seconds: the phase ends when it has taken longer, looked at after each round.

    Where a limit is None, the one that holds for all phases ends it (`egraph.saturation.Bounds`).
    """

    rulesets: tuple[str, ...]
    rounds: int | None = None
    enodes: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return " and ".join(self.rulesets)


def phase_of(values: Sequence[Value]) -> Phase:
    """A phase from the values of its entry: rule sets, then limits.

    Raises:
        PhaseError: a limit is none, or has no number above zero.
    """
    names = [str(value) for value in values]
    first = next((place for place, name in enumerate(names) if name in LIMITS), len(names))
    if first == 0:
        raise PhaseError("a phase names the rule sets that it runs before its limits", 0)
    wrong = next((place for place, value in enumerate(values[:first]) if not isinstance(value, str)), None)
    if wrong is not None:
        raise PhaseError(f"`{names[wrong]}` is no limit: write `rounds {names[wrong]}`, `enodes` or `seconds`", wrong)
    limits: dict[str, float] = {}
    for place in range(first, len(values), 2):
        name, number = names[place], values[place + 1] if place + 1 < len(values) else None
        if name not in LIMITS:
            raise PhaseError(f"`{name}` is no limit: there are {', '.join(LIMITS)}", place)
        if name in limits:
            raise PhaseError(f"`{name}` is given twice", place)
        if isinstance(number, str | None) or number <= 0 or (name != "seconds" and number != int(number)):
            raise PhaseError(f"`{name}` takes a {'' if name == 'seconds' else 'whole '}number above 0", place)
        limits[name] = number
    return Phase(
        rulesets=tuple(names[:first]),
        rounds=None if "rounds" not in limits else int(limits["rounds"]),
        enodes=None if "enodes" not in limits else int(limits["enodes"]),
        seconds=limits.get("seconds"),
    )


def rulesets_of(values: Sequence[Value]) -> list[tuple[int, str]]:
    """The rule sets among the values of a phase, with their places; of a phase that may not be checked yet."""
    names = list(map(str, values))
    first = next((place for place, name in enumerate(names) if name in LIMITS), len(names))
    return [(place, name) for place, name in enumerate(names[:first]) if isinstance(values[place], str)]


def one_by_one(rulesets: Iterable[str | Phase]) -> tuple[Phase, ...]:
    """Each rule set as a phase of its own."""
    return tuple(one if isinstance(one, Phase) else Phase(rulesets=(one,)) for one in rulesets)


@dataclass(frozen=True, kw_only=True)
class Strategy(BlockRecord):
    """A `strategy` block."""

    phase: tuple[Phase, ...] = phases(
        "rule sets that run together until nothing new comes, then limits: `rounds`, `enodes`, `seconds`", phase_of
    )
