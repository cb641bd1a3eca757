"""One plan of the plans of a graph's parts, which run one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from smartmem_rules.graph.counting.parts import Part
from smartmem_rules.graph.model import Graph
from smartmem_rules.plan.artefact import CountedExtent, Demands, Enqueue, Place, Plan, Slot
from smartmem_rules.plan.kernel.model import PlanError, Stored, row_major
from smartmem_rules.statistics import (
    Extraction,
    MemoryStatistics,
    PlanStatistics,
    RewriteStatistics,
    RuleCounts,
    SaturationStatistics,
    Statistics,
)

_T = TypeVar("_T")


def linked(graph: Graph, parts: Sequence[tuple[Part, Plan]]) -> Plan:
    """The plan of the whole graph: what a part gives to those behind it stays in device memory.

    Args:
        parts: with their plans, in their order.

    Raises:
        PlanError: two parts store a tensor differently that one gives to the other.
    """
    (_, first), *_ = parts
    tensors: dict[str, Stored] = {}
    enqueues: list[Enqueue] = []
    slots: list[Slot] = []
    placement: dict[str, Place] = {}
    counted: list[CountedExtent] = []
    for part, plan in parts:
        _add(tensors, plan)
        enqueues += plan.enqueues
        placement |= {name: Place(len(slots) + place.slot, place.offset) for name, place in plan.placement.items()}
        slots += plan.slots
        counted += [CountedExtent(one.dimension, one.tensor, len(enqueues)) for one in part.counted]
    return replace(
        first,
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        tensors={name: _with_role(stored, graph) for name, stored in tensors.items()},
        enqueues=enqueues,
        slots=slots,
        placement=placement,
        sizes=graph.sizes,
        endings=graph.endings,
        dimensions=graph.dimensions,
        counted=tuple(counted),
        statistics=_statistics([plan for _, plan in parts]),
        demands=_demands([plan.demands for _, plan in parts]),
    )


def _add(tensors: dict[str, Stored], plan: Plan) -> None:
    for name, stored in plan.tensors.items():
        before = tensors.setdefault(name, stored)
        if before is stored:
            continue
        if before.storage != stored.storage or not _lies_alike(before, stored):
            raise PlanError(f"two parts of the plan store {name!r} differently, as {before} and as {stored}")
        if before.role == "input" and stored.role != "input":
            raise PlanError(f"a part of the plan writes {name!r} behind one that reads it")
        if before.role == "intermediate" or stored.role == "intermediate":
            raise PlanError(f"two parts of the plan have a tensor {name!r} of their own")


def _lies_alike(before: Stored, stored: Stored) -> bool:
    """Whether two parts find the same elements in the same places: an output may be made in another shape."""
    if before.type == stored.type:
        return before.layout == stored.layout
    plain = all(one.layout == row_major(len(one.type.shape)) for one in (before, stored))
    return plain and stored.type.shape in (before.type.shape, before.shown)


def _with_role(stored: Stored, graph: Graph) -> Stored:
    """Between the parts tensors are inputs and outputs, which they need not be of the whole."""
    if stored.role not in ("input", "output"):
        return stored
    if stored.name in graph.inputs or stored.name in graph.outputs:
        return replace(stored, role="input" if stored.name in graph.inputs else "output")
    return replace(stored, role="intermediate", shown=None)


def _demands(all_: Sequence[Demands]) -> Demands:
    return replace(
        all_[0],
        extensions=tuple(dict.fromkeys(name for one in all_ for name in one.extensions)),
        capability=max(one.capability for one in all_),
        arrays=max(one.arrays for one in all_),
        arrays_capability=max(one.arrays_capability for one in all_),
    )


def _statistics(plans: Sequence[Plan]) -> Statistics:
    """What the parts measured and decided, added up where it adds up; gaps are those of the worst part."""
    all_ = [plan.statistics for plan in plans]
    rewriting = [one.rewriting for one in all_]
    counts: dict[str, RuleCounts] = {}
    for one in (rule for part in rewriting for rule in part.rules):
        counts[one.rule] = _added(counts[one.rule], one) if one.rule in counts else one
    return replace(
        all_[0],
        rewriting=RewriteStatistics(
            extraction=_extraction([one.extraction for one in rewriting if one.extraction is not None]),
            saturation=_saturation([one.saturation for one in rewriting if one.saturation is not None]),
            rules=tuple(counts.values()),
            rules_of_node=_joined([one.rules_of_node for one in rewriting]),
            near_misses=_joined([one.near_misses for one in rewriting]),
            rule_sites=_joined([one.rule_sites for one in rewriting]),
            rule_places={name: place for one in rewriting for name, place in one.rule_places.items()},
        ),
        planning=PlanStatistics(
            tensor_layouts={n: layout for one in all_ for n, layout in one.planning.tensor_layouts.items()},
            memory=_memory([one.planning.memory for one in all_ if one.planning.memory is not None]),
        ),
    )


def _added(left: RuleCounts, right: RuleCounts) -> RuleCounts:
    return replace(
        left,
        tried=left.tried + right.tried,
        fired=left.fired + right.fired,
        milliseconds=left.milliseconds + right.milliseconds,
        enodes=left.enodes + right.enodes,
    )


def _extraction(all_: Sequence[Extraction]) -> Extraction | None:
    if not all_:
        return None
    worst = max(all_, key=lambda one: one.gap)
    return replace(
        worst,
        cost=sum(one.cost for one in all_),
        bound=sum(one.bound for one in all_),
        seconds=sum(one.seconds for one in all_),
        classes=sum(one.classes for one in all_),
        choices=sum(one.choices for one in all_),
    )


def _saturation(all_: Sequence[SaturationStatistics]) -> SaturationStatistics | None:
    if not all_:
        return None
    return SaturationStatistics(
        stopped=next((one.stopped for one in all_ if one.stopped), None),
        iterations=sum(one.iterations for one in all_),
        enodes=sum(one.enodes for one in all_),
        phases=all_[0].phases,
    )


def _memory(all_: Sequence[MemoryStatistics]) -> MemoryStatistics | None:
    if not all_:
        return None
    return MemoryStatistics(
        reused=sum(one.reused for one in all_),
        separate=sum(one.separate for one in all_),
        bound=sum(one.bound for one in all_),
        optimal=all(one.optimal for one in all_),
    )


def _joined(all_: Sequence[Mapping[str, tuple[_T, ...]]]) -> dict[str, tuple[_T, ...]]:
    found: dict[str, tuple[_T, ...]] = {}
    for one in all_:
        for name, values in one.items():
            found[name] = (*found.get(name, ()), *(value for value in values if value not in found.get(name, ())))
    return found
