"""The roofline model of contractions on texture GPUs: which limit bounds a choice of sizes, and its time.

The roofs are those of `smartmem simulate`: arithmetic, texels, local memory and the shared cache.
"""

from __future__ import annotations

import math

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape
from smartmem_rules.plan.schedule.contraction.group import GroupTile


def group_time(device: Device, tile: GroupTile, demand: GemmShape, counted: int = 0) -> float:
    """Nanoseconds of a contraction whose work-groups share tiles in local memory.

    Args:
        counted: bytes whose reading is counted elsewhere.
    """
    compute, memory = device.compute, device.memory
    left, right = tile.element_bytes
    groups = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
    depth = -(-demand.k // tile.step) * tile.step
    inner = 0
    if demand.inner:
        inner = -(-demand.inner // (tile.step * tile.columns)) * tile.step  # steps over all tiles of the scores
    products = groups * tile.rows * tile.columns * (depth + inner)
    each = (
        compute.subgroup
        * (tile.warp_rows / 8 * left + tile.warp_columns / 4 * right)
        / (tile.warp_rows * tile.warp_columns)
    )
    stored = groups * (depth + inner) * (tile.rows * left + tile.columns * right)
    read = groups * (depth + inner) * (tile.rows * demand.taps + tile.columns) * demand.element
    if demand.row_bytes and not demand.inner:
        read += groups * tile.rows * depth * demand.element  # statistics of the rows
    read = max(0, read - counted)
    # the last round of work-groups leaves units idle
    idle = math.ceil(groups / compute.texture_units) * compute.texture_units / groups
    # and so do work-groups that take the local memory of several
    crowded = max(1.0, (4 * tile.memory + tile.rows * demand.row_bytes) / memory.unit_memory)
    own = max(compute.time(2 * products), (products * each + stored) / memory.local_bandwidth)
    return max(own * idle * crowded, read / memory.texture_bandwidth, read / memory.shared)


def register_time(device: Device, rows: int, columns: int, demand: GemmShape) -> float:
    """Nanoseconds of a contraction whose work-items hold `rows` x `columns` sums each."""
    compute, memory = device.compute, device.memory
    rows = min(rows, demand.m)
    wide = sum(-(-n // columns) for n in demand.columns)
    items = demand.batch * -(-demand.m // rows) * wide
    products = items * rows * columns * demand.k
    texels = items * demand.k * (rows + columns) * demand.element
    across = min(compute.wave, wide)
    lines = (
        items
        / compute.wave
        * demand.k
        * (across * columns + compute.wave / across * rows)
        * demand.element
        / device.caches.line_use
    )
    waves = math.ceil(items / compute.wave)
    idle = math.ceil(waves / compute.texture_units) * compute.texture_units / waves
    return max(compute.time(2 * products) * idle, texels / memory.texture_bandwidth * idle, lines / memory.shared)
