"""Launches of several kernels: each becomes a function, called in turn or for its own share of the work-items.

On GPUs a share is whole work-groups, so that all work-items of a group come to the same barriers; all functions part
one array of local memory: a work-group runs only one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from smartmem_rules.emit.access import Access
from smartmem_rules.emit.kernel import Target, declarations, extent_parameters, program, render
from smartmem_rules.plan.model import Argument, Kernel, Source, Stored

APART = 4
"""Floats between the places in local memory at which two kernels of a launch begin."""

Emitter = Callable[[Kernel, Target, Mapping[str, Stored]], Source]


@dataclass(frozen=True)
class Call:
    """One function of the launch, the work-item that is its first one, and the first that is for another function.

    Attributes:
        first_group, last_group: the same of work-groups.
        local: floats of local memory before those that are its own.
    """

    name: str
    arguments: str
    first: int
    last: int
    first_group: int = 0
    last_group: int = 0
    local: int = 0


@dataclass(frozen=True)
class _KeptRows:
    """The scratch memory of a chain: how a work-item finds its first row, and the sizes of the arrays."""

    m: int
    block_rows: int
    row_blocks: int
    sizes: list[int]

    @staticmethod
    def of(kernel: Kernel) -> _KeptRows:
        m, block = kernel.schedule["m"], kernel.schedule["block_rows"]
        # vector loads may reach past the end
        sizes = [block * elements + 16 for elements in kernel.schedule["kept"].values()]
        return _KeptRows(m, block, -(-m // block), sizes)


def emit_composed(kernel: Kernel, target: Target, tensors: Mapping[str, Stored], emit: Emitter) -> Source:
    """The steps of a kernel in one launch.

    Args:
        emit: gives the text of one step.

    Raises:
        ValueError: the steps of a chain do not have one work-item for each block of rows.
    """
    group = kernel.schedule.get("group_items", 0)
    inside = replace(target, inside=True, group_items=group)
    steps = [emit(step, inside, tensors) for step in kernel.steps]
    kept = kernel.schedule.get("kept", {})
    every = dict.fromkeys(argument.tensor for step in steps for argument in step.arguments)
    names = [name for name in every if name not in kept]
    written = {a.tensor for step in steps for a in step.arguments if a.access == "write"}
    accesses = {name: Access(f"p{i}", tensors[name]) for i, name in enumerate(names)}
    parameters = declarations(kernel, accesses, written)
    rows = _KeptRows.of(kernel) if kept else None
    passed = {name: access.parameter for name, access in accesses.items()}
    # a step counts rows from the first of all
    passed.update((name, f"rows{i} - first_row * {kept[name]}") for i, name in enumerate(kept))
    functions: dict[str, None] = {}
    calls: list[Call] = []
    first = 0
    for step, own in zip(steps, kernel.steps, strict=True):
        name = f"smr_part_{hashlib.sha256(step.text.encode()).hexdigest()[:12]}"
        text = step.text.replace("smr_part", name)
        # kernels of one program may share a function
        functions[f"#ifndef {name}_DEFINED\n#define {name}_DEFINED\n{text}\n#endif"] = None
        extents = [d.parameter for d in target.dimensions if d.name in step.dimensions]
        handed = ", ".join([*(passed[a.tensor] for a in step.arguments), *extents])
        # a launch may be for one of a step's work-items only
        only = own.schedule.get("only")
        items = step.global_size[0] if only is None else 1
        if group and step.local_size != (group,):
            raise ValueError(f"{own.name} takes work-groups of {step.local_size} in a launch of groups of {group}")
        last = first + items
        of_groups = (first // group, last // group, len(calls) * APART) if group else ()
        calls.append(Call(name, handed, first - (only or 0), last, *of_groups))
        first += items
    if kernel.form == "chain":
        if len({step.global_size for step in steps}) != 1:
            raise ValueError(f"the steps of {kernel.name} have different numbers of work-items")
        first = steps[0].global_size[0]
    used = tuple(d for d in target.dimensions if any(d.name in step.dimensions for step in steps))
    text = render(
        "composed.cl",
        functions=list(functions),
        form=kernel.form,
        inside=target.inside,
        in_group=group > 0,
        threads=group,
        local_floats=max(step.local_bytes // 4 + APART * (n + 1) for n, step in enumerate(steps)),
        parameters=parameters + extent_parameters(used),
        calls=calls,
        tables=[],
        shared=[],
        rows=rows,
    )
    arguments = tuple(Argument(n, "write" if n in written else "read") for n in names)
    dimensions = tuple(d.name for d in used)
    if target.inside:
        return Source("smr_part", text, arguments, (first,), (1,), dimensions=dimensions)
    text = program(text, target, accesses.values())
    return Source("smr_kernel", text, arguments, (first,), (group or 1,), dimensions=dimensions)
