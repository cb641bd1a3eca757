"""How kernels access stored tensors: how often, along which vectors, and what is near in time or space."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from smartmem_rules.plan.kernel.model import Contraction, Kernel, Layout, Store
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, tensors_read, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several


@dataclass(frozen=True)
class Wave:
    """Where the work-items lie that issue an access together.

    Attributes:
        places: the axes along which they lie, and how many along each; vectors count as one.
        lane: the axis of their vectors.
        accesses: how many they issue, one texel each.
    """

    places: tuple[tuple[Var, int], ...]
    lane: Var | None
    accesses: int


@dataclass(frozen=True)
class VectorAxis:
    """What a kernel takes from the layout of its first output: the axis of its vectors, and the places of a wave."""

    lane: Var | None = None
    wave: Wave | None = None


@dataclass(frozen=True, kw_only=True)
class Use:
    """A read or a write of a stored tensor in a kernel.

    Attributes:
        count: how often, one element at a time.
        vectors: variables along which the kernel takes several elements at once.
        follows: whether it also does so along the lanes that the layout of its first output gives it.
        loops: the variables of the sums around a read, the innermost last.
        near: variables along which the next use in time or of a neighbouring work-item lies.
        wave: where that is known more exactly without a leader, the places of a wave's work-items.
    """

    tensor: str
    indices: tuple[Index, ...]
    count: int
    vectors: frozenset[Var]
    follows: bool
    loops: tuple[Var, ...]
    near: frozenset[Var]
    writes: bool
    wave: Wave | None = None

    @property
    def used(self) -> frozenset[Var]:
        """The variables on which its place depends."""
        return frozenset(v for i in self.indices for v in i.variables)


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


def lead_of(kernel: Kernel, layout: Layout, wave: int = 0) -> VectorAxis:
    """What the layout of the kernel's first output gives it.

    Args:
        wave: work-items of a wave; where they lie is not asked for 0.
    """
    store = kernel.stores[0]
    lane = store_lane(kernel, store, layout)
    if not wave:
        return VectorAxis(lane)
    outer: dict[Var, None] = {}
    inside: set[Var] = set()
    for place, axis in enumerate(layout.order):
        if axis >= 0:
            own = sorted(store.indices[axis].variables & set(kernel.axes), key=kernel.axes.index)
            outer.update(dict.fromkeys(v for v in own if v != lane))
            if len(layout.order) - 1 - layout.inner <= place < len(layout.order) - 1:
                inside.update(own)
    order = [v for v in reversed(outer) if v in inside]
    order += [lane] if lane is not None else []
    order += [v for v in reversed(outer) if v not in inside]
    extents = [(v, -(-largest(v.extent) // (TEXEL_LANES if v == lane else 1))) for v in order]
    places = _shared_out(extents, wave)
    return VectorAxis(lane, Wave(places, lane, math.prod(number for _, number in places)))


def _shared_out(extents: Iterable[tuple[Var, int]], items: int) -> tuple[tuple[Var, int], ...]:
    """How many of the items lie along each axis, the fastest first."""
    found = []
    for var, extent in extents:
        number = min(extent, items)
        if number > 1:
            found.append((var, number))
            items //= number
    return tuple(found)


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
        return var in (kernel.contraction.n, *(part.n for part in kernel.parts), *store.local)
    if kernel.form == "reduction":
        return index == variable(var) and (var in store.local or not any(s.local for s in kernel.stores))
    return var in kernel.axes


@dataclass(frozen=True)
class RegisterBlock:
    """How contractions share out their work where nothing but sums is kept between two steps of the reduction.

    Attributes:
        rows, columns: of a work-item.
        wave: work-items that issue an access together; where they lie is not asked for 0.
    """

    rows: int
    columns: int
    wave: int

    def waves(self, c: Contraction) -> tuple[Wave | None, Wave | None]:
        """The places of the rows and of the columns that the work-items of a wave take at a step."""
        if not self.wave:
            return None, None
        vectors = self.columns // TEXEL_LANES
        blocks = -(-largest(c.n.extent) // self.columns)
        across = min(blocks, self.wave)
        down = max(1, self.wave // blocks) * self.rows
        rows = _shared_out([(v, largest(v.extent)) for v in reversed(c.m)], down)
        columns = ((c.n, across * vectors),)
        return Wave(rows, None, self.wave * self.rows), Wave(columns, c.n, self.wave * vectors)


def uses(kernel: Kernel, constants: Collection[str], block: RegisterBlock | None) -> list[Use]:
    """All uses of stored tensors, but for constant right factors: they are packed for the kernel alone.

    Args:
        block: of contractions, where the device's template has no other place for their factors.
    """
    found = [*_led(kernel)] if is_led(kernel) else [*_unled(kernel, constants, block)]
    touched = {*kernel.reads, *kernel.writes}
    return [use for use in found if use.tensor in touched]


def reduction_axes(kernel: Kernel) -> dict[str, list[int]]:
    """For each tensor that a kernel reads the axes along which it is reduced, in the order of the reads."""
    c = kernel.contraction
    found: dict[str, dict[int, None]] = {}
    for expr in expressions(kernel):
        reduced = {*_reduced(expr)}
        if c is not None:
            reduced |= {*c.k, *(c.scores.k if c.scores is not None else ())}
        for node in walk(expr):
            if isinstance(node, Read):
                axes = found.setdefault(node.tensor, {})
                axes.update((axis, None) for axis, index in enumerate(node.indices) if index.variables & reduced)
    return {tensor: list(axes) for tensor, axes in found.items()}


def _led(kernel: Kernel) -> Iterator[Use]:
    """Elementwise kernels, windows and statistics of single rows."""
    items = count(kernel.axes)
    nothing: frozenset[Var] = frozenset()
    for store in kernel.stores:
        yield _write(store, items, nothing, nothing, follows=True)
    for expr in expressions(kernel):
        for read, loops in _reads(expr):
            vectors = frozenset(loops if kernel.form == "reduction" else ())
            yield _read(read, loops, items * count(_around(read, loops)), vectors, nothing, follows=True)


def _unled(kernel: Kernel, constants: Collection[str], block: RegisterBlock | None) -> Iterator[Use]:
    """Contractions, and rows that are kept on chip."""
    c = kernel.contraction
    rows = frozenset(kernel.axes[-1:] if c is None else c.m[-1:])
    own = {v for s in kernel.stores for v in s.local}
    lanes = frozenset(own if c is None or kernel.stages else {c.n, *(part.n for part in kernel.parts)})
    led = lanes | rows
    for store in kernel.stores:
        if c is not None and store.local and not kernel.stages:  # rows of the left factor that others read too
            row = frozenset(store.local)
            yield _write(store, count((*c.batch, *c.m)) * count(store.local), row, row | rows)
        else:
            yield from _stored(store, count(kernel.axes) * count(store.local), lanes, led)
    each = count(kernel.axes if c is None else (*c.batch, *c.m))
    for stage in kernel.stages:
        vectors = frozenset(stage.axes) or lanes | {*_reduced(stage.body)}
        for read, loops in _reads(stage.body):
            times = each * count(stage.axes) * count(_around(read, loops))
            yield _read(read, loops, times, vectors, vectors | rows)
    if c is not None:
        yield from _factors(kernel, c, constants, block)


def _stored(store: Store, items: int, vectors: frozenset[Var], near: frozenset[Var]) -> Iterator[Use]:
    """What is stored, and what the value is computed from."""
    yield _write(store, items, vectors, near)
    for read, loops in _reads(store.value):
        yield _read(read, loops, items * count(_around(read, loops)), vectors, near)


def _write(store: Store, times: int, vectors: frozenset[Var], near: frozenset[Var], *, follows: bool = False) -> Use:
    return Use(
        tensor=store.tensor,
        indices=store.indices,
        count=times,
        vectors=vectors,
        follows=follows,
        loops=(),
        near=near,
        writes=True,
    )


def _read(
    read: Read,
    loops: tuple[Var, ...],
    times: int,
    vectors: frozenset[Var],
    near: frozenset[Var],
    *,
    follows: bool = False,
    wave: Wave | None = None,
) -> Use:
    return Use(
        tensor=read.tensor,
        indices=read.indices,
        count=times,
        vectors=vectors,
        follows=follows,
        loops=loops,
        near=near,
        writes=False,
        wave=wave,
    )


def _factors(kernel: Kernel, c: Contraction, constants: Collection[str], block: RegisterBlock | None) -> Iterator[Use]:
    for stage in c.stages:
        vectors = frozenset(stage.axes or _reduced(stage.body))
        for read, loops in _reads(stage.body):
            used = frozenset(v for i in read.indices for v in i.variables)
            yield _read(read, loops, count(used), vectors, vectors | {*c.m[-1:]})
    rows, columns = (None, None) if block is None else block.waves(c)
    repeats = 1 if block is None else -(-largest(c.n.extent) // block.columns)
    near = frozenset({*c.k, *c.m[-1:]})
    yield from _factor(c.a, c.k, frozenset(c.k), near, repeats, rows)
    repeats = 1 if block is None else -(-count(c.m) // block.rows)
    for n, b in ((c.n, c.b), *((part.n, part.b) for part in kernel.parts)):
        if not all(t in constants for t in tensors_read(b)):
            # a register block takes products of whole texels along the reduction, too
            vectors = frozenset({n} if block is None else {n, *c.k})
            yield from _factor(b, c.k, vectors, frozenset({n, *c.k}), repeats, columns)


def _factor(
    expr: Expr, k: tuple[Var, ...], vectors: frozenset[Var], near: frozenset[Var], repeats: int, wave: Wave | None
) -> Iterator[Use]:
    for read, loops in _reads(expr):
        used = {v for i in read.indices for v in i.variables}
        around = loops if wave is None else (*k, *loops)
        yield _read(read, around, count(used) * repeats, vectors, near, wave=wave)


def _reads(expr: Expr) -> list[tuple[Read, tuple[Var, ...]]]:
    loops = _reduced(expr)
    return [(node, loops) for node in walk(expr) if isinstance(node, Read)]


def _reduced(expr: Expr) -> tuple[Var, ...]:
    return tuple(v for node in walk(expr) if isinstance(node, Reduce) for v in node.variables)


def _around(read: Read, loops: tuple[Var, ...]) -> tuple[Var, ...]:
    """The loops in which the place of a read changes: it is read once for each of their turns."""
    used = {v for i in read.indices for v in i.variables}
    return tuple(v for v in loops if v in used)


def count(variables: Iterable[Var]) -> int:
    """The values that variables take together at most."""
    return math.prod(largest(v.extent) for v in variables if several(v.extent))
