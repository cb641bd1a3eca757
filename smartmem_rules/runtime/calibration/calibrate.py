"""Measures a device by the rules that describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.runtime.calibration.measuring import measure
from smartmem_rules.runtime.calibration.record import Calibration, CalibrationError
from smartmem_rules.runtime.devices import Device, profile_of

if TYPE_CHECKING:
    from smartmem_rules.rulebase.base import RuleBase


def calibrate(device: Device, base: RuleBase, seconds: float) -> Calibration:
    """What a CPU takes for what kernels are made of.

    Args:
        seconds: about the longest that it may take.

    Raises:
        CalibrationError: the device is no CPU, or no schedule has register tiles.
    """
    profile, panel = profile_of(device, base), next((s for s in base.schedules.values() if isinstance(s, Panel)), None)
    if panel is None:
        raise CalibrationError("the rules have no schedule with register tiles, so that there is nothing to measure")
    return measure(device, profile, panel, seconds)
