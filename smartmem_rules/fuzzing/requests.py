"""What a worker is asked and what it answers, as documents: both are lines of JSON."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class HuntData(TypedDict):
    """A hunt (`fuzzing.equal.hunting.Hunt`)."""

    systems: list[str]
    forms: int
    rules: list[str]
    seed: int
    places: NotRequired[list[int]]


class Request(TypedDict, total=False):
    """A case, and what to do with it instead of judging it.

    Attributes:
        file: a model; its mode is drawn where there is a seed.
        source, seed: of a drawn case.
        save: a folder that the case is written into.
        hunt: equal forms of it are given to other systems.
    """

    file: str
    source: str
    seed: int
    save: str
    hunt: HuntData


class VerdictData(TypedDict, total=False):
    """A verdict (`fuzzing.judge.Verdict`)."""

    kind: str
    detail: str
    seconds: float


class FoundData(TypedDict):
    """What a hunt found (`fuzzing.equal.hunting.Found`)."""

    system: str
    place: int
    verdict: VerdictData


class Extras(TypedDict, total=False):
    """What a worker says beside a verdict.

    Attributes:
        operators: of the case's model.
        judged: pairs of a form and a system, in a hunt.
    """

    operators: list[str]
    mode: str
    name: str
    judged: int
    found: list[FoundData]


class Answered(Extras):
    """What a worker says."""

    verdict: VerdictData
