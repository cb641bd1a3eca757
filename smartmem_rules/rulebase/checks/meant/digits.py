"""Remainders that run farther than the axis that they read."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt


def remainder_meant(operator: s.Operator, read: s.Subscript) -> Fix | None:
    """The divisor with which `2 + k % 32` stays on an axis of 18."""
    shape = next(
        (i.type.shape for i in operator.inputs if i.type is not None and read.base == s.Name(s.NOWHERE, i.name)), ()
    )
    if any(isinstance(one, s.Splat | s.Broadcast) for one in (*shape, *read.items)):
        return None
    for item, extent in zip(read.items, shape, strict=False):
        if not isinstance(extent, s.Number) or not isinstance(extent.value, int) or isinstance(item, s.Slice):
            continue
        begin, rest = _parts(item)
        if rest is None or not isinstance(rest.right, s.Number) or not isinstance(rest.right.value, int):
            continue
        room, last = extent.value - begin, begin + rest.right.value - 1
        if 0 < room < rest.right.value and begin >= 0:
            shown, new = print_expression(item), print_expression(_with(item, rest, room))
            return advice(
                f"`{shown}` runs from {begin} to {last}, and the axis has {extent.value}: write `{new}`, or an extent "
                f"of {last + 1}"
            )
    return None


def _with(item: s.Expression, rest: s.Binary, divisor: int) -> s.Expression:
    """The index with another divisor of its remainder."""
    made = replace(rest, right=s.Number(rest.right.span, divisor))
    return rebuilt(item, lambda node: made if node is rest else None)


def _parts(item: s.Expression) -> tuple[int, s.Binary | None]:
    """The number that is added to a remainder, and the remainder."""
    match item:
        case s.Binary(operator="%"):
            return 0, item
        case s.Binary(operator="+", left=s.Number(value=int(number)), right=s.Binary(operator="%") as rest):
            return number, rest
        case s.Binary(operator="+", left=s.Binary(operator="%") as rest, right=s.Number(value=int(number))):
            return number, rest
    return 0, None
