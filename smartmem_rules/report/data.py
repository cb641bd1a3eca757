"""The data of a report: plain values for JSON, as `smartmem schema report` describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from smartmem_rules.explanation.fates import Fates
from smartmem_rules.explanation.inspected import Inspected, kernel_data, launches_data, stage_differences
from smartmem_rules.explanation.report import left, report_data
from smartmem_rules.plan.artefact import Plan, Slot
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.plan.memory.lives import lives
from smartmem_rules.records import dataclass
from smartmem_rules.report.subject import Measured, Subject
from smartmem_rules.runtime.format.provenance import package_version
from smartmem_rules.statistics import RuleCounts, RuleSource

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import KernelProfile, MaybePlaced
    from smartmem_rules.report.documents import (
        ComparedPlan,
        LaunchTime,
        MaybeCounted,
        MeasuredPlan,
        ModelNode,
        ModelReport,
        ReportedLaunch,
        ReportedLevel,
        ReportedPlan,
        ReportedRule,
        ReportedSlot,
        ReportedTensor,
        Role,
        SlotMemory,
    )

FORMAT = 1
"""Of the data; a greater number means that a key has changed its meaning."""


_NOT_PLANNING = ("build", "total")
"""Of the seconds of a plan; the total has the texts of the stages, too, which only reports make."""


@dataclass(frozen=True, kw_only=True)
class LevelFigures:
    """Figures of the plan that one level of optimization makes.

    Attributes:
        after: launches that only move data.
        memory: bytes of device memory for intermediates; None where nothing was planned.
        modelled: microseconds of all launches; None where one has no modelled time.
        measured: milliseconds of an inference; None where nobody measured.
        seconds: that the stages of planning took.
    """

    level: str
    kernels: int
    after: int
    bytes_moved: int
    memory: int | None
    modelled: float | None
    measured: float | None
    seconds: float

    @staticmethod
    def of(subject: Subject) -> LevelFigures:
        """The figures of a plan."""
        plan, memory = subject.plan, subject.plan.statistics.planning.memory
        return LevelFigures(
            level=plan.level,
            kernels=len(plan.launches),
            after=sum(launch.moves_only for launch in plan.launches),
            bytes_moved=sum(launch.bytes_moved for launch in plan.launches),
            memory=None if memory is None else memory.reused,
            modelled=_all_modelled(subject),
            measured=None if subject.measured is None else subject.measured.whole["median_ms"],
            seconds=sum(seconds for stage, seconds in plan.statistics.seconds.items() if stage not in _NOT_PLANNING),
        )

    def data(self) -> ReportedLevel:
        """The content for JSON."""
        return {
            "level": self.level,
            "kernels": self.kernels,
            "layout_operators_after": self.after,
            "bytes_moved": self.bytes_moved,
            "intermediate_bytes": self.memory,
            "modelled_us": self.modelled,
            "measured_ms": self.measured,
            "seconds": self.seconds,
        }


def report(subject: Subject, levels: Sequence[LevelFigures] = (), other: Subject | None = None) -> ModelReport:
    """All that a report shows.

    Args:
        levels: of the same model, to be compared.
        other: a plan that the first one is compared with.
    """
    return {
        "format": FORMAT,
        "program": f"smartmem_rules {package_version()}",
        "plan": plan_data(subject),
        "levels": [level.data() for level in levels],
        "against": None if other is None else _against(subject, other),
    }


def _against(subject: Subject, other: Subject) -> ComparedPlan:
    sides = (Inspected(one.plan, one.stages) for one in (subject, other))
    return {"plan": plan_data(other), "stages": stage_differences(*sides)}


def plan_data(subject: Subject) -> ReportedPlan:
    """One plan: its figures, and its nodes, launches, tensors and rules."""
    plan = subject.plan
    programs = list(dict.fromkeys(source.text for source in plan.sources))
    return {
        "figures": report_data(plan, subject.device, subject.check),
        "inputs": list(plan.inputs),
        "outputs": list(plan.outputs),
        "nodes": list(_nodes(subject)),
        "types": _types(subject),
        "launches": _launches(subject, {text: number for number, text in enumerate(programs)}),
        "programs": programs,
        "tensors": _tensors(plan),
        "slots": [_slot(slot) for slot in plan.slots],
        "rules": _rules(subject),
        "left": left(plan),
        "measured": None if subject.measured is None else _measured(subject.measured),
    }


def _nodes(subject: Subject) -> Iterator[ModelNode]:
    """The nodes of the model, in the order of the file."""
    rewriting = subject.plan.statistics.rewriting
    fates = Fates(subject.plan, subject.file)
    for name in fates.names():
        fate, in_file = fates.of(name), subject.file.get(name)
        yield {
            "node": name,
            "operator": fate.operator,
            "domain": "" if in_file is None else in_file.domain,
            "inputs": [] if in_file is None else list(in_file.inputs),
            "outputs": [] if in_file is None else list(in_file.outputs),
            "kind": fate.kind,
            "outcome": fate.outcome,
            "launches": list(fate.launches),
            "rules": list(rewriting.rules_of_node.get(name, ())),
            "near_misses": [miss.data() for miss in rewriting.near_misses.get(name, ())],
        }


def _types(subject: Subject) -> dict[str, str]:
    """The types of the model's tensors, as far as import kept them."""
    named = {tensor for node in subject.file.values() for tensor in (*node.inputs, *node.outputs)}
    return {name: str(kind) for name, kind in subject.making.types.items() if name in named}


