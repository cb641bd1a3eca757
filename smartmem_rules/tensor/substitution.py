"""Indices rebuilt from others: variables replaced, integer tensors renamed, row-major positions and back.

Every result is in the normal form of `tensor.index`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.index import Index, add, collected, div, mod, scale
from smartmem_rules.tensor.ranges import several


def substitute(index: Index, values: Mapping[Var, Index]) -> Index:
    """The index with variables replaced; the result is normalised again."""
    if not values or values.keys().isdisjoint(index.variables):
        return index
    linear = _linear(index, values)
    if linear is not None:
        return linear
    result = Index(index.constant)
    for atom, coefficient in index.terms:
        result = add(result, scale(substitute_atom(atom, values), coefficient))
    return result


def _linear(index: Index, values: Mapping[Var, Index]) -> Index | None:
    """The index with variables replaced, in one pass where only variables meet; None where anything else does."""
    constant, terms = index.constant, dict[Atom, int]()
    for atom, coefficient in index.terms:
        if not isinstance(atom, Var):
            return None
        value = values.get(atom)
        if value is None:
            terms[atom] = terms.get(atom, 0) + coefficient
            continue
        constant += value.constant * coefficient
        for inner, factor in value.terms:
            if not isinstance(inner, Var):
                return None
            terms[inner] = terms.get(inner, 0) + factor * coefficient
    return collected(constant, terms)


def substitute_atom(atom: Atom, values: Mapping[Var, Index]) -> Index:
    match atom:
        case Var():
            return values.get(atom, Index(0, ((atom, 1),)))
        case Div(value=value, divisor=divisor):
            return div(substitute(value, values), divisor)
        case Mod(value=value, divisor=divisor):
            return mod(substitute(value, values), divisor)
        case Lookup(table=table, position=position):
            return lookup(table, substitute(position, values))
        case Gathered():
            return gathered(atom.tensor, tuple(substitute(i, values) for i in atom.indices), atom.extent, atom.wrap)


def lookup(table: tuple[int, ...], position: Index) -> Index:
    """table[position]; an arithmetic progression becomes arithmetic.

    A constant position behind the table's ends stands under a condition that is false there; any entry will do.
    """
    if not table:
        return Index(0)  # of a loop that never runs
    if position.is_constant:
        return Index(table[min(max(position.constant, 0), len(table) - 1)])
    step = table[1] - table[0] if len(table) > 1 else 0
    if all(table[i] == table[0] + i * step for i in range(len(table))):
        return add(scale(position, step), Index(table[0]))
    return Index(0, ((Lookup(table, position), 1),))


def gathered(tensor: str, indices: tuple[Index, ...], extent: int, wrap: bool) -> Index:
    return Index(0, ((Gathered(tensor, indices, extent, wrap), 1),))


def map_elements(index: Index, change: Callable[[Lookup | Gathered], Index | None]) -> Index:
    """The index with elements of tables and of integer tensors changed, inner ones first; None keeps an element."""
    result = Index(index.constant)
    for atom, coefficient in index.terms:
        match atom:
            case Gathered():
                inner = Gathered(
                    atom.tensor, tuple(map_elements(i, change) for i in atom.indices), atom.extent, atom.wrap
                )
                changed = change(inner)
                term = Index(0, ((inner, 1),)) if changed is None else changed
            case Lookup(table=table, position=position):
                position = map_elements(position, change)
                changed = change(Lookup(table, position))
                term = lookup(table, position) if changed is None else changed
            case Div(value=value, divisor=divisor):
                term = div(map_elements(value, change), divisor)
            case Mod(value=value, divisor=divisor):
                term = mod(map_elements(value, change), divisor)
            case Var():
                term = Index(0, ((atom, 1),))
        result = add(result, scale(term, coefficient))
    return result


def map_gathered(index: Index, change: Callable[[str, tuple[Index, ...]], tuple[str, tuple[Index, ...]]]) -> Index:
    """The index with each read of an integer tensor changed: `change` gets and gives its tensor and its indices."""

    def changed(element: Lookup | Gathered) -> Index | None:
        match element:
            case Gathered(tensor=tensor, indices=indices, extent=extent, wrap=wrap):
                return gathered(*change(tensor, indices), extent, wrap)
        return None

    return map_elements(index, changed) if index.gathered else index


def rename_tensors(index: Index, rename: Callable[[str], str]) -> Index:
    """The index with the integer tensors that it reads renamed."""
    return map_gathered(index, lambda tensor, indices: (rename(tensor), indices))


def ravel(indices: tuple[Index, ...], extents: tuple[int, ...]) -> Index:
    """The row-major position of an element."""
    position = Index(0)
    for index, extent in zip(indices, extents, strict=True):
        position = add(scale(position, extent), index)
    return position


def unravel(position: Index, extents: tuple[int, ...]) -> tuple[Index, ...]:
    """The indices of a row-major position that lies inside the extents."""
    indices: list[Index] = []
    stride = math.prod(extents)
    for axis, extent in enumerate(extents):
        stride //= extent if extent else 1
        if not several(extent):  # no position lies inside an empty axis: any index will do
            indices.append(Index(0))
            continue
        digit = div(position, stride) if stride else Index(0)
        indices.append(mod(digit, extent) if axis else digit)
    return tuple(indices)
