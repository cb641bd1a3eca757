"""Equations between extents: which unknowns they give values to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smartmem_rules.tensor.division import divided_down
from smartmem_rules.tensor.extents import (
    Dimension,
    Extent,
    Extreme,
    Quotient,
    dimensions,
    is_symbolic,
    made_of,
    symbol,
    terms_of,
)
from smartmem_rules.tensor.ranges import maximum, minimum

HIGHEST = 1 << 62
"""What stands for the greatest value of an unknown."""


def replaced(value: int, new: dict[Dimension, int]) -> int:
    """A polynomial with some of its dimensions replaced."""
    if not is_symbolic(value) or not dimensions(value) & new.keys():
        return value
    total: int = 0
    for monomial, coefficient in terms_of(value).items():
        product: int = coefficient
        for factor in monomial:
            match factor:
                case Quotient(value=left, divisor=right):
                    product = product * _quotient(replaced(left, new), replaced(right, new))
                case Extreme(kind=kind, left=left, right=right):
                    extreme = minimum if kind == "min" else maximum
                    product = product * extreme(replaced(left, new), replaced(right, new))
                case Dimension():
                    product = product * new.get(factor, Extent((((factor,), 1),)))
        total = total + product
    return total


def _quotient(value: int, divisor: int) -> int:
    """A quotient whose parts were replaced: that its divisor is positive was assumed when it came to be."""
    return divided_down(value, divisor) if is_symbolic(divisor) else value // divisor


def solved(left: int, right: int, names: Mapping[str, int] | None = None) -> list[tuple[str, int]]:
    """Values of unknowns that follow from an equation; none where it is not seen through.

    Of several unknowns the one that came up last gets a value, so that what came before stays as it was.
    """
    order = names or {}
    difference = left - right
    if not is_symbolic(difference):
        return []
    terms = dict(terms_of(difference))
    common = set.intersection(*({f for f in m if isinstance(f, Dimension) and f.low > 0} for m in terms))
    for factor in common:
        while all(factor in m for m in terms):
            terms = {_without(m, factor): c for m, c in terms.items()}
    ones = _all_ones(terms)
    if ones:
        return ones
    multiple = _multiple(terms)
    if multiple is not None:
        return [multiple]
    difference = made_of(terms)
    single = [(m[0], c) for m, c in terms.items() if len(m) == 1 and abs(c) == 1]
    found = [(factor, c) for factor, c in single if isinstance(factor, Dimension)]
    found.sort(key=lambda one: (order.get(one[0].name, -1), one[0].name), reverse=True)
    for dimension, coefficient in found:
        rest = difference - coefficient * symbol(dimension)
        if dimension not in dimensions(rest):
            return [(dimension.name, -coefficient * rest)]
    return []


def product_of(value: int) -> list[Dimension] | None:
    """The factors of a product of unknowns with a positive number; None for what is none."""
    if not is_symbolic(value):
        return [] if value > 0 else None
    terms = terms_of(value)
    ((monomial, coefficient), *more) = terms.items()
    found = [factor for factor in monomial if isinstance(factor, Dimension)]
    return None if more or coefficient < 0 or len(found) < len(monomial) else found


def _without(monomial: tuple[Any, ...], factor: Dimension) -> tuple[Any, ...]:
    left = list(monomial)
    left.remove(factor)
    return tuple(left)


def _all_ones(terms: dict[Any, int]) -> list[tuple[str, int]]:
    """A product of numbers of 1 and more is 1: each of them is."""
    if len(terms) == 2 and () in terms:
        (monomial,) = (m for m in terms if m)
        positive = all(isinstance(f, Dimension) and f.low >= 1 for f in monomial)
        if len(monomial) > 1 and positive and terms[monomial] == -terms[()]:
            return [(f.name, 1) for f in monomial]
    return []


def _multiple(terms: dict[Any, int]) -> tuple[str, int] | None:
    """n = d * (n // d): n is a multiple of d."""
    if len(terms) != 2:
        return None
    for monomial in terms:
        for factor in monomial:
            if not isinstance(factor, Quotient) or not is_symbolic(factor.value):
                continue
            value = factor.value
            made = factor.divisor * made_of({(factor,): 1})
            difference = value - made
            if terms in (dict(terms_of(difference)), dict(terms_of(-difference))):
                (dimension, *more) = dimensions(value)
                if not more and value == symbol(dimension) and dimension not in dimensions(factor.divisor):
                    times = symbol(Dimension(f"{dimension.name} by {factor.divisor!r}", 1, HIGHEST))
                    return dimension.name, factor.divisor * times
    return None
