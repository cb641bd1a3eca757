"""Every element of every stored tensor is written exactly once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.definitions.inside import values_at
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import several
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import index_map

STAGE = "fusion"
FEW, MANY = 1 << 10, 1 << 20
"""Elements up to which a store is decided by looking at each: in every optimization, and in thorough checks."""


def check_writes(kernels: Iterable[Kernel], tensors: Mapping[str, Stored], thorough: bool) -> None:
    """Check what kernels store: the loops of a store go through each element once, pieces part a tensor.

    Where the map from loops to elements has an inverse, that proves it; other maps are looked at element by element
    up to a limit, and those of open extents stay open.

    Raises:
        InvariantError: an element is written by no work-item, or by several.
    """
    writes: dict[str, dict[int, _Write]] = {}
    for kernel in kernels:
        columns = {n: place for place, n in enumerate(dict.fromkeys(part.n for part in kernel.parts))}
        for store in kernel.stores:
            # the shares of a recurrence are one kernel
            writes.setdefault(store.tensor, {})[id(store)] = _Write(kernel=kernel, store=store, columns=columns)
    for tensor, found in writes.items():
        if tensor not in tensors:  # what a sized launch keeps to itself
            continue
        _check_tensor(tensor, tensors[tensor], list(found.values()), MANY if thorough else FEW)


@dataclass(frozen=True, kw_only=True)
class _Write:
    """A store of a kernel.

    Attributes:
        columns: of the further right factors of a contraction, of which there may be thousands, in their order.
    """

    kernel: Kernel
    store: Store
    columns: Mapping[Var, int]

    @property
    def used(self) -> set[Var]:
        """The variables on which the place of an element depends."""
        return {v for index in self.store.indices for v in index.variables}

    @property
    def loops(self) -> tuple[Var, ...]:
        """The loop variables over which the store ranges."""
        used, local = self.used, self.store.local
        axes = [v for v in self.kernel.axes if v in used or v in local]
        columns = sorted((v for v in {*used, *local} if v in self.columns), key=self.columns.__getitem__)
        return tuple(dict.fromkeys((*axes, *columns, *local)))


@dataclass(frozen=True)
class _Box:
    """The elements that a store writes, where they are a box: the first and one behind the last place of each axis."""

    kernel: str
    first: tuple[int, ...]
    last: tuple[int, ...]

    def meets(self, other: _Box) -> bool:
        return all(
            max(a, c) < min(b, d) for a, b, c, d in zip(self.first, self.last, other.first, other.last, strict=True)
        )


def _check_tensor(tensor: str, stored: Stored, writes: Sequence[_Write], limit: int) -> None:
    shape = stored.type.shape
    if stored.type.elements == 0:
        return
    for write in writes:
        _check_axes(write)
    if len(writes) == 1:
        _check_whole(writes[0], shape, limit)
        return
    boxes = [_box(write) for write in writes]
    known = [box for box in boxes if box is not None]
    if len(known) == len(boxes):
        for one, other in itertools.combinations(known, 2):
            if one.meets(other):
                raise InvariantError(STAGE, one.kernel, tensor, f"it and {other.kernel} write the same elements")
        covered = sum(math.prod(b - a for a, b in zip(box.first, box.last, strict=True)) for box in known)
        if covered != stored.type.elements:
            raise InvariantError(
                STAGE, known[0].kernel, tensor, f"its kernels write {covered} of {stored.type.elements} elements"
            )
    elif not is_symbolic(stored.type.elements) and stored.type.elements <= limit:
        _check_counts(tensor, shape, writes)


def _check_axes(write: _Write) -> None:
    """Each axis along which work-items differ tells their elements apart."""
    kernel, store, used = write.kernel, write.store, write.used
    shared = {kernel.contraction.n} if kernel.contraction is not None else set()
    lost = [v for v in (*kernel.axes, *store.local) if several(v.extent) and v not in used and v not in shared]
    if lost:
        raise InvariantError(STAGE, kernel.name, store.tensor, f"{lost[0].extent!r} steps of a loop write each element")
    if any(v not in write.columns for v in used - set(kernel.axes) - set(store.local)):
        raise InvariantError(STAGE, kernel.name, store.tensor, "a store depends on a variable that no loop gives")


def _check_whole(write: _Write, shape: tuple[int, ...], limit: int) -> None:
    kernel, store, loops = write.kernel, write.store, write.loops
    if _each_axis_its_own(store.indices, shape, loops):
        return
    points, elements = math.prod(v.extent for v in loops), math.prod(shape)
    open_ = is_symbolic(points) or is_symbolic(elements)
    if not open_ and points != elements:
        raise InvariantError(STAGE, kernel.name, store.tensor, f"its loops have {points} steps for {elements} elements")
    names = {v: variable(Var(f"i{n}", v.extent)) for n, v in enumerate(loops)}
    indices = tuple(substitute(i, names) for i in store.indices)
    if points == elements and index_map(tuple(v.extent for v in loops), shape, indices).inverse is not None:
        return
    if not open_ and elements <= limit:
        _check_counts(store.tensor, shape, [write])


def _each_axis_its_own(indices: Sequence[Index], shape: Sequence[int], loops: Sequence[Var]) -> bool:
    """Whether each axis is a loop variable of its own with the same extent: the plainest of maps with an inverse."""
    free = {v for v in loops if several(v.extent)}
    for index, extent in zip(indices, shape, strict=True):
        if not several(extent) and index.is_constant:
            continue
        var = next((v for v in free if index == variable(v)), None)
        if var is None or var.extent != extent:
            return False
        free.discard(var)
    return not free


def _box(write: _Write) -> _Box | None:
    """The elements of a store whose axes are loop variables of their own, moved by numbers."""
    loops = {v for v in write.loops if several(v.extent)}
    first, last = [], []
    for index in write.store.indices:
        start = index.constant
        moved = index - start
        var = next((v for v in loops if moved == variable(v)), None)
        if (var is None and not index.is_constant) or is_symbolic(start) or (var and is_symbolic(var.extent)):
            return None
        loops = {v for v in loops if v != var}
        first.append(start)
        last.append(start + (1 if var is None else var.extent))
    return None if loops else _Box(write.kernel.name, tuple(first), tuple(last))


def _check_counts(tensor: str, shape: tuple[int, ...], writes: Sequence[_Write]) -> None:
    """How often each element is written, by going through all steps of all loops."""
    counts = np.zeros(math.prod(shape), np.int64)
    for write in writes:
        kernel, store, loops = write.kernel, write.store, write.loops
        if any(index.gathered for index in store.indices):
            return
        places = values_at(store.indices, loops)
        for place, extent in zip(places, shape, strict=True):
            if place.size and not (place.min() >= 0 and place.max() < extent):
                raise InvariantError(STAGE, kernel.name, tensor, "a store goes beyond the tensor")
        flat = np.ravel_multi_index(places, shape) if shape else np.zeros(math.prod(v.extent for v in loops), np.int64)
        np.add.at(counts, np.asarray(flat).reshape(-1), 1)
    if (counts != 1).any():
        at = int(np.flatnonzero(counts != 1)[0])
        element = tuple(map(int, np.unravel_index(at, shape))) if shape else ()
        names = ", ".join(dict.fromkeys(write.kernel.name for write in writes))
        raise InvariantError(STAGE, names, tensor, f"the element {element} is written {int(counts[at])} times")
