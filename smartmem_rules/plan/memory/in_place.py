"""In-place reuse: which launches may write over a tensor that they read and that no later launch reads.

That is right if no work-item reads an element of the old tensor after one was written in its place. Two facts about the
kernels' index maps show it:

- an element is read only where the element at the same place is written (a residual addition, a pointwise epilogue);
- or the elements that a work-item reads are those of its own rows, and it has read them all before it writes any: the
  statistics of a normalisation, the staged rows of a contraction, and what the earlier kernels of a chain read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from smartmem_rules.plan.kernel.addressing import offset, written
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.launch import Beside, Chain, Launch, Ordered, Single, Wave
from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.plan.schedule.records import PanelSchedule, schedule_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, own_indices, walk
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import unravel


def written_in_place(launch: Launch, tensors: Mapping[str, Stored], cpu: bool) -> dict[str, tuple[str, ...]]:
    """For each tensor that the launch writes, those that it reads and whose memory it may take.

    Args:
        cpu: whether a work-item owns whole rows, as in the templates for CPUs; else work-items share them.
    """
    return _Launch(launch, tensors, cpu).written_in_place()


def _ends(stored: Stored) -> bool:
    """Whether nothing needs a tensor's buffer behind its last reader."""
    return stored.role == "intermediate" and stored.layout.memory == "buffer"


def _alike(old: Stored, new: Stored) -> bool:
    return (
        _ends(old)
        and _ends(new)
        and old.storage == new.storage
        and largest(old.type.elements) == largest(new.type.elements) > 0
    )


@dataclass(frozen=True)
class _Uses:
    """What a kernel writes and reads where; found once, since a kernel may have thousands of stores.

    Attributes:
        stores: those of each tensor.
        stored_from: for each tensor that stores read, the tensors that these stores write.
        shared: what work-items of several rows read.
    """

    stores: Mapping[str, list[Store]]
    stored_from: Mapping[str, set[str]]
    shared: set[str]

    @staticmethod
    def of(kernel: Kernel) -> _Uses:
        stores: dict[str, list[Store]] = {}
        stored_from: dict[str, set[str]] = {}
        for store in kernel.stores:
            stores.setdefault(store.tensor, []).append(store)
            for name in _mentioned(store.value):
                stored_from.setdefault(name, set()).add(store.tensor)
        shared = () if kernel.contraction is None else _shared(kernel)
        return _Uses(stores, stored_from, {name for expr in shared for name in _mentioned(expr)})


class _Launch:
    """Decides for all pairs of tensors of a launch."""

    def __init__(self, launch: Launch, tensors: Mapping[str, Stored], cpu: bool) -> None:
        self.launch = launch
        self.tensors = tensors
        self.cpu = cpu
        self.uses = _Uses.of(launch.kernel) if isinstance(launch, Single) else None
        self.steps = [_Launch(step, tensors, cpu) for step in launch.steps]
        graph = KernelGraph(launch.steps)
        self.makers, self.users = graph.makers, graph.users

    def written_in_place(self) -> dict[str, tuple[str, ...]]:
        writes = set(self.launch.writes)
        candidates = [old for old in self.launch.reads if old not in writes and _ends(self.tensors[old])]
        # a tensor that one store reads may only lie where that store writes
        bound: dict[str, list[str]] = {}
        free = []
        for old in candidates:
            made = () if self.uses is None else self.uses.stored_from.get(old, ())
            if not made:
                free.append(old)
            elif len(made) == 1:
                (only,) = made
                bound.setdefault(only, []).append(old)
        order = {old: place for place, old in enumerate(candidates)}
        found = {}
        for new in self.launch.writes:
            possible = sorted([*free, *bound.get(new, ())], key=order.__getitem__)
            fitting = (old for old in possible if _alike(self.tensors[old], self.tensors[new]))
            places = tuple(old for old in fitting if self.may(old, new))
            if places:
                found[new] = places
        return found

    def may(self, old: str, new: str) -> bool:
        """Whether the new tensor may be written over the old one."""
        try:
            match self.launch:
                case Single():
                    return self.leaf(old, new).may(self.cpu)
                case Chain() as chain:
                    return self._may_in_chain(chain, old, new)
                case Beside() | Wave():
                    makers, users = self.makers.get(new, []), self.users.get(old, [])
                    return makers == users and len(makers) == 1 and self.steps[makers[0]].may(old, new)
                case Ordered():
                    return False
        except SymbolicExtentError:  # what depends on an open extent is not shown
            return False

    def _may_in_chain(self, chain: Chain, old: str, new: str) -> bool:
        makers, users = self.makers.get(new, []), self.users.get(old, [])
        if len(makers) != 1 or users[-1] > makers[0]:
            return False
        leaf = self.steps[makers[0]].leaf(old, new)
        before = [chain.steps[n].kernel for n in users if n < makers[0]]
        if before:
            rows = chain.rows
            if rows is None or not all(leaf.by_rows(expressions(kernel), rows.axes) for kernel in before):
                return False
        return leaf.may(self.cpu)

    def leaf(self, old: str, new: str) -> _Leaf:
        """The kernel as the one that writes the new tensor."""
        assert isinstance(self.launch, Single)
        assert self.uses is not None
        stores = tuple(self.uses.stores.get(new, ()))
        return _Leaf(
            kernel=self.launch.kernel, old=self.tensors[old], new=self.tensors[new], stores=stores, uses=self.uses
        )


