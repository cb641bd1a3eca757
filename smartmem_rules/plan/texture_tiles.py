"""Tiles in local memory on texture GPUs: which elements they hold, and when registers alone are faster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.plan.contraction import is_constant
from smartmem_rules.plan.group_schedule import Demand, GroupChoice, fitting
from smartmem_rules.plan.model import Contraction, Kernel, Stored
from smartmem_rules.plan.roofs import Roofs
from smartmem_rules.plan.sizing import ContractionSchedule
from smartmem_rules.tensor.expr import Const, Expr, Read, Select, tensors_read

FAVOUR = 0.8
"""What register tiles have to reach of the time of shared tiles, which ask less of what all units share."""


@dataclass(frozen=True)
class TextureTiles:
    """Chooses by the roofs of a texture GPU.

    Attributes:
        storage: how the plan stores floating-point tensors.
        wide: tensors that halves cannot hold.
    """

    roofs: Roofs
    storage: str
    constants: Collection[str]
    wide: frozenset[str]

    def ranked(
        self, s: ContractionSchedule, kernel: Kernel, tensors: Mapping[str, Stored], demand: Demand, local_memory: int
    ) -> list[GroupChoice]:
        """The choices of a schedule's tiles, the fastest first."""
        assert kernel.contraction is not None
        left, right = self._types(kernel, kernel.contraction, tensors)
        tiles = [replace(t, left_type=left, right_type=right) if t.direct else t for t in s.tiles]
        fit = fitting(tiles, demand, local_memory)
        return [GroupChoice(tile, 1) for tile in sorted(fit, key=lambda t: self.roofs.group(t, demand))]

    def faster_in_registers(
        self, schedules: Sequence[ContractionSchedule], kernel: Kernel, choice: GroupChoice, demand: Demand
    ) -> bool:
        """Whether the register tiles of a schedule are faster, for what these can do."""
        tile = next((s for s in schedules if s.template == "tile"), None)
        if tile is None or kernel.parts or (kernel.contraction is not None and kernel.contraction.stages):
            return False
        if demand.taps > 1:
            return False
        in_registers = self.roofs.registers(tile.rows[0], tile.columns[0], demand)
        return in_registers < FAVOUR * self.roofs.group(choice.tile, demand)

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
