"""What of a shape an author compares with a number: how many elements, how many axes, one extent or all of them."""

from __future__ import annotations

from typing import TypeGuard

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression

TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparisons that say the same with their sides exchanged; others are their own."""


def shape_meant(shape: s.Call | s.Name, number: s.Expression, sign: str) -> Fix:
    """What to write for a shape that is compared with one number.

    Args:
        shape: `shape(x)`, or the name of all extents of a signature, `S` of `x: T[*S]`.
        number: what it is compared with.
        sign: the comparison, the shape on its left.
    """
    place = shape.span

    def compared(left: s.Expression, right: s.Expression = number) -> str:
        return f"`{print_expression(s.Binary(place, sign, left, right))}`"

    first: s.Expression
    if isinstance(shape, s.Call):
        (of,) = shape.arguments
        first = s.Call(place, "extent", (of, s.Number(place, 0)))
    else:
        of, first = shape, s.Subscript(place, shape, (s.Number(place, 0),), None)
    elements = compared(s.Call(place, "prod", (shape,)))
    axes = compared(s.Call(place, "rank", (of,)))
    if isinstance(number, s.Number) and number.value == 0 and sign in ("==", "!="):
        return advice(f"write {axes} for how many axes there are, {elements} for how many elements")
    ways = f"{elements} for how many elements there are, {axes} for how many axes, {compared(first)} for one extent"
    if sign in ("==", "!="):
        ways += f", {compared(shape, s.ListOf(place, (number,)))} for all extents"
    return advice(f"write {ways}")


def is_shape(value: s.Expression, item: s.Item) -> TypeGuard[s.Call | s.Name]:
    """Whether an expression is the shape of a tensor: `shape(x)`, or the name of all extents in a signature."""
    if isinstance(value, s.Call):
        return value.function == "shape" and len(value.arguments) == 1
    return (
        isinstance(item, s.Operator)
        and isinstance(value, s.Name)
        and any(
            isinstance(extent, s.Splat) and extent.operand == value
            for one in item.inputs
            for extent in (one.type.shape if one.type is not None else ())
        )
    )
