"""Contractions on texture GPUs: which of the roofs of the device bounds a choice of sizes, and how long it takes.

The roofs are those of `smartmem simulate`: arithmetic, texels, local memory and the shared cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smartmem_rules.plan.group_schedule import SUBGROUP, Demand, GroupTile

REACHED = 0.5
"""The part of a line that a register tile uses of what it asks of the shared cache: neighbours in the other direction
are gone from the texture cache before their turn."""


@dataclass(frozen=True)
class Roofs:
    """Rates of a device: scalar operations and bytes a nanosecond.

    Attributes:
        units: texture units, each with work-groups of its own.
        wave: work-items that issue an access together.
        memory: bytes of local memory that the work-groups of a unit share.
    """

    units: int
    wave: int
    peak: float
    texture: float
    local: float
    shared: float
    memory: int

    @staticmethod
    def of(entries: Mapping[str, tuple[Any, ...]]) -> Roofs | None:
        """The roofs that a device profile states, None where it states none of its texture units."""
        if "texture_units" not in entries or "local_bandwidth" not in entries:
            return None
        one = {key: float(values[0]) for key, values in entries.items() if isinstance(values[0], int | float)}
        return Roofs(
            int(one["texture_units"]), int(one["wave"]), one["peak_gflops"], one["texture_bandwidth"],
            one["local_bandwidth"], one["l2_bandwidth"],
            int(one["unit_memory"]),
        )  # fmt: skip

    def group(self, tile: GroupTile, demand: Demand, counted: int = 0) -> float:
        """Nanoseconds of a contraction whose work-groups share tiles in local memory.

        Args:
            counted: bytes whose reading is counted elsewhere.
        """
        left, right = tile.element_bytes
        groups = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
        depth = -(-demand.k // tile.step) * tile.step
        inner = 0
        if demand.inner:
            inner = -(-demand.inner // (tile.step * tile.columns)) * tile.step  # steps over all tiles of the scores
        products = groups * tile.rows * tile.columns * (depth + inner)
        each = (
            SUBGROUP
            * (tile.warp_rows / 8 * left + tile.warp_columns / 4 * right)
            / (tile.warp_rows * tile.warp_columns)
        )
        stored = groups * (depth + inner) * (tile.rows * left + tile.columns * right)
        read = groups * (depth + inner) * (tile.rows * demand.taps + tile.columns) * demand.element
        if demand.row_bytes and not demand.inner:
            read += groups * tile.rows * depth * demand.element  # statistics of the rows
        read = max(0, read - counted)
        # the last round of work-groups leaves units idle
        idle = math.ceil(groups / self.units) * self.units / groups
        # and so do work-groups that take the local memory of several
        crowded = max(1.0, (4 * tile.memory + tile.rows * demand.row_bytes) / self.memory)
        own = max(2 * products / self.peak, (products * each + stored) / self.local)
        return max(own * idle * crowded, read / self.texture, read / self.shared)

    def registers(self, rows: int, columns: int, demand: Demand) -> float:
        """Nanoseconds of a contraction whose work-items hold `rows` x `columns` sums each."""
        rows = min(rows, demand.m)
        wide = sum(-(-n // columns) for n in demand.columns)
        items = demand.batch * -(-demand.m // rows) * wide
        products = items * rows * columns * demand.k
        texels = items * demand.k * (rows + columns) * demand.element
        across = min(self.wave, wide)
        lines = items / self.wave * demand.k * (across * columns + self.wave / across * rows) * demand.element / REACHED
        waves = math.ceil(items / self.wave)
        idle = math.ceil(waves / self.units) * self.units / waves
        return max(2 * products / self.peak * idle, texels / self.texture * idle, lines / self.shared)
