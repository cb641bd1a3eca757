"""Recognises contractions: sums of products whose factors depend on different output axes such as
matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from smartmem_rules.tensor.expr import (
    Apply,
    Equation,
    Expr,
    FreshNames,
    Read,
    Reduce,
    free_variables,
    is_open_expression,
    own_indices,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.index import Div, Index, Mod, Var, variable
from smartmem_rules.tensor.ranges import largest, several, surely_below

ACCUMULATED = ("float32", "float16", "bfloat16")
"""The dtypes that contraction kernels sum, all of them in single precision."""


@dataclass(frozen=True)
class MatchedContraction:
    """The parts of a contraction's equation.

    Attributes:
        space: the loop variables of the output; an axis that grouped channels share is split in two.
        coordinates: the output's indices over the space.
        reduce: the sum itself, as it stands in `body`.
        body: the right side over the space, the sum included.
        a, b: the factors; `n` occurs in `b` only.
    """

    space: tuple[Var, ...]
    coordinates: tuple[Index, ...]
    body: Expr
    reduce: Reduce
    a: Expr
    b: Expr
    batch: tuple[Var, ...]
    m: tuple[Var, ...]
    n: Var

    def reads(self, tensor: str) -> bool:
        """Whether a factor reads the tensor."""
        return tensor in tensors_read(self.a) or tensor in tensors_read(self.b)


def match_contraction(
    equation: Equation, names: FreshNames, is_constant: Callable[[str], bool]
) -> MatchedContraction | None:
    """The contraction that an equation is, None if it is none."""
    sums = [node for node in walk(equation.body) if isinstance(node, Reduce)]
    if len(sums) != 1 or sums[0].kind != "sum" or sums[0].dtype not in ACCUMULATED:
        return None
    product = sums[0].body
    if not isinstance(product, Apply) or product.function != "mul":
        return None
    values = _split_grouped(equation, product, names)
    space: list[Var] = []
    coordinates: list[Index] = []
    for var in equation.variables:
        index = values.get(var, variable(var))
        coordinates.append(index)
        space.extend(sorted(index.variables, key=lambda v: -largest(_coefficient(index, v))))
    body = substitute_variables(equation.body, values)
    (reduce,) = (node for node in walk(body) if isinstance(node, Reduce))
    assert isinstance(reduce.body, Apply)
    a, b = reduce.body.arguments
    if _constant(a, is_constant) and not _constant(b, is_constant):
        a, b = b, a
    in_a, in_b = free_variables(a), free_variables(b)
    if not any(v in in_a for v in reduce.variables) or not any(v in in_b for v in reduce.variables):
        return None
    columns = [v for v in space if v in in_b and v not in in_a]
    if not columns:
        return None
    n = max(columns, key=lambda v: largest(v.extent))
    batch = tuple(v for v in space if v in in_b and v is not n)
    m = tuple(v for v in space if v not in in_b)
    return MatchedContraction(tuple(space), tuple(coordinates), body, reduce, a, b, batch, m, n)


def is_constant(factor: Expr, constants: Collection[str]) -> bool:
    """Whether a factor is known before the model runs: it reads constants only, and all of its extents are numbers."""
    return all(name in constants for name in tensors_read(factor)) and not is_open_expression(factor)


def _coefficient(index: Index, var: Var) -> int:
    return next((c for atom, c in index.terms if atom == var), 0)


def _constant(expr: Expr, is_constant: Callable[[str], bool]) -> bool:
    return all(is_constant(name) for name in tensors_read(expr))


def _split_grouped(equation: Equation, product: Apply, names: FreshNames) -> dict[Var, Index]:
    """An output axis that one factor knows only through `v // c` is split into the group and the place in it."""
    values: dict[Var, Index] = {}
    for var in equation.variables:
        for factor in product.arguments:
            divisors = _divisors(factor, var)
            if divisors and None not in divisors and len(divisors) == 1:
                (divisor,) = divisors
                assert divisor is not None
                if var.extent % divisor == 0 and several(divisor) and surely_below(divisor, var.extent):
                    group, place = names.var(var.extent // divisor), names.var(divisor)
                    values[var] = variable(group) * divisor + variable(place)
    return values


def _divisors(expr: Expr, var: Var) -> set[int | None]:
    """By what the variable is divided wherever it occurs; None stands for an occurrence of another kind."""
    found: set[int | None] = set()
    for node in walk(expr):
        for index in own_indices(node):
            _collect_divisors(index, var, found)
    return found


def _collect_divisors(index: Index, var: Var, found: set[int | None]) -> None:
    for atom, _ in index.terms:
        match atom:
            case Var() if atom == var:
                found.add(None)
            case Div(value=value, divisor=divisor) if value == variable(var):
                found.add(divisor)
            case Div(value=value) | Mod(value=value):
                _collect_divisors(value, var, found)
            case _:
                continue


def replace_reduce(body: Expr, reduce: Reduce, accumulator: Read) -> Expr:
    """The body with the sum replaced by a read of the accumulator."""
    if body == reduce:
        return accumulator
    if isinstance(body, Apply):
        return replace(body, arguments=tuple(replace_reduce(a, reduce, accumulator) for a in body.arguments))
    return body
