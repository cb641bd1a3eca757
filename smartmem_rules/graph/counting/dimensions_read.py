"""The open dimensions on which equations depend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import Equation, Reduce, own_indices, walk
from smartmem_rules.tensor.extents import Dimension, dimensions
from smartmem_rules.tensor.index import Index


def dimensions_of(equations: Sequence[Equation]) -> frozenset[Dimension]:
    """The open dimensions that extents, indices and conditions of the equations depend on."""
    return frozenset(d for equation in equations for extent in _extents(equation) for d in dimensions(extent))


def _extents(equation: Equation) -> Iterator[int]:
    yield from equation.type.shape
    yield from (v.extent for v in equation.variables)
    for node in walk(equation.body):
        if isinstance(node, Reduce):
            yield from (v.extent for v in node.variables)
        yield from _of_indices(own_indices(node))


def _of_indices(indices: Iterable[Index]) -> Iterator[int]:
    for index in indices:
        if index.is_open:
            yield index.constant
            for atom, coefficient in index.terms:
                yield coefficient
                yield from _of_atom(atom)


def _of_atom(atom: Atom) -> Iterator[int]:
    match atom:
        case Var(extent=extent):
            yield extent
        case Div(value=value, divisor=divisor) | Mod(value=value, divisor=divisor):
            yield divisor
            yield from _of_indices((value,))
        case Lookup(table=table, position=position):
            yield from table
            yield from _of_indices((position,))
        case Gathered(indices=indices, extent=extent):
            yield extent
            yield from _of_indices(indices)
