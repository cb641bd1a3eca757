"""What a worker does with one model: makes equal forms of it, and gives each of them to the systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from smartmem_rules.egraph.saturation import EngineError
from smartmem_rules.errors import SmartmemError
from smartmem_rules.fuzzing.case import SELF, Case, Mode
from smartmem_rules.fuzzing.equal.forms import Forms
from smartmem_rules.fuzzing.equal.rules import admitted_base
from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import MORE_RUNS, Reference
from smartmem_rules.fuzzing.judge import NO_REFERENCE, RIGHT, Verdict, judge
from smartmem_rules.fuzzing.requests import Answered, HuntData, Request
from smartmem_rules.fuzzing.systems import SYSTEMS
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase

UNEQUAL = "unequal"
"""The kind of a verdict on two forms whose references differ: a rule or the engine is wrong."""


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """What is looked for in one model.

    Attributes:
        systems: who computes the forms.
        forms: how many forms beside the model itself.
        rules: the names of the admitted rules.
        seed: of the choice of forms.
        places: only these forms, 0 for the model itself; all where it is empty.
    """

    systems: tuple[str, ...]
    forms: int
    rules: tuple[str, ...]
    seed: int
    places: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """A form that a system computes wrongly.

    Attributes:
        place: which form, 0 for the model itself.
    """

    system: str
    place: int
    verdict: Verdict


def hunt(case: Case, wanted: Hunt) -> tuple[int, list[Found]]:
    """How many pairs of a form and a system were judged, and what failed."""
    if case.mode.dims or not is_plain(case):
        return 0, []
    judged, found = 0, []
    for place, form, reason in forms_of(case, wanted):
        if wanted.places and place not in wanted.places:
            continue
        if reason:
            found.append(Found(system=SELF, place=place, verdict=Verdict(UNEQUAL, reason)))
            continue
        for system in wanted.systems:
            if takes(system, form):
                verdict = judge(replace(form, mode=mode_of(case, system)))
                judged += verdict.kind != NO_REFERENCE
                if verdict.failed:
                    found.append(Found(system=system, place=place, verdict=verdict))
    return judged, found


def forms_of(case: Case, wanted: Hunt) -> Iterator[tuple[int, Case, str]]:
    """The model and its forms with their numbers, and why one is not equal, where it is not."""
    yield 0, case, ""
    base = admitted_base(wanted.rules)
    for place, form in enumerate(equal_forms(case, base, wanted.forms, wanted.seed), 1):
        yield place, form, unequal(case, form)


def equal_forms(case: Case, base: RuleBase, count: int, seed: int) -> Iterator[Case]:
    """Up to `count` cases whose models are equal to that of a case; none where the model cannot be imported."""
    try:
        drawn = list(Forms(case.model, base).draw(count, seed)) if count else []
    except (SmartmemError, EngineError):
        return
    for place, form in enumerate(drawn, 1):
        given = {value.name for value in form.model.graph.input}
        feeds = {name: array for name, array in case.feeds.items() if name in given}
        yield Case(f"{case.name}-form-{place}", form.model, feeds, case.mode)


def unequal(case: Case, form: Case) -> str:
    """Where the references of a model and of a form differ by more than rounding; empty where they do not."""
    try:
        expected = Reference(case.model, case.feeds).expected(runs=MORE_RUNS)
        other = Reference(form.model, form.feeds)
        with np.errstate(all="ignore"):
            results = {name: array for name, array in other.compute(None, overflow=False).items()}
    except NoReference:
        return ""
    typed = {n: a.astype(other.native_outputs()[n].dtype) for n, a in results.items()}
    wrong = differences(typed, expected)
    return "; ".join(f"{name}: {line}" for name, line in wrong.items())


def mode_of(case: Case, system: str) -> Mode:
    """How a system computes the forms of a case: our own engine as the case says."""
    return case.mode if system == SELF else Mode(system=system)


def is_plain(case: Case) -> bool:
    """Whether all numbers are finite: what NaN and infinities give is too often a matter of taste."""
    return all(np.isfinite(array).all() for array in case.feeds.values() if array.dtype.kind == "f")


def takes(system: str, case: Case) -> bool:
    """Whether a system computes a model in the types that it names."""
    if system == SELF or not SYSTEMS[system].narrows:
        return True
    try:
        reference = Reference(case.model, case.feeds)
    except NoReference:
        return False
    made = {name for node in case.model.graph.node for name in node.output} | set(case.feeds)
    arrays = [array for name, array in reference.natives.items() if array is not None and name in made]
    return not any(array.dtype.name in SYSTEMS[system].narrows for array in arrays)


def answer_hunt(case: Case, request: Request) -> Answered:
    """The answer to a request with a `hunt`."""
    wanted = hunt_from(request["hunt"])
    judged, found = hunt(case, wanted)
    worst = found[0].verdict if found else Verdict(RIGHT if judged else NO_REFERENCE)
    return {
        "verdict": worst.data(),
        "operators": sorted({node.op_type for node in case.model.graph.node}),
        "mode": ",".join(wanted.systems),
        "judged": judged,
        "found": [{"system": one.system, "place": one.place, "verdict": one.verdict.data()} for one in found],
    }


def data_of_hunt(wanted: Hunt) -> HuntData:
    """A hunt as JSON data."""
    return {
        "systems": list(wanted.systems),
        "forms": wanted.forms,
        "rules": list(wanted.rules),
        "seed": wanted.seed,
        "places": list(wanted.places),
    }


def hunt_from(data: HuntData) -> Hunt:
    """A hunt from JSON data."""
    return Hunt(
        systems=tuple(data["systems"]),
        forms=int(data["forms"]),
        rules=tuple(data["rules"]),
        seed=int(data["seed"]),
        places=tuple(data.get("places", ())),
    )
