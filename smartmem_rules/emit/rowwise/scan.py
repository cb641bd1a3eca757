"""Scans: recurrences that run step by step, each step in the memory that the next one reads.

A work-item (on GPUs a work-group) takes everything that belongs together; what lies side by side along the leading
axes is independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.emit.c.access import Access
from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.c.program import Target
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Store, Stored
from smartmem_rules.plan.schedule.records import VectorSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import substitute_variables
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import several
from smartmem_rules.tensor.substitution import substitute, unravel


def emit_scan(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    kernel = launch.kernel
    images = any(tensors[t].layout.memory == "image" for t in kernel.reads)
    emission = Emission(launch=launch, target=target, tensors=tensors, width=4 if images else target.width)
    steps, *independent = kernel.axes
    for number, (name, elements) in enumerate(kernel.ring.items()):
        # vector loads may reach past the end
        emission.writer.line(f"float step{number}[{elements + 16}] __attribute__((aligned(64)));")
        emission.accesses[name] = Access(f"step{number}", tensors[name])
    item = Var("item", math.prod(v.extent for v in independent))
    emission.expressions.bind_name(item, "item")
    places = unravel(variable(item), tuple(v.extent for v in independent))
    values = dict(zip(independent, places, strict=True))
    share = launch.steps_each
    head = None
    if share is not None:
        # of a wave: the work-item's own steps
        name = emission.expressions.name(steps)
        head = f"for (int {name} = item * {share}; {name} < min((item + 1) * {share}, {steps.extent}); ++{name})"
        emission.expressions.bind_name(item, "0")
    with emission.expressions.loop(steps, head):
        for store in kernel.stores:
            placed = Store(
                store.tensor,
                tuple(substitute(i, values) for i in store.indices),
                substitute_variables(store.value, values),
                tuple(v for v in store.local if several(v.extent)),
            )
            _alone(emission, placed) if target.is_cpu else _together(emission, placed)
    if target.is_cpu:
        items = item.extent if share is None else -(-steps.extent // share)
        return emission.source("scan.cl", items, group=False)
    return emission.source("scan.cl", item.extent * schedule_of(kernel, VectorSchedule).group, group=True)


def _alone(emission: Emission, store: Store) -> None:
    with emission.expressions.scope(""):
        emission.over(
            store.local,
            store.value,
            lambda body, values, lane: emission.store(replace(store, value=body), values, lane),
        )


def _together(emission: Emission, store: Store) -> None:
    """The elements of one tensor at one step, dealt out to the group; the next tensor waits for all of them."""
    element = Var("element", math.prod(v.extent for v in store.local))
    name = emission.expressions.name(element)
    group = schedule_of(emission.kernel, VectorSchedule).group
    head = f"for (int {name} = (int)get_local_id(0); {name} < {element.extent}; {name} += {group})"
    # one element still has its loop: only the first work-item computes it
    position = variable(element) if several(element.extent) else Index(0)
    values = dict(zip(store.local, unravel(position, tuple(v.extent for v in store.local)), strict=True))
    with emission.expressions.scope(head):
        emission.store(store, values, None)
    emission.writer.line("barrier(CLK_GLOBAL_MEM_FENCE);")
