"""Devices with given figures, made from the shipped profiles."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from tests.plan.programs import rules


def cpu(
    units: int, peak: float, bandwidth: float, launch: float, late_unit: float = 0.0, ordered: bool = False
) -> Device:
    """A CPU: operations a nanosecond of all units, bytes a nanosecond of one, nanoseconds of an enqueue."""
    own = rules().devices["pocl"]
    compute = replace(
        own.compute,
        units=units,
        peak_gflops=peak,
        launch_us=launch / 1000,
        late_unit=late_unit,
        ordered_launches=ordered,
    )
    return replace(own, compute=compute, memory=replace(own.memory, unit_bandwidth=bandwidth))


def gpu(units: int, items: int, memory: int, launch: float) -> Device:
    """A GPU: work-items and bytes of local memory of a unit, nanoseconds of an enqueue."""
    own = rules().devices["gpu"]
    compute = replace(own.compute, units=units, resident_items=items, launch_us=launch / 1000)
    return replace(own, compute=compute, memory=replace(own.memory, unit_memory=memory))
