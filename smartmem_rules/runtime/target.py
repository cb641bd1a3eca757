"""What a model is optimized for: a profile of the rule base, and the device that will run it, if it is here."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from smartmem_rules.environment import COMPUTE_UNITS, EMULATED_UNITS
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.calibration.record import Calibration
from smartmem_rules.runtime.calibration.store import SWITCH, keep, known, measures_at_need
from smartmem_rules.runtime.devices import (
    AUTO,
    Device,
    DeviceError,
    choose,
    choose_among,
    devices,
    matches,
    profile_of,
)
from smartmem_rules.runtime.plan_file import SLACK

if TYPE_CHECKING:
    from smartmem_rules.language.blocks.device import Compute, Device as Profile, Memory
    from smartmem_rules.rulebase.base import RuleBase

MOST_UNITS = 1 << 16
"""Compute units of a device that plans are made for."""


@dataclass(frozen=True)
class Target:
    """A profile and a device; the device may stand in for the profile's own, or be None."""

    profile: Profile
    device: Device | None

    @property
    def name(self) -> str:
        return self.profile.name if self.device is None else self.device.name


def target_of(name: str, base: RuleBase) -> Target:
    """The target of a device name (see `choose`); a profile's name works on computers without any device.

    Raises:
        DeviceError: nothing has this name, there is no device, or its driver is refused.
    """
    if name in base.devices:
        profile = base.devices[name]
        try:
            found = devices(base.devices)
        except DeviceError:
            return Target(profile, None)
        device = choose_among(found, name, base.devices)
    else:
        device = choose(name, base.devices)
        profile = profile_of(device, base)
    limited = _within_limits(profile, device)
    return Target(_as_measured(limited, device, base) if matches(profile, device) else limited, device)


def _as_measured(profile: Profile, device: Device, base: RuleBase) -> Profile:
    """The profile with what was measured of the device, as it is where nothing was."""
    panel = next((s for s in base.schedules.values() if isinstance(s, Panel)), None)
    if profile.kind != "cpu" or panel is None:
        return profile
    found = known(device)
    if found is None and measures_at_need():
        found = _first_measured(device, profile, panel)
    return profile if found is None else found.profile_of(profile, panel.step_overhead)


def _first_measured(device: Device, profile: Profile, panel: Panel) -> Calibration:
    from smartmem_rules.runtime.calibration.measuring import SECONDS, measure  # start-up time

    print(f"measuring {device.name} once, at most about {SECONDS:.0f} s ({SWITCH}=off: never)", file=sys.stderr)
    found = measure(device, profile, panel)
    keep(device, found)
    return found


def _within_limits(profile: Profile, device: Device) -> Profile:
    """The profile with the limits of the device that runs the plan, its units, and what it can do."""
    own = matches(profile, device)
    compute, memory = profile.compute, profile.memory
    emulated = _emulated_capability()
    arrays = _arrays(memory, emulated or device.capability)
    if emulated:
        arrays = min(arrays[0], device.local_memory), 0, 0
    image = zip(memory.image2d, (device.image_width, device.image_height), strict=True)
    return replace(
        profile,
        compute=replace(
            compute,
            units=_asked_units() or (device.compute_units if own else compute.units),
            register_width=compute.register_width or (_register_width(profile, device) if own else 0),
            half=compute.half if device.capability >= compute.shuffle_capability else "",
            # emulated kernels, for which others wait, are that much slower
            poll_ns=compute.poll_ns / 1000 if emulated else compute.poll_ns,
            order=_order(compute, device, emulated is not None),
            shuffle=compute.shuffle if device.capability >= compute.shuffle_capability else "",
            # what other devices that the profile stands in for do with work-groups is not known
            ordered_launches=compute.ordered_launches and own and device.runs_ordered,
        ),
        memory=replace(
            memory,
            image2d=tuple(min(ours, theirs) for ours, theirs in image),
            local_memory=min(memory.local_memory, device.local_memory),
            array_memory=arrays[0],
            array_capability=arrays[1:3],
        ),
        units=tuple(unit.emulated() for unit in profile.units if unit.there(emulated, ()))
        if emulated
        else tuple(unit for unit in profile.units if unit.there(device.capability, device.extensions)),
        allocator=replace(
            profile.allocator,
            alignment=device.alignment,
            allocation=min(profile.allocator.allocation, device.largest_allocation - SLACK),
            global_memory=min(profile.allocator.global_memory, device.global_memory),
        ),
    )


def _order(compute: Compute, device: Device, emulated: bool) -> str:
    """How work-groups wait for each other: as on the profile's own device, or by OpenCL's atomic operations."""
    if compute.order == "ptx" and not emulated:
        return compute.order if device.capability >= compute.order_capability else ""
    return "atomics" if compute.order and device.ordering_atomics else ""


def _asked_units() -> int:
    """The number of compute units that plans are asked to be made for; 0 for the device's own.

    Raises:
        DeviceError: the variable of the environment holds no such number.
    """
    asked = COMPUTE_UNITS.value()
    if asked and not (asked.isascii() and asked.isdigit() and 1 <= int(asked) <= MOST_UNITS):
        problem = f"{COMPUTE_UNITS.name}={asked} is no number of compute units"
        raise DeviceError(f"{problem}; set it to one from 1 to {MOST_UNITS}")
    return int(asked or 0)


def _emulated_capability() -> tuple[int, int] | None:
    """The compute capability whose matrix units are to be emulated; None for the device's own units.

    Raises:
        DeviceError: the variable of the environment names none.
    """
    asked = EMULATED_UNITS.value()
    if not asked:
        return None
    found = re.fullmatch(r"(\d+)\.(\d+)", asked)
    if found is None:
        raise DeviceError(f"{EMULATED_UNITS.name}={asked} is no compute capability; set it to one such as 8.0")
    return int(found[1]), int(found[2])


def _arrays(memory: Memory, capability: tuple[int, int]) -> tuple[int, int, int]:
    """Bytes of arrays in local memory that kernels may declare, and the compute capability that it takes."""
    for size, major, minor, end, end_minor in memory.array_memory_of:
        if (major, minor) <= capability < (end, end_minor):
            return size, major, minor
    major, minor = memory.array_capability
    return (memory.array_memory if capability >= (major, minor) else 0), major, minor


def _register_width(profile: Profile, device: Device) -> int:
    """The widest of the profile's registers that the device's compiler prefers; 0 where it names none."""
    widths = [width for width, _ in profile.compute.registers]
    return max((width for width in widths if width <= device.vector_width), default=0)


def device_for(recorded: str, name: str = AUTO) -> Device:
    """The device for a plan from a file: the one it was made for, if `name` is `auto` and it is here.

    Args:
        name: as of `choose`, with the profiles of the built-in rules.

    Raises:
        DeviceError: nothing has this name, or there is no device.
    """
    if name == AUTO:
        for device in devices():
            if device.name == recorded:
                return device
    try:
        return choose(name)
    except DeviceError:
        from smartmem_rules.rulebase.base import load_rules  # start-up time: plans need rules for this name only

        return choose(name, load_rules().devices)
