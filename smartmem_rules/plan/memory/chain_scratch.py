"""Tensors that only the kernels of a chain read lie in scratch memory, a block of rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.addressing import offset, written
from smartmem_rules.plan.kernel.model import Kernel, Layout, Stage, Store, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_reads, walk
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import ravel


def keep_rows(kernels: Sequence[Kernel], tensors: dict[str, Stored], fixed: Collection[str]) -> None:
    """Let what only a chain itself reads lie in scratch memory; the schedule of the chain gets `kept`.

    `kept` says of each such tensor how many elements a row has. Where the rows do not lie one after the other, because
    the chain visits them in another order (windows), the tensor is laid out anew in the order of the chain.
    """
    readers: dict[str, set[int]] = {}
    writers: dict[str, int] = {}
    chains = [k for one in kernels for k in (one, *one.steps) if k.form == "chain" and k.axes]
    home = {id(leaf): number for number, one in enumerate(chains) for leaf in one.leaves}
    for leaf in (leaf for one in kernels for leaf in one.leaves):
        for name in leaf.reads:
            readers.setdefault(name, set()).add(home.get(id(leaf), -1))
        for store in leaf.stores:
            writers[store.tensor] = writers.get(store.tensor, 0) + 1
    for number, one in enumerate(chains):
        kept = {}
        for store in [s for leaf in one.leaves for s in leaf.stores]:
            stored = tensors[store.tensor]
            own = readers.get(store.tensor) == {number} and store.tensor not in fixed
            if (
                not own
                or stored.layout.memory != "buffer"
                or (stored.role, stored.storage) != ("intermediate", "float32")
            ):
                continue
            elements = _row_elements(one, store, stored)
            if not elements and writers[store.tensor] == 1:
                elements = _in_order(one, store, tensors)
            if elements:
                kept[store.tensor] = elements
                stored = tensors[store.tensor]
                tensors[store.tensor] = replace(stored, layout=replace(stored.layout, memory="scratch"))
        assert one.rows is not None
        one.rows = replace(one.rows, kept=kept)


def _row_elements(chain_: Kernel, store: Store, stored: Stored) -> int:
    """How many elements of a tensor belong to one row, 0 where the rows do not lie one after the other."""
    extents = tuple(v.extent for v in chain_.axes)
    elements = stored.type.elements // math.prod(extents)
    rest = add(offset(stored, store.indices), scale(ravel(tuple(map(variable, chain_.axes)), extents), -elements))
    low, high = rest.interval
    return elements if low >= 0 and high < elements and not rest.variables & set(chain_.axes) else 0


def _in_order(chain_: Kernel, store: Store, tensors: dict[str, Stored]) -> int:
    """Lay a tensor out with the chain's rows one after the other; the elements of a row, or 0 where that cannot be."""
    stored = tensors[store.tensor]
    shape, keys = stored.type.shape, chain_.axes
    rows = written(store, keys, shape)
    if rows is None:
        return 0
    inner = tuple(a for a in stored.layout.order if a not in rows.axes)
    count = math.prod(v.extent for v in keys)
    elements = math.prod(shape[a] for a in inner)
    if count * elements != stored.type.elements:
        return 0
    nodes = [node for leaf in chain_.leaves for e in expressions(leaf) for node in walk(e)]
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

    for leaf in chain_.leaves:
        _change(leaf, lambda expr: substitute_reads(expr, read_moved), store_moved)
    type_ = TensorType(stored.type.dtype, (count, *(shape[a] for a in inner)))
    layout = Layout("buffer", tuple(range(len(inner) + 1)))
    tensors[store.tensor] = replace(stored, type=type_, layout=layout)
    return elements


def _change(kernel: Kernel, expression: Callable[[Expr], Expr], store: Callable[[Store], Store]) -> None:
    """Change all expressions and stores of a kernel."""

    def stages(those: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(replace(stage, body=expression(stage.body)) for stage in those)

    def stores(those: tuple[Store, ...]) -> tuple[Store, ...]:
        return tuple(map(store, those))

    kernel.stages, kernel.stores = stages(kernel.stages), stores(kernel.stores)
    kernel.parts = tuple(replace(part, b=expression(part.b), stores=stores(part.stores)) for part in kernel.parts)
    c = kernel.contraction
    if c is not None:
        scores = c.scores and replace(c.scores, a=expression(c.scores.a), b=expression(c.scores.b))
        kernel.contraction = replace(c, a=expression(c.a), b=expression(c.b), stages=stages(c.stages), scores=scores)
