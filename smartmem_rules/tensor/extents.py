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
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Integer = int
else:
    Integer = object

ENUMERATED = 1 << 16
"""Up to so many combinations of values bounds are found by looking at each; beyond, by interval arithmetic."""
_PREFIX = "dim_"


class SymbolicExtentError(TypeError):
    """A number or a decision is needed that depends on the value of an open dimension."""


@dataclass(frozen=True)
class Dimension:
    """An open dimension of a model; its values run from `low` to `high`, both included."""

    name: str
    low: int
    high: int

    @cached_property
    def parameter(self) -> str:
        """The name of the kernel argument."""
        return _PREFIX + re.sub(r"[^0-9A-Za-z_]", lambda match: f"_{ord(match[0]):x}_", self.name)

    def __str__(self) -> str:
        return f"{self.name} in {self.low}..{self.high}"


@dataclass(frozen=True)
class Quotient:
    """floor(value / divisor), where the polynomials do not divide; the divisor is positive."""

    value: int
    divisor: int

    def __str__(self) -> str:
        if bounds(self.value)[0] >= 0:
            return f"({self.value} / {self.divisor})"
        return f"smr_floordiv_i({self.value}, {self.divisor})"

    def __repr__(self) -> str:
        return f"({self.value!r})//({self.divisor!r})"


Factor = Dimension | Quotient
Monomial = tuple[Factor, ...]


class Extent(Integer):
    """An integer polynomial over dimensions and quotients; made by `symbol` and by arithmetic."""

    terms: tuple[tuple[Monomial, int], ...]
    """Products of factors with their coefficients, in a fixed order; the empty product is 1."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    # --- what it is taken for ---

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        return int

    def _refuse(self) -> Any:
        raise SymbolicExtentError(f"the extent {self!r} is needed as a number")

    def __index__(self) -> int:
        return int(self._refuse())

    __int__ = __float__ = __trunc__ = __index__  # type: ignore[assignment]

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

    def __pow__(self, power: Any, modulo: None = None) -> Any:
        if not isinstance(power, int) or is_symbolic(power) or not 0 <= power <= 8:
            return self._refuse()
        return math.prod([self] * power)

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, float) else floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, float) else floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return self - other * floor_divide(self, other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * floor_divide(other, self)

    def __divmod__(self, other: Any) -> Any:
        return floor_divide(self, other), self % other

    def __rdivmod__(self, other: Any) -> Any:
        return floor_divide(other, self), other % self

    def __truediv__(self, other: Any) -> Any:
        divisor = int(other) if isinstance(other, float) and other.is_integer() else other
        quotient = floor_divide(self, divisor) if isinstance(divisor, int) else None
        return quotient if quotient is not None and quotient * divisor == self else self._refuse()

    def __rtruediv__(self, other: Any) -> Any:
        return self._refuse()

    def __floor__(self) -> Any:
        return self

    __ceil__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return self

    # --- comparisons ---

    def __eq__(self, other: object) -> bool:
        return is_symbolic(other) and self.terms == other.terms  # type: ignore[attr-defined]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return _decided(self, "<", other)

    def __le__(self, other: Any) -> bool:
        return _decided(self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return not _decided(self, "<=", other)

    def __ge__(self, other: Any) -> bool:
        return not _decided(self, "<", other)


def extent_data(value: int) -> Any:
    """An extent as JSON data; a number is itself."""
    if not is_symbolic(value):
        return value
    return [[[_factor_data(f) for f in monomial], c] for monomial, c in value.terms]  # type: ignore[attr-defined]


def _factor_data(factor: Factor) -> Any:
    if isinstance(factor, Dimension):
        return factor.name
    return [extent_data(factor.value), extent_data(factor.divisor)]


def extent_of(data: Any, dimensions: Mapping[str, Dimension]) -> int:
    """The extent that `extent_data` described."""
    if isinstance(data, int):
        return data
    terms = [(tuple(_factor_of(f, dimensions) for f in factors), int(c)) for factors, c in data]
    return Extent(tuple(terms))


def _factor_of(data: Any, dimensions: Mapping[str, Dimension]) -> Factor:
    if isinstance(data, str):
        return dimensions[data]
    return Quotient(extent_of(data[0], dimensions), extent_of(data[1], dimensions))


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


def _terms(value: int) -> Mapping[Monomial, int]:
    if is_symbolic(value):
        return dict(value.terms)  # type: ignore[attr-defined]
    return {(): int(value)} if value else {}


def _made(terms: Mapping[Monomial, int]) -> int:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Extent(tuple(sorted(kept.items(), key=lambda item: _order(item[0]))))


def _order(monomial: Monomial) -> tuple[int, list[str]]:
    return -len(monomial), [repr(factor) for factor in monomial]


def _sum(left: int, right: Any, sign: int) -> Any:
    if isinstance(right, float):
        if not right.is_integer():
            return left._refuse()  # type: ignore[attr-defined]
        right = int(right)
    if not isinstance(right, int):
        return NotImplemented
    terms = dict(_terms(left))
    for monomial, coefficient in _terms(right).items():
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _made(terms)


def _product(left: Extent, right: Any) -> Any:
    if isinstance(right, float):
        if not right.is_integer():
            return left._refuse()
        right = int(right)
    if not isinstance(right, int):
        return NotImplemented
    terms: dict[Monomial, int] = {}
    for first, a in left.terms:
        for second, b in _terms(right).items():
            monomial = tuple(sorted(first + second, key=repr))
            terms[monomial] = terms.get(monomial, 0) + a * b
    return _made(terms)


@lru_cache(maxsize=1 << 16)
def floor_divide(value: int, divisor: int) -> int:
    """floor(value / divisor) for a positive divisor, as a polynomial where that is possible.

    Raises:
        SymbolicExtentError: the divisor is not positive for all values of the dimensions.
        ZeroDivisionError: the divisor is zero.
    """
    if not is_symbolic(value) and not is_symbolic(divisor):
        return value // divisor
    if divisor <= 0:
        if is_symbolic(divisor) or divisor == 0:
            raise ZeroDivisionError("division of an extent by zero or less")
        return floor_divide(-value, -divisor)
    whole, rest = _divided(value, divisor)
    low = sure_quotient(rest, divisor)
    if low is not None:
        return whole + low
    return whole + _quotient(rest, divisor)


def split_multiple(value: int, divisor: int) -> tuple[int, int]:
    """(q, r) with value = q * divisor + r: of numbers 0 <= r < divisor, of extents r is what is left of polynomials."""
    if is_symbolic(value) or is_symbolic(divisor):
        return _divided(value, divisor)
    return divmod(value, divisor)


def _divided(value: int, divisor: int) -> tuple[int, int]:
    """(q, r) with value = q * divisor + r: the terms that the divisor's leading term divides, one after the other."""
    lead, factor = max(_terms(divisor).items(), key=lambda item: (len(item[0]), [repr(f) for f in item[0]]))
    whole: int = 0
    rest = value
    for _ in range(64):
        found = None
        for monomial, coefficient in _terms(rest).items():
            left = _without(monomial, lead)
            # the nearest multiple: what remains of the coefficient is small, of either sign
            times = (2 * coefficient + factor) // (2 * factor) if left is not None else 0
            if times and not (2 * coefficient == factor and times == 1):
                found = _made({left: times})  # type: ignore[dict-item]
                break
        if found is None:
            break
        whole, rest = whole + found, rest - found * divisor
    return whole, rest


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    left = list(monomial)
    for factor in part:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def sure_quotient(value: int, divisor: int) -> int | None:
    """floor(value / divisor) where it is one of a few numbers for all values of the dimensions, else None."""
    for quotient in (0, -1, 1, -2):
        inner = value - quotient * divisor
        if surely_at_most(0, inner) and surely_below(inner, divisor):
            return quotient
    if not is_symbolic(divisor):
        low, high = bounds(value)
        return low // divisor if low // divisor == high // divisor else None
    return None


