"""Index maps: what a chain of layout operators amounts to.

A map gives, for every element of a view, the element of the underlying tensor.  Maps compose, and a bijective one
has an inverse, so that a producer can write through a view as well as a consumer can read through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from smartmem_rules.tensor.expr import Equation
from smartmem_rules.tensor.index import Div, Index, Mod, Var, add, div, mod, scale, substitute, variable


@dataclass(frozen=True)
class IndexMap:
    """Element `i` of the view is element `indices(i)` of the source.

    Attributes:
        variables: one loop variable for each axis of the view, named `i0`, `i1`, ...
        indices: one index for each axis of the source.
        source: the extents of the source.
    """

    variables: tuple[Var, ...]
    indices: tuple[Index, ...]
    source: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the view."""
        return tuple(v.extent for v in self.variables)

    @property
    def is_identity(self) -> bool:
        return self.shape == self.source and all(
            index == variable(v) for index, v in zip(self.indices, self.variables, strict=True)
        )

    @cached_property
    def inverse(self) -> IndexMap | None:
        """The map from the source back to the view, None where the map is not (provably) a bijection."""
        return invert(self)

    def apply(self, at: Sequence[Index]) -> tuple[Index, ...]:
        """The source indices of the view's element at the given indices."""
        values = dict(zip(self.variables, at, strict=True))
        return tuple(substitute(index, values) for index in self.indices)

    def __str__(self) -> str:
        names = ", ".join(v.name for v in self.variables)
        return f"[{names}] -> [{', '.join(map(str, self.indices))}]"


@lru_cache(maxsize=4096)
def axis_variables(shape: tuple[int, ...]) -> tuple[Var, ...]:
    return tuple(Var(f"i{axis}", extent) for axis, extent in enumerate(shape))


def index_map(shape: tuple[int, ...], source: tuple[int, ...], indices: tuple[Index, ...]) -> IndexMap:
    return IndexMap(axis_variables(shape), indices, source)


def identity(shape: tuple[int, ...]) -> IndexMap:
    variables = axis_variables(shape)
    return IndexMap(variables, tuple(variable(v) for v in variables), shape)


def map_of_equation(equation: Equation, source: tuple[int, ...]) -> IndexMap | None:
    """The index map of a pure view, None for any other equation."""
    read = equation.view
    if read is None:
        return None
    variables = axis_variables(equation.type.shape)
    values = {old: variable(new) for old, new in zip(equation.variables, variables, strict=True)}
    return IndexMap(variables, tuple(substitute(i, values) for i in read.indices), source)


def compose(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """The view `outer` of the view `inner` of a tensor, as one map."""
    return IndexMap(outer.variables, inner.apply(outer.indices), inner.source)


def invert(forward: IndexMap) -> IndexMap | None:
    """The inverse of a bijective map made of digits of mixed-radix numbers and cyclic shifts."""
    if math.prod(forward.shape) != math.prod(forward.source):
        return None
    positions = axis_variables(forward.source)
    digits: dict[tuple[Var, int, int], Index] = {}
    for index, position in zip(forward.indices, positions, strict=True):
        if not _read_digits(index, variable(position), position.extent, digits):
            return None
    recovered = []
    for var in forward.variables:
        value = _assemble(var, digits)
        if value is None:
            return None
        recovered.append(value)
    backward = IndexMap(positions, tuple(recovered), forward.shape)
    # the digits were read under the assumption that they do not overlap: the round trip proves it
    return backward if compose(forward, backward).is_identity else None


def _read_digits(index: Index, value: Index, extent: int, digits: dict[tuple[Var, int, int], Index]) -> bool:
    """Split the known value of `index` (in [0, extent)) into the digits of the variables that make it up."""
    if index.constant == 0 and len(index.terms) == 1 and index.terms[0][1] == 1:
        atom = index.terms[0][0]
        if isinstance(atom, Mod) and atom.divisor == extent:
            inner = _one_period(atom.value, extent)
            if _span(inner) == extent and (inner.constant or len(inner.terms) > 1):
                # a cyclic shift: the shifted value runs over one full period
                low = inner.interval[0]
                shifted = add(mod(add(value, Index(-low)), extent), Index(low))
                return _read_digits(inner, shifted, extent, digits)
        if isinstance(atom, Var):
            digits[atom, 1, atom.extent] = value
            return True
        if isinstance(atom, Div | Mod):
            digit = _digit(atom)
            if digit is None:
                return False
            digits[digit] = value
            return True
    value = add(value, Index(-index.constant))
    terms = sorted(index.terms, key=lambda term: -term[1])
    if any(coefficient <= 0 for _, coefficient in terms):
        return False
    for place, (atom, coefficient) in enumerate(terms):
        rest = Index(0, tuple(terms[place + 1 :]))
        low, high = rest.interval
        if low != 0 or high >= coefficient:
            return False
        part = div(value, coefficient)
        low, high = Index(0, ((atom, 1),)).interval
        if low != 0 or not _read_digits(Index(0, ((atom, 1),)), part, high + 1, digits):
            return False
        value = mod(value, coefficient)
    return True


def _one_period(index: Index, period: int) -> Index:
    """The index with each term reduced to the digits that count modulo the period."""
    result = Index(index.constant)
    for atom, coefficient in index.terms:
        own = period // math.gcd(coefficient, period)
        result = add(result, scale(mod(Index(0, ((atom, 1),)), own), coefficient))
    return result


def _span(index: Index) -> int:
    low, high = index.interval
    return high - low + 1


def _digit(atom: Div | Mod) -> tuple[Var, int, int] | None:
    """(v // s) % r as the digit (v, s, r)."""
    if isinstance(atom, Mod):
        inner = atom.value
        if inner.constant or len(inner.terms) != 1 or inner.terms[0][1] != 1:
            return None
        base = inner.terms[0][0]
        if isinstance(base, Var):
            return base, 1, atom.divisor
        if isinstance(base, Div):
            outer = _digit(base)
            return None if outer is None else (outer[0], outer[1], atom.divisor)
        return None
    inner = atom.value
    if inner.constant or len(inner.terms) != 1 or inner.terms[0][1] != 1:
        return None
    base = inner.terms[0][0]
    if isinstance(base, Var):
        return base, atom.divisor, -(-base.extent // atom.divisor)
    return None


def _assemble(var: Var, digits: dict[tuple[Var, int, int], Index]) -> Index | None:
    """The variable from its digits, which must tile its range from 1 up to its extent."""
    if var.extent == 1:
        return Index(0)
    stride = 1
    result = Index(0)
    own = {(s, r): value for (v, s, r), value in digits.items() if v == var}
    while stride < var.extent:
        for (s, r), value in own.items():
            if s == stride and r > 1:
                result = add(result, scale(value, stride))
                stride *= r
                break
        else:
            return None
    return result if stride == var.extent else None
