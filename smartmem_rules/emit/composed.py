"""Launches of several kernels: each becomes a function, called in turn or for its own range of work-items.

On GPUs a share is whole work-groups, so that all work-items of a group come to the same barriers; all functions part
one array of local memory: a work-group runs only one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from smartmem_rules.emit.c.access import C_TYPES, Access
from smartmem_rules.emit.c.program import Target, checked_grid, declarations, extent_parameters, program, render
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.artefact import Argument, Source, Waiting
from smartmem_rules.plan.kernel.launch import Beside, Chain, Joined, Launch, Ordered
from smartmem_rules.plan.kernel.model import PlanError, Stored
from smartmem_rules.plan.kernel.storage import item_bytes
from smartmem_rules.plan.kernel.work_items import BlockRows, Grid, Part
from smartmem_rules.plan.launch.gathering import HOME, note_element
from smartmem_rules.plan.launch.megakernel import FAILED, FIRST_STEP, LEFT, LINE_COUNTERS, places
from smartmem_rules.plan.launch.task_order import TaskOrder
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import Dimension

LOCAL_GAP_FLOATS = 4
"""Floats between the places in local memory at which two kernels of a launch begin."""

Emitter = Callable[[Launch, Target, Mapping[str, Stored]], Source]

_AHEAD = "static void smr_part_ahead("

ATOMICS = ("-cl-std=CL3.0",)
"""Options of kernels with atomic operations that order memory."""


@dataclass(frozen=True)
class Call:
    """One function of the launch, the work-item that is its first one, and the first that is for another function.

    Attributes:
        first_group, last_group: the same of work-groups.
        local: floats of local memory before those that are its own.
        fetch: the function that asks for what it needs first and nothing of the launch writes, empty without one.
    """

    name: str
    arguments: str
    first: int
    last: int
    fetch: str = ""
    first_group: int = 0
    last_group: int = 0
    local: int = 0


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """A step of an ordered launch.

    Attributes:
        in_turn: whether its work-items follow each other.
        taken: the counter of the work-items that were taken.
        waits: counters, and the numbers that they have to reach.
    """

    call: Call
    items: int
    in_turn: bool
    taken: int
    waits: list[tuple[int, str]]

    @property
    def done(self) -> int:
        """The counter of the work-items that are done; of those that follow each other all that were taken are."""
        return self.taken if self.in_turn else self.taken + 1

    @property
    def owned(self) -> int:  # codegen/ordered.cl reads it
        """The counter that says whether a work-group computes them."""
        return self.taken + 1


@dataclass(frozen=True)
class _KeptRows:
    """The scratch memory of a chain: how a work-item finds its first row, and the sizes of the arrays."""

    m: int
    block_rows: int
    row_blocks: int
    sizes: list[int]

    @staticmethod
    def of(rows: BlockRows) -> _KeptRows:
        m, block = rows.m, rows.block_rows
        # vector loads may reach past the end
        sizes = [block * elements + 16 for elements in rows.kept.values()]
        return _KeptRows(m, block, -(-m // block), sizes)


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The steps of a launch as functions.

    Attributes:
        tensors: all that the steps take.
        accesses: the launch's own parameters by tensor.
        parameters: their declarations.
        group: work-items of a work-group that runs one of the steps; 0 where work-items do.
        least_floats: of local memory that a work-group takes at least.
    """

    sources: list[Source]
    functions: list[str]
    names: list[str]
    handed: list[str]
    tensors: list[Stored]
    accesses: dict[str, Access]
    parameters: str
    arguments: tuple[Argument, ...]
    dimensions: tuple[Dimension, ...]
    group: int
    least_floats: int = 0

    @staticmethod
    def of(launch: Joined, target: Target, tensors: Mapping[str, Stored], emit: Emitter) -> _Parts:
        group = launch.group_items if isinstance(launch, Beside | Ordered) else 0
        inside = replace(target, inside=True, group_items=group, coherent=group > 0 and isinstance(launch, Ordered))
        sources = [emit(step, inside, tensors) for step in launch.steps]
        kept = {} if not isinstance(launch, Chain) or launch.rows is None else launch.rows.kept
        held = launch.held if isinstance(launch, Ordered) else {}
        used = [argument.tensor for source in sources for argument in source.arguments]
        # others the launch takes besides its steps
        every = dict.fromkeys([*used, *launch.reads, *launch.writes])
        names = [name for name in every if name not in kept and name not in held]
        written = {a.tensor for source in sources for a in source.arguments if a.access == "write"} | {*launch.writes}
        accesses = {name: Access(f"p{i}", tensors[name]) for i, name in enumerate(names)}
        passed = {name: access.parameter for name, access in accesses.items()}
        passed.update((name, _part_of(tensors[name], one, accesses, name in written)) for name, one in held.items())
        # a step counts rows from the first of all
        passed.update((name, f"rows{i} - first_row * {kept[name]}") for i, name in enumerate(kept))
        functions: dict[str, None] = {}
        called, handed = [], []
        for source in sources:
            name = f"smr_part_{hashlib.sha256(source.text.encode()).hexdigest()[:12]}"
            text = source.text.replace("smr_part", name)
            # kernels of one program may share a function
            functions[f"#ifndef {name}_DEFINED\n#define {name}_DEFINED\n{text}\n#endif"] = None
            extents = [d.parameter for d in target.dimensions if d.name in source.dimensions]
            called.append(name)
            handed.append(", ".join([*(passed[a.tensor] for a in source.arguments), *extents]))
        asked = tuple(d for d in target.dimensions if any(d.name in source.dimensions for source in sources))
        parameters = declarations(launch, accesses, written) + extent_parameters(asked)
        arguments = tuple(Argument(n, "write" if n in written else "read") for n in names)
        return _Parts(
            sources=sources,
            functions=list(functions),
            names=called,
            handed=handed,
            tensors=[tensors[name] for name in every],
            accesses=accesses,
            parameters=parameters,
            arguments=arguments,
            dimensions=asked,
            group=group,
            least_floats=launch.local_bytes // 4 if isinstance(launch, Ordered) else 0,
        )

    def calls(self, launch: Joined) -> list[Call]:
        """The calls, the work-items of one behind those of the others."""
        found: list[Call] = []
        first = 0
        steps = zip(launch.steps, launch.only, self.sources, self.names, self.handed, strict=True)
        for step, only, source, name, handed in steps:
            last = first + (source.global_size[0] if only is None else 1)
            if self.group and source.local_size != (self.group,):
                raise PlanError(f"{step.name} has work-groups of {source.local_size} in a launch of {self.group}")
            of_groups = (first // self.group, last // self.group, len(found) * LOCAL_GAP_FLOATS) if self.group else ()
            fetch = f"{name}_ahead" if _AHEAD in source.text else ""
            found.append(Call(name, handed, first - (only or 0), last, fetch, *of_groups))
            first = last
        return found

    @property
    def local_floats(self) -> int:
        """Elements of the array in local memory that the steps part, each in its own way."""
        steps = (source.local_bytes // 4 + LOCAL_GAP_FLOATS * (n + 1) for n, source in enumerate(self.sources))
        return max(self.least_floats, *steps)

    def source(
        self, target: Target, text: str, grid: Grid, options: tuple[str, ...] = (), waiting: Waiting | None = None
    ) -> Source:
        """The launch with this text."""
        names = tuple(dimension.name for dimension in self.dimensions)
        options = (*options, *dict.fromkeys(o for source in self.sources for o in source.options))
        if target.inside:
            return Source(
                entry="smr_part",
                text=text,
                arguments=self.arguments,
                global_size=grid.global_size,
                local_size=(1,),
                options=options,
                dimensions=names,
            )
        text = program(text, target, self.tensors)
        return Source(
            entry="smr_kernel",
            text=text,
            arguments=self.arguments,
            global_size=grid.global_size,
            local_size=grid.local_size,
            options=options,
            dimensions=names,
            local_bytes=4 * self.local_floats if self.group else 0,
            waiting=waiting,
        )


def _part_of(stored: Stored, part: Part, accesses: Mapping[str, Access], written: bool) -> str:
    """C text of a pointer to a tensor that lies in another one."""
    constant = "" if written else "const "
    home = accesses[part.container].parameter
    return f"(__global {constant}{C_TYPES[stored.storage]}*)({home} + {part.offset // item_bytes(HOME)})"


def emit_composed(launch: Joined, target: Target, tensors: Mapping[str, Stored], emit: Emitter) -> Source:
    """The steps of a launch in one kernel.

    Args:
        emit: gives the text of one step.

    Raises:
        PlanError: the launch's grid does not belong to its steps.
    """
    if isinstance(launch, Ordered):
        return (_in_order if launch.group_items else _ordered)(launch, target, tensors, emit)
    parts = _Parts.of(launch, target, tensors, emit)
    calls, rows = parts.calls(launch), launch.rows if isinstance(launch, Chain) else None
    grid = checked_grid(launch, parts.sources[0].global_size[0] if isinstance(launch, Chain) else calls[-1].last)
    text = render(
        "composed.cl",
        form=launch.form,
        calls=calls,
        rows=_KeptRows.of(rows) if rows is not None and rows.kept else None,
        in_group=parts.group > 0,
        threads=parts.group,
        local_floats=parts.local_floats,
        **_shell(parts, target),
    )
    return parts.source(target, text, grid)


def _ordered(launch: Ordered, target: Target, tensors: Mapping[str, Stored], emit: Emitter) -> Source:
    """Steps whose work-items wait for those of others."""
    order = launch.tasks
    parts = _Parts.of(launch, target, tensors, emit)
    turns: list[_Turn] = []
    for number, source in enumerate(parts.sources):
        items = source.global_size[0]
        in_turn = number in order.in_turn
        waits = []
        for wait in order.waits[number]:
            other = turns[wait.step]
            waits.append((other.done, str(other.items) if wait.lag is None else f"item + {wait.lag}"))
        call = Call(parts.names[number], parts.handed[number], 0, items)
        turns.append(_Turn(call=call, items=items, in_turn=in_turn, taken=FIRST_STEP + 2 * number, waits=waits))
    text = render(
        "ordered.cl",
        state=parts.accesses[order.state].parameter,
        turns=turns,
        places={"active": 0, "closed": 1, "left": 2, "all": places(order)},
        patience=order.patience,
        line=LINE_COUNTERS,
        **_shell(parts, target),
    )
    assert launch.grid is not None
    return parts.source(target, text, launch.grid, ATOMICS)


def _in_order(launch: Ordered, target: Target, tensors: Mapping[str, Stored], emit: Emitter) -> Source:
    """Steps of which work-groups take tasks in order (GPU)."""
    parts = _Parts.of(launch, target, tensors, emit)
    calls = parts.calls(launch)
    order = TaskOrder.of(launch)
    assert launch.grid is not None
    if launch.note is None:
        raise PlanError(f"{launch.name} has no place to note that its work-groups waited in vain")
    element = note_element(tensors[launch.note.tensor], launch.note)
    if order.first != (*(call.first_group for call in calls), calls[-1].last_group):
        raise PlanError(f"the order of {launch.name} is for {order.first} tasks, and its kernels have others")
    text = render(
        "ordered_groups.cl",
        order=render(f"order_{target.device.compute.order}.cl"),
        state=parts.accesses[order.state].parameter,
        calls=calls,
        note=f"(volatile __global int*){parts.accesses[launch.note.tensor].parameter} + {element}",
        first=order.first,
        waits=order.waits,
        awaited=order.awaited,
        places={"left": LEFT, "failed": FAILED, "done": FIRST_STEP, "all": order.counters},
        polls=order.polls,
        line=LINE_COUNTERS,
        threads=parts.group,
        local_floats=parts.local_floats,
        **{**_shell(parts, target), "functions": [_apart(text) for text in parts.functions]},
    )
    waiting = Waiting(
        noted=list(parts.accesses).index(launch.note.tensor), element=element, steps=tuple(s.name for s in launch.steps)
    )
    return parts.source(target, text, launch.grid, _options(launch, target.device), waiting)


def _options(launch: Ordered, device: Device) -> tuple[str, ...]:
    """For the compiler: what counters need, and that registers suffice for all work-groups of the launch."""
    if device.compute.order == "atomics":
        return ATOMICS
    items = launch.group_items * -(-(launch.groups or 1) // device.group_units)
    registers = device.compute.registers_of_each(items)
    return (f"-cl-nv-maxrregcount={registers}",) if registers else ()


def _apart(function: str) -> str:
    """A step's function, compiled once however often it is called, where the device's compiler can do so."""
    return function.replace("static void smr_part", "SMR_APART\nstatic void smr_part")


def _shell(parts: _Parts, target: Target) -> dict[str, Any]:
    return {
        "functions": parts.functions,
        "inside": target.inside,
        "parameters": parts.parameters,
        "tables": [],
        "shared": [],
    }
