"""Axes that count from the end where they are below zero, used where only axes from 0 on are found.

`S[axis]`, `take`, `put` and `permute` count from the end. `drop(S, axes)` leaves all of `S` where no axis is -1,
`contains(axes, d)` and `d == axis` do not hold of any `d`: the definition means something else then, and nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import replacement
from smartmem_rules.language.printing.printer import print_expression

Functions = Mapping[str, s.Function]
_DEEPEST = 4
"""Functions that call each other, up to which uses of a parameter are followed."""


def check_negative_axes(operator: s.Operator, functions: Functions) -> Iterator[Diagnostic]:
    """Attributes and operands known at import that are used as axes from 0 on, and of which nothing says that."""
    compared = {
        name.id
        for condition in operator.requires
        for node in nodes(condition)
        if isinstance(node, s.Binary) and node.operator in ("<", "<=", ">", ">=", "==")
        for name in nodes(node)
        if isinstance(name, s.Name)
    }
    lets = {let.name: let.value for let in operator.lets}
    kinds = {one.name: (one.kind, one.default) for one in operator.attributes}
    kinds |= {item.name: (item.constant, item.default) for item in operator.inputs if item.constant is not None}
    for name, (kind, default) in kinds.items():
        if kind not in ("int", "ints") or name in compared:
            continue
        also = {other for other, value in lets.items() if value in (s.Name(s.NOWHERE, name), _list_of(name))}
        if also & set(_wrapped(operator)) or _refused(operator, {name} | also):
            continue
        for place in _uses(operator, {name} | also, functions):
            yield _diagnostic(operator, name, kind, default, place)
            break


def _list_of(name: str) -> s.Expression:
    return s.ListOf(s.NOWHERE, (s.Name(s.NOWHERE, name),))


def _refused(operator: s.Operator, names: set[str]) -> bool:
    """Whether a name stands for positions of an insertion, which fails below zero."""
    return any(
        isinstance(node, s.Call)
        and node.function == "insert"
        and len(node.arguments) == 3
        and _named(node.arguments[1], names) is not None
        for node in nodes(operator)
    )


def _wrapped(operator: s.Operator) -> Iterator[str]:
    for node in nodes(operator):
        if isinstance(node, s.Call) and node.function == "wrap" and isinstance(node.arguments[0], s.Name):
            yield node.arguments[0].id


def _uses(root: object, names: set[str], functions: Functions, depth: int = 0) -> Iterator[s.Expression]:
    """The places of names, in what is written for an operator or a function, at which only axes from 0 on are found."""
    axes = {
        binder.name
        for node in nodes(root)
        if isinstance(node, s.Comprehension | s.Reduction)
        for binder in node.binders
        if isinstance(binder.bound, s.Call) and binder.bound.function == "rank"
    }

    def is_axis(one: s.Expression) -> bool:
        return isinstance(one, s.Name) and one.id in axes

    for node in nodes(root):
        match node:
            case s.Call(function="drop", arguments=(_, given)) if (place := _named(given, names)) is not None:
                yield place
            case s.Call(function="contains", arguments=(given, one)) if is_axis(one):
                if (place := _named(given, names)) is not None:
                    yield place
            case s.Binary(operator="==" | "!=", left=left, right=right):
                for one, other in ((left, right), (right, left)):
                    if is_axis(one) and isinstance(other, s.Name) and other.id in names:
                        yield other
            case s.Call(function=function, arguments=arguments) if function in functions and depth < _DEEPEST:
                called = functions[function]
                for parameter, given in zip(called.parameters, arguments, strict=False):
                    place = _named(given, names)
                    if place is not None and any(_uses(called.body, {parameter}, functions, depth + 1)):
                        yield place
            case _:
                pass


def _named(given: s.Expression, names: set[str]) -> s.Expression | None:
    """A name by itself, or alone in a list."""
    inner = given.items[0] if isinstance(given, s.ListOf) and len(given.items) == 1 else given
    return inner if isinstance(inner, s.Name) and inner.id in names else None


def _diagnostic(
    operator: s.Operator, name: str, kind: str, default: s.Expression | None, place: s.Expression
) -> Diagnostic:
    negative = isinstance(default, s.Unary) and default.operator == "-"
    lists = [
        extent.operand.id
        for item in operator.inputs
        for extent in (item.type.shape if item.type is not None else ())
        if isinstance(extent, s.Splat) and isinstance(extent.operand, s.Name)
    ]
    count = f"rank({lists[0]})" if lists else "AXES"
    new = f"wrap({print_expression(place)}, {count})"
    is_there = f"`{name}` is {print_expression(default)} by default" if negative and default else f"`{name}` may be -1"
    message = f"{is_there}, and only axes from 0 on are found here"
    least = f"min({name})" if kind == "ints" else name
    said = f"count it from the end, `{new}`; where it is never below 0, write `require {least} >= 0`"
    return Diagnostic(
        Code.NEGATIVE_AXIS,
        "error" if negative else "warning",
        message,
        place.span,
        fix=replacement(said, place.span, new),
    )
