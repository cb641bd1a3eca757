"""Recurrences one above the other, as a wave: while a layer goes on, the layer above it follows some steps behind.

A recurrence runs its steps one after the other, on one unit of the device; a stack of them, one kernel after the other,
leaves the other units idle. Cut into shares of so many steps, share s of layer l needs share s - 1 of its own layer and
share s of the layer below. All shares with the same s + l are independent of each other, and are one launch, whose
work-items each compute the input product and the recurrence of one share (Appleyard, Kocisky, Blunsom, "Optimizing
performance of recurrent neural networks on GPUs", 2016).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.plan.accounting import expressions
from smartmem_rules.plan.chains import compose
from smartmem_rules.plan.model import Kernel
from smartmem_rules.plan.sizing import ContractionSchedule, Machine, sizes_of
from smartmem_rules.tensor.expr import Read, own_indices, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Var, variable

MOST_SHARES = 16


@dataclass(frozen=True)
class _Layer:
    """A recurrence and the product of its inputs.

    Attributes:
        rows: of the product for one step.
        most: rows of the product that a work-item can keep.
    """

    product: Kernel
    scan: Kernel
    rows: int
    most: int

    @property
    def steps(self) -> int:
        return self.scan.axes[0].extent


def wavefront(
    kernels: Sequence[Kernel], constants: Collection[str], schedule: ContractionSchedule, machine: Machine
) -> list[Kernel]:
    """Stacks of recurrences as waves, where the cost model says that they take less time so."""
    layers = _layers(kernels, constants, schedule)
    stacks: list[list[_Layer]] = []
    for layer in layers:
        below = stacks[-1][-1] if stacks else None
        if below is not None and layer.steps == below.steps and _follows(layer, below, kernels):
            stacks[-1].append(layer)
        else:
            stacks.append([layer])
    replaced: dict[int, list[Kernel]] = {}
    gone: set[int] = set()
    for stack in stacks:
        shares = _shares(stack, machine)
        if shares:
            members = [k for layer in stack for k in (layer.product, layer.scan)]
            # nothing that the stack needs is made behind its first product
            replaced[id(members[0])] = _waves(stack, shares)
            gone |= {id(k) for k in members}
    found: list[Kernel] = []
    for kernel in kernels:
        found += replaced.get(id(kernel), [] if id(kernel) in gone else [kernel])
    return found


# --- what may be cut into shares ---


def _layers(kernels: Sequence[Kernel], constants: Collection[str], schedule: ContractionSchedule) -> list[_Layer]:
    made = {name: kernel for kernel in kernels for name in kernel.writes}
    found = []
    for scan in kernels:
        if scan.form != "scan" or any(is_symbolic(v.extent) for v in scan.axes):
            continue
        if math.prod(v.extent for v in scan.axes[1:]) != 1:
            continue
        sources = [made[name] for name in scan.reads if name in made and made[name] is not scan]
        if len(sources) == 1 and (layer := _layer(sources[0], scan, constants, schedule)) is not None:
            found.append(layer)
    return found


def _layer(product: Kernel, scan: Kernel, constants: Collection[str], schedule: ContractionSchedule) -> _Layer | None:
    """A scan over a contraction that makes, row by row, what a step reads; None if it is something else."""
    sizes = sizes_of(product, schedule, constants)
    c = product.contraction
    if c is None or sizes is None or not sizes.constant or c.stages or product.stages or product.parts:
        return None
    if len(product.stores) != 1 or math.prod(v.extent for v in c.batch) != 1 or not c.m:
        return None
    step, *within = (v for v in c.m if v.extent != 1)
    (store,) = product.stores
    axes = [a for a, index in enumerate(store.indices) if step in index.variables]
    if step.extent != scan.axes[0].extent or len(axes) != 1 or store.indices[axes[0]] != variable(step):
        return None
    if not _reads_at(scan, store.tensor, axes[0], scan.axes[0]):
        return None
    return _Layer(product, scan, math.prod(v.extent for v in within), sizes.most)


def _reads_at(kernel: Kernel, tensor: str, axis: int, var: Var) -> bool:
    """Whether a kernel reads a tensor only at its own place of an axis."""
    nodes = [node for e in expressions(kernel) for node in walk(e)]
    if any(tensor in index.gathered for node in nodes for index in own_indices(node)):
        return False
    reads = [node for node in nodes if isinstance(node, Read) and node.tensor == tensor]
    return all(read.indices[axis] == variable(var) for read in reads)


def _follows(layer: _Layer, below: _Layer, kernels: Sequence[Kernel]) -> bool:
    """Whether a layer's product reads each step of the layer below at that step, and nothing else that kernels make."""
    c = layer.product.contraction
    assert c is not None
    step = next(v for v in c.m if v.extent != 1)
    made = {name for kernel in kernels for name in kernel.writes}
    needed = {name for name in layer.product.reads if name in made}
    if not needed or not needed <= set(below.scan.writes):
        return False
    places = {store.tensor: store.indices for store in below.scan.stores}
    for name in needed:
        axes = [a for a, index in enumerate(places[name]) if index == variable(below.scan.axes[0])]
        if len(axes) != 1 or not _reads_at(layer.product, name, axes[0], step):
            return False
    return True


# --- whether it pays, and how ---


def _shares(stack: Sequence[_Layer], machine: Machine) -> int:
    """Into how many shares the steps are best cut; 0 where one kernel after the other takes no longer."""
    if len(stack) < 2:
        return 0
    unit = machine.units / machine.peak
    apart = sum(2 * machine.launch + k.product.operations / machine.peak + k.scan.operations * unit for k in stack)
    each = max(k.product.operations + k.scan.operations for k in stack) * unit
    best, chosen = apart, 0
    for shares in range(2, min(MOST_SHARES, stack[0].steps) + 1):
        length = -(-stack[0].steps // shares)
        if -(-stack[0].steps // length) != shares or any(length * k.rows > k.most for k in stack):
            continue
        active = [sum(0 <= wave - n < shares for n in range(len(stack))) for wave in range(len(stack) + shares - 1)]
        rounds = sum(-(-count // machine.units) for count in active)
        time = len(active) * machine.launch + rounds * each * length / stack[0].steps
        if time < best:
            best, chosen = time, shares
    return chosen


def _waves(stack: Sequence[_Layer], shares: int) -> list[Kernel]:
    length = -(-stack[0].steps // shares)
    waves = []
    for wave in range(len(stack) + shares - 1):
        active = [(layer, wave - n) for n, layer in enumerate(stack) if 0 <= wave - n < shares]
        steps = tuple(_share(layer, share, length, shares) for layer, share in active)
        made = compose("beside", steps)
        made.name = f"{stack[0].product.name}_wave{wave}"
        made.schedule["shares"] = shares
        waves.append(made)
    return waves


def _share(layer: _Layer, share: int, length: int, shares: int) -> Kernel:
    """One share of a layer: rows of its product, then steps of its recurrence, by one work-item."""
    product = replace(
        layer.product,
        schedule={**layer.product.schedule, "block_rows": length * layer.rows},
        operations=layer.product.operations // shares,
    )
    scan = replace(
        layer.scan, schedule={**layer.scan.schedule, "steps": length}, operations=layer.scan.operations // shares
    )
    made = compose("chain", (product, scan))
    made.schedule["only"] = share
    return made
