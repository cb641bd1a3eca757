"""Extents as JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smartmem_rules.tensor.extents import Dimension, Extent, Extreme, Factor, Quotient, is_symbolic


def extent_data(value: int) -> Any:
    """An extent as JSON data; a number is itself."""
    if not is_symbolic(value):
        return value
    return [[[_factor_data(f) for f in monomial], c] for monomial, c in value.terms]  # type: ignore[attr-defined]


def _factor_data(factor: Factor) -> Any:
    if isinstance(factor, Dimension):
        return factor.name
    if isinstance(factor, Extreme):
        return [factor.kind, extent_data(factor.left), extent_data(factor.right)]
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
    if len(data) == 3:
        return Extreme(data[0], extent_of(data[1], dimensions), extent_of(data[2], dimensions))
    return Quotient(extent_of(data[0], dimensions), extent_of(data[1], dimensions))
