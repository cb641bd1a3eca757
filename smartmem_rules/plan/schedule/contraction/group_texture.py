"""Tiles in local memory on texture GPUs: the elements in a tile, and when a register tile alone is faster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Group, Schedule, Tile
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.schedule.contraction.factor_types import FactorTypes
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, fitting, tiles_of
from smartmem_rules.plan.schedule.contraction.roofline_texture import group_time, register_time
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class TextureTiles:
    """Chooses by the roofs of a texture GPU.

    Attributes:
        storage: how the plan stores floating-point tensors.
        wide: tensors that halves cannot hold.
    """

    device: Device
    storage: str
    constants: Collection[str]
    wide: frozenset[str]

    def ranked(self, s: Group, kernel: Kernel, tensors: Mapping[str, Stored], demand: GemmShape) -> list[GroupChoice]:
        """The choices of a schedule's tiles, the fastest first."""
        assert kernel.contraction is not None
        types = FactorTypes(
            storage=self.storage, constants=self.constants, tensors=tensors, wide=self.wide, computed=False
        )
        computes = self.storage == "float16"  # texture GPUs that compute in half precision know no other halves
        halves = types.halves(kernel, kernel.contraction)
        left, right = ("half" if half and computes else "float" for half in halves)
        tiles = [replace(t, left_type=left, right_type=right) if t.direct else t for t in tiles_of(s)]
        fit = fitting(tiles, demand, self.device.memory.local_memory)
        return [GroupChoice(tile, 1) for tile in sorted(fit, key=lambda t: group_time(self.device, t, demand))]

    def faster_in_registers(
        self, schedules: Sequence[Schedule], kernel: Kernel, choice: GroupChoice, demand: GemmShape
    ) -> bool:
        """Whether the register tiles of a schedule are faster, for what these can do."""
        tile = next((s for s in schedules if isinstance(s, Tile)), None)
        if tile is None or kernel.parts or (kernel.contraction is not None and kernel.contraction.stages):
            return False
        if demand.taps > 1:
            return False
        in_registers = register_time(self.device, tile.rows[0], tile.columns[0], demand)
        return in_registers < tile.takes_below * group_time(self.device, choice.tile, demand)
