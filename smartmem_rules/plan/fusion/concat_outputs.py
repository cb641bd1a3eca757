"""Eliminates Concat at outputs: each producer writes its slice of the result directly, and nothing is copied."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel, Store
from smartmem_rules.plan.kernel.traffic import accounted
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Expr, Read, Select, TensorType
from smartmem_rules.tensor.index import Index, add, scale, variable


def write_pieces(kernels: Sequence[Kernel], types: Mapping[str, TensorType], outputs: Collection[str]) -> list[Kernel]:
    """The kernels without those that only join what others make, each part of it read by nothing else."""
    own_memory, kept = frozenset(outputs), _Kept(kernels)
    for number in range(len(kernels)):
        kernel = kept.take(number)
        offsets = _offsets(kernel, types)
        if not offsets or kernel.writes[0] not in own_memory or not own_memory.isdisjoint(offsets):
            kept.put(number, kernel)
        elif kept.moves(kernel, offsets):
            kept.redirect(offsets, kernel)
        else:
            kept.put(number, kernel)
    return kept.kernels


class _Kept:
    """Kernels by number, and for each tensor the numbers of those that write and read it."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels: dict[int, Kernel] = {}
        self._makers: dict[str, Counter[int]] = defaultdict(Counter)
        """With how many of a kernel's stores write the tensor."""
        self._readers: dict[str, set[int]] = defaultdict(set)
        for number, kernel in enumerate(kernels):
            self.put(number, kernel)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels in their order."""
        return [self._kernels[number] for number in sorted(self._kernels)]

    def put(self, number: int, kernel: Kernel) -> None:
        """Keep a kernel under a number that none has."""
        self._kernels[number] = kernel
        for store in kernel.stores:
            self._makers[store.tensor][number] += 1
        for name in kernel.reads:
            self._readers[name].add(number)

    def take(self, number: int) -> Kernel:
        """The kernel of a number, which is kept no more."""
        kernel = self._kernels.pop(number)
        for store in kernel.stores:
            self._makers[store.tensor].pop(number, None)
        for name in kernel.reads:
            self._readers[name].discard(number)
        return kernel

    def moves(self, joining: Kernel, parts: Iterable[str]) -> bool:
        """Whether one store writes each of the parts that a kernel joins, and nothing else reads them or the whole."""
        for name in parts:
            makers = self._makers[name]
            # a recurrence reads its own results; a tensor that indices come from cannot move
            if makers.total() != 1 or self._kernels[next(iter(makers))].form == "scan" or self._readers[name]:
                return False
        return not self._readers[joining.writes[0]]

    def redirect(self, offsets: Mapping[str, tuple[int, ...]], joining: Kernel) -> None:
        """Let the makers of tensors write them into what a kernel joins them to, each first element at its place."""
        by_maker: dict[int, list[str]] = defaultdict(list)
        for name in offsets:
            by_maker[next(iter(self._makers[name]))].append(name)
        for number, names in by_maker.items():
            maker = self.take(number)
            origin = tuple(dict.fromkeys((*maker.origin, *joining.origin)))
            own = {name: offsets[name] for name in names}
            self.put(number, replace(_redirected(maker, own, joining.writes[0]), origin=origin))


def _offsets(kernel: Kernel, types: Mapping[str, TensorType]) -> dict[str, tuple[int, ...]] | None:
    """For each tensor that a kernel joins where its first element goes; None if that is not all that it does."""
    if not kernel.moves_only or len(kernel.stores) != 1 or kernel.stages:
        return None
    (store,) = kernel.stores
    axes = [index.terms[0][0] if len(index.terms) == 1 else None for index in store.indices]
    shape = types[store.tensor].shape
    if any(i != (variable(v) if isinstance(v, Var) else Index(0)) for i, v in zip(store.indices, axes, strict=True)):
        return None
    found: dict[str, tuple[int, ...]] = {}
    covered = 0
    for first, last, piece in _along(store.value, store.indices, shape):
        if (
            not isinstance(piece, Read)
            or piece.tensor in found
            or types[piece.tensor].dtype != types[store.tensor].dtype
        ):
            return None
        own = types[piece.tensor].shape
        if len(own) != len(shape):
            return None
        starts = tuple(add(i, scale(r, -1)) for i, r in zip(store.indices, piece.indices, strict=True))
        if any(not s.is_constant for s in starts):
            return None
        found[piece.tensor] = tuple(s.constant for s in starts)
        if found[piece.tensor] != first or tuple(a + e for a, e in zip(first, own, strict=True)) != last:
            return None
        covered += types[piece.tensor].elements
    return found if len(found) > 1 and covered == types[store.tensor].elements else None


def _along(
    value: Expr, indices: tuple[Index, ...], shape: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...], Expr]]:
    """The parts between which a value chooses by one axis, with their first and last places; itself if it does not."""
    found = []
    first, last = (0,) * len(shape), shape
    while isinstance(value, Select) and isinstance(value.condition, Compare) and value.condition.operator == "<":
        bound = value.condition.right
        axes = [a for a, index in enumerate(indices) if index == value.condition.left and not index.is_constant]
        if len(axes) != 1 or not bound.is_constant:
            break
        (axis,) = axes
        end = (*last[:axis], bound.constant, *last[axis + 1 :])
        found.append((first, end, value.then))
        first = (*first[:axis], bound.constant, *first[axis + 1 :])
        value = value.otherwise
    return [*found, (first, last, value)]


def _redirected(kernel: Kernel, starts: Mapping[str, tuple[int, ...]], new: str) -> Kernel:
    """The kernel that writes some of its tensors into another one, each first element at a place of that."""

    def moved(store: Store) -> Store:
        start = starts.get(store.tensor)
        if start is None:
            return store
        indices = tuple(add(i, Index(s)) for i, s in zip(store.indices, start, strict=True))
        return replace(store, tensor=new, indices=indices)

    parts = tuple(replace(part, stores=tuple(map(moved, part.stores))) for part in kernel.parts)
    return accounted(replace(kernel, stores=tuple(map(moved, kernel.stores)), parts=parts))
