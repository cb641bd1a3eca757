"""The extent below which an index has to run, by all axes that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.printing.printer import print_expression


def range_meant(operator: s.Operator, read: s.Subscript, axis: int, ranges: Mapping[str, str], said: str) -> Fix:
    """How to mend a read by an index that runs too far for an axis, and belongs to no other axis of the read.

    Args:
        operator: the definition.
        read: the read that leaves its tensor.
        axis: which of its indices, a name alone, is the one.
        ranges: the extents below which the indices around the read run, where they have names.
        said: what is wrong, in words.
    """
    item, wanted = read.items[axis], shape_read(operator, read)[axis]
    assert isinstance(read.base, s.Name)
    assert isinstance(item, s.Name)
    assert isinstance(wanted, s.Name)
    index, extent = item.id, wanted.id
    equation = next(one for one in operator.equations if any(node is read for node in nodes(one)))
    owner = _owner(equation, read, index)
    read_axes = _axes(operator, equation.body if owner is None else owner, index)
    if read_axes is not None and set(read_axes) == {extent}:
        bounds = _in_loop(operator, equation, owner, index, extent)
        if bounds:
            return edit(f"{said}: write `{index} < {extent}`", *bounds)
        result = _in_result(operator, equation, index, extent, said)
        if result is not None:
            return result
    others = [name for name, below in ranges.items() if below == extent and s.Name(read.span, name) not in read.items]
    ways = [f"write `{one}`, which runs below {extent}, for it" for one in others[:1]]
    declared = next((one.type for one in operator.inputs if one.name == read.base.id), None)
    if declared is not None:
        shown = list(map(print_expression, declared.shape))
        shown[axis] = ranges[index]
        one_name = f"`{read.base.id}: {declared.dtype}[{', '.join(shown)}]`"
        ways.append(f"give both extents one name, {one_name}, if they are always equal")
    return advice(f"{said}{_read_too(read_axes or {}, extent)}: {', or '.join(ways)}")


def _read_too(read_axes: Mapping[str, str], extent: str) -> str:
    """The axes of other extents that the index reads, because of which its own extent is none of a slip."""
    others = [f"{place} has {below}" for below, place in read_axes.items() if below != extent]
    return f", while {' and '.join(others)}" if others else ""


def _owner(equation: s.EquationSyntax, read: s.Subscript, index: str) -> s.Reduction | s.Comprehension | None:
    """The innermost loop around a read that gives an index its values; None where the result does."""
    around = (
        node
        for node in nodes(equation.body)
        if isinstance(node, s.Reduction | s.Comprehension) and any(part is read for part in nodes(node))
    )
    return next((one for one in [*around][::-1] if any(binder.name == index for binder in one.binders)), None)


def _axes(operator: s.Operator, scope: s.Expression, index: str) -> dict[str, str] | None:
    """The extents of the axes that an index reads by itself, with one such axis each; None where it is not alone."""
    found: dict[str, str] = {}
    name = s.Name(scope.span, index)
    for node in nodes(scope):
        if not isinstance(node, s.Subscript) or name not in nodes(node.items):
            continue
        shape = shape_read(operator, node)
        if len(shape) != len(node.items):
            return None
        for place, (item, extent) in enumerate(zip(node.items, shape, strict=True)):
            if isinstance(item, s.Splat | s.Broadcast | s.Slice) or isinstance(extent, s.Splat):
                return None
            if item == name:
                found.setdefault(print_expression(extent), f"axis {place} of `{print_expression(node.base)}`")
            elif name in nodes(item):
                return None
    return found


def _in_loop(
    operator: s.Operator,
    equation: s.EquationSyntax,
    owner: s.Reduction | s.Comprehension | None,
    index: str,
    extent: str,
) -> list[Edit]:
    """The bounds to write: that of the loop, and of others in the equation that have the same slip."""
    if owner is None:
        return []
    wrong = next(one.bound for one in owner.binders if one.name == index)
    return [
        Edit(binder.bound.span, extent)
        for node in nodes(equation.body)
        if isinstance(node, s.Reduction | s.Comprehension)
        for binder in node.binders
        if binder.name == index and binder.bound == wrong and [*(_axes(operator, node, index) or ())] == [extent]
    ]


def _in_result(operator: s.Operator, equation: s.EquationSyntax, index: str, extent: str, said: str) -> Fix | None:
    output = next((one for one in operator.outputs if one.name == equation.tensor), None)
    names = [binder.name for binder in equation.indices]
    if output is None or index not in names or any(binder.kind == "loops" for binder in equation.indices):
        return None
    shown = list(map(print_expression, output.type.shape))
    shown[names.index(index)] = extent
    result = f"{output.name}: {output.type.dtype}[{', '.join(shown)}]"
    place = output.type.shape[names.index(index)].span
    return replacement(f"{said}: give the result that extent, `-> {result}`", place, extent)


def shape_read(operator: s.Operator, read: s.Subscript) -> tuple[s.Expression, ...]:
    """The extents of the tensor that a read is of, none where they are unknown."""
    if not isinstance(read.base, s.Name):
        return ()
    types = {item.name: item.type for item in operator.inputs if not item.variadic}
    kind = types.get(read.base.id)
    return kind.shape if kind is not None else ()
