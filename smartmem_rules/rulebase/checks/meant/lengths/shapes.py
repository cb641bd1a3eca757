"""What of a shape an author compares with a number: how many elements, how many axes, one extent or all of them."""

from __future__ import annotations

from typing import TypeGuard

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
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


def length_of(value: s.Expression, item: s.Item) -> s.Expression | None:
    """How many members a list has of which the item asks that, as `rank(r) == rank(x)`; None for lists of one."""
    length = s.Call(value.span, "rank", (value,))
    for node in nodes(item):
        if isinstance(node, s.Binary) and node.operator == "==" and length in (node.left, node.right):
            other = node.right if node.left == length else node.left
            return None if isinstance(other, s.Number) and other.value == 1 else other
    return None


def members_meant(number: s.Expression, length: s.Expression) -> Fix:
    """What to write for a list of some length that is compared with one number."""
    known: dict[float, str] = {0: "zeros", 1: "ones"}
    function = known.get(number.value) if isinstance(number, s.Number) else None
    new = s.Call(number.span, function or "full", (length,) if function else (length, number))
    shown = print_expression(new)
    return replacement(f"write `{shown}`: as many of them as the list has", number.span, shown)
