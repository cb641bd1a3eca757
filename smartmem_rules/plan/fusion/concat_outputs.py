"""Eliminates Concat at outputs: each producer writes its slice of the result directly, and nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel, Store
from smartmem_rules.plan.kernel.traffic import accounted
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Expr, Read, Select, TensorType
from smartmem_rules.tensor.index import Index, add, scale, variable


def write_pieces(kernels: Sequence[Kernel], types: Mapping[str, TensorType], outputs: Sequence[str]) -> list[Kernel]:
    """The kernels without those that only join what others make, each part of it read by nothing else."""
    kept = dict(enumerate(kernels))
    for number in range(len(kernels)):
        kernel = kept[number]
        offsets = _offsets(kernel, types)
        if offsets is None or kernel.writes[0] not in outputs:
            continue
        others = {n: k for n, k in kept.items() if n != number}
        makers = {name: [n for n, k in others.items() for s in k.stores if s.tensor == name] for name in offsets}
        read = {name for k in others.values() for name in k.reads}
        whole = all(len(own) == 1 and others[own[0]].form != "scan" for own in makers.values())
        # a tensor that indices come from cannot move, and outputs have their own memory
        if not whole or read & {*offsets, kernel.writes[0]} or {*offsets} & {*outputs}:
            continue
        for name, start in offsets.items():
            (maker,) = makers[name]
            origin = tuple(dict.fromkeys((*others[maker].origin, *kernel.origin)))
            others[maker] = replace(_redirected(others[maker], name, kernel.writes[0], start), origin=origin)
        kept = others
    return list(kept.values())


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


def _redirected(kernel: Kernel, old: str, new: str, start: tuple[int, ...]) -> Kernel:
    """The kernel that writes a tensor into another one, its first element at a place of that."""

    def moved(store: Store) -> Store:
        if store.tensor != old:
            return store
        return replace(
            store, tensor=new, indices=tuple(add(i, Index(s)) for i, s in zip(store.indices, start, strict=True))
        )

    parts = tuple(replace(part, stores=tuple(map(moved, part.stores))) for part in kernel.parts)
    return accounted(replace(kernel, stores=tuple(map(moved, kernel.stores)), parts=parts))
