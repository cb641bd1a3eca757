"""Wavefront parallelism of stacked recurrences: each layer runs some steps behind the layer below it.

A recurrence runs its steps one after the other, on one unit of the device; a stack of them, one kernel after the other,
leaves the other units idle. Cut into shares of so many steps, share s of layer l needs share s - 1 of its own layer and
share s of the layer below. All shares with the same s + l are independent of each other (Appleyard, Kocisky, Blunsom,
"Optimizing performance of recurrent neural networks on GPUs", 2016).

Where work-items may wait for others (`plan.launch.megakernel`), the whole stack is one launch: a work-group computes
the input product and the recurrence of a layer, share by share, each when that of the layer below is done. Elsewhere
each wave is a launch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Megakernel, Wavefront
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.kernel.launch import Chain, Launch, Ordered, Single, Wave
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.plan.kernel.work_items import BlockRows, Wait
from smartmem_rules.plan.launch.megakernel import megakernel, spin_limit
from smartmem_rules.plan.launch.operands import operands_of
from smartmem_rules.plan.schedule.contraction.sizing import resources_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, own_indices, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import variable


@dataclass(frozen=True, kw_only=True)
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
    launches: Sequence[Launch],
    constants: Mapping[str, np.ndarray],
    schedule: Panel,
    device: Device,
    rules: tuple[Wavefront, Megakernel | None],
) -> list[Launch]:
    """Stacks of recurrences as waves, where the cost model says that they take less time so.

    Args:
        rules: of waves, and of persistent kernels, whose spin limit those in one launch take.
    """
    made = {name for launch in launches for name in launch.writes}
    layers = _layers(launches, constants, schedule)
    stacks: list[list[_Layer]] = []
    for layer in layers:
        below = stacks[-1][-1] if stacks else None
        fits = below is not None and len(_operands([*stacks[-1], layer])) <= device.compute.parameters
        if fits and below is not None and layer.steps == below.steps and _follows(layer, below, made):
            stacks[-1].append(layer)
        else:
            stacks.append([layer])
    replaced: dict[str, list[Launch]] = {}
    gone: set[str] = set()
    for stack in stacks:
        shares = _shares(stack, device, rules[0].shares)
        if shares:
            members = [k for layer in stack for k in (layer.product, layer.scan)]
            # nothing that the stack needs is made behind its first product
            replaced[members[0].name] = (
                [_one_launch(stack, shares, device, rules[1])]
                if device.compute.ordered_launches
                else _waves(stack, shares)
            )
            gone |= {k.name for k in members}
    found: list[Launch] = []
    for launch in launches:
        found += replaced.get(launch.name, [] if launch.name in gone else [launch])
    return found


def _operands(stack: Sequence[_Layer]) -> set[str]:
    return {name for layer in stack for one in (layer.product, layer.scan) for name in operands_of(one)}


# --- what may be cut into shares ---


def _layers(launches: Sequence[Launch], constants: Mapping[str, np.ndarray], schedule: Panel) -> list[_Layer]:
    makers = {name: launch for launch in launches for name in launch.writes}
    found = []
    for scan in (launch.kernel for launch in launches if isinstance(launch, Single)):
        if scan.form != "scan" or any(is_symbolic(v.extent) for v in scan.axes):
            continue
        if math.prod(v.extent for v in scan.axes[1:]) != 1:
            continue
        sources = [makers[name] for name in scan.reads if name in makers and makers[name].name != scan.name]
        if len(sources) != 1 or not isinstance(sources[0], Single):
            continue
        if (layer := _layer(sources[0].kernel, scan, constants, schedule)) is not None:
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
    return _Layer(
        product=product,
        scan=scan,
        rows=math.prod(v.extent for v in within),
        most=sizes.most,
        factor=sizes.right_bytes,
        weights=weights,
    )


def _reads_at(kernel: Kernel, tensor: str, axis: int, var: Var) -> bool:
    """Whether a kernel reads a tensor only at its own place of an axis."""
    nodes = [node for e in expressions(kernel) for node in walk(e)]
    if any(tensor in index.gathered for node in nodes for index in own_indices(node)):
        return False
    reads = [node for node in nodes if isinstance(node, Read) and node.tensor == tensor]
    return all(read.indices[axis] == variable(var) for read in reads)


def _follows(layer: _Layer, below: _Layer, made: Collection[str]) -> bool:
    """Whether a layer's product reads each step of the layer below at that step, and nothing else that is made."""
    c = layer.product.contraction
    assert c is not None
    step = next(v for v in c.m if v.extent != 1)
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


def _waves(stack: Sequence[_Layer], shares: int) -> list[Launch]:
    """A launch for each wave."""
    chains = [_cut(layer, shares) for layer in stack]
    waves: dict[int, list[tuple[Chain, int]]] = {}
    for n, share in _by_waves(len(stack), shares):
        waves.setdefault(n + share, []).append((chains[n], share))
    return [
        Wave(
            name=f"{stack[0].product.name}_wave{wave}",
            steps=tuple(chain for chain, _ in members),
            shares=shares,
            numbers=tuple(share for _, share in members),
        )
        for wave, members in waves.items()
    ]


def _one_launch(stack: Sequence[_Layer], shares: int, device: Device, rule: Megakernel | None) -> Ordered:
    """All layers in one launch, the shares of each computed in turn."""
    # what the product gives for a share lies in scratch memory (`plan.memory.chain_scratch`)
    steps = tuple(replace(_cut(layer, shares), rows=_share_rows(layer, shares)) for layer in stack)
    waits = tuple((Wait(n - 1, 1),) if n else () for n in range(len(stack)))
    # until the first share has gone through the layers at work
    times = [layer.product_time(device) + layer.scan_time(device) for layer in stack]
    patience = spin_limit(device.compute.units * max(times) / shares, sum(times), device, rule)
    return megakernel(f"{stack[0].product.name}_layers", steps, waits, patience, tuple(range(len(stack))))


def _cut(layer: _Layer, shares: int) -> Chain:
    """A layer whose work-items each take a share: rows of its product, then steps of its recurrence."""
    length = -(-layer.steps // shares)
    product = Single(kernel=layer.product, block_rows=length * layer.rows)
    return Chain(name=product.name, steps=(product, Single(kernel=layer.scan, steps_each=length)))


def _share_rows(layer: _Layer, shares: int) -> BlockRows:
    """The rows of a layer's product that belong to a share of its steps."""
    c = layer.product.contraction
    assert c is not None
    return BlockRows(axes=c.m, m=layer.steps * layer.rows, block_rows=-(-layer.steps // shares) * layer.rows)
