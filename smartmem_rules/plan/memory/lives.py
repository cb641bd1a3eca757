"""When the contents of intermediates count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import PlanError, Stored
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Life:
    """The numbers of the first and the last launch at which a tensor's contents count."""

    first: int
    last: int


def lives(tensors: Mapping[str, Stored], launches: Sequence[Launch]) -> dict[str, Life]:
    """The life of each intermediate, in the order in which they are first written.

    Raises:
        PlanError: a launch reads an intermediate that no launch before it writes.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, launch in enumerate(launches):
        for name in launch.reads:
            if tensors[name].role != "intermediate":
                continue
            if name in launch.writes:  # a scan reads its own earlier steps
                continue
            if name not in first:
                raise PlanError(f"the kernel {launch.name} reads {name!r}, which no kernel before it writes")
            last[name] = number
        for name in launch.writes:
            if tensors[name].role == "intermediate":
                first.setdefault(name, number)
                last[name] = number
    return {name: Life(first[name], last[name]) for name in first}