@dataclass(frozen=True, kw_only=True)
class _Leaf:
    """The kernel that writes the tensor, and the store that does."""

    kernel: Kernel
    old: Stored
    new: Stored
    stores: tuple[Store, ...]
    uses: _Uses

    def may(self, cpu: bool) -> bool:
        """Whether the store may write over the old tensor."""
        kernel, name = self.kernel, self.old.name
        if len(self.stores) != 1 or kernel.form == "scan" or not self._each_once():
            return False
        (store,) = self.stores
        if self.uses.stored_from.get(name, set()) - {store.tensor}:
            return False
        if not self._at_its_place(store):
            return False
        touching = [e for e in _early(kernel) if name in _mentioned(e)]
        if kernel.contraction is None and not touching:
            # teams of work-items repeat the last row
            return cpu or kernel.form == "pointwise"
        if name in self.uses.shared:
            return False
        if not touching:
            return True
        # what is written before the rows were read would be read again
        return cpu and store is kernel.stores[-1] and self._reads_first() and self.by_rows(touching, self._rows)

    @property
    def _rows(self) -> tuple[Var, ...]:
        c = self.kernel.contraction
        return self.kernel.axes if c is None else (*c.batch, *c.m)

    def _each_once(self) -> bool:
        """Whether every element is written by one iteration, at a place that no data decide."""
        (store,) = self.stores
        if any(index.gathered for index in store.indices):
            return False
        loops = {v for index in store.indices for v in index.variables}
        return math.prod(v.extent for v in loops) == self.new.type.elements

    def _at_its_place(self, store: Store) -> bool:
        """Whether the store reads the old tensor only where it writes."""
        place = offset(self.new, store.indices)
        reads = _reads([store.value], self.old.name)
        return reads is not None and all(offset(self.old, read.indices) == place for read in reads)

    def _reads_first(self) -> bool:
        """Whether a work-item has read its rows before it writes any of them, and no other one reads them."""
        kernel = self.kernel
        c = kernel.contraction
        if c is None:
            return kernel.form == "reduction"
        if kernel.template == "rows":
            return True
        if kernel.template != "panel" or not c.stages:
            return False
        schedule = schedule_of(kernel, PanelSchedule)
        tiles = sum(-(-n.extent // schedule.columns) for n in (c.n, *(part.n for part in kernel.parts)))
        return bool(tiles <= schedule.tiles_per_block)

    def by_rows(self, those: Iterable[Expr], keys: tuple[Var, ...]) -> bool:
        """Whether expressions over some rows read only what lies where those rows of the new tensor lie."""
        (store,) = self.stores
        rows = written(store, keys, self.new.type.shape, parted=True)
        reads = _reads(those, self.old.name)
        if rows is None or reads is None:
            return False
        return all(rows.row(self._in_new(read)) == tuple(map(variable, keys)) for read in reads)

    def _in_new(self, read: Read) -> tuple[Index, ...]:
        """The indices by which the new tensor has its element where the old one is read."""
        shape, order = self.new.type.shape, self.new.layout.order
        if shape == self.old.type.shape and order == self.old.layout.order:
            return read.indices
        places = unravel(offset(self.old, read.indices), tuple(shape[a] for a in order))
        by_axis = dict(zip(order, places, strict=True))
        return tuple(by_axis[a] for a in range(len(shape)))


def _early(kernel: Kernel) -> Iterable[Expr]:
    """What a work-item computes before it writes."""
    yield from (stage.body for stage in kernel.stages)
    if kernel.contraction is not None:
        yield from (stage.body for stage in kernel.contraction.stages)
        yield kernel.contraction.a
        if kernel.contraction.scores is not None:
            yield kernel.contraction.scores.a


def _shared(kernel: Kernel) -> Iterable[Expr]:
    """What work-items of several rows read: the right factors."""
    assert kernel.contraction is not None
    yield kernel.contraction.b
    yield from (part.b for part in kernel.parts)
    if kernel.contraction.scores is not None:
        yield kernel.contraction.scores.b


def _mentioned(expr: Expr) -> set[str]:
    """The tensors that an expression reads, those that serve as an index included."""
    nodes = list(walk(expr))
    found = {node.tensor for node in nodes if isinstance(node, Read)}
    return found.union(*(index.gathered for node in nodes for index in own_indices(node)))


def _reads(those: Iterable[Expr], tensor: str) -> list[Read] | None:
    """The reads of a tensor; None where it serves as an index."""
    nodes = [node for expr in those for node in walk(expr)]
    if any(tensor in index.gathered for node in nodes for index in own_indices(node)):
        return None
    return [node for node in nodes if isinstance(node, Read) and node.tensor == tensor]
