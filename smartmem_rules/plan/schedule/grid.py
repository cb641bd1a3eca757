"""Launch geometry: how many work-items an enqueue has, and how many of them make a work-group.

The grid follows from a kernel's schedule and the layouts of what it stores; emission writes text for exactly this grid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.kernel.launch import Beside, Chain, Joined, Launch, Ordered, Single
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.work_items import Grid
from smartmem_rules.plan.schedule.loops import ElementLoops, packed_rows, row_count, row_form
from smartmem_rules.plan.schedule.records import (
    GroupSchedule,
    ItemSchedule,
    PanelSchedule,
    TeamSchedule,
    TileSchedule,
    VectorSchedule,
    schedule_of,
)
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest, maximum, several, surely_at_most

TILE_LANES = 4
"""Floats of a vector in the templates of GPUs (`float4`), and of a texel."""


@dataclass(frozen=True, kw_only=True)
class Grids:
    """Computes grids.

    Attributes:
        width: elements of a vector in buffers.
        ordered_groups: work-groups of a persistent kernel at least.
    """

    device: Device
    tensors: Mapping[str, Stored]
    width: int
    ordered_groups: int

    def sized(self, launch: Launch, group_items: int = 0) -> Launch:
        """The launch with its grid, and those of its steps.

        Args:
            group_items: work-items of the work-groups of the launch that a GPU's kernel shares, 0 where it has its own.

        Raises:
            ValueError: the steps of a chain do not have one work-item for each block of rows.
        """
        if isinstance(launch, Single):
            return replace(launch, grid=self._of(launch, group_items))
        shared = launch.group_items if isinstance(launch, Beside | Ordered) else 0
        steps = tuple(self.sized(step, shared) for step in launch.steps)
        grid = self._of_steps(launch, [step.grid for step in steps if step.grid is not None])
        return replace(launch.of_steps(steps), grid=grid)

    @property
    def _is_cpu(self) -> bool:
        return self.device.kind == "cpu"

    def _of(self, launch: Single, group_items: int) -> Grid:
        kernel = launch.kernel
        if kernel.contraction is not None and kernel.form == "contraction":
            return self._contraction(kernel, group_items)
        if kernel.form == "scan":
            return self._scan(kernel, launch.steps_each)
        if kernel.form == "reduction":
            form = row_form(kernel, self.tensors, self.width, launch.block_rows)
            if form == "texels":
                return self._texel_rows(kernel, group_items)
            if form == "teams":
                return self._rows(kernel, launch.block_rows)
        return self._elements(kernel, group_items)

    # --- elements and rows ---

    def _elements(self, kernel: Kernel, group_items: int) -> Grid:
        if self._is_cpu:
            count, own = (
                ElementLoops.of(kernel, self.tensors, self.width).outer_count,
                schedule_of(kernel, ItemSchedule),
            )
            return Grid.of(chunks(count // own.window_rows, own.items), 1)
        schedule = schedule_of(kernel, VectorSchedule)
        loops = ElementLoops.of(kernel, self.tensors, self.width, schedule.places)
        return Grid.covering(loops.outer_count * loops.vectors, group_items or schedule.group)

    def _rows(self, kernel: Kernel, block_rows: int | None) -> Grid:
        count = row_count(kernel)
        if self._is_cpu:
            blocks = -(-count // block_rows) if block_rows else chunks(count, schedule_of(kernel, ItemSchedule).items)
            return Grid.of(blocks, 1)
        s = schedule_of(kernel, TeamSchedule)
        return Grid.covering(-(-count // s.teams) * s.teams * s.team, s.teams * s.team)

    def _texel_rows(self, kernel: Kernel, group_items: int) -> Grid:
        packed = packed_rows(kernel, self.tensors)
        assert packed is not None
        others = tuple(v for v in kernel.axes if several(v.extent) and v is not packed)
        texels = _count(others) * -(-packed.extent // TILE_LANES)
        if group_items:
            return Grid.covering(texels, group_items)
        return Grid((texels,), (1,) if self._is_cpu else None)

    def _scan(self, kernel: Kernel, steps_each: int | None) -> Grid:
        steps, *independent = kernel.axes
        items = _count(tuple(independent))
        if not self._is_cpu:
            group = schedule_of(kernel, VectorSchedule).group
            return Grid.of(items * group, group)
        return Grid.of(items if steps_each is None else -(-steps.extent // steps_each), 1)

    # --- contractions ---

    def _contraction(self, kernel: Kernel, group_items: int) -> Grid:
        c = kernel.contraction
        assert c is not None
        s, m, batch = kernel.schedule, _count(c.m), _count(c.batch)
        if isinstance(s, TileSchedule):
            total = batch * -(-m // s.rows) * -(-c.n.extent // (TILE_LANES * tile_vectors(kernel)))
            if not self._is_cpu:
                return Grid.covering(total, group_items or s.group)
            return Grid.covering(total, _dividing(total, self.device.compute.cpu_group))
        right: list[tuple[Var, Expr]] = [(c.n, c.b), *((part.n, part.b) for part in kernel.parts)]
        if isinstance(s, GroupSchedule):
            tiles = sum(-(-n.extent // s.tile.columns) for n, _ in right)
            groups = -(-m // s.tile.rows) * tiles * batch * s.splits
            return Grid.of(groups * s.tile.threads, s.tile.threads)
        panel = schedule_of(kernel, PanelSchedule)
        tiles = sum(-(-n.extent // panel.columns) for n, _ in right)
        row_blocks = -(-m // panel.block_rows)
        if panel.template == "rows":
            return Grid.of(row_blocks * batch, 1)
        return Grid.of(row_blocks * -(-tiles // panel.tiles_per_block) * batch, 1)

    # --- launches of several kernels ---

    def _of_steps(self, launch: Joined, grids: Sequence[Grid]) -> Grid:
        if isinstance(launch, Chain):
            if len({grid.global_size for grid in grids}) != 1:
                raise ValueError(f"the steps of {launch.name} have different numbers of work-items")
            return Grid.of(grids[0].items, 1)
        if isinstance(launch, Ordered) and launch.group_items:
            tasks = sum(grid.items for grid in grids) // launch.group_items
            return Grid.of(min(tasks, launch.groups) * launch.group_items, launch.group_items)
        if isinstance(launch, Ordered):
            in_turn = launch.tasks.in_turn
            most = max(len(in_turn) if n in in_turn else grid.items for n, grid in enumerate(grids))
            return Grid.of(min(most, max(self.device.compute.units, self.ordered_groups)), 1)
        # a launch may be for one of a step's work-items only
        items = sum(grid.items if only is None else 1 for only, grid in zip(launch.only, grids, strict=True))
        return Grid.of(items, (launch.group_items if isinstance(launch, Beside) else 0) or 1)


def chunks(count: int, items: int) -> int:
    """Work-items that share `count` rows, at most `items` of them, each as many rows."""
    return -(-count // chunk_of(count, items))


def chunk_of(count: int, items: int) -> int:
    """The rows of each of at most `items` work-items."""
    return maximum(1, -(-count // items))


def tile_vectors(kernel: Kernel) -> int:
    """Vectors of columns of a register tile's work-item: as many as the schedule says, if there are so many."""
    c = kernel.contraction
    assert c is not None
    blocks = -(-c.n.extent // TILE_LANES)
    wanted = max(1, schedule_of(kernel, TileSchedule).columns // TILE_LANES)
    # with fewer blocks than that at some extent, a work-item takes one of them
    return next((n for n in (wanted, largest(blocks)) if surely_at_most(n, blocks)), 1)


def _dividing(total: int, most: int) -> int:
    """Work-items of a group on CPUs: as many as divide their number; of an open number the last group idles in part."""
    size = most
    while not is_symbolic(total) and total % size:
        size //= 2
    return size


def _count(variables: tuple[Var, ...]) -> int:
    return math.prod(v.extent for v in variables)
