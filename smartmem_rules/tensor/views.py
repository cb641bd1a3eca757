"""Index maps: what a chain of layout operators amounts to.

A map gives, for every element of a view, the element of the underlying tensor.  Maps compose, and a bijective one
has an inverse, so that a producer can write through a view as well as a consumer can read through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Atom, Div, Mod, Var
from smartmem_rules.tensor.expr import Equation
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, constant, div, mod, scale, variable
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.ranges import largest, several, surely_at_most, surely_below
from smartmem_rules.tensor.substitution import ravel, substitute, unravel

LARGEST_ENUMERATION = 1 << 22
"""Elements up to which a map is judged by looking at each."""


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

    @property
    def size(self) -> int:
        """How many atoms its indices have."""
        return sum(index.size for index in self.indices)

    @lazy
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
    return _of_elements(IndexMap(variables, tuple(substitute(i, values) for i in read.indices), source))


def compose(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """The view `outer` of the view `inner` of a tensor, as one map."""
    return _of_elements(IndexMap(outer.variables, inner.apply(outer.indices), inner.source))


def _of_elements(view: IndexMap) -> IndexMap:
    """The map itself, or the only map of its extents where the view has no element.

    Maps of nothing are all equal.  If they differed, views of an empty tensor would have new compositions without end.
    """
    if 0 not in view.shape:
        return view
    if view.shape == view.source:
        return identity(view.shape)
    return IndexMap(view.variables, (constant(0),) * len(view.source), view.source)


@dataclass(frozen=True)
class _Digit:
    """((variable + shift) // stride) % radix."""

    variable: Var
    shift: int
    stride: int
    radix: int


_Digits = dict[_Digit, Index]


def invert(forward: IndexMap) -> IndexMap | None:
    """The inverse of a bijective map that keeps the order, or is made of digits of mixed-radix numbers and shifts."""
    if math.prod(forward.shape) != math.prod(forward.source):
        return None
    positions = axis_variables(forward.source)
    if keeps_order(forward):
        place = ravel(tuple(map(variable, positions)), forward.source)
        return IndexMap(positions, unravel(place, forward.shape), forward.shape)
    digits: _Digits = {}
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
    if not (stays_inside(forward) or stays_inside(backward)):
        return None  # a choice of a reader's keeps it inside, and its elements are not all of the source's
    # the digits were read under the assumption that they do not overlap: the round trip proves it
    around = compose(forward, backward)
    return backward if around.is_identity or _is_identity_everywhere(around) else None


def stays_inside(view: IndexMap) -> bool:
    """Whether the map provably leads every element of the view to one of the source's."""
    ranges = [(*index.interval, extent) for index, extent in zip(view.indices, view.source, strict=True)]
    return all(surely_at_most(0, low) and surely_below(high, extent) for low, high, extent in ranges)


def _is_identity_everywhere(around: IndexMap) -> bool:
    """Decided by looking at every element, for maps whose composition the normal form does not see through."""
    points = math.prod(around.shape)
    if around.shape != around.source or is_symbolic(points) or points > LARGEST_ENUMERATION:
        return False
    grid = dict(zip(around.variables, np.ogrid[tuple(slice(n) for n in around.shape)], strict=True))
    for index, var in zip(around.indices, around.variables, strict=True):
        values = _evaluate(index, grid)
        if values is None or not np.array_equal(
            np.broadcast_to(values, around.shape), np.broadcast_to(grid[var], around.shape)
        ):
            return False
    return True


def _evaluate(index: Index, grid: dict[Var, np.ndarray]) -> np.ndarray | None:
    total: np.ndarray = np.asarray(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            part: np.ndarray | None = grid[atom]
        elif isinstance(atom, Div | Mod):
            inner = _evaluate(atom.value, grid)
            if inner is None:
                return None
            part = inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor
        else:
            return None
        assert part is not None
        total = total + coefficient * part
    return total


@lru_cache(maxsize=1 << 14)
def keeps_order(view: IndexMap) -> bool:
    """Whether the view has the same elements as its source in the same row-major order."""
    same_size = math.prod(view.shape) == math.prod(view.source)
    return same_size and ravel(view.indices, view.source) == ravel(tuple(map(variable, view.variables)), view.shape)


def _read_digits(index: Index, value: Index, extent: int, digits: _Digits) -> bool:
    """Split the known value of `index` (in [0, extent)) into the digits of the variables that make it up."""
    if index.atom is not None:
        return _read_atom(index.atom, value, extent, digits)
    value = add(value, Index(-index.constant))
    terms = sorted(index.terms, key=lambda term: -largest(term[1]))
    if not all(surely_below(0, coefficient) for _, coefficient in terms):
        return False
    for place, (atom, coefficient) in enumerate(terms):
        low, high = Index(0, tuple(terms[place + 1 :])).interval
        if low != 0 or not surely_below(high, coefficient):
            return False
        low, high = Index(0, ((atom, 1),)).interval
        if low != 0 or not _read_atom(atom, div(value, coefficient), high + 1, digits):
            return False
        value = mod(value, coefficient)
    return True


def _read_atom(atom: Atom, value: Index, extent: int, digits: _Digits) -> bool:
    digit = _digit(atom)
    if digit is not None:
        digits[digit] = value
        return True
    if isinstance(atom, Mod) and atom.divisor == extent:
        inner = _one_period(atom.value, extent)
        if _span(inner) == extent and (inner.constant or len(inner.terms) > 1):
            # a cyclic shift: the shifted value runs over one full period
            low = inner.interval[0]
            shifted = add(mod(add(value, Index(-low)), extent), Index(low))
            return _read_digits(inner, shifted, extent, digits)
    return False


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


def _digit(atom: Atom) -> _Digit | None:
    match atom:
        case Var():
            return _Digit(atom, 0, 1, atom.extent)
        case Mod(value=value, divisor=radix):
            quotient = _quotient(value)
            if quotient is None:
                return None
            var, shift, stride = quotient
            return _Digit(var, shift, stride, radix)
        case Div(value=value, divisor=stride):
            quotient = _quotient(value)
            if quotient is None or quotient[1] or quotient[2] != 1:
                return None
            return _Digit(quotient[0], 0, stride, -(-quotient[0].extent // stride))
        case _:
            return None


def _quotient(index: Index) -> tuple[Var, int, int] | None:
    """(variable, shift, stride) of an index (variable + shift) // stride."""
    if len(index.terms) != 1 or index.terms[0][1] != 1:
        return None
    atom = index.terms[0][0]
    if isinstance(atom, Var):
        return atom, index.constant, 1
    if isinstance(atom, Div):
        inner = _quotient(atom.value)
        if inner is not None and inner[2] == 1:
            return inner[0], inner[1] + index.constant * atom.divisor, atom.divisor
    return None


def _assemble(var: Var, digits: _Digits) -> Index | None:
    """The variable from its digits, which must tile its range from 1 up to its extent."""
    if var.extent == 1:
        return Index(0)
    own = sorted((d for d in digits if d.variable == var and several(d.radix)), key=lambda d: largest(d.stride))
    stride = 1
    result = Index(0)
    for digit in own:
        if digit.stride != stride:
            return None
        result = add(result, scale(digits[digit], stride))
        stride *= digit.radix
    if stride != var.extent:
        return None
    shift = own[-1].shift
    if any((shift - d.shift) % (d.stride * d.radix) for d in own):
        return None
    return mod(add(result, Index(-shift)), var.extent) if shift % var.extent else result
