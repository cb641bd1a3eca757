"""The candidate layouts of all tensors, and what each costs the kernels that access them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.plan.kernel.model import Kernel, Layout, Store, Stored, row_major
from smartmem_rules.plan.layout.accesses import (
    RegisterBlock,
    Use,
    VectorAxis,
    is_led,
    lead_of,
    reduction_axes,
    store_lane,
    uses,
    writable_lane,
)
from smartmem_rules.plan.layout.costs import AccessCosts
from smartmem_rules.plan.layout.options import candidates
from smartmem_rules.plan.layout.pbqp import Array
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import tensors_read

Node = tuple[str, str]
"""A tensor; a constant is packed for each kernel that reads it, whose name stands behind the constant's."""


@dataclass
class Place:
    """A tensor that the choice is about.

    Attributes:
        layouts: its candidates.
        reduced: the axes along which its readers reduce it, the first reader's first.
        alone: how many of the candidates it may have on its own, the first ones; the others only as a second layout.
    """

    stored: Stored
    layouts: list[Layout]
    reduced: list[int]
    alone: int


@dataclass(frozen=True, kw_only=True)
class UseCost:
    """What a kernel's uses of a tensor cost, by the leader's candidates (one row where nothing leads) and its own."""

    kernel: Kernel
    node: Node
    leader: Node | None
    reads: Array | None
    writes: Array | None


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """What may be chosen, and for which device.

    Attributes:
        kinds: image, buffer or both.
        fixed: tensors that stay row-major in any case.
        constants: the tensors whose values are known.
        block: the register block of contractions (see `layout_uses.uses`).
        launched: kernels that one launch runs together with others: they write no copies.
        growing: tensors that a launch reads before the last one that writes them has ended: no kernel can copy them.
    """

    costs: LayoutWeights
    device: Device
    kinds: tuple[str, ...]
    fixed: Collection[str]
    constants: Collection[str]
    block: RegisterBlock | None
    launched: Collection[str]
    growing: Collection[str]


