"""What an author means by a read that leaves its tensor: indices of other axes, and those that count from the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.analysis.index_ranges import range_meant, shape_read
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.printing.printer import print_expression


def axis_meant(operator: s.Operator, read: s.Subscript) -> Fix | None:
    """How to write the first index of a read that cannot belong to its axis by the names in the signature."""
    shape = shape_read(operator, read)
    last_one = _from_the_end(read, shape)
    if last_one is not None:
        return last_one
    ranges = _ranges(operator, read)
    for axis, (item, extent) in enumerate(zip(read.items, shape, strict=False)):
        if isinstance(item, s.Splat | s.Broadcast | s.Slice) or not isinstance(extent, s.Name):
            return None
        runs = ranges.get(item.id) if isinstance(item, s.Name) else None
        if runs is not None and runs != extent.id:
            assert isinstance(read.base, s.Name)
            assert isinstance(item, s.Name)
            said = f"`{item.id}` runs below {runs}, and axis {axis} of `{read.base.id}` has {extent.id} elements"
            fit = (
                isinstance(one, s.Name) and isinstance(other, s.Name) and ranges.get(one.id) == extent.id == other.id
                for one, other in zip(read.items, shape, strict=False)
            )
            turned = [one for one in read.items if isinstance(one, s.Name) and ranges.get(one.id) == extent.id]
            if not turned or any(fit):
                return range_meant(operator, read, axis, ranges, said)
            return advice(f"{said}: {_exchange(operator, read, axis, ranges)}")
    return None


def _from_the_end(read: s.Subscript, shape: Sequence[s.Expression]) -> Fix | None:
    """What to write for `x[-1]`: the extent of its axis less one."""
    for step in (1, -1):
        for item, extent in zip(read.items[::step], shape[::step], strict=False):
            if any(isinstance(one, s.Splat | s.Broadcast | s.Slice) for one in (item, extent)):
                break
            if isinstance(item, s.Unary) and item.operator == "-" and isinstance(item.operand, s.Number):
                shown = print_expression(extent)
                last = f"{shown if isinstance(extent, s.Name) else f'({shown})'} - {item.operand.value}"
                return replacement(f"indices count from 0: write `{last}`", item.span, last)
    return None


def _exchange(operator: s.Operator, read: s.Subscript, axis: int, ranges: Mapping[str, str]) -> str:
    """The indices of a read in the order in which they fit its axes, and the extents in which the axes fit them."""
    assert isinstance(read.base, s.Name)
    shape = shape_read(operator, read)
    if len(read.items) != len(shape):
        return "exchange the indices"
    for other, (item, extent) in enumerate(zip(read.items, shape, strict=True)):
        runs = [ranges.get(one.id) if isinstance(one, s.Name) else None for one in (read.items[axis], item)]
        if not isinstance(extent, s.Name) or runs != [extent.id, print_expression(shape[axis])]:
            continue
        items, extents = list(read.items), list(map(print_expression, shape))
        items[axis], items[other] = items[other], items[axis]
        extents[axis], extents[other] = extents[other], extents[axis]
        said = f"exchange the indices, `{read.base.id}[{', '.join(map(print_expression, items))}]`"
        reads = [node for node in nodes(operator.equations) if isinstance(node, s.Subscript) and node.base == read.base]
        declared = next(one.type for one in operator.inputs if one.name == read.base.id)
        if len(reads) == 1 and declared is not None:
            said += f", or, if they are right, the extents: `{read.base.id}: {declared.dtype}[{', '.join(extents)}]`"
        return said
    return "exchange the indices"


def extent_meant(operator: s.Operator, read: s.Subscript) -> Fix | None:
    """The extent that a result may have at most, where a read steps beyond its tensor as its index grows."""
    equation = next((one for one in operator.equations if any(node is read for node in nodes(one))), None)
    if equation is None or not isinstance(read.base, s.Name) or equation.scan:
        return None
    output = next((one for one in operator.outputs if one.name == equation.tensor), None)
    loops = [binder.name for binder in equation.indices if binder.kind != "loops"]
    if output is None or len(loops) != len(output.type.shape):
        return None
    for axis, (item, extent) in enumerate(zip(read.items, shape_read(operator, read), strict=False)):
        if isinstance(item, s.Splat | s.Broadcast | s.Slice) or isinstance(extent, s.Splat):
            return None
        step = _step(item, loops)
        if step is None or step[1:] == (1, 0) or step[2] < 0:
            continue
        name, factor, _ = step
        others = [one for one in _reads_of(equation, read.base.id) if len(one.items) > axis]
        steps = [one for other in others if (one := _step(other.items[axis], loops)) is not None]
        furthest = max(shift for other, times, shift in steps if (other, times) == (name, factor))
        rest = print_expression(extent) if not furthest else f"{print_expression(extent)} - {furthest}"
        most = rest if factor == 1 else f"ceil_div({rest}, {factor})"
        shown = list(map(print_expression, output.type.shape))
        shown[loops.index(name)] = most
        result = f"{output.name}: {output.type.dtype}[{', '.join(shown)}]"
        ways = "leave `view` out, and write `else` and a value" if equation.view else "write `else` and a value"
        return advice(
            f"`{print_expression(item)}` is below {print_expression(extent)} for `{name} < {most}` only: "
            f"give the result that extent, `-> {result}`, or {ways}"
        )
    return None


def _reads_of(equation: s.EquationSyntax, tensor: str) -> list[s.Subscript]:
    found = (node for node in nodes(equation.body) if isinstance(node, s.Subscript))
    return [one for one in found if isinstance(one.base, s.Name) and one.base.id == tensor]


def _step(item: s.Expression, loops: list[str]) -> tuple[str, int, int] | None:
    """The loop, factor and shift of an index `factor * loop + shift`; None for one of another form."""
    match item:
        case s.Name(id=name) if name in loops:
            return name, 1, 0
        case s.Binary(operator="*", left=s.Number(value=int(factor)), right=s.Name(id=name)) if name in loops:
            return name, factor, 0
        case s.Binary(operator="*", left=s.Name(id=name), right=s.Number(value=int(factor))) if name in loops:
            return name, factor, 0
        case s.Binary(operator="+" | "-" as sign, left=left, right=s.Number(value=int(shift))):
            inner = _step(left, loops)
            return None if inner is None else (inner[0], inner[1], inner[2] + (shift if sign == "+" else -shift))
        case s.Binary(operator="+", left=s.Number() as shift, right=right):
            return _step(s.Binary(item.span, "+", right, shift), loops)
        case _:
            return None


def scan_axes_meant(operator: s.Operator, place: s.Span) -> Fix | None:
    """How to begin a scan with the steps of the first one, where another of its axes runs over them."""
    scans = [equation for equation in operator.equations if equation.scan]
    own = next((one for one in scans[1:] if one.span == place), None)
    if own is None or not own.indices or not scans[0].indices:
        return None
    first = scans[0]
    steps, wanted = (print_expression(one.indices[0].bound) for one in (own, first))
    said = f"the first axis of `{own.tensor}` is {steps}, of `{first.tensor}` it is {wanted}"
    axis = next((n for n, one in enumerate(own.indices) if print_expression(one.bound) == wanted), 0)
    if not axis or any(one.kind == "loops" for one in own.indices):
        return advice(f"{said}: give both as many steps")
    text = f"{own.indices[axis].name} < {wanted}"
    said = f"{said}: begin `{own.tensor}` with `{text}`"
    reads = [
        node
        for node in nodes(operator)
        if isinstance(node, s.Subscript) and isinstance(node.base, s.Name) and node.base.id == own.tensor
    ]
    if any(len(one.items) != len(own.indices) or any(map(_is_run, one.items)) for one in reads):
        return advice(f"{said}, and exchange the indices where it is read")
    edits = [_exchanged(own.indices[0].span, f"{own.indices[0].name} < {steps}", own.indices[axis].span, text)]
    edits += [
        _exchanged(
            one.items[0].span, print_expression(one.items[0]), one.items[axis].span, print_expression(one.items[axis])
        )
        for one in reads
    ]
    return edit(said, *(one for pair in edits for one in pair))


def _is_run(item: s.Expression) -> bool:
    return isinstance(item, s.Splat | s.Broadcast | s.Slice)


def _exchanged(one: s.Span, text: str, other: s.Span, other_text: str) -> tuple[Edit, Edit]:
    return Edit(one, other_text, text), Edit(other, text, other_text)


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
