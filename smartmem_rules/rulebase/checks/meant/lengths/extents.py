"""Extents of results that no input binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression


def starred(item: s.Input) -> Iterator[s.Splat]:
    """The lists of extents of an input."""
    return (one for one in (item.type.shape if item.type is not None else ()) if isinstance(one, s.Splat))


def with_extent_meant(
    found: Iterable[Diagnostic], operator: s.Operator, output: s.Output, place: int
) -> Iterator[Diagnostic]:
    """Messages about an extent of a result, with that of the axes which its index reads in place of an unbound one."""
    extent = output.type.shape[place]
    for one in found:
        if one.code != Code.UNDEFINED_NAME or not isinstance(extent, s.Name) or one.span != extent.span:
            yield one
            continue
        index, read = _read_by(operator, output, place)
        if index is not None and len(read) == 1:
            yield replace(
                one,
                fix=replacement(
                    f"write `{read[0]}`, the extent of the axes that `{index}` reads", extent.span, read[0]
                ),
            )
        elif not one.fix.edits:
            yield replace(one, fix=_bound_by_inputs(operator, extent.id) or one.fix)
        else:
            yield one


def _bound_by_inputs(operator: s.Operator, name: str) -> Fix | None:
    """The extents that there are; None where a shape of an input is computed, of which more is told there."""
    shapes = [extent for item in operator.inputs if item.type is not None for extent in item.type.shape]
    if not shapes or not all(isinstance(one, s.Name | s.Number | s.Splat) for one in shapes):
        return None
    known = ", ".join(f"`{print_expression(one)}`" for one in dict.fromkeys(shapes) if not isinstance(one, s.Number))
    return advice(f"an input or an attribute binds each extent: write {known} or a number, or bind `{name}` there")


def _read_by(operator: s.Operator, output: s.Output, place: int) -> tuple[str | None, list[str]]:
    """The index of an axis of a result, and the extents of the axes of inputs that it reads by itself."""
    equations = [one for one in operator.equations if one.tensor == output.name]
    shapes = {item.name: item.type.shape for item in operator.inputs if item.type is not None}
    if len(equations) != 1 or len(equations[0].indices) != len(output.type.shape):
        return None, []
    index = equations[0].indices[place].name
    read: dict[str, None] = {}
    for node in nodes(equations[0].body):
        if not isinstance(node, s.Subscript) or not isinstance(node.base, s.Name):
            continue
        pairs = list(zip(node.items, shapes.get(node.base.id, ()), strict=False))
        if any(isinstance(part, s.Splat | s.Broadcast | s.Slice) for pair in pairs for part in pair):
            continue
        for item, extent in pairs:
            if isinstance(item, s.Name) and item.id == index:
                read[print_expression(extent)] = None
    return index, list(read)
