"""Tiles in local memory on texture GPUs: the elements in a tile, and when a register tile alone is faster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Group, Schedule, Tile
from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.kernel.model import Contraction, Kernel, Stored
from smartmem_rules.plan.schedule.contraction.group import GemmShape, GroupChoice, fitting, tiles_of
from smartmem_rules.plan.schedule.contraction.roofline_texture import group_time, register_time
from smartmem_rules.tensor.expr import Const, Expr, Read, Select, tensors_read


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
        left, right = self._types(kernel, kernel.contraction, tensors)
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

    def _types(self, kernel: Kernel, c: Contraction, tensors: Mapping[str, Stored]) -> tuple[str, str]:
        """The elements of both factors in local memory: halves where they are, or would be, halves in memory."""
        inner = () if c.scores is None else (c.scores,)
        rows = self._normalised(kernel, c, tensors) or self._half(c.a, tensors)
        left = rows and all(self._half(s.a, tensors) for s in inner)
        factors = (c.b, *(p.b for p in kernel.parts), *(s.b for s in inner))
        right = all(self._half(factor, tensors) for factor in factors)
        return "half" if left else "float", "half" if right else "float"

    def _normalised(self, kernel: Kernel, c: Contraction, tensors: Mapping[str, Stored]) -> bool:
        """Whether rows are made on chip that would be stored as halves: of values that halves hold, normalised."""
        if self.storage != "float16" or not c.stages or not c.fed or self.wide.intersection(c.fed):
            return False
        made = [tensors[t] for t in kernel.reads if t in tensors and tensors[t].role == "intermediate"]
        return all(t.storage == "float16" for t in made)

    def _half(self, factor: Expr, tensors: Mapping[str, Stored]) -> bool:
        read = tensors_read(factor)
        if read and is_constant(factor, self.constants):
            return self.storage == "float16" and all(tensors[t].storage == "float16" for t in read if t in tensors)
        match factor:
            case Read():
                return factor.tensor in tensors and tensors[factor.tensor].storage == "float16"
            case Select():
                return self._half(factor.then, tensors) and self._half(factor.otherwise, tensors)
            case Const():
                return factor.value == 0
            case _:
                return False
