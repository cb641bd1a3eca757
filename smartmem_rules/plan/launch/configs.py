"""The configurations in which a GPU kernel may run: work-groups, local memory and modelled time of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, group_cost
from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.plan.schedule.elementwise import array_bytes, in_group, private_rows
from smartmem_rules.plan.schedule.grid import TILE_LANES
from smartmem_rules.plan.schedule.occupancy import LaunchConfig
from smartmem_rules.plan.schedule.records import (
    GroupSchedule,
    TeamSchedule,
    TileSchedule,
    VectorSchedule,
    schedule_of,
)
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import is_symbolic

UNBOUNDED_ITEMS = 1 << 20
"""Work-items that no multiprocessor holds: only its own limits count."""


@dataclass(frozen=True, kw_only=True)
class LaunchConfigs:
    """Finds the ways of kernels.

    Attributes:
        unsized: the launches by name, as they were before they were sized.
        limits: of launches of several kernels.
    """

    scheduler: Scheduler
    costs: KernelCosts
    tensors: Mapping[str, Stored]
    device: Device
    unsized: Mapping[str, Launch]
    limits: Horizontal

    def of(self, launch: Launch) -> tuple[LaunchConfig, ...]:
        """The way that the kernel is sized for, then others; none where it has to have its launch for itself."""
        if not isinstance(launch, Single) or launch.form == "scan" or self._is_open(launch):
            return ()
        kernel = launch.kernel
        if kernel.contraction is None:
            return (self._elementwise(kernel),)
        if isinstance(kernel.schedule, GroupSchedule):
            return self._tiles(kernel)
        return (self._registers(kernel),)

    def in_order(self, launch: Launch, residents: int) -> tuple[LaunchConfig, ...]:
        """The ways of a kernel whose work-groups share a launch with others that they wait for.

        Args:
            residents: work-groups that a unit runs at once at most.

        Returns:
            none where the kernel has to have its launch for itself, or where nothing says how long it takes.
        """
        compute = self.device.compute
        if not compute.clock_ghz or not self.of(launch):
            return ()
        (kernel,) = launch.kernels
        if kernel.contraction is None or not isinstance(kernel.schedule, GroupSchedule):
            return tuple(
                one for way in self.of(launch) if not way.alone for one in (way, *self._smaller_teams(kernel, way))
            )
        cycles, demand = self.costs.group_schedule(kernel).cycles, self.costs.templates.demand(kernel)
        ways = (self._tile(kernel, choice, 0.0) for choice, _ in self.costs.tiles(kernel))
        times = (
            group_cost(choice, cycles, demand, self.device, residents) / compute.clock_ghz
            + (compute.meet_us * 1000 if choice.splits > 1 else 0)
            for choice, _ in self.costs.tiles(kernel)
        )
        return tuple(replace(way, time=time, alone=False) for way, time in zip(ways, times, strict=True))

    def reschedule(self, launch: Launch, config: LaunchConfig, threads: int) -> Launch:
        """The launch of one kernel for work-groups of so many work-items, with the tile of one of its ways."""
        assert isinstance(launch, Single)
        return replace(launch, kernel=self._rescheduled(launch.kernel, config, threads))

    def _rescheduled(self, kernel: Kernel, config: LaunchConfig, threads: int) -> Kernel:
        if kernel.contraction is None:
            local_memory = self.device.memory.local_memory
            schedule = kernel.schedule
            if config.team and isinstance(schedule, TeamSchedule):
                schedule = replace(schedule, team=config.team)
            return replace(kernel, schedule=in_group(schedule, array_bytes(kernel), threads, local_memory))
        if config.choice is None or schedule_of(kernel, GroupSchedule).sizes() == dict(config.choice):
            return kernel
        (unsized,) = self.unsized[kernel.name].kernels
        return self.scheduler.schedule(unsized, config.choice)

    def _is_open(self, launch: Launch) -> bool:
        stored = (self.tensors[name] for name in (*launch.reads, *launch.writes))
        return any(is_symbolic(extent) for one in stored for extent in one.type.shape)

    # --- contractions ---

    def _tiles(self, kernel: Kernel) -> tuple[LaunchConfig, ...]:
        ways = self.costs.tiles(kernel)
        own = next((way for way in ways if self._is_own(way[0], kernel)), None)
        if own is None:
            return ()
        best: dict[int, tuple[GroupChoice, float]] = {}
        for way in (own, *ways):
            # what a split reduction gains, work-groups of other kernels give as well
            if way[0].splits == 1:
                best.setdefault(way[0].tile.threads, way)
        others = [way for way in best.values() if way is not own]
        return tuple(self._tile(kernel, choice, time) for choice, time in (own, *others))

    @staticmethod
    def _is_own(choice: GroupChoice, kernel: Kernel) -> bool:
        return schedule_of(kernel, GroupSchedule).sizes() == choice.sizes()

    def _tile(self, kernel: Kernel, choice: GroupChoice, time: float) -> LaunchConfig:
        c, tile = kernel.contraction, choice.tile
        assert c is not None
        demand = self.costs.templates.demand(kernel)
        groups = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
        local = 4 * tile.memory + tile.row_memory(demand.row_bytes)
        cycles = self.costs.group_schedule(kernel).cycles
        busy = int(cycles.resident_subgroups) * tile.subgroup if cycles.sums_per_cycle else UNBOUNDED_ITEMS
        items = groups * choice.splits * tile.threads
        alone = choice.splits > 1 or local + self.limits.spare_local_bytes > self.device.memory.local_memory
        return LaunchConfig(
            threads=tile.threads,
            items=items,
            local=local,
            time=time,
            busy=busy,
            choice=choice.sizes(),
            alone=alone,
            order_factor=cycles.order_factor,
        )

    def _registers(self, kernel: Kernel) -> LaunchConfig:
        c, schedule = kernel.contraction, schedule_of(kernel, TileSchedule)
        assert c is not None
        blocks = -(-count(c.m) // schedule.rows) * -(-c.n.extent // schedule.columns)
        return LaunchConfig(
            threads=0, items=count(c.batch) * blocks, local=0, time=self._roofline(kernel), busy=UNBOUNDED_ITEMS
        )

    # --- elements and rows ---

    def _elementwise(self, kernel: Kernel) -> LaunchConfig:
        rows = math.prod(v.extent for v in kernel.axes)
        if kernel.form == "pointwise":
            items = -(-rows // (TILE_LANES * schedule_of(kernel, VectorSchedule).places))
            return LaunchConfig(threads=0, items=items, local=0, time=self._roofline(kernel), busy=UNBOUNDED_ITEMS)
        rows_of = schedule_of(kernel, TeamSchedule)
        team, teams = rows_of.team, rows_of.teams
        arrays = array_bytes(kernel)
        local = 0 if team == 1 else teams * arrays + 4 * team * teams
        return LaunchConfig(
            threads=0,
            items=rows * team,
            local=local,
            time=self._roofline(kernel),
            busy=UNBOUNDED_ITEMS,
            alone=team == 1 and private_rows(arrays, self.device) < self.limits.largest_group,
        )

    def _smaller_teams(self, kernel: Kernel, way: LaunchConfig) -> Iterator[LaunchConfig]:
        """With fewer work-items for each row, more rows are computed at once."""
        if not isinstance(kernel.schedule, TeamSchedule):
            return
        team = kernel.schedule.team
        while team > self.device.compute.subgroup:
            team //= 2
            yield replace(way, items=way.items * team // kernel.schedule.team, team=team)

    def _roofline(self, kernel: Kernel) -> float:
        """Nanoseconds of a kernel that fills the device: its arithmetic, or its traffic."""
        written = sum(stored_bytes(self.tensors[name]) for name in kernel.writes)
        # a table that is looked up is not read whole
        most = self.limits.rereads * max(written, 1) if kernel.form == "pointwise" else UNBOUNDED_ITEMS**2
        read = sum(min(most, stored_bytes(self.tensors[name])) for name in kernel.reads)
        return max(self.device.compute.time(kernel.operations), (written + read) / self.device.memory.global_bandwidth)
