"""Quotients of whole numbers that are written with `/`, which gives fractions: in indices, extents and ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import behind, replacement


def check_quotients(operator: s.Operator) -> Iterator[Diagnostic]:
    """Fractions as indices of reads, as extents of results, and as ends of ranges."""
    for equation in operator.equations:
        indices = {binder.name for binder in equation.indices}
        indices |= {node.name for node in nodes(equation.body) if isinstance(node, s.Binder)}
        for node in nodes(equation.body):
            if isinstance(node, s.Subscript):
                for item in node.items:
                    yield from _quotients(item, "an index", indices)
    lets = {let.name: let.value for let in operator.lets}
    told: set[s.Span] = set()
    extents = [(extent, "an extent") for output in operator.outputs for extent in output.type.shape]
    ranges = [(node.bound, "the end of a range") for node in nodes(operator.equations) if isinstance(node, s.Binder)]
    for value, what in (*extents, *ranges):
        for one in _quotients(value, what, None, lets):
            if one.span not in told:
                told.add(one.span)
                yield one


def _quotients(
    value: s.Expression, what: str, indices: Collection[str] | None, lets: Mapping[str, s.Expression] | None = None
) -> Iterator[Diagnostic]:
    """The quotients in sums and products; what a function makes of a fraction may be whole.

    Args:
        indices: of which one has to stand in what is divided; None where any name may.
        lets: values of names, in which quotients count as well.
    """
    match value:
        case s.Splat(operand=operand) | s.Broadcast(operand=operand) | s.Unary(operand=operand):
            yield from _quotients(operand, what, indices, lets)
        case s.Binary(operator="/", left=left, right=right) if indices is None or _names(left) & set(indices):
            message = f"{what} is a whole number, but `/` gives fractions"
            between = behind(left.span)._replace(end_line=right.span.line, end_column=right.span.column)
            fix = replacement("write `//`, which rounds down", between, " // ")
            yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, value.span, fix=fix)
        case s.Binary(left=left, right=right):
            yield from _quotients(left, what, indices, lets)
            yield from _quotients(right, what, indices, lets)
        case s.Name(id=name) if lets and name in lets:
            others = {other: one for other, one in lets.items() if other != name}
            yield from _quotients(lets[name], what, indices, others)
        case _:
            pass


def _names(value: s.Expression) -> set[str]:
    return {node.id for node in nodes(value) if isinstance(node, s.Name)}
