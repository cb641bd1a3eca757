"""How kernels touch stored tensors: how often, along which vectors, and what lies near in time or space."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from smartmem_rules.plan.accounting import expressions
from smartmem_rules.plan.model import Contraction, Kernel, Layout, Store
from smartmem_rules.tensor.expr import Expr, Read, Reduce, tensors_read, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several


@dataclass(frozen=True)
class Use:
    """A read or a write of a stored tensor in a kernel.

    Attributes:
        count: how often, one element at a time.
        vectors: variables along which the kernel takes several elements at once.
        follows: whether it also does so along the lanes that the layout of its first output gives it.
        loops: the variables of the sums around a read.
        near: variables along which the next use in time or of a neighbouring work-item lies.
    """

    tensor: str
    indices: tuple[Index, ...]
    count: int
    vectors: frozenset[Var]
    follows: bool
    loops: frozenset[Var]
    near: frozenset[Var]
    writes: bool

    @property
    def used(self) -> frozenset[Var]:
        """The variables on which its place depends."""
        return frozenset(v for i in self.indices for v in i.variables)


@dataclass(frozen=True)
class Lead:
    """What a kernel takes from the layout of its first output: its lanes, and the axis that its items go along next."""

    lane: Var | None = None
    second: Var | None = None


def advancing(index: Index) -> Var | None:
    """The variable with which an index moves in steps of one."""
    return next((a for a, c in index.terms if isinstance(a, Var) and c == 1), None)


def is_led(kernel: Kernel) -> bool:
    """Whether vectors of the kernel run along its first output: it has neither a contraction nor rows of its own."""
    if kernel.form == "reduction":
        return not any(s.local for s in kernel.stores) and not any(s.axes for s in kernel.stages)
    return kernel.form == "pointwise"


def store_lane(kernel: Kernel, store: Store, layout: Layout) -> Var | None:
    """The kernel axis along which a store fills texels, or along which it is contiguous in a buffer."""
    for axis in reversed(layout.order):
        if axis < 0:
            return None
        moving = [a for a, c in store.indices[axis].terms if isinstance(a, Var) and c == 1 and a in kernel.axes]
        if moving:
            return moving[0]
        if not store.indices[axis].is_constant:
            return None
    return None


def lead_of(kernel: Kernel, layout: Layout) -> Lead:
    """What the layout of the kernel's first output gives it."""
    store = kernel.stores[0]
    lane = store_lane(kernel, store, layout)
    for axis in reversed(layout.order):
        if axis >= 0:
            for var in sorted(store.indices[axis].variables & set(kernel.axes), key=kernel.axes.index, reverse=True):
                if var != lane:
                    return Lead(lane, var)
    return Lead(lane)


def writable_lane(kernel: Kernel, store: Store, axis: int) -> bool:
    """Whether the kernel computes whole texels when the tensor's lanes run along the axis."""
    index = store.indices[axis]
    var = advancing(index)
    if var is None or is_symbolic(var.extent):
        return False
    rest = add(index, scale(variable(var), -1))
    if var in rest.variables or any(c % 4 for _, c in rest.terms) or rest.constant % 4:
        return False
    if any(var in other.variables for a, other in enumerate(store.indices) if a != axis):
        return False
    if rest.terms and var.extent % 4:
        return False
    if kernel.contraction is not None:
        return var == kernel.contraction.n
    if kernel.form == "reduction":
        return index == variable(var) and (var in store.local or not any(s.local for s in kernel.stores))
    return var in kernel.axes


def uses(kernel: Kernel, constants: Collection[str], tile: tuple[int, int] | None) -> list[Use]:
    """All uses of stored tensors, but for constant right factors: they are packed for the kernel alone.

    Args:
        tile: rows and columns of the register block of contractions, where nothing else is kept between its steps.
    """
    found = [*_led(kernel)] if is_led(kernel) else [*_unled(kernel, constants, tile)]
    touched = {*kernel.reads, *kernel.writes}
    return [use for use in found if use.tensor in touched]


