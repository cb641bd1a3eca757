"""One plan of the plans of a graph's parts, which run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.graph.model import Graph
from smartmem_rules.graph.parts import Part
from smartmem_rules.plan.artefact import CountedExtent, Demands, Enqueue, Place, Plan, Slot
from smartmem_rules.plan.kernel.model import PlanError, Stored, row_major


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
