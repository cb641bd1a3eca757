"""What an author means by guards that contradict each other: another tensor or axis, a range, or either of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt

_KEEP = "keep only the one that the rule is for"


def contradiction_meant(rule: s.Rule, guards: Sequence[s.Expression]) -> Fix:
    """How to mend guards that never hold together, the candidates by kind.

    Args:
        rule: the rule.
        guards: those of its guards that contradict each other, as they are written.
    """
    shown = [f"`{print_expression(guard)}`" for guard in guards]
    if len(guards) == 1:
        return advice("no value fulfils it: write another condition, or leave it out")
    if len(guards) != 2:
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
        return advice(f"{listed} never hold together: leave out, or turn round, the one that the rule is not for")
    axis = _axis_meant(guards[0], guards[1], rule.guards) or _axis_meant(guards[1], guards[0], rule.guards)
    if axis is not None:
        return advice(axis)
    another = _of_another(rule, guards) if isinstance(rule, s.Rewrite) else None
    bounds = _bounds_exchanged(*guards)
    ways = [f"for a range exchange the bounds, {bounds}"] if bounds else []
    if isinstance(rule, s.IndexRule):  # its guards know no `or`
        ways.append("write a rule for each, if either is enough")
    elif not _negates(*guards) and not _negates(*guards[::-1]):
        ways.append(f"join them, `{' or '.join(map(_part_of_or, guards))}`, if either is enough")
    ways.append(_KEEP)
    said = "; or ".join(filter(None, ["; ".join(ways[:-1]), ways[-1]]))
    return advice(f"{another}, {said}" if another else f"{shown[0]} and {shown[1]} never hold together: {said}")


def _negates(one: s.Expression, other: s.Expression) -> bool:
    return isinstance(one, s.Unary) and one.operator == "not" and one.operand == other


def _part_of_or(guard: s.Expression) -> str:
    shown = print_expression(guard)
    return f"({shown})" if isinstance(guard, s.Conditional) else shown


def _axis_meant(rank: s.Expression, other: s.Expression, guards: Sequence[s.Expression]) -> str | None:
    """The axes that there are, where one guard gives the rank of a tensor and another asks for an axis beyond it.

    Args:
        guards: all guards of the rule: where they ask for each axis but the first, all are counted from 1.
    """
    match rank:
        case s.Binary(
            operator="==",
            left=s.Call(function="rank", arguments=(s.Name(id=tensor),)),
            right=s.Number(value=int(count)),
        ):
            pass
        case _:
            return None
    for node in nodes(other):
        match node:
            case (
                s.Call(function="extent", arguments=(s.Name(id=name), s.Number(value=int(axis))))
                | s.Subscript(
                    base=s.Call(function="shape", arguments=(s.Name(id=name),)), items=(s.Number(value=int(axis)),)
                )
            ) if name == tensor and axis >= count > 0:
                last = print_expression(_with_axis(node, count - 1))
                more = print_expression(s.Binary(rank.span, "==", rank.left, s.Number(rank.span, axis + 1)))
                axes = "axis 0" if count == 1 else f"axes 0 to {count - 1}"
                said = f"axes are counted from 0, and with `{print_expression(rank)}` there are {axes}"
                asked = _axes_asked(name, guards)
                if count > 1 and sorted(asked) == list(range(1, count + 1)):
                    ways = (f"`{print_expression(_with_axis(one, n - 1))}`" for n, one in sorted(asked.items()))
                    return f"{said}: write {' and '.join(ways)} for axes 1 to {count}"
                return f"{said}: write `{last}` for the last one, or `{more}`"
            case _:
                pass
    return None


def _axes_asked(tensor: str, guards: Sequence[s.Expression]) -> dict[int, s.Call]:
    """The axes of which guards ask the extent, each with the first place."""
    found: dict[int, s.Call] = {}
    for node in nodes(tuple(guards)):
        match node:
            case s.Call(function="extent", arguments=(s.Name(id=name), s.Number(value=int(axis)))) if name == tensor:
                found.setdefault(axis, node)
            case _:
                pass
    return found


def _with_axis(node: s.Call | s.Subscript, axis: int) -> s.Expression:
    number = s.Number(node.span, axis)
    if isinstance(node, s.Subscript):
        return replace(node, items=(number,))
    return replace(node, arguments=(node.arguments[0], number))


def _bounds_exchanged(one: s.Expression, other: s.Expression) -> str | None:
    """A lower and an upper bound of one value, exchanged, where that leaves room between them."""
    match one, other:
        case (
            s.Binary(operator=sign, left=left, right=s.Number(value=value) as bound),
            s.Binary(operator=other_sign, left=other_left, right=s.Number(value=other_value) as other_bound),
        ) if left == other_left and {sign[0], other_sign[0]} == {"<", ">"}:
            low, high = (value, other_value) if sign[0] == "<" else (other_value, value)
            if low + 1 < high:
                turned = replace(one, right=other_bound), replace(other, right=bound)
                return "`" + ", ".join(map(print_expression, turned)) + "`"
    return None


def _of_another(rule: s.Rewrite, guards: Sequence[s.Expression]) -> str | None:
    """Guards about one name that speak of another one, of which no guard asks the same: one of them is a copy."""
    shared = set.intersection(*({node.id for node in nodes(one) if isinstance(node, s.Name)} for one in guards))
    parts = list(nodes(rule.left))
    tensors = [part.name for part in parts if isinstance(part, s.PatternVariable)]
    attributes = [
        part.value.id for part in parts if isinstance(part, s.PatternAttribute) and isinstance(part.value, s.Name)
    ]
    for bound in (tensors, attributes):
        both = [name for name in dict.fromkeys(bound) if name in shared]
        if len(both) != 1:
            continue
        same = {function for guard in guards for function, name in _asks(guard) if name == both[0]}
        asked = {name for guard in rule.guards for function, name in _asks(guard) if function in same}
        free = [name for name in dict.fromkeys(bound) if name not in asked and name != "_"]
        if not free:
            continue
        renamed = [print_expression(rebuilt(one, _renamed(both[0], free[0]))) for one in guards[::-1]]
        others = f", the same of {' or '.join(f'`{one}`' for one in free[1:])}" if free[1:] else ""
        what = f"asks {' or '.join(f'`{one}`' for one in sorted(same))} of" if all(same) else "is about"
        return (
            f"both are about `{both[0]}`, and no guard {what} `{free[0]}`: write `{renamed[0]}` or `{renamed[1]}` if "
            f"one of them is meant of `{free[0]}`{others}; if both are meant of `{both[0]}`"
        )
    return None


def _asks(guard: s.Expression) -> Iterator[tuple[str, str]]:
    """The names in a guard, each with the function that is asked of it; `""` where it stands by itself."""
    inside: set[int] = set()
    for node in nodes(guard):
        if isinstance(node, s.Call):
            for one in node.arguments:
                if isinstance(one, s.Name):
                    inside.add(id(one))
                    yield node.function, one.id
        elif isinstance(node, s.Name) and id(node) not in inside:
            yield "", node.id


def _renamed(old: str, new: str) -> Callable[[s.Syntax], s.Syntax | None]:
    return lambda node: s.Name(node.span, new) if isinstance(node, s.Name) and node.id == old else None
