"""The text form of launches: their kernels, how these share the launch, and its geometry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smartmem_rules.plan.kernel.printer import (
    computation_lines,
    indented,
    loop_lines,
    origin_lines,
    ring_lines,
    schedule_lines,
    tensor_lines,
    title,
)
from smartmem_rules.tensor.printer import numbered

if TYPE_CHECKING:
    from smartmem_rules.plan.kernel.launch import Launch, Single
    from smartmem_rules.plan.kernel.model import Stored
    from smartmem_rules.plan.kernel.work_items import BlockRows, Grid, TaskGraph

_LISTED = 8
"""Other numbers of rows that are shown."""
_WAYS = {
    "chain": "steps, one after the other in each work-item",
    "beside": "steps, side by side in one launch",
    "ordered": "steps, each when the work-items of others are done",
}


def launch_text(launch: Launch, tensors: Mapping[str, Stored] | None = None) -> str:
    """A launch with all that its kernels compute; with `tensors`, types and layouts of what it reads and writes."""
    with numbered():
        return "\n".join(_lines(launch, tensors or {})) + "\n"


def launch_line(launch: Launch) -> str:
    """A launch in one line: name, form, what it reads and writes, bytes and operations."""
    form = "moves only" if launch.moves_only else launch.form
    names = f"{', '.join(launch.reads) or '-'} -> {', '.join(launch.writes) or '-'}"
    steps = f" of {', '.join(kernel.name for kernel in launch.kernels)}" if launch.steps else ""
    return f"{launch.name} ({form}){steps}: {names}; {launch.bytes_moved} bytes, {launch.operations} operations"


def grid_text(grid: Grid) -> str:
    """`64 work-items in groups of 8`."""
    group = "" if grid.local_size is None else f" in groups of {_sizes(grid.local_size)}"
    return f"{_sizes(grid.global_size)} work-items{group}"


def single_lines(launch: Single) -> Iterator[str]:
    """The lines of a launch of one kernel: what the kernel computes, and which rows or steps a work-item takes."""
    kernel = launch.kernel
    yield from loop_lines(kernel.axes)
    yield from computation_lines(kernel)
    if launch.block_rows is not None:
        yield f"{launch.block_rows} rows for each work-item"
    yield from ring_lines(kernel)
    yield from schedule_lines(kernel)


def row_lines(rows: BlockRows) -> Iterator[str]:
    """The rows that a work-item of a chain owns, and what it keeps of them."""
    yield from loop_lines(rows.axes)
    more = rows.candidates[:_LISTED]
    others = f" (could be {', '.join(map(str, more))})" if more else ""
    yield f"{rows.block_rows} rows of {rows.m} for each work-item{others}"
    for tensor, elements in rows.kept.items():
        yield f"keeps {elements} elements of a row of {tensor} in scratch memory"


def order_lines(tasks: TaskGraph, steps: Sequence[str]) -> Iterator[str]:
    """What each of the steps, given by their names, waits for."""
    for step, waits in zip(steps, tasks.waits, strict=True):
        needs = [steps[w.step] if w.lag is None else f"{steps[w.step]} up to its own + {w.lag}" for w in waits]
        yield f"{step} waits for {', '.join(needs) or 'nothing'}"


def _lines(launch: Launch, tensors: Mapping[str, Stored], note: str = "") -> Iterator[str]:
    yield title("launch" if launch.steps else "kernel", launch.name, launch.form, launch.moves_only)
    yield from indented(_content(launch, tensors, note))


def _content(launch: Launch, tensors: Mapping[str, Stored], note: str) -> Iterator[str]:
    yield from origin_lines(launch.origin)
    yield from tensor_lines(launch.reads, launch.writes, tensors, launch.in_place)
    if launch.bytes_moved or launch.operations:
        moved = f"{launch.bytes_moved} bytes, " if launch.bytes_moved else ""
        yield f"{moved}{launch.operations} operations"
    yield from launch.lines()
    if note:
        yield note
    if launch.grid is not None:
        yield f"grid {grid_text(launch.grid)}"
    if launch.steps:
        yield _WAYS[launch.form]
        for step, own in zip(launch.steps, launch.notes, strict=True):
            yield from indented(_lines(step, {}, own))


def _sizes(sizes: Sequence[int]) -> str:
    return " x ".join(map(repr, sizes))
