"""The text form of kernels and launches: equations over stored tensors, layouts, schedule and launch geometry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.printer import bounds_text, element_text, expression_text, numbered, variable_text

if TYPE_CHECKING:
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.plan.kernel.model import Contraction, Kernel, KernelSchedule, Stage, Store, Stored

INDENT = "  "
_LISTED = 8
"""Other numbers of rows that are shown."""
_WAYS = {
    "chain": "steps, one after the other in each work-item",
    "beside": "steps, side by side in one launch",
    "ordered": "steps, each when the work-items of others are done",
}


def kernel_text(kernel: Kernel, tensors: Mapping[str, Stored] | None = None) -> str:
    """A kernel with all that it computes; with `tensors`, the types and layouts of what it reads and writes too."""
    with numbered():
        return "\n".join(_kernel_lines(kernel, tensors or {})) + "\n"


def launch_text(kernel: Kernel) -> str:
    """A launch in one line: name, form, what it reads and writes, bytes and operations."""
    form = "moves only" if kernel.moves_only else kernel.form
    names = f"{', '.join(kernel.reads) or '-'} -> {', '.join(kernel.writes) or '-'}"
    steps = f" of {', '.join(leaf.name for leaf in kernel.leaves)}" if kernel.steps else ""
    return f"{kernel.name} ({form}){steps}: {names}; {kernel.bytes_moved} bytes, {kernel.operations} operations"


def tensor_text(stored: Stored) -> str:
    """`x : float32[2, 3] input, buffer[d0d1]`."""
    kept = "" if stored.storage == stored.type.dtype else f" stored as {stored.storage}"
    shown = "" if stored.shown is None else f", shown as {list(stored.shown)}"
    return f"{stored.name} : {stored.type}{kept} {stored.role}, {stored.layout}{shown}"


def schedule_text(schedule: KernelSchedule | None) -> str:
    """The schedule's name, its template, its sizes in the order of their names, and what was packed for it."""
    if schedule is None:
        return ""
    packed = getattr(schedule, "packed", ())
    factors = [one.name for one in (packed if isinstance(packed, tuple) else (packed,)) if one is not None]
    parts = [f"{schedule.name}, template {schedule.template}", sizes_text(schedule.sizes())]
    parts += [f"packed {', '.join(factors)}"] if factors else []
    return ", ".join(part for part in parts if part)


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`columns 16, rows 6`."""
    return ", ".join(f"{name} {sizes[name]}" for name in sorted(sizes))


def _kernel_lines(kernel: Kernel, tensors: Mapping[str, Stored]) -> Iterator[str]:
    form = f"{kernel.form}, moves only" if kernel.moves_only else kernel.form
    yield f"kernel {kernel.name}: {form}"
    yield from _indented(_content(kernel, tensors))


def _content(kernel: Kernel, tensors: Mapping[str, Stored]) -> Iterator[str]:
    if kernel.origin:
        yield f"from {', '.join(kernel.origin)}"
    for word, names in (("reads", kernel.reads), ("writes", kernel.writes)):
        for name in names:
            place = f" in the memory of {kernel.in_place[name]}" if name in kernel.in_place and word == "writes" else ""
            yield f"{word} {tensor_text(tensors[name]) if name in tensors else name}{place}"
    if kernel.bytes_moved or kernel.operations:
        moved = f"{kernel.bytes_moved} bytes, " if kernel.bytes_moved else ""
        yield f"{moved}{kernel.operations} operations"
    loops = [axis for axis in kernel.axes if is_symbolic(axis.extent) or axis.extent != 1]
    if loops:
        yield f"for {bounds_text(loops)}"
    yield from _computation(kernel)
    yield from _share_lines(kernel)
    if kernel.schedule is not None:
        yield f"schedule {schedule_text(kernel.schedule)}"
    if kernel.grid is not None:
        group = "" if kernel.grid.local_size is None else f" in groups of {_sizes(kernel.grid.local_size)}"
        yield f"grid {_sizes(kernel.grid.global_size)} work-items{group}"
    if kernel.tasks is not None:
        yield from _order_lines(kernel)
    if kernel.steps:
        yield _WAYS.get(kernel.form, "steps")
        for step in kernel.steps:
            yield from _indented(_kernel_lines(step, {}))


def _share_lines(kernel: Kernel) -> Iterator[str]:
    """Which rows or steps a work-item owns, and what it keeps in scratch memory."""
    if kernel.rows is not None:
        more = kernel.rows.candidates[:_LISTED]
        others = f" (could be {', '.join(map(str, more))})" if more else ""
        yield f"{kernel.rows.block_rows} rows of {kernel.rows.m} for each work-item{others}"
        for tensor, elements in kernel.rows.kept.items():
            yield f"keeps {elements} elements of a row of {tensor} in scratch memory"
    elif kernel.block_rows is not None:
        yield f"{kernel.block_rows} rows for each work-item"
    if kernel.share is not None or kernel.shares > 1:
        yield f"share {0 if kernel.share is None else kernel.share} of {kernel.shares}"
    for tensor, elements in kernel.ring.items():
        yield f"keeps {elements} elements of a step of {tensor}"


def _computation(kernel: Kernel) -> Iterator[str]:
    """The equations: rows first, then the contraction, then what is stored of it."""
    if kernel.contraction is not None:
        yield from _contraction_lines(kernel.contraction)
    for part in kernel.parts:
        yield f"beside it for {bounds_text((part.n,))}: right factor {expression_text(part.b)}"
    for stage in kernel.stages:
        yield _stage_text(stage)
    for store in kernel.stores:
        yield _store_text(store)


def _contraction_lines(c: Contraction) -> Iterator[str]:
    rows = [f"{word} {bounds_text(axes)}" for word, axes in (("batch", c.batch), ("rows", c.m)) if axes]
    yield f"contraction over {bounds_text(c.k) or '1'}, {', '.join([*rows, f'columns {bounds_text((c.n,))}'])}"
    if c.scores is not None:
        yield f"  scores for {bounds_text((c.scores.n,))}: sum({bounds_text(c.scores.k)}) of"
        yield f"    left  {expression_text(c.scores.a)}"
        yield f"    right {expression_text(c.scores.b)}"
    for stage in c.stages:
        yield f"  {_stage_text(stage)}"
    yield f"  left  {expression_text(c.a)}"
    yield f"  right {expression_text(c.b)}"


def _stage_text(stage: Stage) -> str:
    axes = f"[{', '.join(map(variable_text, stage.axes))}]" if stage.axes else ""
    where = f" for {bounds_text(stage.axes)}" if stage.axes else ""
    return f"row {stage.name}{axes} : {stage.dtype} = {expression_text(stage.body)}{where}"


def _store_text(store: Store) -> str:
    where = f" for {bounds_text(store.local)}" if store.local else ""
    return f"{element_text(store.tensor, store.indices)} = {expression_text(store.value)}{where}"


def _order_lines(kernel: Kernel) -> Iterator[str]:
    assert kernel.tasks is not None
    for place, waits in enumerate(kernel.tasks.waits):
        needs = [
            f"{kernel.steps[w.step].name}" if w.lag is None else f"{kernel.steps[w.step].name} up to its own + {w.lag}"
            for w in waits
        ]
        yield f"{kernel.steps[place].name} waits for {', '.join(needs) or 'nothing'}"


def _sizes(sizes: Sequence[int]) -> str:
    return " x ".join(map(repr, sizes))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (INDENT + line for line in lines)


def plan_text(plan: Plan) -> str:
    """A whole plan: what it is for, its tensors with layouts and places, its launches in their order."""
    lines = [f"plan of {plan.model} for {plan.device}, level {plan.level}, {plan.dtype}"]
    lines += [f"  dimension {dimension}" for dimension in plan.dimensions]
    lines += [f"  {tensor_text(stored)}{_place(plan, name)}" for name, stored in plan.tensors.items()]
    lines += [f"  {number} {launch_text(kernel)}" for number, kernel in enumerate(plan.kernels)]
    return "\n".join(lines) + "\n"


def _place(plan: Plan, name: str) -> str:
    place = plan.placement.get(name)
    return "" if place is None else f", in slot {place.slot} at byte {place.offset}"
