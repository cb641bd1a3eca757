"""A plain evaluator of equations, independent of the engine's: every index is computed for every point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Condition,
    Const,
    Equation,
    Expr,
    FromIndex,
    Logic,
    Read,
    Reduce,
    Select,
)
from smartmem_rules.tensor.index import Index
from smartmem_rules.verification.semantics.domains import Array, Domain, Value


class TooLarge(Exception):
    """An instance has more points than verification computes."""


def evaluate(equations: Sequence[Equation], tensors: Mapping[str, Value], domain: Domain) -> dict[str, Value]:
    """The value of every tensor that the equations define, in their order.

    Raises:
        Undefined: the domain has no such operation at these values.
        IndexError: a read leaves its tensor.
    """
    known = dict(tensors)
    results: dict[str, Value] = {}
    scans = [equation for equation in equations if equation.scan]
    with np.errstate(all="ignore"):
        for equation in equations:
            if not equation.scan:
                results[equation.tensor] = known[equation.tensor] = _equation(equation, known, domain)
            elif equation is scans[0]:
                results.update(_scans(scans, known, domain))
    return results


def _equation(equation: Equation, tensors: Mapping[str, Value], domain: Domain) -> Value:
    _refuse_large(equation, domain)
    if math.prod(equation.type.shape) == 0:
        return _nothing(equation.type.shape, equation.body.dtype, domain)
    values = Points(tensors, domain).element(equation.body, equation.variables)
    return tuple([_spread(v, equation.type.shape) for v in values])


def _spread(values: Array, shape: tuple[int, ...]) -> Array:
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _nothing(shape: tuple[int, ...], dtype: str, domain: Domain) -> Value:
    """A tensor without elements, in the number type in which the domain computes."""
    return tuple(np.broadcast_to(component, shape) for component in domain.constant(0, dtype))


def _scans(scans: Sequence[Equation], known: dict[str, Value], domain: Domain) -> dict[str, Value]:
    """The values of scans, which are put beside the known tensors: one step after the other, in each all in order."""
    for equation in scans:
        _refuse_large(equation, domain)
        start = domain.constant(0, equation.type.dtype)  # no step reads what was not computed before it
        known[equation.tensor] = tuple(np.broadcast_to(v, equation.type.shape).copy() for v in start)
    for step in range(scans[0].type.shape[0]):
        for equation in scans:
            points = Points(known, domain, {equation.variables[0]: step})
            values = points.element(equation.body, equation.variables)
            known[equation.tensor] = tuple(
                _with_step(before, step, value) for before, value in zip(known[equation.tensor], values, strict=True)
            )
    return {equation.tensor: known[equation.tensor] for equation in scans}


def _with_step(before: Array, step: int, value: Array) -> Array:
    """An array with the values of one step, which may need a wider element type."""
    after = before.astype(np.result_type(before, value))
    after[step] = np.broadcast_to(value, (1, *before.shape[1:]))[0]
    return after


def _refuse_large(equation: Equation, domain: Domain) -> None:
    if equation.type.elements > domain.largest:
        raise TooLarge(f"{equation.type.elements} elements")


class _Places:
    """The places of a read along some axes in a tensor of some shape: the same for all values of its elements.

    `last` has the axes and the shape for which they were computed last.
    """

    def __init__(self, read: Read) -> None:
        self.is_constant = not any(index.gathered for index in read.indices)
        self.last: tuple[tuple[Var, ...], tuple[int, ...], tuple[Array, ...]] | None = None


_PLACES: ByIdentity[Read, _Places] = ByIdentity(1 << 12)
_MOST_PLACES = 1 << 12
"""Numbers of the places that are kept for a read; those of larger ones are computed each time."""


class Points:
    """Evaluates at all points of some variables; each has an array axis of its own.

    A variable with a fixed value, the step of a scan, has an axis of extent 1.
    """

    def __init__(self, tensors: Mapping[str, Value], domain: Domain, fixed: Mapping[Var, int] | None = None) -> None:
        self.tensors = tensors
        self.domain = domain
        self.fixed = fixed or {}

    def element(self, expr: Expr, axes: tuple[Var, ...], inside: Array | None = None) -> Value:
        """The expression's components; points outside of `inside` are not looked at and may read anything."""
        match expr:
            case Const(value=value, dtype=dtype):
                return self.domain.constant(value, dtype)
            case Read():
                places = self._places(expr, axes, inside)
                return tuple([_picked(component, places) for component in self.tensors[expr.tensor]])
            case Apply(function="cast", arguments=(argument,), dtype=dtype):
                return self.domain.cast(self.element(argument, axes, inside), argument.dtype, dtype)
            case Apply(function="bitcast", arguments=(argument,), dtype=dtype):
                return self.domain.bitcast(self.element(argument, axes, inside), argument.dtype, dtype)
            case Apply(function=function, arguments=arguments, dtype=dtype):
                return self.domain.apply(function, tuple([self.element(a, axes, inside) for a in arguments]), dtype)
            case Select(condition=condition, then=then, otherwise=otherwise):
                holds = self._condition(condition, axes, inside)
                both = holds if inside is None else holds & inside
                neither = ~holds if inside is None else ~holds & inside
                first, second = self.element(then, axes, both), self.element(otherwise, axes, neither)
                return tuple(np.where(holds, a, b) for a, b in zip(first, second, strict=True))
            case FromIndex(index=index, dtype=dtype):
                return self.domain.cast((self._index(index, axes, inside),), "int64", dtype)
            case Reduce(kind=kind, variables=variables, body=body, dtype=dtype):
                return self._reduce(kind, variables, body, dtype, axes, inside)

    def _reduce(
        self, kind: str, variables: tuple[Var, ...], body: Expr, dtype: str, axes: tuple[Var, ...], inside: Array | None
    ) -> Value:
        inner = axes + variables
        extents = tuple(1 if v in self.fixed else v.extent for v in inner)
        if math.prod(extents) > self.domain.largest:
            raise TooLarge(f"{math.prod(extents)} points")
        if math.prod(extents) == 0:  # the body is computed nowhere, so it may read what is not there
            return self.domain.reduce(kind, _nothing(extents, body.dtype, self.domain), len(axes), dtype)
        wider = None if inside is None else inside.reshape(inside.shape + (1,) * (len(inner) - inside.ndim))
        values = self.element(body, inner, wider)
        full = tuple([_spread(_ranked(v, len(inner)), extents) for v in values])
        return self.domain.reduce(kind, full, len(axes), dtype)

    def _places(self, read: Read, axes: tuple[Var, ...], inside: Array | None) -> tuple[Array, ...]:
        """Where a read finds its elements; looked up where neither conditions nor elements of tensors decide that."""
        shape = self._shape(read.tensor)
        if inside is None and not self.fixed:
            known = _PLACES.get(read, _Places)
            last = known.last
            if last is not None and last[0] == axes and last[1] == shape:
                return last[2]
            if known.is_constant:
                places = self._computed_places(read, axes, None, shape)
                if sum(place.size for place in places) <= _MOST_PLACES:
                    known.last = axes, shape, places
                return places
        return self._computed_places(read, axes, inside, shape)

    def _computed_places(
        self, read: Read, axes: tuple[Var, ...], inside: Array | None, shape: tuple[int, ...]
    ) -> tuple[Array, ...]:
        return tuple([self._place(i, n, axes, inside) for i, n in zip(read.indices, shape, strict=True)])

    def _shape(self, tensor: str) -> tuple[int, ...]:
        return tuple(self.tensors[tensor][0].shape)

    def _place(self, index: Index, extent: int, axes: tuple[Var, ...], inside: Array | None) -> Array:
        values = self._index(index, axes, inside)
        outside = values.view(np.uint64) >= extent  # as a number without a sign, one below 0 is the largest of all
        if inside is not None:
            if (outside & inside).any():
                raise IndexError(f"{index} leaves the extent {extent}")
            return np.where(outside, 0, values)
        if outside.any():
            raise IndexError(f"{index} leaves the extent {extent}")
        return values

    def _condition(self, condition: Condition, axes: tuple[Var, ...], inside: Array | None) -> Array:
        match condition:
            case Compare(operator=operator, left=left, right=right):
                a, b = self._index(left, axes, inside), self._index(right, axes, inside)
                tests = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}
                return np.asarray(tests[operator](a, b))
            case Logic(operator="not", operands=(operand,)):
                return ~self._condition(operand, axes, inside)
            case Logic(operator=operator, operands=operands):
                parts = [self._condition(operand, axes, inside) for operand in operands]
                result = parts[0]
                for part in parts[1:]:
                    result = result & part if operator == "and" else result | part
                return np.asarray(result)

    def _index(self, index: Index, axes: tuple[Var, ...], inside: Array | None) -> Array:
        if not index.terms:
            return np.full((1,) * len(axes), index.constant, np.int64)
        parts = [(self._atom(atom, axes, inside), coefficient) for atom, coefficient in index.terms]
        total, *others = [atom if coefficient == 1 else coefficient * atom for atom, coefficient in parts]
        for other in others:
            total = total + other
        return total + index.constant if index.constant else total

    def _atom(self, atom: Atom, axes: tuple[Var, ...], inside: Array | None) -> Array:
        match atom:
            case Var():
                if atom in self.fixed:
                    return np.full((1,) * len(axes), self.fixed[atom], np.int64)
                return _counted(atom.extent, axes.index(atom), len(axes))
            case Div(value=value, divisor=divisor):
                return self._index(value, axes, inside) // divisor
            case Mod(value=value, divisor=divisor):
                return self._index(value, axes, inside) % divisor
            case Lookup(table=table, position=position):
                return np.asarray(table, np.int64)[self._place(position, len(table), axes, inside)]
            case Gathered(tensor=tensor, indices=indices, extent=extent, wrap=wrap):
                places = tuple(
                    self._place(i, n, axes, inside) for i, n in zip(indices, self._shape(tensor), strict=True)
                )
                values = np.asarray(self.tensors[tensor][0][places], np.int64)
                return np.where(values < 0, values + extent, values) if wrap else values


@lru_cache(maxsize=1 << 12)
def _counted(extent: int, axis: int, rank: int) -> Array:
    """The numbers below an extent, along one of so many axes."""
    numbers: Array = np.arange(extent, dtype=np.int64).reshape(tuple(extent if a == axis else 1 for a in range(rank)))
    numbers.flags.writeable = False
    return numbers


def _picked(component: Array, places: tuple[Array, ...]) -> Array:
    """The elements at some places; an exact number comes out of its array bare."""
    found = component[places]
    if isinstance(found, np.ndarray):
        return found
    box: Array = np.empty((), component.dtype)
    box[()] = found
    return box


def _ranked(values: Array, rank: int) -> Array:
    return values if values.ndim == rank else values.reshape((1,) * (rank - values.ndim) + values.shape)