def reduction_axes(kernel: Kernel, tensor: str) -> list[int]:
    """The axes of a tensor along which a kernel reduces it, in the order of its reads."""
    c = kernel.contraction
    found: dict[int, None] = {}
    for expr in expressions(kernel):
        reduced = _reduced(expr)
        if c is not None:
            reduced |= {*c.k, *(c.scores.k if c.scores is not None else ())}
        for node in walk(expr):
            if isinstance(node, Read) and node.tensor == tensor:
                moving = ((axis, advancing(index)) for axis, index in enumerate(node.indices))
                found.update(dict.fromkeys(axis for axis, var in moving if var in reduced))
    return list(found)


def _led(kernel: Kernel) -> Iterator[Use]:
    """Elementwise kernels, windows and statistics of single rows."""
    items = count(kernel.axes)
    for store in kernel.stores:
        yield Use(store.tensor, store.indices, items, frozenset(), True, frozenset(), frozenset(), True)
    for expr in expressions(kernel):
        for read, loops in _reads(expr):
            around = loops & {v for i in read.indices for v in i.variables}
            vectors = loops if kernel.form == "reduction" else frozenset()
            yield Use(read.tensor, read.indices, items * count(around), vectors, True, loops, loops, False)


def _unled(kernel: Kernel, constants: Collection[str], tile: tuple[int, int] | None) -> Iterator[Use]:
    """Contractions, and rows that are kept on chip."""
    c = kernel.contraction
    rows = frozenset(kernel.axes[-1:] if c is None else c.m[-1:])
    own = {v for s in kernel.stores for v in s.local}
    lanes = frozenset(own if c is None or kernel.stages else {c.n, *(part.n for part in kernel.parts)})
    for store in kernel.stores:
        items = count(kernel.axes) * count(store.local)
        yield Use(store.tensor, store.indices, items, lanes, False, frozenset(), lanes | rows, True)
        for read, loops in _reads(store.value):
            around = loops & {v for i in read.indices for v in i.variables}
            yield Use(read.tensor, read.indices, items * count(around), lanes, False, loops, lanes | rows, False)
    for stage in kernel.stages:
        vectors = frozenset(stage.axes) or lanes | _reduced(stage.body)
        for read, loops in _reads(stage.body):
            around = loops & {v for i in read.indices for v in i.variables}
            items = count(kernel.axes if c is None else (*c.batch, *c.m)) * count(stage.axes) * count(around)
            yield Use(read.tensor, read.indices, items, vectors, False, loops, vectors | rows, False)
    if c is not None:
        yield from _factors(kernel, c, constants, tile)


def _factors(kernel: Kernel, c: Contraction, constants: Collection[str], tile: tuple[int, int] | None) -> Iterator[Use]:
    for stage in c.stages:
        vectors = frozenset(stage.axes) or _reduced(stage.body)
        for read, loops in _reads(stage.body):
            used = frozenset(v for i in read.indices for v in i.variables)
            yield Use(read.tensor, read.indices, count(used), vectors, False, loops, vectors | {*c.m[-1:]}, False)
    columns = 1 if tile is None else -(-largest(c.n.extent) // tile[1])
    yield from _factor(c.a, frozenset(c.k), frozenset({*c.k, *c.m[-1:]}), columns)
    rows = 1 if tile is None else -(-count(c.m) // tile[0])
    for n, b in ((c.n, c.b), *((part.n, part.b) for part in kernel.parts)):
        if not all(t in constants for t in tensors_read(b)):
            # a register block takes products of whole texels along the reduction, too
            vectors = frozenset({n} if tile is None else {n, *c.k})
            yield from _factor(b, vectors, frozenset({n, *c.k}), rows)


def _factor(expr: Expr, vectors: frozenset[Var], near: frozenset[Var], repeats: int) -> Iterator[Use]:
    for read, loops in _reads(expr):
        used = {v for i in read.indices for v in i.variables}
        yield Use(read.tensor, read.indices, count(used) * repeats, vectors, False, loops, near, False)


def _reads(expr: Expr) -> list[tuple[Read, frozenset[Var]]]:
    loops = _reduced(expr)
    return [(node, loops) for node in walk(expr) if isinstance(node, Read)]


def _reduced(expr: Expr) -> frozenset[Var]:
    return frozenset(v for node in walk(expr) if isinstance(node, Reduce) for v in node.variables)


def count(variables: Iterable[Var]) -> int:
    """The values that variables take together at most."""
    return math.prod(largest(v.extent) for v in variables if several(v.extent))
