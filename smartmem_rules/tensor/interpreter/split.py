"""Loop variables split at the places where indices divide them, which makes those indices linear, or left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from smartmem_rules.tensor.atoms import Div, Lookup, Mod, Var
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Expr,
    Reduce,
    Select,
    own_indices,
    select,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.primitives import compute_dtype, reduce
from smartmem_rules.tensor.ranges import several


def split_variables(variables: tuple[Var, ...], body: Expr) -> tuple[tuple[Var, ...], Expr]:
    """The loops and body of an equation with each variable split into the digits that its indices take of it.

    The digits of a variable stand in its place, the most significant first, so that row-major order stays the same.
    """
    places: dict[Var, set[int]] = {}
    for node in walk(body):
        for index in own_indices(node):
            for var, place in _places(index):
                if var.extent % place == 0 and 1 < place < var.extent:
                    places.setdefault(var, set()).add(place)
    digits = {var: _digits(var, found) for var, found in places.items()}
    if not digits:
        return variables, body
    values = {var: _assembled(parts) for var, parts in digits.items()}
    split = tuple(part for var in variables for part in digits.get(var, (var,)))
    return split, _split_reductions(substitute_variables(body, values), digits)


def _places(index: Index) -> Iterator[tuple[Var, int]]:
    """The places (v, p) at which the index takes digits of single variables: v // p or v % p."""
    for atom, _ in index.terms:
        match atom:
            case Div(value=value, divisor=divisor) | Mod(value=value, divisor=divisor):
                base, scale = _digit_base(value)
                if base is not None:
                    yield base, scale * divisor
                yield from _places(value)
            case Lookup(position=position):
                yield from _places(position)
            case _:
                pass


def _digit_base(value: Index) -> tuple[Var | None, int]:
    match value.atom:
        case Var() as var:
            return var, 1
        case Div(value=inner, divisor=divisor):
            base, scale = _digit_base(inner)
            return base, scale * divisor
        case _:
            return None, 1


def _digits(var: Var, places: set[int]) -> tuple[Var, ...]:
    """Digit variables of a mixed-radix number; places that do not divide the next one are left out."""
    bounds = [var.extent]
    for place in sorted(places, reverse=True):
        if bounds[-1] % place == 0:
            bounds.append(place)
    bounds.append(1)
    return tuple(Var(f"{var.name}.{level}", above // below) for level, (above, below) in enumerate(pairwise(bounds)))


def _assembled(digits: tuple[Var, ...]) -> Index:
    total = Index(0)
    for digit in digits:
        total = total * digit.extent + variable(digit)
    return total


def _split_reductions(expr: Expr, digits: dict[Var, tuple[Var, ...]]) -> Expr:
    match expr:
        case Reduce(variables=bound, body=body):
            variables = tuple(part for var in bound for part in digits.get(var, (var,)))
            return replace(expr, variables=variables, body=_split_reductions(body, digits))
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(_split_reductions(a, digits) for a in arguments))
        case Select(then=then, otherwise=otherwise):
            return replace(expr, then=_split_reductions(then, digits), otherwise=_split_reductions(otherwise, digits))
        case _:
            return expr


def without_trivial_loops(expr: Expr) -> Expr:
    """The expression without loops over one element; a reduction over none is its neutral value."""
    match expr:
        case Reduce(kind=kind, variables=variables, dtype=dtype):
            if any(v.extent == 0 for v in variables):
                nothing = np.zeros((0,), compute_dtype(dtype))
                return Const(reduce(kind, nothing, 0, dtype).item(), dtype)
            kept = tuple(v for v in variables if several(v.extent))
            body = without_trivial_loops(expr.body)
            return replace(expr, variables=kept, body=body) if kept else body
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(map(without_trivial_loops, arguments)))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return select(condition, without_trivial_loops(then), without_trivial_loops(otherwise))
        case _:
            return expr
