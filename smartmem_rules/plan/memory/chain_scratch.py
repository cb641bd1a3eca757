"""Tensors that only the kernels of a chain read lie in scratch memory, a block of rows at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.addressing import offset, written
from smartmem_rules.plan.kernel.launch import Chain, Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Layout, Store, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.plan.kernel.work_items import BlockRows
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_reads, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import ravel


def keep_rows(launches: Sequence[Launch], tensors: dict[str, Stored], fixed: Collection[str]) -> list[Launch]:
    """The launches whose chains keep in scratch memory what only they themselves read (`BlockRows.kept`).

    Where the rows of such a tensor do not lie one after the other, because the chain visits them in another order
    (windows), it is laid out anew in the order of the chain.

    Args:
        tensors: in which those that are kept get their memory.
        fixed: tensors that have to lie in device memory.
    """
    uses = _Uses(launches, fixed)
    return [_kept_in(launch, uses, tensors) for launch in launches]


def _kept_in(launch: Launch, uses: _Uses, tensors: dict[str, Stored]) -> Launch:
    if isinstance(launch, Single):
        return launch
    if not isinstance(launch, Chain):
        return launch.of_steps(tuple(_kept_in(step, uses, tensors) for step in launch.steps))
    return launch if launch.rows is None else _chain_kept(launch, launch.rows, uses, tensors)


class _Uses:
    """Which chains read each tensor, and how many stores write it.

    Args:
        fixed: tensors that have to lie in device memory.
    """

    def __init__(self, launches: Sequence[Launch], fixed: Collection[str]) -> None:
        self.fixed = fixed
        self.readers: dict[str, set[str]] = {}
        self.writers: Counter[str] = Counter()
        for launch in launches:
            self._add(launch, "")

    def _add(self, launch: Launch, chain: str) -> None:
        if not isinstance(launch, Single):
            for step in launch.steps:
                self._add(step, launch.name if isinstance(launch, Chain) and launch.rows is not None else chain)
            return
        for name in launch.kernel.reads:
            self.readers.setdefault(name, set()).add(chain)
        self.writers.update(store.tensor for store in launch.kernel.stores)

    def may_keep(self, chain: Chain, stored: Stored) -> bool:
        """Whether a chain alone needs a tensor, which it may hold as scratch memory does."""
        own = self.readers.get(stored.name) == {chain.name} and stored.name not in self.fixed
        return own and stored.layout.memory == "buffer" and (stored.role, stored.storage) == ("intermediate", "float32")


def _chain_kept(chain: Chain, rows: BlockRows, uses: _Uses, tensors: dict[str, Stored]) -> Chain:
    kept = {}
    kernels = list(chain.kernels)
    for store in [s for kernel in kernels for s in kernel.stores]:
        stored = tensors[store.tensor]
        if not uses.may_keep(chain, stored):
            continue
        elements = _row_elements(rows.axes, store, stored)
        if not elements and uses.writers[store.tensor] == 1:
            elements = _in_order(rows.axes, kernels, store, tensors)
        if elements:
            kept[store.tensor] = elements
            stored = tensors[store.tensor]
            tensors[store.tensor] = replace(stored, layout=replace(stored.layout, memory="scratch"))
    steps = tuple(replace(step, kernel=kernel) for step, kernel in zip(chain.steps, kernels, strict=True))
    return replace(chain, steps=steps, rows=replace(rows, kept=kept))


def _row_elements(keys: tuple[Var, ...], store: Store, stored: Stored) -> int:
    """How many elements of a tensor belong to one row; 0 where the rows do not lie one after the other, or where the
    number is open, as scratch memory has a size when a kernel is compiled.
    """
    extents = tuple(v.extent for v in keys)
    elements = stored.type.elements // math.prod(extents)
    if is_symbolic(elements):
        return 0
    rest = add(offset(stored, store.indices), scale(ravel(tuple(map(variable, keys)), extents), -elements))
    low, high = rest.interval
    return elements if low >= 0 and high < elements and not rest.variables & set(keys) else 0


def _in_order(keys: tuple[Var, ...], kernels: list[Kernel], store: Store, tensors: dict[str, Stored]) -> int:
    """Lay a tensor out with the chain's rows one after the other; the elements of a row, or 0 where that cannot be.

    Args:
        keys: the variables that number the rows.
        kernels: of the chain; they are replaced by those that write and read the tensor so.
        store: that writes the tensor.
    """
    stored = tensors[store.tensor]
    shape = stored.type.shape
    rows = written(store, keys, shape)
    if rows is None:
        return 0
    inner = tuple(a for a in stored.layout.order if a not in rows.axes)
    count = math.prod(v.extent for v in keys)
    elements = math.prod(shape[a] for a in inner)
    if is_symbolic(elements) or count * elements != stored.type.elements:
        return 0
    nodes = [node for kernel in kernels for e in expressions(kernel) for node in walk(e)]
    if any(store.tensor in index.gathered for node in nodes for index in own_indices(node)):
        return 0
    reads = [node for node in nodes if isinstance(node, Read) and node.tensor == store.tensor]
    if any(rows.row(read.indices) != tuple(map(variable, keys)) for read in reads):
        return 0
    row = ravel(tuple(map(variable, keys)), tuple(v.extent for v in keys))

    def moved(indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return row, *(indices[a] for a in inner)

    def read_moved(read: Read) -> Expr:
        return Read(read.tensor, moved(read.indices), read.dtype) if read.tensor == store.tensor else read

    def store_moved(one: Store) -> Store:
        indices = moved(one.indices) if one.tensor == store.tensor else one.indices
        return replace(one, indices=indices, value=substitute_reads(one.value, read_moved))

    kernels[:] = [kernel.changed(lambda expr: substitute_reads(expr, read_moved), store_moved) for kernel in kernels]
    type_ = TensorType(stored.type.dtype, (count, *(shape[a] for a in inner)))
    layout = Layout("buffer", tuple(range(len(inner) + 1)))
    tensors[store.tensor] = replace(stored, type=type_, layout=layout)
    return elements
