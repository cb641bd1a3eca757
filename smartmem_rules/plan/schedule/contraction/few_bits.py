"""Right factors that are integers of few bits with a scale for each block: how they are found in an expression."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Div, Mod, Var
from smartmem_rules.tensor.expr import Apply, Const, Expr, free_variables, own_indices, substitute_variables, walk
from smartmem_rules.tensor.index import Index, add, scale, variable

LONGEST = 1024
"""Steps of a block at most: products of a block have one accumulator."""
INTEGERS = ("int4", "uint4", "int2", "uint2", "int8", "uint8", "int32")
"""What weights of few bits are stored as, or unpacked to."""


@dataclass(frozen=True, kw_only=True)
class FewBits:
    """A factor (integers - zero) * scale.

    Attributes:
        integers: over the axes of the factor, whole numbers as floats.
        zero, scale: over the axes of the factor but for those of the reduction, and over `blocks`.
        k: the variables of the reduction.
        block: neighbouring elements along the reduction that share a zero and a scale.
        blocks: counts them.
    """

    integers: Expr
    zero: Expr
    scale: Expr
    k: tuple[Var, ...]
    block: int
    blocks: Var


def few_bits(factor: Expr, k: tuple[Var, ...]) -> FewBits | None:
    """The parts of a factor; None where it has another form.

    Args:
        k: the variables of the reduction, the innermost last.
    """
    if factor.dtype != "float32":
        return None
    for integers, zero, by in _products(_uncast(factor)):
        for block in _blocks((zero, by), k):
            found = _by_blocks(integers, zero, by, block, k)
            if found is not None:
                return found
    return None


def _products(factor: Expr) -> Iterator[tuple[Expr, Expr, Expr]]:
    """The integers, their zero and their scale, for either order of the factors of a product."""
    if not isinstance(factor, Apply) or factor.function != "mul":
        return
    one, other = factor.arguments
    for values, by in ((one, other), (other, one)):
        values = _uncast(values)
        zero: Expr = Const(0.0, "float32")
        if isinstance(values, Apply) and values.function == "sub":
            values, zero = map(_uncast, values.arguments)
        if _is_integer(values):
            yield values, zero, _uncast(by)


def _uncast(expr: Expr) -> Expr:
    """The expression without a conversion to the type that it has."""
    while isinstance(expr, Apply) and expr.function == "cast" and expr.arguments[0].dtype == expr.dtype:
        (expr,) = expr.arguments
    return expr


def _is_integer(values: Expr) -> bool:
    return isinstance(values, Apply) and values.function == "cast" and values.arguments[0].dtype in INTEGERS


def _blocks(those: tuple[Expr, ...], k: tuple[Var, ...]) -> Iterator[int]:
    """Lengths that blocks may have, the longest first; a scale of all steps is repeated, so that sums stay short."""
    depth = count(k)
    found = {min(depth, LONGEST)}
    if len(k) == 1:
        found |= {d for expr in those for node in walk(expr) for i in own_indices(node) for d in _divisors(i, k[0])}
    yield from sorted((d for d in found if d <= min(depth, LONGEST)), reverse=True)


def _divisors(index: Index, var: Var) -> Iterator[int]:
    for atom, _ in index.terms:
        if isinstance(atom, Div | Mod) and var in atom.variables:
            yield atom.divisor
            yield from _divisors(atom.value, var)


def _by_blocks(integers: Expr, zero: Expr, by: Expr, block: int, k: tuple[Var, ...]) -> FewBits | None:
    """The parts of a factor whose zero and scale change from block to block alone, else None."""
    blocks, within = Var("block", -(-count(k) // block)), Var("within", block)
    values = {}
    if len(k) == 1:
        values = {k[0]: add(scale(variable(blocks), block), variable(within))}
    zero, by = substitute_variables(zero, values), substitute_variables(by, values)
    if not free_variables(zero).union(free_variables(by)).isdisjoint((*k, within)):
        return None
    return FewBits(integers=integers, zero=zero, scale=by, k=k, block=block, blocks=blocks)