def _quotient(value: int, divisor: int) -> int:
    """The floor division itself, with common factors cancelled."""
    common = gcd(divisor, *(_made({m: c}) for m, c in _terms(value).items() if m or is_symbolic(divisor)))
    if common != 1 and surely_at_most(1, common):
        reduced, _ = _divided(divisor, common)
        inner = floor_divide(value, common)
        return floor_divide(inner, reduced)
    (_, leading), *_ = _terms(value).items()
    if leading < 0 and not is_symbolic(divisor):
        # floor(-x / d) = -floor((x + d - 1) / d)
        return -floor_divide(-value + divisor - 1, divisor)
    return Extent((((Quotient(value, divisor),), 1),))  # type: ignore[arg-type]


def gcd(*values: int) -> int:
    """A common divisor: of numbers the greatest, of extents the content of all their terms."""
    if Extent not in map(type, values):
        return math.gcd(*values)
    monomials: list[tuple[Monomial, int]] = [item for value in values for item in _terms(value).items()]
    common = list(monomials[0][0]) if monomials else []
    for monomial, _ in monomials[1:]:
        rest, kept = list(monomial), []
        for factor in common:
            if factor in rest:
                rest.remove(factor)
                kept.append(factor)
        common = kept
    return _made({tuple(common): math.gcd(*(c for _, c in monomials))})


# --- what holds for all values ---


def dimensions(value: object) -> frozenset[Dimension]:
    """The open dimensions that an extent depends on; none for a number."""
    return _dimensions(value) if is_symbolic(value) else frozenset()  # type: ignore[arg-type]


