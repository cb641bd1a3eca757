"""How long a kernel takes by the roofs of its device, without what the layouts of its tensors decide.

A kernel's time is its launch, its arithmetic (with what it computes more than once) and what its template moves between
the chip and the caches beyond the first access to each operand; that first access is what a layout costs
(`layout_costs`).  The sum of both is what the joint choice of kernels and layouts makes small (`plan.joint`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Group, GroupCycles, Panel, Schedule, Tile
from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.kernel.model import Contraction, Kernel, Stored
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.plan.layout.accesses import count
from smartmem_rules.plan.schedule.group import Demand, group_cost, rank_groups, tiles_of
from smartmem_rules.plan.schedule.group_texture import TextureTiles
from smartmem_rules.plan.schedule.launch_costs import LaunchCosts
from smartmem_rules.plan.schedule.roofline_texture import group_time, register_time
from smartmem_rules.plan.schedule.scheduler import demand_of
from smartmem_rules.plan.schedule.sizing import panel_of, right_factors, sizes_of
from smartmem_rules.plan.schedule.winograd_sizes import filters_of
from smartmem_rules.tensor.expr import Expr, Read, Reduce, children, tensors_read
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True)
class KernelTimes:
    """Times of kernels on a device, by the schedules that a level admits.

    Attributes:
        texture: of texture GPUs, by whose roofs their contractions are sized.
    """

    schedules: Sequence[Schedule]
    device: Device
    constants: Collection[str]
    tensors: Mapping[str, Stored]
    texture: TextureTiles | None
    element: int

    def of_launch(self, kernel: Kernel) -> float:
        """Nanoseconds of a launch of one kernel or of several."""
        if not kernel.steps:
            return self.of(kernel)
        panel = panel_of(self.schedules)
        sizes = [] if panel is None else [sizes_of(step, panel, self.constants) for step in kernel.steps]
        known = [one for one in sizes if one is not None]
        if kernel.form == "chain" and panel is not None and len(known) == len(kernel.steps):
            filters = filters_of(kernel.steps[0], self.schedules, panel, known[0].constant, self.device.compute.units)
            known[0] = replace(known[0], filters=filters)
            block = known[0].m_count if kernel.rows is None else kernel.rows.block_rows
            return LaunchCosts(panel, self.device).together(known, block, whole=not kernel.axes)
        return self.device.compute.launch + sum(
            self.of_launch(step) - self.device.compute.launch for step in kernel.steps
        )

    def of(self, kernel: Kernel) -> float:
        """Nanoseconds of a kernel that is no launch of several."""
        peak = self.device.compute.peak
        c = kernel.contraction
        if c is None:
            return self.device.compute.launch + kernel.operations / peak
        constant = bool(tensors_read(c.b)) and is_constant(c.b, self.constants)
        for schedule in self.schedules:
            found = None
            if isinstance(schedule, Panel):
                found = self._panel(kernel, c, schedule)
            elif isinstance(schedule, Group) and not kernel.stages and (constant or not kernel.parts):
                found = self._group(kernel, c, schedule)
            elif isinstance(schedule, Tile):
                columns = schedule.columns[0]
                found = self._in_registers(kernel, c, schedule.rows[0], columns) + self._left(kernel, c, columns)
            if found is not None:
                return found
        return self.device.compute.launch + kernel.operations / peak

    # --- templates ---

    def _panel(self, kernel: Kernel, c: Contraction, schedule: Panel) -> float:
        """Whole rows of the left factor are made once, in a work-item."""
        sizes = sizes_of(kernel, schedule, self.constants)
        made = self._left(kernel, c, max(largest(n.extent) for n, _ in right_factors(kernel)))
        if sizes is None:
            return self.device.compute.launch + kernel.operations / self.device.compute.peak + made
        return LaunchCosts(schedule, self.device).alone(sizes) + made

    def _group(self, kernel: Kernel, c: Contraction, schedule: Group) -> float | None:
        """Each tile of columns makes the rows of the left factor anew."""
        demand = self._demand(kernel, c)
        if self.texture is not None:
            ranked = self.texture.ranked(schedule, kernel, self.tensors, demand)
            if not ranked or self.texture.faster_in_registers(self.schedules, kernel, ranked[0], demand):
                return None
            once = demand.batch * demand.m * demand.k * demand.taps * demand.element
            time = group_time(self.device, ranked[0].tile, demand, once)
            columns = ranked[0].tile.columns
        else:
            choices = rank_groups(tiles_of(schedule), schedule.splits, schedule.cycles, demand, self.device)
            if not choices:
                return None
            cycles = group_cost(choices[0], schedule.cycles, demand, self.device.compute.units)
            time, columns = cycles * self._cycle(schedule.cycles), choices[0].tile.columns
        return self.device.compute.launch + time + self._left(kernel, c, columns)

    def _cycle(self, cycles: GroupCycles) -> float:
        """Nanoseconds of a cycle: the device reaches its peak where all multiprocessors add products."""
        return 2 * cycles.sums_per_cycle * self.device.compute.units / self.device.compute.peak

    def _in_registers(self, kernel: Kernel, c: Contraction, rows: int, columns: int) -> float:
        demand = self._demand(kernel, c)
        if self.texture is not None:
            return self.device.compute.launch + register_time(self.device, rows, columns, demand)
        return self.device.compute.launch + kernel.operations / self.device.compute.peak

    def _demand(self, kernel: Kernel, c: Contraction) -> Demand:
        return demand_of(kernel, c, self.element)

    # --- what a contraction makes of its operands ---

    def _left(self, kernel: Kernel, c: Contraction, columns: int) -> float:
        """What it takes to compute the left factor and its rows' stages for each tile of columns.

        Reads are counted from the second tile on: the first one's are what the layouts cost.
        """
        tiles = sum(-(-largest(n.extent) // columns) for n, _ in right_factors(kernel))
        rows = count((*c.batch, *c.m))
        made = rows * count(c.k) * operations(c.a)
        again = 0
        for stage in c.stages:
            each = rows * count(stage.axes)
            made += each * operations(stage.body)
            again += each * _loads(stage.body)
        memory, peak = self.device.memory, self.device.compute.peak
        shared = memory.of_unit if self.texture is None else min(memory.texture_bandwidth, memory.shared)
        return tiles * made / peak + (tiles - 1) * again * self.element / shared


def _loads(expr: Expr) -> int:
    """Elements of tensors that an expression reads, the turns of its loops counted."""
    if isinstance(expr, Read):
        return 1
    turns = count(expr.variables) if isinstance(expr, Reduce) else 1
    return turns * sum(_loads(child) for child in children(expr))
