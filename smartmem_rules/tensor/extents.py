"""Symbolic extents: polynomials over the open dimensions of a model, each of which has a range.

An `Extent` stands for an integer that is known when the plan runs.  It takes part in arithmetic as an integer does
(`isinstance(extent, int)` holds), but has no number of its own: whatever needs one (a `range`, an array's shape)
raises `SymbolicExtentError`, so that no value can slip into a kernel.  What is decided about it is decided for its
whole range:

- `<`, `<=`, `>`, `>=` hold for every value of the dimensions or for none, else they raise;
- `==` asks whether two expressions are the same.  Where they are not, the general case is taken, which also holds
  for values at which the two happen to be equal.

`str` gives the extent as OpenCL C over the kernel's dimension arguments, `repr` as people read it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_rules.errors import causes
from smartmem_rules.tensor.extent_factors import Dimension as Dimension, Extreme as Extreme, Quotient as Quotient

if TYPE_CHECKING:
    Integer = int
else:
    Integer = object


class SymbolicExtentError(TypeError):
    """A number or a decision is needed that depends on the value of an open dimension.

    Attributes:
        values: the extents that would have to be known.
        sides: the two values of a comparison for equality that is not decided.
    """

    sides: tuple[int, int] | None = None

    def __init__(self, message: str, *values: object) -> None:
        super().__init__(message)
        self.values = values


def dimensions_needed(failure: BaseException) -> frozenset[Dimension]:
    """The open dimensions whose value an exception, or one from which it was raised, says to be needed."""
    undecided = (cause for cause in causes(failure) if isinstance(cause, SymbolicExtentError))
    return frozenset(one for cause in undecided for value in cause.values for one in dimensions(value))


Factor = Dimension | Quotient | Extreme
Monomial = tuple[Factor, ...]


class Extent(Integer):
    """An integer polynomial over dimensions, quotients and extremes; made by `symbol` and by arithmetic."""

    terms: tuple[tuple[Monomial, int], ...]
    """Products of factors with their coefficients, in a fixed order; the empty product is 1."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    # --- what it is taken for ---

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def _refuse(self) -> Any:
        raise SymbolicExtentError(f"the extent {self!r} is needed as a number", self)

    def __index__(self) -> int:
        from smartmem_rules.tensor.ranges import number_of  # which computes with extents

        known = number_of(self)
        return int(self._refuse()) if known is None else known

    __int__ = __float__ = __trunc__ = __index__

    def __reduce__(self) -> Any:
        return _rebuild, (self.terms,)

    def __deepcopy__(self, memo: object) -> Extent:
        return self

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return _text(self, c_factor)

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return _text(self, _shown_factor)

    # --- arithmetic ---

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1)

    def __neg__(self) -> Any:
        return Extent(tuple((m, -c) for m, c in self.terms))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        return _product(self, other)

    __rmul__ = __mul__

    def __pow__(self, power: Any, modulo: None = None) -> Any:  # type: ignore[override]
        if not isinstance(power, int) or is_symbolic(power) or not 0 <= power <= 8:
            return self._refuse()
        return math.prod([self] * power)

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, float) else _floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, float) else _floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return self - other * _floor_divide(self, other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * _floor_divide(other, self)

    def __divmod__(self, other: Any) -> Any:
        return _floor_divide(self, other), self % other

    def __rdivmod__(self, other: Any) -> Any:
        return _floor_divide(other, self), other % self

    def __truediv__(self, other: Any) -> Any:
        divisor = int(other) if isinstance(other, float) and other.is_integer() else other
        quotient = _floor_divide(self, divisor) if isinstance(divisor, int) else None
        return quotient if quotient is not None and quotient * divisor == self else self._refuse()

    def __rtruediv__(self, other: Any) -> Any:
        return self._refuse()

    def __floor__(self) -> Any:
        return self

    __ceil__ = __floor__

    def __round__(self, digits: Any = None) -> Any:
        return self

    # --- comparisons ---

    def __eq__(self, other: object) -> bool:
        return is_symbolic(other) and self.terms == other.terms  # type: ignore[attr-defined]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return _decide(self, "<", other)

    def __le__(self, other: Any) -> bool:
        return _decide(self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return not _decide(self, "<=", other)

    def __ge__(self, other: Any) -> bool:
        return not _decide(self, "<", other)


def _rebuild(terms: tuple[tuple[Monomial, int], ...]) -> Extent:
    return Extent(terms)


def is_symbolic(value: object) -> bool:
    """Whether the value is an `Extent` and not a number."""
    return type(value) is Extent


def symbol(dimension: Dimension) -> int:
    """A dimension as an extent; a number where its range has one value."""
    if dimension.low == dimension.high:
        return dimension.low
    return Extent((((dimension,), 1),))


# --- arithmetic ---


def terms_of(value: int) -> Mapping[Monomial, int]:
    """The terms of an extent or a number."""
    if is_symbolic(value):
        return dict(value.terms)  # type: ignore[attr-defined]
    return {(): int(value)} if value else {}


def made_of(terms: Mapping[Monomial, int]) -> int:
    """The sum of the terms: a number where no dimension is left."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Extent(tuple(sorted(kept.items(), key=lambda item: _order(item[0])) if len(kept) > 1 else kept.items()))


@lru_cache(maxsize=1 << 14)
def _order(monomial: Monomial) -> tuple[int, list[str]]:
    return -len(monomial), [_factor_order(factor) for factor in monomial]


@lru_cache(maxsize=1 << 14)
def _factor_order(factor: Factor) -> str:
    return repr(factor)


def _sum(left: int, right: Any, sign: int) -> Any:
    if isinstance(right, float):
        if not right.is_integer():
            return left._refuse()  # type: ignore[attr-defined]
        right = int(right)
    if not isinstance(right, int):
        return NotImplemented
    terms = dict(terms_of(left))
    for monomial, coefficient in terms_of(right).items():
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return made_of(terms)


def _product(left: Extent, right: Any) -> Any:
    if isinstance(right, float):
        if not right.is_integer():
            return left._refuse()
        right = int(right)
    if not isinstance(right, int):
        return NotImplemented
    terms: dict[Monomial, int] = {}
    for first, a in left.terms:
        for second, b in terms_of(right).items():
            monomial = tuple(sorted(first + second, key=_factor_order)) if first and second else first or second
            terms[monomial] = terms.get(monomial, 0) + a * b
    return made_of(terms)


def _floor_divide(value: int, divisor: int) -> int:
    from smartmem_rules.tensor.division import floor_divide  # which computes with extents

    return floor_divide(value, divisor)


def _decide(left: int, operator: str, right: Any) -> bool:
    from smartmem_rules.tensor.ranges import decided  # which computes with extents

    return decided(left, operator, right)


# --- their dimensions ---


def dimensions(value: object) -> frozenset[Dimension]:
    """The open dimensions that an extent depends on; none for a number."""
    return _dimensions(value) if is_symbolic(value) else frozenset()


def flags_of(open_: Iterable[Dimension]) -> str:
    """The options that give each dimension one extent."""
    return " ".join(f"--dim {shlex.quote(one.name)}=N" for one in open_)


@lru_cache(maxsize=1 << 14)
def _dimensions(value: Extent) -> frozenset[Dimension]:
    found: set[Dimension] = set()
    for monomial, _ in value.terms:
        for factor in monomial:
            match factor:
                case Dimension():
                    found.add(factor)
                case Quotient(value=left, divisor=right) | Extreme(left=left, right=right):
                    found |= dimensions(left) | dimensions(right)
    return frozenset(found)


def at(value: int, values: Mapping[str, object]) -> Any:
    """The number that an extent is for given values of its dimensions (numbers or arrays), by name."""
    if not is_symbolic(value):
        return value
    total: Any = 0
    for monomial, coefficient in value.terms:  # type: ignore[attr-defined]
        product: Any = coefficient
        for factor in monomial:
            match factor:
                case Dimension(name=name):
                    product = product * values[name]
                case Quotient(value=value, divisor=divisor):
                    product = product * (at(value, values) // _positive(at(divisor, values)))
                case Extreme(left=left, right=right):
                    product = product * factor.of(at(left, values), at(right, values))
        total = total + product
    return total


def _positive(divisor: Any) -> Any:
    return max(divisor, 1) if isinstance(divisor, int) else np.maximum(divisor, 1)


# --- texts ---


def c_factor(factor: Factor) -> str:
    """A factor as OpenCL C."""
    return factor.parameter if isinstance(factor, Dimension) else str(factor)


def _shown_factor(factor: Factor) -> str:
    return factor.name if isinstance(factor, Dimension) else repr(factor)


def _text(value: Extent, factor_text: Any) -> str:
    parts = []
    for monomial, coefficient in value.terms:
        factors = [factor_text(factor) for factor in monomial]
        if coefficient != 1 or not factors:
            factors.append(str(coefficient))
        parts.append(" * ".join(factors))
    text = " + ".join(parts)
    return text if len(parts) == 1 and len(value.terms[0][0]) == 1 and value.terms[0][1] == 1 else f"({text})"


def shape_text(shape: Iterable[int]) -> str:
    """A shape for people."""
    return "[" + ", ".join(map(repr, shape)) + "]"