@lru_cache(maxsize=1 << 14)
def _dimensions(value: Extent) -> frozenset[Dimension]:
    found: set[Dimension] = set()
    for monomial, _ in value.terms:
        for factor in monomial:
            if isinstance(factor, Dimension):
                found.add(factor)
            else:
                found |= dimensions(factor.value) | dimensions(factor.divisor)
    return frozenset(found)


def at(value: int, values: Mapping[str, Any]) -> Any:
    """The number that an extent is for given values of its dimensions (numbers or arrays), by name."""
    if not is_symbolic(value):
        return value
    total: Any = 0
    for monomial, coefficient in value.terms:  # type: ignore[attr-defined]
        product: Any = coefficient
        for factor in monomial:
            if isinstance(factor, Dimension):
                product = product * values[factor.name]
            else:
                product = product * (at(factor.value, values) // at(factor.divisor, values))
        total = total + product
    return total


def bounds(value: int) -> tuple[int, int]:
    """The least and greatest value (a bound of them, where there are too many combinations to look at)."""
    return _bounds(value) if is_symbolic(value) else (value, value)  # type: ignore[arg-type]


@lru_cache(maxsize=1 << 16)
def _bounds(value: Extent) -> tuple[int, int]:
    open_ = sorted(dimensions(value), key=lambda d: d.name)
    if math.prod(d.high - d.low + 1 for d in open_) <= ENUMERATED:
        grids = np.meshgrid(*(np.arange(d.low, d.high + 1) for d in open_), indexing="ij", sparse=True)
        values = np.asarray(at(value, {d.name: grid for d, grid in zip(open_, grids, strict=True)}))
        return int(values.min()), int(values.max())
    low = high = 0
    for monomial, coefficient in value.terms:
        ranges = [_factor_bounds(factor) for factor in monomial]
        corners = [1]
        for least, greatest in ranges:
            corners = [c * end for c in corners for end in (least, greatest)]
        low += min(coefficient * c for c in corners)
        high += max(coefficient * c for c in corners)
    return low, high


def _factor_bounds(factor: Factor) -> tuple[int, int]:
    if isinstance(factor, Dimension):
        return factor.low, factor.high
    (a, b), (c, d) = bounds(factor.value), bounds(factor.divisor)
    ends = [x // y for x in (a, b) for y in (max(c, 1), max(d, 1))]
    return min(ends), max(ends)


def largest(value: int) -> int:
    """The greatest value that an extent can take: what memory has to hold and costs are counted with."""
    return bounds(value)[1]


def smallest(value: int) -> int:
    """The least value that an extent can take."""
    return bounds(value)[0]


def surely_below(left: int, right: int) -> bool:
    """Whether left < right for all values of the dimensions."""
    if type(left) is int and type(right) is int:
        return left < right
    return bounds(left - right)[1] < 0


def surely_at_most(left: int, right: int) -> bool:
    """Whether left <= right for all values of the dimensions."""
    if type(left) is int and type(right) is int:
        return left <= right
    return bounds(left - right)[1] <= 0


def maximum(*values: int) -> int:
    """The greatest of the values, where it is the same one for all values of the dimensions."""
    return _extreme(values, ">=")


def minimum(*values: int) -> int:
    """The least of the values, where it is the same one for all values of the dimensions."""
    return _extreme(values, "<=")


def _extreme(values: Sequence[int], operator: str) -> int:
    if Extent not in map(type, values):
        return max(values) if operator == ">=" else min(values)
    best = values[0]
    for value in values[1:]:
        first, second = (value, best) if operator == ">=" else (best, value)
        if surely_at_most(first, second):
            continue
        if not surely_at_most(second, first):
            _decided(first, "<=", second)
        best = value
    return best


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, where that is so for all values of the dimensions or for none.

    Raises:
        SymbolicExtentError: they are equal for some.
    """
    if left == right or not (is_symbolic(left) or is_symbolic(right)):
        return bool(left == right)
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    difference = left - right
    low, high = bounds(difference)
    if low <= 0 <= high:
        raise SymbolicExtentError(_undecided(left, "==", right))
    return False


def several(extent: int) -> bool:
    """Whether a loop of this extent is to be written: it is open or runs more than once."""
    return is_symbolic(extent) or extent > 1


def _decided(left: int, operator: str, right: Any) -> bool:
    if isinstance(right, float) and math.isinf(right):
        return right > 0
    low, high = bounds(left - right)
    limit = 0 if operator == "<" else 1
    if high < limit:
        return True
    if low >= limit:
        return False
    raise SymbolicExtentError(_undecided(left, operator, right))


def _undecided(left: int, operator: str, right: int) -> str:
    ranges = ", ".join(sorted(map(str, dimensions(left) | dimensions(right))))
    return f"whether {left!r} {operator} {right!r} depends on the extent ({ranges})"


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
