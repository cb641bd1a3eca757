"""The text form of what each stage of planning gives: fused kernels, layouts, schedules, launches, memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from smartmem_rules.plan.kernel.launch_printer import grid_text, launch_line, launch_text
from smartmem_rules.plan.kernel.printer import schedule_text, sizes_text, tensor_text
from smartmem_rules.plan.schedule.figures import figures

if TYPE_CHECKING:
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.plan.kernel.launch import Launch, Single
    from smartmem_rules.plan.kernel.model import Stored
    from smartmem_rules.plan.layout.choose import LayoutChoice
    from smartmem_rules.plan.memory.planning import MemoryPlan
    from smartmem_rules.plan.schedule.scheduler import Scheduler
    from smartmem_rules.statistics import TensorLayout

SHOWN = 4
"""Candidates of a tensor or a kernel that are listed, the cheapest first."""


def fused_text(launches: Iterable[Launch]) -> str:
    """What fusion made, with the equations of all kernels."""
    return "\n".join(map(launch_text, launches))


def layouts_text(tensors: Mapping[str, Stored], choice: LayoutChoice | None) -> str:
    """Each tensor's layout, and what the others that it could have would cost."""
    lines = ["every tensor in the order of its axes" if choice is None else f"{choice.status}, {choice.cost:.3f} us"]
    for name, stored in tensors.items():
        lines.append(tensor_text(stored))
        lines += candidates_lines(None if choice is None else choice.described.get(name))
    return "\n".join(lines) + "\n"


def candidates_lines(described: TensorLayout | None) -> list[str]:
    """The layouts that a tensor could have, by the modelled time of the kernels that write and read it."""
    listed = () if described is None else described.candidates
    possible = [(one.microseconds, one.layout) for one in listed if one.microseconds is not None]
    if len(possible) < 2:
        return []
    cheapest = sorted(possible, key=lambda one: one[0])[:SHOWN]
    return [f"    {microseconds:.3f} us as {layout}" for microseconds, layout in cheapest]


def schedules_text(launches: Iterable[Launch], scheduler: Scheduler) -> str:
    """The sizes of each kernel, and the modelled figures of the sizes that it could have."""
    lines = []
    for single in (single for launch in launches for single in launch.singles):
        lines.append(f"{single.name}: {schedule_text(single.schedule) or 'no sizes to choose'}")
        lines += [f"    {line}" for line in figures_lines(single, scheduler)]
    return "\n".join(lines) + "\n"


def figures_lines(single: Single, scheduler: Scheduler) -> list[str]:
    """The modelled figures of a kernel's cheapest sizes."""
    found = figures(scheduler, single)
    return [
        f"{cost:.6g} {found.unit} with {sizes_text(sizes)}{' (chosen)' if one else ''}"
        for sizes, cost, one in found.shown({} if single.schedule is None else single.schedule.sizes(), SHOWN)
    ]


def launches_text(launches: Sequence[Launch]) -> str:
    """The launches in the order of execution, with their grids."""
    return "".join(f"{number} {sized_line(launch)}\n" for number, launch in enumerate(launches))


def sized_line(launch: Launch) -> str:
    """A launch in one line, with its grid."""
    return launch_line(launch) + ("" if launch.grid is None else f"; {grid_text(launch.grid)}")


def memory_text(memory: MemoryPlan, tensors: Mapping[str, Stored]) -> str:
    """The pieces of device memory, and which tensors lie where in them."""
    lines = []
    for number, slot in enumerate(memory.slots):
        size = f"{slot.bytes} bytes" if slot.memory == "buffer" else f"{slot.size[0]} x {slot.size[1]} texels"
        lines.append(f"slot {number}: {slot.memory}, {size}")
        inside = sorted((p.offset, name) for name, p in memory.placement.items() if p.slot == number)
        for offset, name in inside:
            place = f", written over {memory.in_place[name]}" if name in memory.in_place else ""
            lines.append(f"    {offset} {tensor_text(tensors[name])}{place}")
    return "\n".join(lines) + "\n"


def sources_text(plan: Plan) -> str:
    """The entry, arguments and size of each launch's OpenCL C."""
    lines = []
    for number, (launch, source) in enumerate(zip(plan.launches, plan.sources, strict=True)):
        size = " x ".join(map(repr, source.global_size))
        lines.append(
            f"{number} {launch.name}: {source.entry}, {len(source.text.splitlines())} lines, {size} work-items"
        )
        lines += [f"    {argument.access} {argument.tensor}" for argument in source.arguments]
    return "\n".join(lines) + "\n"
