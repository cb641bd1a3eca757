"""Division of extents: exact where polynomials divide, a number where the range allows one, else a `Quotient`."""

from __future__ import annotations

import math
from functools import lru_cache

from smartmem_rules.tensor.extents import Extent, Monomial, Quotient, is_symbolic, made_of, terms_of
from smartmem_rules.tensor.ranges import bounds, can_divide, surely_at_most, surely_below


def floor_divide(value: int, divisor: int) -> int:
    """floor(value / divisor) for a positive divisor, as a polynomial where that is possible.

    Raises:
        SymbolicExtentError: the divisor is not positive for all values of the dimensions.
        ZeroDivisionError: the divisor is zero.
    """
    if not is_symbolic(value) and not is_symbolic(divisor):
        return value // divisor
    if not can_divide(divisor):
        if is_symbolic(divisor) or divisor == 0:
            raise ZeroDivisionError("division of an extent by zero or less")
        return floor_divide(-value, -divisor)
    return divided_down(value, divisor)


@lru_cache(maxsize=1 << 16)
def divided_down(value: int, divisor: int) -> int:
    """floor(value / divisor) for a divisor that is known to be positive."""
    whole, rest = _divided(value, divisor)
    if rest == 0:
        return whole
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
    lead, factor = max(terms_of(divisor).items(), key=lambda item: (len(item[0]), [repr(f) for f in item[0]]))
    whole: int = 0
    rest = value
    for _ in range(64):
        found = None
        for monomial, coefficient in terms_of(rest).items():
            left = _without(monomial, lead)
            # the nearest multiple: what remains of the coefficient is small, of either sign
            times = (2 * coefficient + factor) // (2 * factor) if left is not None else 0
            if times and not (2 * coefficient == factor and times == 1):
                found = made_of({left: times})  # type: ignore[dict-item]
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
    common = gcd(divisor, *(made_of({m: c}) for m, c in terms_of(value).items() if m or is_symbolic(divisor)))
    if common != 1 and surely_at_most(1, common):
        reduced, _ = _divided(divisor, common)
        inner = floor_divide(value, common)
        return floor_divide(inner, reduced)
    (_, leading), *_ = terms_of(value).items()
    if leading < 0 and not is_symbolic(divisor):
        # floor(-x / d) = -floor((x + d - 1) / d)
        return -floor_divide(-value + divisor - 1, divisor)
    return Extent((((Quotient(value, divisor),), 1),))


def gcd(*values: int) -> int:
    """A common divisor: of numbers the greatest, of extents the content of all their terms."""
    if Extent not in map(type, values):
        return math.gcd(*values)
    monomials: list[tuple[Monomial, int]] = [item for value in values for item in terms_of(value).items()]
    common = list(monomials[0][0]) if monomials else []
    for monomial, _ in monomials[1:]:
        rest, kept = list(monomial), []
        for factor in common:
            if factor in rest:
                rest.remove(factor)
                kept.append(factor)
        common = kept
    return made_of({tuple(common): math.gcd(*(c for _, c in monomials))})
