"""Lists of operands, `*xs`, that a rule names as if they were one tensor, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.language.roots import roots_of

_OF_ONE = frozenset({"rank", "shape", "extent", "dtype", "constant", "uses", "value"})
"""Functions of a guard that are asked of one tensor."""

Operators = Mapping[str, Sequence[s.Operator]]


def check_lists(rule: s.Rewrite, operators: Operators) -> Iterator[Diagnostic]:
    """Names that the left side gives a list of operands and the right side a tensor, or the other way round."""
    left = [part for root in roots_of(rule.left) for part in subpatterns(root)]
    tensors = {part.name: part for part in left if isinstance(part, s.PatternVariable)}
    readers = {
        part.variadic: part for part in left if isinstance(part, s.PatternOperator) and part.variadic is not None
    }
    lists = readers.keys() - tensors.keys()
    for node in (*nodes(rule.right), *nodes(rule.guards)):
        match node:
            case s.Call(function=function, arguments=(s.Name(id=name) as asked, *rest)) if name in lists:
                if function in _OF_ONE:
                    shown = f"{name}[0]"
                    whole = print_expression(replace(node, arguments=(s.Name(asked.span, shown), *rest)))
                    said = f"ask it of one, counted from 0: `{whole}`; `count({name})` is how many there are"
                    message = f"`{name}` is a list of operands, and `{function}` is asked of one tensor"
                    yield Diagnostic(Code.IMPURE, "error", message, asked.span, fix=advice(said))
            case _:
                pass
    written = [term.pattern for term in nodes(rule.guards) if isinstance(term, s.Term)]
    for side in (*roots_of(rule.right), *written):
        if isinstance(side, s.PatternVariable) and side.name in lists:
            reader = readers[side.name]
            only = print_pattern(replace(reader, arguments=(s.PatternVariable(side.span, side.name),), variadic=None))
            said = f"write a term that takes it, such as `{print_pattern(reader)}`"
            if not reader.arguments:
                said = f"bind one operand on the left, `{only}`, or {said}"
            yield _no_tensor(side, advice(said))
        for part in subpatterns(side):
            if not isinstance(part, s.PatternOperator):
                continue
            for place, argument in enumerate(part.arguments):
                if isinstance(argument, s.PatternVariable) and argument.name in lists:
                    yield _no_tensor(argument, _list_meant(part, place, readers[argument.name], operators))
            if part.variadic is not None and part.variadic not in readers and part.variadic in tensors:
                yield _no_list(part, left, operators)


def _no_tensor(place: s.PatternVariable, fix: Fix) -> Diagnostic:
    message = f"`{place.name}` is a list of operands, bound as `*{place.name}`, and no tensor"
    return Diagnostic(Code.UNBOUND_VARIABLE, "error", message, place.span, fix=fix)


def _list_meant(part: s.PatternOperator, place: int, reader: s.PatternOperator, operators: Operators) -> Fix:
    """How a list of operands is written where an operator of the right side names it without its star."""
    argument = part.arguments[place]
    assert isinstance(argument, s.PatternVariable)
    name = argument.name
    overloads = operators.get(part.operator, ())
    if not takes_list(overloads):
        takes = f"`{part.operator}` takes one tensor, and no pattern applies an operator to each of a list: "
        return advice(
            f"{takes}write a term that takes the list, such as `{print_pattern(reader)}`, or name the operands"
        )
    if place == len(part.arguments) - 1 and part.variadic is None:
        return replacement(f"write `*{name}`", argument.span, f"*{name}")
    others = tuple(one for one in part.arguments if one is not argument)
    last = print_pattern(replace(part, arguments=others, variadic=name))
    if part.variadic is not None:
        return advice(f"a pattern takes one list: give `*{name}` a term of its own, such as `{print_pattern(reader)}`")
    return advice(
        f"`*{name}` stands behind all other operands: write `{last}` if their order is free; else give the list a "
        f"term of its own, such as `{print_pattern(replace(reader, arguments=()))}`"
    )


def _no_list(part: s.PatternOperator, left: Sequence[s.Pattern], operators: Operators) -> Diagnostic:
    """A list of operands that the left side binds as one tensor."""
    name, span = part.variadic, part.place("variadic")
    message = f"`{name}` is one tensor of the left side, and no list of operands"
    fix = replacement(f"write `{name}`, without the star", span, f"{name}")
    for one in left:
        if not isinstance(one, s.PatternOperator) or not takes_list(operators.get(one.operator, ())):
            continue
        last = one.arguments[-1] if one.arguments and one.variadic is None else None
        if isinstance(last, s.PatternVariable) and last.name == name:
            whole = print_pattern(replace(one, arguments=one.arguments[:-1], variadic=name))
            fix = advice(
                f"for all operands, however many, write `{whole}` on the left, too; for one operand write `{name}` here"
            )
    return Diagnostic(Code.UNBOUND_VARIABLE, "error", message, span, fix=fix)


def takes_list(overloads: Sequence[s.Operator]) -> bool:
    """Whether an operator has an input of any number of members."""
    return any(item.variadic for one in overloads for item in one.inputs)