def _launches(subject: Subject, programs: Mapping[str, int]) -> list[ReportedLaunch]:
    plan = subject.plan
    inspected = Inspected(plan, subject.stages)
    modelled = _modelled(subject)
    measured = {} if subject.measured is None else {one["kernel"]: one for one in subject.measured.kernels}
    found: list[ReportedLaunch] = []
    for shown, source in zip(launches_data(plan), plan.sources, strict=True):
        kernel = kernel_data(inspected, str(shown["number"]))
        took = measured.get(shown["name"])
        found.append(
            {
                **shown,
                "text": kernel["text"],
                "schedule": kernel["schedule"],
                "layouts": kernel["layouts"],
                "launched_as": kernel["launched_as"],
                "program": programs[source.text],
                "local_bytes": source.local_bytes,
                "modelled_us": modelled.get(shown["name"]),
                "measured": None if took is None else _time_of(took),
            }
        )
    return found


def _time_of(took: KernelProfile) -> LaunchTime:
    return {
        "ms": took["ms"],
        "share": took["share"],
        "gflops": took["gflops"],
        "gbytes_per_s": took["gbytes_per_s"],
        "roof_share": took["roof_share"],
    }


def _tensors(plan: Plan) -> dict[str, ReportedTensor]:
    """What lies in device memory."""
    life = lives(plan.tensors, plan.launches)
    found: dict[str, ReportedTensor] = {}
    for name, stored in plan.tensors.items():
        place, own = plan.placement.get(name), life.get(name)
        found[name] = {
            "type": str(stored.type),
            "role": cast("Role", stored.role),
            "layout": stored.layout.places,
            "storage": stored.storage,
            "bytes": stored_bytes(stored),
            "slot": None if place is None else place.slot,
            "offset": None if place is None else place.offset,
            "first": None if own is None else own.first,
            "last": None if own is None else own.last,
        }
    return found


def _rules(subject: Subject) -> dict[str, ReportedRule]:
    """The rules that took part, with what they did and what is known of their truth."""
    rewriting = subject.plan.statistics.rewriting
    counts = {one.rule: one for one in rewriting.rules}
    named = [rule for rules in rewriting.rules_of_node.values() for rule in rules]
    named += [miss.rule for misses in rewriting.near_misses.values() for miss in misses]
    sites: dict[str, list[str]] = {}
    for node, rules in rewriting.rules_of_node.items():
        for rule in rules:
            sites.setdefault(rule, []).append(node)
    return {
        rule: _rule(rewriting.rule_places.get(rule), counts.get(rule), subject.verdicts.get(rule), sites.get(rule, []))
        for rule in dict.fromkeys([*counts, *rewriting.rule_places, *named])
    }


def _rule(place: RuleSource | None, counts: RuleCounts | None, verdict: str | None, nodes: list[str]) -> ReportedRule:
    placed: MaybePlaced = {} if place is None else {**place.data()}
    counted: MaybeCounted = {}
    if counts is not None:
        counted = {
            "tried": counts.tried,
            "fired": counts.fired,
            "milliseconds": counts.milliseconds,
            "enodes": counts.enodes,
        }
    return {**placed, **counted, "verdict": verdict, "nodes": nodes}


def _slot(slot: Slot) -> ReportedSlot:
    return {"memory": cast("SlotMemory", slot.memory), "bytes": slot.bytes}


def _measured(measured: Measured) -> MeasuredPlan:
    return {
        "device": measured.device,
        "runs": measured.runs,
        "gflops": measured.roof.gflops,
        "gbytes_per_s": measured.roof.gbytes,
        "median_ms": measured.whole["median_ms"],
        "min_ms": measured.whole["min_ms"],
        "max_ms": measured.whole["max_ms"],
    }


def _modelled(subject: Subject) -> dict[str, float]:
    modelled = subject.making.modelled
    return {} if modelled is None else modelled.microseconds()


def _all_modelled(subject: Subject) -> float | None:
    found = _modelled(subject)
    times = [found.get(launch.name) for launch in subject.plan.launches]
    return None if None in times else sum(time for time in times if time is not None)
