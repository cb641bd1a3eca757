"""The modelled time of kernels; every decision about kernels asks this module.

A kernel's time is its launch, its arithmetic (with what it computes more than once) and what its template moves between
the chip and the caches beyond the first access to each operand; that first access is what a layout costs
(`plan.layout.costs`).  The sum of both is what the joint choice of kernels and layouts makes small (`plan.joint`).
A contraction is priced by the template and the sizes that it will run with (`templates`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Group, GroupCycles, Panel
from smartmem_rules.plan.kernel.launch import Chain, Launch, Single
from smartmem_rules.plan.kernel.model import Contraction, Kernel
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.plan.layout.accesses import count
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape, loads
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, group_cost
from smartmem_rules.plan.schedule.contraction.roofline_texture import group_time, register_time
from smartmem_rules.plan.schedule.contraction.sizing import Filter, Resources, panel_of, resources_of, right_factors
from smartmem_rules.plan.schedule.contraction.winograd_sizes import filter_of, filters_of
from smartmem_rules.plan.schedule.launch_costs import LaunchCosts
from smartmem_rules.plan.schedule.records import GroupSchedule, schedule_of
from smartmem_rules.plan.schedule.templates import Form, GroupForm, PanelForm, Templates, TileForm, WinogradForm
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class KernelCosts:
    """Times of kernels on a device, in nanoseconds.

    Attributes:
        templates: which template realises a contraction.
    """

    templates: Templates

    @property
    def device(self) -> Device:
        """Whose times these are."""
        return self.templates.device

    def of_launch(self, launch: Launch) -> float:
        """A launch of one kernel or of several."""
        if isinstance(launch, Single):
            return self.of(launch.kernel, launch.block_rows)
        time = self._of_chain(launch) if isinstance(launch, Chain) else None
        if time is not None:
            return time
        own = self.device.compute.launch
        return own + sum(self.of_launch(step) - own for step in launch.steps)

    def _of_chain(self, chain: Chain) -> float | None:
        """A chain whose kernels all give their rows to work-items; None for others."""
        panel = panel_of(self.templates.schedules)
        if panel is None:
            return None
        sizes = [self._row_sizes(step.kernel, panel, step.block_rows) for step in chain.steps]
        known = [one for one in sizes if one is not None]
        if len(known) < len(sizes):
            return None
        first = chain.steps[0]
        known[0] = replace(known[0], filters=self._filters(first.kernel, panel, known[0], first.block_rows))
        block = known[0].m_count if chain.rows is None else chain.rows.block_rows
        return LaunchCosts(panel, self.device).together(known, block, whole=chain.rows is None)

    def of(self, kernel: Kernel, block_rows: int | None = None) -> float:
        """One kernel; infinitely long where no template takes its contraction.

        Args:
            block_rows: rows of a work-item, where the kernel's launch decides that.
        """
        if kernel.contraction is None:
            return self.device.compute.launch + self.device.compute.time(kernel.operations)
        form = self.templates.form(kernel, block_rows=block_rows)
        return math.inf if form is None else self.with_form(kernel, form, block_rows)

    def with_form(self, kernel: Kernel, form: Form, block_rows: int | None = None) -> float:
        """A contraction with a template and sizes."""
        c, launch = kernel.contraction, self.device.compute.launch
        assert c is not None
        match form:
            case PanelForm():
                return self._over_rows(kernel, c, form.schedule, block_rows)
            case WinogradForm():
                return self._over_rows(kernel, c, self._panel(), block_rows, form)
            case GroupForm():
                time, columns = self._group(form), form.choice.tile.columns
            case TileForm():
                time, columns = self._registers(kernel, form), form.columns
        return launch + time + self._left(kernel, c, columns)

    # --- tiles in local memory ---

    def group_schedule(self, kernel: Kernel) -> Group:
        """The schedule block of a kernel that is sized for tiles in local memory."""
        name = schedule_of(kernel, GroupSchedule).name
        return next(s for s in self.templates.schedules if isinstance(s, Group) and s.name == name)

    def tiles(self, kernel: Kernel) -> list[tuple[GroupChoice, float]]:
        """The tiles that a sized kernel may have with the time of each, without the launch, the fastest first."""
        schedule, demand = self.group_schedule(kernel), self.templates.demand(kernel)
        choices = self.templates.groups(kernel, schedule)
        return [(one, self.of_tile(one, schedule.cycles, demand)) for one in choices]

    def tile_figures(self, kernel: Kernel) -> tuple[str, list[tuple[GroupChoice, float]]]:
        """The same in the unit in which their schedule block counts: cycles of a multiprocessor, or nanoseconds."""
        if self.templates.texture is not None:
            return "ns", self.tiles(kernel)
        schedule, demand = self.group_schedule(kernel), self.templates.demand(kernel)
        choices = self.templates.groups(kernel, schedule)
        return "cycles", [(one, group_cost(one, schedule.cycles, demand, self.device)) for one in choices]

    def of_tile(self, choice: GroupChoice, cycles: GroupCycles, demand: GemmShape, counted: int = 0) -> float:
        """Work-groups that share tiles, without the launch.

        Args:
            counted: bytes whose reading is counted elsewhere, on texture GPUs.
        """
        if self.templates.texture is not None:
            return group_time(self.device, choice.tile, demand, counted)
        return group_cost(choice, cycles, demand, self.device) * self.device.compute.cycle(cycles.sums_per_cycle)

    def _group(self, form: GroupForm) -> float:
        demand = form.demand
        once = demand.batch * demand.m * demand.k * demand.taps * demand.element
        return self.of_tile(form.choice, form.schedule.cycles, demand, once)

    # --- registers ---

    def _registers(self, kernel: Kernel, form: TileForm) -> float:
        if self.templates.texture is None:
            return self.device.compute.time(kernel.operations)
        return register_time(self.device, form.rows, form.columns, self.templates.demand(kernel))

    # --- whole rows of the left factor are made once, in a work-item ---

    def _over_rows(
        self,
        kernel: Kernel,
        c: Contraction,
        schedule: Panel,
        block_rows: int | None,
        filtered: WinogradForm | None = None,
    ) -> float:
        costs = LaunchCosts(schedule, self.device)
        sizes = self._row_sizes(kernel, schedule, block_rows)
        made = self._left(kernel, c, max(largest(n.extent) for n, _ in right_factors(kernel)))
        if sizes is None:
            return self.device.compute.launch + self.device.compute.time(kernel.operations) + made
        if filtered is not None:
            found = self._filters(kernel, schedule, sizes, block_rows)
            filters = found or (filter_of(filtered.problem, schedule),)
            sizes = replace(sizes, filters=filters)
        return costs.alone(sizes) + made

    def _filters(self, kernel: Kernel, schedule: Panel, sizes: Resources, block_rows: int | None) -> tuple[Filter, ...]:
        schedules, units = self.templates.schedules, self.device.compute.units
        return filters_of(kernel, schedules, schedule, sizes.constant, units, block_rows)

    def _panel(self) -> Panel:
        panel = panel_of(self.templates.schedules)
        assert panel is not None
        return panel

    def _row_sizes(self, kernel: Kernel, schedule: Panel, block_rows: int | None) -> Resources | None:
        return resources_of(kernel, schedule, self.templates.constants, block_rows)

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
            again += each * loads(stage.body)
        memory, element = self.device.memory, storage_dtype(self.templates.storage).itemsize
        shared = memory.of_unit if self.templates.texture is None else min(memory.texture_bandwidth, memory.shared)
        return self.device.compute.time(tiles * made) + (tiles - 1) * again * element / shared
