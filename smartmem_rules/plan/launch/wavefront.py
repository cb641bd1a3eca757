"""Wavefront parallelism of stacked recurrences: each layer runs some steps behind the layer below it.

A recurrence runs its steps one after the other, on one unit of the device; a stack of them, one kernel after the other,
leaves the other units idle. Cut into shares of so many steps, share s of layer l needs share s - 1 of its own layer and
share s of the layer below. All shares with the same s + l are independent of each other (Appleyard, Kocisky, Blunsom,
"Optimizing performance of recurrent neural networks on GPUs", 2016).

Where work-items may wait for others (`plan.ordered`), the whole stack is one launch: a work-group computes the input
product and the recurrence of a layer, share by share, each when that of the layer below is done. Elsewhere each wave is
a launch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Megakernel, Wavefront
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.kernel.model import BlockRows, Kernel, Wait
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.plan.launch.chains import compose
from smartmem_rules.plan.launch.megakernel import megakernel, spin_limit
from smartmem_rules.plan.schedule.sizing import resources_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, own_indices, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import variable


@dataclass(frozen=True)
class _Layer:
    """A recurrence and the product of its inputs.

    Attributes:
        rows: of the product for one step.
        most: rows of the product that a work-item can keep.
        factor: bytes of the product's right factor.
        weights: bytes of the constants that each step reads.
    """

    product: Kernel
    scan: Kernel
    rows: int
    most: int
    factor: int = 0
    weights: int = 0

    @property
    def steps(self) -> int:
        return self.scan.axes[0].extent

    def product_time(self, device: Device) -> float:
        """Nanoseconds of the product on one unit."""
        return device.compute.unit_time(self.product.operations)

    def scan_time(self, device: Device) -> float:
        """Nanoseconds of the recurrence on one unit, whose steps each read the weights."""
        return max(
            device.compute.unit_time(self.scan.operations),
            self.steps * self.weights / device.memory.of_unit,
        )


def wavefront(
    kernels: Sequence[Kernel],
    constants: Mapping[str, np.ndarray],
    schedule: Panel,
    device: Device,
    rules: tuple[Wavefront, Megakernel | None],
) -> list[Kernel]:
    """Stacks of recurrences as waves, where the cost model says that they take less time so.

    Args:
        rules: of waves, and of persistent kernels, whose spin limit those in one launch take.
    """
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
        shares = _shares(stack, device, rules[0].shares)
        if shares:
            members = [k for layer in stack for k in (layer.product, layer.scan)]
            # nothing that the stack needs is made behind its first product
            replaced[id(members[0])] = (
                [_one_launch(stack, shares, device, rules[1])]
                if device.compute.ordered_launches
                else _waves(stack, shares)
            )
            gone |= {id(k) for k in members}
    found: list[Kernel] = []
    for kernel in kernels:
        found += replaced.get(id(kernel), [] if id(kernel) in gone else [kernel])
    return found


# --- what may be cut into shares ---


def _layers(kernels: Sequence[Kernel], constants: Mapping[str, np.ndarray], schedule: Panel) -> list[_Layer]:
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


def _layer(product: Kernel, scan: Kernel, constants: Mapping[str, np.ndarray], schedule: Panel) -> _Layer | None:
    """A scan over a contraction that makes, row by row, what a step reads; None if it is something else."""
    sizes = resources_of(product, schedule, constants)
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
    weights = sum(constants[name].nbytes for name in scan.reads if name in constants)
    return _Layer(product, scan, math.prod(v.extent for v in within), sizes.most, sizes.right_bytes, weights)


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


def _shares(stack: Sequence[_Layer], device: Device, most: int) -> int:
    """Into how many shares the steps are best cut; 0 where one kernel after the other takes no longer."""
    if len(stack) < 2:
        return 0
    best = sum(
        2 * device.compute.launch + k.product_time(device) / device.compute.units + k.scan_time(device) for k in stack
    )
    chosen = 0
    for shares in range(2, min(most, stack[0].steps) + 1):
        length = -(-stack[0].steps // shares)
        if -(-stack[0].steps // length) != shares or any(length * k.rows > k.most for k in stack):
            continue
        time = (_time_in_order if device.compute.ordered_launches else _time_of_waves)(stack, shares, device)
        if time < best:
            best, chosen = time, shares
    return chosen


def _time_of_waves(stack: Sequence[_Layer], shares: int, device: Device) -> float:
    """Nanoseconds of a launch for each wave."""
    length = -(-stack[0].steps // shares)
    each = max(k.product_time(device) + k.scan_time(device) for k in stack)
    active = [sum(0 <= wave - n < shares for n in range(len(stack))) for wave in range(len(stack) + shares - 1)]
    rounds = sum(-(-count // device.compute.units) for count in active)
    return len(active) * device.compute.launch + rounds * each * length / stack[0].steps


def _time_in_order(stack: Sequence[_Layer], shares: int, device: Device) -> float:
    """Nanoseconds of one launch in which a unit computes a layer, share by share behind the layer below."""
    free = [0.0] * device.compute.units
    below = [0.0] * shares
    length = -(-stack[0].steps // shares)
    for layer in stack:
        now = heapq.heappop(free)
        for share in range(shares):
            steps = min(length, layer.steps - share * length)
            work = (layer.product_time(device) + layer.scan_time(device)) * steps / layer.steps
            # between two shares the recurrence's weights take the place of the product's in the unit's caches
            now = max(now, below[share]) + work + layer.factor / device.memory.of_unit
            below[share] = now
        heapq.heappush(free, now)
    return device.compute.launch + max(free)


def _by_waves(layers: int, shares: int) -> list[tuple[int, int]]:
    """The shares of all layers, wave by wave; of a wave those of the lower layers first."""
    waves = range(layers + shares - 1)
    return [(n, wave - n) for wave in waves for n in range(layers) if 0 <= wave - n < shares]


def _waves(stack: Sequence[_Layer], shares: int) -> list[Kernel]:
    """A launch for each wave."""
    waves: dict[int, list[Kernel]] = {}
    for n, share in _by_waves(len(stack), shares):
        step = _cut(stack[n], shares)
        step.share = share
        step.operations //= shares
        waves.setdefault(n + share, []).append(step)
    found = []
    for wave, steps in waves.items():
        made = compose("beside", tuple(steps))
        made.name = f"{stack[0].product.name}_wave{wave}"
        made.shares = shares
        found.append(made)
    return found


def _one_launch(stack: Sequence[_Layer], shares: int, device: Device, rule: Megakernel | None) -> Kernel:
    """All layers in one launch, the shares of each computed in turn."""
    steps = tuple(_cut(layer, shares) for layer in stack)
    for step, layer in zip(steps, stack, strict=True):
        c = layer.product.contraction
        assert c is not None
        # what the product gives for a share lies in scratch memory (`plan.kept_rows`)
        step.axes = c.m
        rows = layer.steps * layer.rows
        step.rows = BlockRows(m=rows, block_rows=-(-layer.steps // shares) * layer.rows)
    waits = tuple((Wait(n - 1, 1),) if n else () for n in range(len(stack)))
    # until the first share has gone through the layers at work
    longest = device.compute.units * max(k.product_time(device) + k.scan_time(device) for k in stack) / shares
    patience = spin_limit(longest, device, rule)
    return megakernel(f"{stack[0].product.name}_layers", steps, waits, patience, tuple(range(len(stack))))


def _cut(layer: _Layer, shares: int) -> Kernel:
    """A layer whose work-items each take a share: rows of its product, then steps of its recurrence."""
    length = -(-layer.steps // shares)
    product = replace(layer.product, block_rows=length * layer.rows)
    scan = replace(layer.scan, steps_each=length)
    return compose("chain", (product, scan))
