"""The tensors that launches take: each is a parameter of the launch in which several are joined."""

from __future__ import annotations

from collections.abc import Set

from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Kernel


def operands_of(launch: Launch | Kernel) -> frozenset[str]:
    """The tensors that a launch or a kernel reads and writes."""
    return frozenset((*launch.reads, *launch.writes))


def number_together(many: Set[str], few: Set[str]) -> int:
    """How many different tensors there are, in time of the few."""
    return len(many) + len(few - many)
