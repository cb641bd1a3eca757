"""What the cost model says of the launches of a finished plan, computed when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.launch import Launch, Wave
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelledTimes:
    """Times of launches.

    Attributes:
        costs: of the kernels, without the first access to each operand.
        launches: in the order of execution, with the bytes that they move.
    """

    costs: KernelCosts
    launches: tuple[Launch, ...]

    @staticmethod
    def of(costs: KernelCosts, launches: Sequence[Launch]) -> ModelledTimes:
        """The times of launches; the values of constants are not kept."""
        templates = replace(costs.templates, constants=frozenset(costs.templates.constants))
        return ModelledTimes(costs=KernelCosts(templates=templates), launches=tuple(launches))

    def microseconds(self) -> dict[str, float]:
        """For each launch by its name what its kernels take, and the bytes of its operands and results.

        A launch with open extents is modelled at the greatest ones; one that no template takes has no time.
        """
        bandwidth = self.costs.device.memory.global_bandwidth
        times = {one.name: (self._of(one) + one.bytes_moved / bandwidth) / 1e3 for one in self.launches}
        return {name: time for name, time in times.items() if math.isfinite(time)}

    def _of(self, launch: Launch) -> float:
        """Nanoseconds of the kernels of a launch, of a wave those of its shares of their steps."""
        whole = self.costs.of_launch(launch)
        if not isinstance(launch, Wave):
            return whole
        own = self.costs.device.compute.launch
        return own + (whole - own) / launch.shares
