"""The text form of kernels: equations over stored tensors, with layouts and schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.printer import bounds_text, element_text, expression_text, numbered, variable_text

if TYPE_CHECKING:
    from smartmem_rules.plan.kernel.model import Contraction, Kernel, KernelSchedule, Stage, Store, Stored
    from smartmem_rules.tensor.atoms import Var

INDENT = "  "


def kernel_text(kernel: Kernel) -> str:
    """A kernel with all that it computes."""
    with numbered():
        lines = [
            title("kernel", kernel.name, kernel.form, kernel.moves_only),
            *indented(_content(kernel)),
        ]
        return "\n".join(lines) + "\n"


def title(what: str, name: str, form: str, only_moves: bool) -> str:
    """`kernel k0_reduction: reduction`; `what` is a kernel or a launch."""
    return f"{what} {name}: {form}{', moves only' if only_moves else ''}"


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
    parts += [f"for unusual data {', '.join(schedule.seldom_read)}"] if schedule.seldom_read else []
    return ", ".join(part for part in parts if part)


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`columns 16, rows 6`."""
    return ", ".join(f"{name} {sizes[name]}" for name in sorted(sizes))


def _content(kernel: Kernel) -> Iterator[str]:
    yield from origin_lines(kernel.origin)
    yield from tensor_lines(kernel.reads, kernel.writes, {}, {})
    yield f"{kernel.operations} operations"
    yield from loop_lines(kernel.axes)
    yield from computation_lines(kernel)
    yield from ring_lines(kernel)
    yield from schedule_lines(kernel)


def origin_lines(origin: Sequence[str]) -> Iterator[str]:
    """The ONNX nodes that a kernel or launch stands for."""
    if origin:
        yield f"from {', '.join(origin)}"


def tensor_lines(
    reads: Sequence[str], writes: Sequence[str], tensors: Mapping[str, Stored], in_place: Mapping[str, str]
) -> Iterator[str]:
    """What is read and written, with types and layouts where `tensors` has them."""
    for name in reads:
        yield f"reads {_named(name, tensors)}"
    for name in writes:
        place = f" in the memory of {in_place[name]}" if name in in_place else ""
        yield f"writes {_named(name, tensors)}{place}"


def _named(name: str, tensors: Mapping[str, Stored]) -> str:
    return tensor_text(tensors[name]) if name in tensors else name


def loop_lines(axes: Sequence[Var]) -> Iterator[str]:
    """The loops around the equations, without those of one step."""
    loops = [axis for axis in axes if is_symbolic(axis.extent) or axis.extent != 1]
    if loops:
        yield f"for {bounds_text(loops)}"


def ring_lines(kernel: Kernel) -> Iterator[str]:
    """What a recurrence keeps in private memory."""
    for tensor, elements in kernel.ring.items():
        yield f"keeps {elements} elements of a step of {tensor}"


def schedule_lines(kernel: Kernel) -> Iterator[str]:
    """The kernel's schedule, if it has one."""
    if kernel.schedule is not None:
        yield f"schedule {schedule_text(kernel.schedule)}"


def computation_lines(kernel: Kernel) -> Iterator[str]:
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


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines that belong to the one above them."""
    return (INDENT + line for line in lines)
