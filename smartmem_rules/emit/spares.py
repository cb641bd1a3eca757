"""The same launches by other schedules over the same arguments: what runs where a device computes the first wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.emit import emit
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import PlanError, Stored
from smartmem_rules.plan.schedule.records import PanelSchedule, TileSchedule
from smartmem_rules.tensor.extents import SymbolicExtentError


def spares_of(launch: Launch, source: Source, target: Target, tensors: Mapping[str, Stored]) -> tuple[Source, ...]:
    """Other texts for a launch: register tiles of fewer rows, and vectors of half the lanes, where these differ.

    Args:
        source: the launch's own; spares have its arguments and its grid.
    """
    found: list[Source] = []
    for other in _others(launch, target, tensors):
        same = (other.arguments, other.global_size, other.local_size) == (
            source.arguments,
            source.global_size,
            source.local_size,
        )
        if same and other.text not in {source.text, *(one.text for one in found)}:
            found.append(other)
    return tuple(found)


def _others(launch: Launch, target: Target, tensors: Mapping[str, Stored]) -> Iterator[Source]:
    fewer_lanes = replace(target, width=max(2, target.width // 2))
    for changed, aim in ((launch.each(_fewer_rows), target), (launch, fewer_lanes)):
        try:
            yield emit(changed, aim, tensors)
        except (PlanError, SymbolicExtentError):
            continue  # of a kernel that has no such form


def _fewer_rows(single: Single) -> Single:
    kernel, schedule = single.kernel, single.kernel.schedule
    if not isinstance(schedule, PanelSchedule | TileSchedule) or schedule.rows < 2:
        return single
    rows = schedule.rows // 2
    fewer: PanelSchedule | TileSchedule = replace(schedule, rows=rows)
    if isinstance(fewer, PanelSchedule):
        fewer = replace(fewer, tail=fewer.block_rows % rows)
    return replace(single, kernel=replace(kernel, schedule=fewer))