class LayoutSpace:
    """The candidates of all tensors, and the costs of all choices."""

    def __init__(self, kernels: Sequence[Kernel], tensors: Mapping[str, Stored], where: LayoutOptions) -> None:
        self.kernels = kernels
        self.wave = where.device.compute.wave if "image" in where.kinds else 0
        self.where = where
        self.costs = AccessCosts(where.costs, where.device)
        self.writers: dict[str, list[tuple[Kernel, Store]]] = {}
        for kernel in kernels:
            for store in kernel.stores:
                self.writers.setdefault(store.tensor, []).append((kernel, store))
        self.tensors = tensors
        self.stores = {(kernel.name, store.tensor): store for kernel in kernels for store in reversed(kernel.stores)}
        self.places = self._places()
        self.touches = [touch for kernel in kernels for touch in self._touches(kernel)]
        self.touches_of: dict[Node, list[UseCost]] = {node: [] for node in self.places}
        for touch in self.touches:
            self.touches_of[touch.node].append(touch)

    def restricted(self, kernels: Sequence[Kernel], tensors: Mapping[str, Stored]) -> LayoutSpace:
        """What there is to choose if only some of the kernels run; these touch all of the tensors given."""
        found = copy(self)
        names = {kernel.name for kernel in kernels}
        found.kernels, found.tensors = kernels, tensors
        found.writers = {t: [w for w in own if w[0].name in names] for t, own in self.writers.items()}
        kept = {node: self._writable(node, names) for node in self.places if node[0] in tensors}
        kept = {node: numbers for node, numbers in kept.items() if not node[1] or node[1] in names}
        found.places = {}
        for node, numbers in kept.items():
            place = self.places[node]
            layouts = [place.layouts[n] for n in numbers]
            alone = sum(number < place.alone for number in numbers)
            found.places[node] = replace(place, stored=tensors[node[0]], layouts=layouts, alone=alone)
        found.touches = [self._cut(touch, kept) for touch in self.touches if touch.kernel.name in names]
        found.touches_of = {node: [] for node in found.places}
        for touch in found.touches:
            found.touches_of[touch.node].append(touch)
        return found

    def _writable(self, node: Node, names: Collection[str]) -> list[int]:
        """The candidates that each of the kernels that writes the tensor can write."""
        place = self.places[node]
        tables = [t.writes for t in self.touches_of[node] if t.kernel.name in names and t.writes is not None]
        able = [{n for n in range(table.shape[1]) if np.isfinite(table[:, n]).any()} for table in tables]
        return [n for n in range(len(place.layouts)) if n >= place.alone or all(n in one for one in able)]

    @staticmethod
    def _cut(touch: UseCost, kept: Mapping[Node, list[int]]) -> UseCost:
        """The costs of a touch by the candidates that are left."""
        rows = [0] if touch.leader is None else kept[touch.leader]
        where = np.ix_(rows, kept[touch.node])
        reads, writes = (None if table is None else table[where] for table in (touch.reads, touch.writes))
        return replace(touch, reads=reads, writes=writes)

    def node(self, tensor: str, kernel: Kernel) -> Node:
        """What is chosen for a tensor that a kernel touches."""
        return (tensor, kernel.name) if self._per_reader(tensor) else (tensor, "")

    def _per_reader(self, tensor: str) -> bool:
        return self.tensors[tensor].role == "constant" and tensor not in self.where.fixed

    # --- candidates ---

    def _places(self) -> dict[Node, Place]:
        readers: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            for name in dict.fromkeys(kernel.reads):
                readers.setdefault(name, []).append(kernel)
        self._reduced = {kernel.name: reduction_axes(kernel) for kernel in self.kernels}
        self._packed = {kernel.name: _packed(kernel, self.where.constants) for kernel in self.kernels}
        self._read: dict[str, dict[str, list[Use]]] = {}
        found: dict[Node, Place] = {}
        for name, stored in self.tensors.items():
            if self._per_reader(name):
                found.update(self._constant(stored, readers.get(name, [])))
            else:
                found[name, ""] = self._place(stored, readers.get(name, []))
        return found

    def _place(self, stored: Stored, readers: list[Kernel]) -> Place:
        where, row = self.where, row_major(len(stored.type.shape))
        if not stored.type.shape:
            return Place(stored, [row], [], 1)
        reduced = list(dict.fromkeys(a for k in readers for a in self._reduced[k.name].get(stored.name, ())))
        fixed = stays_row_major(stored, where.fixed)
        writers: Sequence[tuple[Kernel, Store] | None] = [] if fixed else self.writers.get(stored.name, [])
        by_writer = [
            candidates(stored, writer, reduced, where.kinds, where.costs, where.device.memory.limits)
            for writer in writers or [None]
        ]
        layouts = list(dict.fromkeys(layout for own in by_writer for layout in own))
        if fixed:
            layouts = [row, *(layout for layout in layouts if layout != row)]
        return Place(stored, layouts, reduced, 1 if fixed else len(layouts))

    def _constant(self, stored: Stored, readers: list[Kernel]) -> dict[Node, Place]:
        """A constant for each of its readers; those whose templates pack it anew share one, which costs nothing."""
        found: dict[Node, Place] = {}
        packed: Layout | None = None
        for kernel in readers:
            place = found[stored.name, kernel.name] = self._place(stored, [kernel])
            if stored.type.shape and stored.name in self._packed[kernel.name]:
                packed = packed or self._best_read(place, kernel)
                place.layouts, place.alone = [packed], 1
        return found

    def _best_read(self, place: Place, kernel: Kernel) -> Layout:
        if kernel.name not in self._read:
            by_tensor = self._read[kernel.name] = {}
            for use in uses(kernel, (), self.where.block):
                by_tensor.setdefault(use.tensor, []).append(use)
        own = self._read[kernel.name].get(place.stored.name, [])
        return min(
            place.layouts, key=lambda layout: sum(self.costs.of(u, place.stored, layout, VectorAxis()) for u in own)
        )

    # --- costs ---

    def _touches(self, kernel: Kernel) -> list[UseCost]:
        by_node: dict[Node, list[Use]] = {}
        for use in uses(kernel, self.where.constants, self.where.block):
            by_node.setdefault(self.node(use.tensor, kernel), []).append(use)
        leader, leads = None, [VectorAxis()]
        if is_led(kernel):
            leader = self.node(kernel.stores[0].tensor, kernel)
            leads = [lead_of(kernel, layout, self.wave) for layout in self.places[leader].layouts]
        found = []
        for node, own in by_node.items():
            reads = self._table([u for u in own if not u.writes], node, leads)
            writes = self._table([u for u in own if u.writes], node, leads)
            if writes is not None:
                writes = writes + self._unwritable(kernel, node)
                writes = writes if leader is None else writes + self._clashes(kernel, node, leads)
            found.append(UseCost(kernel=kernel, node=node, leader=leader, reads=reads, writes=writes))
        return found

    def _table(self, own: list[Use], node: Node, leads: list[VectorAxis]) -> Array | None:
        if not own:
            return None
        stored, layouts = self.places[node].stored, self.places[node].layouts
        rows = {lead: [sum(self.costs.of(u, stored, one, lead) for u in own) for one in layouts] for lead in {*leads}}
        return np.array([rows[lead] for lead in leads])

    def _unwritable(self, kernel: Kernel, node: Node) -> Array:
        """Infinite where the kernel fills no texels: row-major tensors may have such layouts as second ones."""
        store = self.stores[kernel.name, node[0]]
        lanes = [layout.order[-1] if layout.memory == "image" else -1 for layout in self.places[node].layouts]
        return np.array([np.inf if a >= 0 and not writable_lane(kernel, store, a) else 0.0 for a in lanes])

    def _clashes(self, kernel: Kernel, node: Node, leads: list[VectorAxis]) -> Array:
        """Infinite where texels would lie along another axis than the kernel's lanes."""
        store = self.stores[kernel.name, node[0]]
        layouts = self.places[node].layouts
        lanes = [store_lane(kernel, store, layout) for layout in layouts]
        return np.array([
            [np.inf if layout.memory == "image" and lane != lead.lane else 0.0
             for layout, lane in zip(layouts, lanes, strict=True)]
            for lead in leads
        ])  # fmt: skip

    # --- the paper's heuristic ---

    def by_edge(self, follow: bool) -> dict[Node, int]:
        """Candidates chosen one tensor after the other.

        Args:
            follow: take the first reduction axes of the tensor's readers (SmartMem's heuristic); else stay row-major
                where that is possible.
        """
        found: dict[Node, int] = {}
        for kernel in self.kernels:
            for store in kernel.stores:
                node = self.node(store.tensor, kernel)
                if node not in found:
                    found[node] = self._first(node, follow, self._allowed(kernel, node, found))
        for node in self.places:
            if node not in found:
                found[node] = self._first(node, follow, None)
        return found

    def _allowed(self, kernel: Kernel, node: Node, found: Mapping[Node, int]) -> Array | None:
        if not is_led(kernel):
            return None
        leader = self.node(kernel.stores[0].tensor, kernel)
        if node == leader:
            return None
        lead = lead_of(kernel, self.places[leader].layouts[found[leader]])
        allowed: Array = self._clashes(kernel, node, [lead])[0]
        return allowed

    def _first(self, node: Node, follow: bool, clashes: Array | None) -> int:
        place = self.places[node]
        numbers = [n for n in range(place.alone) if clashes is None or np.isfinite(clashes[n])]
        if not follow:
            return numbers[0]
        memory = place.layouts[0].memory

        def rank(number: int) -> tuple[int, ...]:
            layout = place.layouts[number]
            return layout.memory != memory, *_distance(layout, place.reduced, self.where.costs), number

        return min(numbers, key=rank)


def stays_row_major(stored: Stored, fixed: Collection[str]) -> bool:
    """Whether the host reads or writes the tensor's memory: a constant may be an output of the model, too."""
    return stored.role in ("input", "output") or stored.name in fixed


def _packed(kernel: Kernel, constants: Collection[str]) -> set[str]:
    """The tensors of constant right factors, which the kernel's template packs in its own way."""
    if kernel.contraction is None:
        return set()
    factors = [tensors_read(b) for b in (kernel.contraction.b, *(part.b for part in kernel.parts))]
    return {name for names in factors if all(n in constants for n in names) for name in names}


def _distance(layout: Layout, reduced: Sequence[int], costs: LayoutWeights) -> tuple[int, int]:
    """How far a layout is from having the first reduction axes in the lanes and next to them."""
    wanted = list(reduced[: costs.image_axes if layout.memory == "image" else costs.buffer_axes])
    if not wanted:
        return 0, 0
    places = [wanted.index(a) if a in wanted else len(wanted) for a in reversed(layout.order)]
    second = places[1] if len(places) > 1 and (layout.inner or layout.memory == "buffer") else len(wanted)
    return places[0], second if len(wanted) > 1 else 0
