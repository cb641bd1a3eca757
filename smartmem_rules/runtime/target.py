"""What a model is optimized for: a profile of the rule base, and the device that will run it, if it is here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smartmem_rules.runtime.devices import (
    AUTO,
    Device,
    DeviceError,
    choose,
    devices,
    matches,
    numbers,
    profile_of,
)
from smartmem_rules.runtime.plan_file import SLACK

if TYPE_CHECKING:
    from smartmem_rules.language import syntax as s
    from smartmem_rules.language.rulebase import RuleBase


@dataclass(frozen=True)
class Target:
    """A profile and a device; the device may stand in for the profile's own, or be None."""

    profile: s.Block
    device: Device | None

    @property
    def name(self) -> str:
        return self.profile.name if self.device is None else self.device.name


def target_of(name: str, base: RuleBase) -> Target:
    """The target of a device name (see `choose`); a profile's name works on computers without any device.

    Raises:
        DeviceError: nothing has this name, or there is no device.
    """
    if name in base.devices:
        profile = base.devices[name]
        try:
            device = choose(name, base.devices)
        except DeviceError:
            return Target(profile, None)
        return Target(_within_limits(profile, device), device)
    device = choose(name, base.devices)
    return Target(_within_limits(profile_of(device, base), device), device)


MATRIX_CAPABILITY = (8, 0)
"""The compute capability from which on NVIDIA's devices multiply tf32 on their matrix units."""


def _within_limits(profile: s.Block, device: Device) -> s.Block:
    """The profile with the limits of the device that runs the plan, its units, and what it can do."""
    limits = {"image2d": (device.image_width, device.image_height), "local_memory": (device.local_memory,)}
    entries: list[s.Entry] = []
    for entry in profile.entries:
        if entry.key == "matrix" and device.capability < MATRIX_CAPABILITY:
            continue
        # what other devices that the profile stands in for do with work-groups is not known
        if entry.key == "ordered_launches" and not (matches(profile, device) and device.runs_ordered):
            continue
        own = numbers(profile, entry.key)
        if entry.key in limits and own:
            values = tuple(min(int(v), limit) for v, limit in zip(own, limits[entry.key], strict=False))
            entry = replace(entry, values=values)
        elif entry.key == "units" and matches(profile, device):
            entry = replace(entry, values=(device.compute_units,))
        entries.append(entry)
    rooms = {"alignment": device.alignment, "allocation": device.largest_allocation - SLACK}
    entries = [entry for entry in entries if entry.key not in rooms]
    entries += [replace(profile.entries[0], key=key, values=(value,)) for key, value in rooms.items()]
    return replace(profile, entries=tuple(entries))


def device_for(recorded: str, name: str = AUTO) -> Device:
    """The device for a plan from a file: the one it was made for, if `name` is `auto` and it is here.

    Raises:
        DeviceError: nothing has this name, or there is no device.
    """
    if name == AUTO:
        for device in devices():
            if device.name == recorded:
                return device
    return choose(name)
