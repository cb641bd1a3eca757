"""What an author means by a read that leaves its tensor: indices of other axes, and those that count from the end."""

from __future__ import annotations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement


def axis_meant(operator: s.Operator, read: s.Subscript) -> Fix | None:
    """How to write the first index of a read that cannot belong to its axis by the names in the signature."""
    shape = _shape(operator, read)
    ranges = _ranges(operator, read)
    for axis, (item, extent) in enumerate(zip(read.items, shape, strict=False)):
        if isinstance(item, s.Splat | s.Broadcast | s.Slice) or not isinstance(extent, s.Name):
            return None
        if isinstance(item, s.Unary) and item.operator == "-" and isinstance(item.operand, s.Number):
            last = f"{extent.id} - {item.operand.value}"
            return replacement(f"indices count from 0: write `{last}`", item.span, last)
        runs = ranges.get(item.id) if isinstance(item, s.Name) else None
        if runs is not None and runs != extent.id:
            assert isinstance(read.base, s.Name)
            assert isinstance(item, s.Name)
            return advice(
                f"`{item.id}` runs below {runs}, and axis {axis} of `{read.base.id}` has {extent.id} elements: "
                f"exchange the indices, or `require {runs} == {extent.id}`"
            )
    return None


def _shape(operator: s.Operator, read: s.Subscript) -> tuple[s.Expression, ...]:
    if not isinstance(read.base, s.Name):
        return ()
    types = {item.name: item.type for item in operator.inputs if not item.variadic}
    kind = types.get(read.base.id)
    return kind.shape if kind is not None else ()


def _ranges(operator: s.Operator, read: s.Subscript) -> dict[str, str]:
    """The extents below which the indices around a read run, where they have names."""
    outputs = {output.name: output.type.shape for output in operator.outputs}
    found: dict[str, str] = {}
    for equation in operator.equations:
        if not any(node is read for node in nodes(equation)):
            continue
        shape = outputs.get(equation.tensor, ())
        for binder, extent in zip(equation.indices, shape, strict=False):
            if binder.kind == "loops" or isinstance(extent, s.Splat):
                break
            if isinstance(extent, s.Name):
                found[binder.name] = extent.id
        for node in nodes(equation.body):
            if isinstance(node, s.Binder) and node.kind == "loop" and isinstance(node.bound, s.Name):
                found[node.name] = node.bound.id
    return found
