"""A plan with the texts of the stages that led to it: its launches one by one, and what differs from another plan."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from smartmem_rules.errors import SmartmemError
from smartmem_rules.explanation.report import launch_kind
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.launch_printer import launch_text
from smartmem_rules.plan.kernel.printer import schedule_text
from smartmem_rules.plan.printer import candidates_lines, sized_line
from smartmem_rules.records import dataclass
from smartmem_rules.stages import STAGES

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import KernelShown, LaunchShown, StageDifference

_CONTEXT = 2


class InspectionError(SmartmemError):
    """There is no such kernel, or a file cannot be written; the message says which and why."""


@dataclass(frozen=True)
class Inspected:
    """A plan, and the text of each stage that led to it; of a plan from a file only what the file holds."""

    plan: Plan
    stages: Mapping[str, str]


# --- one plan ---


def launches_data(plan: Plan) -> list[LaunchShown]:
    """The launches in the order of execution, as JSON data."""
    return [
        {
            "number": number,
            "name": launch.name,
            "form": launch_kind(launch),
            "kernels": [kernel.name for kernel in launch.kernels],
            "origin": list(launch.origin),
            "reads": list(launch.reads),
            "writes": list(launch.writes),
            "bytes_moved": launch.bytes_moved,
            "operations": launch.operations,
            "global_size": list(map(repr, source.global_size)),
            "local_size": None if source.local_size is None else list(map(repr, source.local_size)),
        }
        for number, (launch, source) in enumerate(zip(plan.launches, plan.sources, strict=True))
    ]


def kernel_data(inspected: Inspected, name: str) -> KernelShown:
    """One kernel: its text, its schedule with the figures that chose it, layouts, and the OpenCL C of its launch.

    Args:
        name: of a launch, of a kernel inside one, or the number of a launch.

    Raises:
        InspectionError: there is none.
    """
    plan = inspected.plan
    number, found = _found(plan, name)
    enqueue = plan.enqueues[number]
    described = plan.statistics.planning.tensor_layouts
    return {
        "name": found.name,
        "launch": number,
        "text": launch_text(found, plan.tensors),
        "schedule": {
            kernel.name: {
                "sizes": schedule_text(kernel.schedule),
                "figures": _section(inspected.stages.get("schedule", ""), kernel.name),
            }
            for kernel in found.kernels
        },
        "layouts": {
            tensor: {"layout": plan.tensors[tensor].layout.places, "candidates": candidates_lines(described[tensor])}
            for tensor in (*found.reads, *found.writes)
            if tensor in described and tensor in plan.tensors
        },
        "launched_as": sized_line(enqueue.launch),
        "source": enqueue.source.text,
    }


def _found(plan: Plan, name: str) -> tuple[int, Launch]:
    """The launch of a name or number, or the part of a launch that is one kernel; and the number of the launch."""
    if name.isdecimal() and int(name) < len(plan.launches):
        return int(name), plan.launches[int(name)]
    launches = list(enumerate(plan.launches))
    parts = [(number, single) for number, launch in launches for single in launch.singles]
    for number, one in (*launches, *parts):
        if one.name == name:
            return number, one
    hint = did_you_mean(name, [one.name for _, one in parts])
    hint = hint or f"it has {len(launches)} launches, 0 to {len(launches) - 1}"
    raise InspectionError(f"the plan of {plan.model} has no kernel {name!r}; {hint}")


def _section(text: str, name: str) -> list[str]:
    """The indented lines below the one that begins with a name."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.startswith(f"{name}:")
        elif inside:
            found.append(line.strip())
    return found


# --- two plans ---


def stage_differences(first: Inspected, second: Inspected) -> list[StageDifference]:
    """For each stage that both have what changed, as JSON data: {stage, same, removed, added, lines}.

    Kernels are compared without the numbers in their names, which change with every kernel before them.
    """
    found: list[StageDifference] = []
    for stage in STAGES:
        if stage not in first.stages or stage not in second.stages:
            continue
        old, new = (_unnumbered(one.stages[stage]).splitlines() for one in (first, second))
        lines = list(difflib.unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
        found.append(
            {
                "stage": stage,
                "same": not lines,
                "removed": sum(line.startswith("-") for line in lines),
                "added": sum(line.startswith("+") for line in lines),
                "lines": lines,
            }
        )
    return found


def _unnumbered(text: str) -> str:
    return re.sub(r"^(\s*)\d+ (?=k\d)", r"\1", re.sub(r"\bk\d+(?=_)", "k", text), flags=re.M)
