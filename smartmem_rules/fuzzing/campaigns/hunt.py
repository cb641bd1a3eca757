"""Finds what others compute wrongly, with equal forms of models: many models, and each finding made small and proved.

The judge of a form is the model in double precision with the spread of its roundings (`fuzzing.reference`). A finding
is reduced like any other failing case; the rules then make forms of the reduced model, and one that the system computes
rightly stands beside it, with the rules that lead from one to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path

from smartmem_rules.fuzzing.campaigns.answers import case_of
from smartmem_rules.fuzzing.campaigns.campaign import Answer
from smartmem_rules.fuzzing.campaigns.worker import Worker
from smartmem_rules.fuzzing.case import SELF, Case
from smartmem_rules.fuzzing.equal.hunting import (
    UNEQUAL,
    Found,
    Hunt,
    data_of_hunt,
    equal_forms,
    forms_of,
    hunt_from,
    mode_of,
)
from smartmem_rules.fuzzing.equal.proofs import Step, prove_equal
from smartmem_rules.fuzzing.equal.rules import Admitted, admitted_base
from smartmem_rules.fuzzing.judge import CRASH, HANG, RIGHT, Verdict
from smartmem_rules.fuzzing.reduction import Reducer
from smartmem_rules.fuzzing.requests import HuntData, Request
from smartmem_rules.fuzzing.systems import SYSTEMS
from smartmem_rules.records import dataclass

_FORMS_OF_A_FINDING = 12
_TRIES = 120


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a system computes wrongly, made small.

    Attributes:
        version: of the system; empty for our own engine.
        operators: those of the reduced model, in order.
        kept: the reduced case (`.onnx` with `.npz` and `.json` beside it).
        detail: what came out, what is expected, and by how much roundings may move it.
        equal: an equal model that the system computes rightly, as a path; empty where there is none.
        proof: the rules that lead from the reduced model to the equal one.
    """

    system: str
    version: str
    kind: str
    operators: tuple[str, ...]
    kept: str
    detail: str
    equal: str
    proof: tuple[Step, ...]
    request: Request

    def lines(self) -> Iterator[str]:
        """The finding for a reader."""
        version = f" {self.version}" if self.version else ""
        yield f"{self.system}{version}, {self.kind}: {' -> '.join(self.operators)}"
        yield f"  {self.detail.splitlines()[-1]}"
        yield f"  kept: {self.kept}"
        if self.equal:
            yield f"  right for the equal model {self.equal}, by"
            yield from (f"    {step}" for step in self.proof)


@dataclass(kw_only=True)
class Hunted:
    """What came of a hunt."""

    models: int = 0
    judged: int = 0
    again: int = 0
    """Findings that look like one that was there before."""
    findings: list[Finding] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def data(self) -> dict[str, object]:
        """JSON data."""
        return {
            "models": self.models,
            "judged": self.judged,
            "again": self.again,
            "found": dict(self.kinds),
            "findings": [asdict(finding) for finding in self.findings],
        }


def requests_for(cases: Iterable[Request], wanted: Hunt) -> list[Request]:
    """The requests of a hunt."""
    return [{**case, "hunt": data_of_hunt(replace(wanted, seed=wanted.seed + k))} for k, case in enumerate(cases)]


def gather(
    answers: Iterable[Answer],
    wanted: Hunt,
    admitted: Admitted,
    folder: Path,
    told: Callable[[Hunted], None] = lambda hunted: None,
) -> Hunted:
    """Count what the workers say; reduce, prove and keep what failed.

    Args:
        folder: where findings go.
        told: is called after each model.
    """
    hunted = Hunted()
    seen: set[tuple[str, ...]] = set()
    with Worker() as worker:
        for answer in answers:
            hunted.models += 1
            hunted.judged += int(answer.extras.get("judged", 0))
            for found in _found(answer, wanted, worker):
                finding = examine(found, answer.request, admitted, worker, folder, seen)
                hunted.kinds[found.verdict.kind] += 1
                if finding is None:
                    hunted.again += 1
                else:
                    hunted.findings.append(finding)
            told(hunted)
    return hunted


def _found(answer: Answer, wanted: Hunt, worker: Worker) -> Sequence[Found]:
    """What failed; where the process ended, each system and each form is asked alone."""
    if answer.verdict.kind not in (CRASH, HANG):
        found = answer.extras.get("found", [])
        return [Found(system=one["system"], place=one["place"], verdict=Verdict(**one["verdict"])) for one in found]
    alone: list[Found] = []
    for system in wanted.systems:
        for place in range(wanted.forms + 1):
            request: HuntData = {**answer.request["hunt"], "systems": [system], "places": [place]}
            verdict, _ = worker.ask({**answer.request, "hunt": request})
            if verdict.kind in (CRASH, HANG):
                alone.append(Found(system=system, place=place, verdict=verdict))
                break
    return alone


def examine(
    found: Found, request: Request, admitted: Admitted, worker: Worker, folder: Path, seen: set[tuple[str, ...]]
) -> Finding | None:
    """Reduce, prove and keep; None where a finding of the same kind is there."""
    wanted = hunt_from(request["hunt"])
    case = case_of(request)
    _, form, _ = next(one for one in forms_of(case, wanted) if one[0] == found.place)
    small, verdict = form, found.verdict
    if found.verdict.kind != UNEQUAL:
        form = replace(form, name=f"{found.system}-{form.name}", mode=mode_of(form, found.system))
        small = Reducer(lambda one: worker.judge_case(one).same_failure(found.verdict), _TRIES).reduce(form)
        verdict = worker.judge_case(small)
    operators = tuple(node.op_type for node in small.model.graph.node)
    signature = (found.system, found.verdict.kind, *operators)
    if signature in seen:
        return None
    seen.add(signature)
    kept = small.save(folder, f"{found.verdict.kind}: {verdict.detail or found.verdict.detail}")
    equal, proof = ("", ()) if found.verdict.kind == UNEQUAL else _right_one(small, admitted, worker, folder)
    return Finding(
        system=found.system,
        version="" if found.system == SELF else SYSTEMS[found.system].version,
        kind=found.verdict.kind,
        operators=operators,
        kept=str(kept),
        detail=verdict.detail or found.verdict.detail,
        equal=equal,
        proof=proof,
        request=request,
    )


def _right_one(small: Case, admitted: Admitted, worker: Worker, folder: Path) -> tuple[str, tuple[Step, ...]]:
    """An equal model that is computed rightly, with the proof that it is equal."""
    base = admitted_base(admitted.names)
    for form in equal_forms(small, base, _FORMS_OF_A_FINDING, 1):
        if worker.judge_case(replace(form, mode=small.mode)).kind != RIGHT:
            continue
        proof = prove_equal(small.model, form.model, base, admitted.verdicts)
        if proof is not None:
            return str(replace(form, name=f"{small.name}-equal").save(folder, "equal, and computed rightly")), proof
    return "", ()
