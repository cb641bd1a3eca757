"""What patterns of rewrite rules stand for: their operators, operands and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.roots import roots_of
from smartmem_rules.tensor.builtins import Value

ABSENT_NAME = "_"


def operators_of(pattern: ast.Pattern) -> Iterator[ast.PatternOperator]:
    """All operator applications of a pattern, operands first."""
    if isinstance(pattern, ast.PatternOperator):
        for argument in pattern.arguments:
            yield from operators_of(argument)
        yield pattern


def operators_of_all(side: ast.Pattern) -> list[ast.PatternOperator]:
    """The operator applications of all patterns of a side, operands first; its own pattern, the first one, is last."""
    return [pattern for root in reversed(roots_of(side)) for pattern in operators_of(root)]


def joined_by(patterns: Sequence[ast.Pattern]) -> tuple[list[str], list[ast.Pattern]]:
    """The names by which patterns share tensors: for each behind the first one, with those that are joined already.

    The patterns that share none come second.  A list that is shared has a `*` before its name.
    """
    joints: list[str] = []
    known, pending = set(_tensors_of(patterns[0])), list(patterns[1:])
    while pending:
        found = ((one, name) for one in pending for name in _tensors_of(one) if name in known)
        joined, joint = next(found, (None, ""))
        if joined is None:
            break
        joints.append(joint)
        known.update(_tensors_of(joined))
        pending.remove(joined)
    return joints, pending


def _tensors_of(pattern: ast.Pattern) -> Iterator[str]:
    if isinstance(pattern, ast.PatternVariable) and not is_absent(pattern):
        yield pattern.name
    elif isinstance(pattern, ast.PatternOperator):
        for argument in pattern.arguments:
            yield from _tensors_of(argument)
        if pattern.variadic is not None:
            yield f"*{pattern.variadic}"


def run_time_arguments(pattern: ast.PatternOperator) -> tuple[ast.Pattern, ...]:
    """The arguments without absent ones at the end, as graphs are encoded."""
    count = len(pattern.arguments)
    while count and is_absent(pattern.arguments[count - 1]) and pattern.variadic is None:
        count -= 1
    return pattern.arguments[:count]


def is_absent(pattern: ast.Pattern) -> bool:
    return isinstance(pattern, ast.PatternVariable) and pattern.name == ABSENT_NAME


def rest_of(pattern: ast.PatternOperator, operator: ast.Operator, values: Mapping[str, Value]) -> dict[str, Value]:
    """The attributes that a pattern does not mention, absent ones too: what equal names of the rest stand for."""
    names = [a.name for a in operator.attributes] + [i.name for i in operator.inputs if i.constant is not None]
    mentioned = {attribute.name for attribute in pattern.attributes}
    return {name: values.get(name) for name in names if name not in mentioned}


def right_outputs(pattern: ast.PatternOperator, operators: Mapping[str, Sequence[ast.Operator]]) -> int:
    """How many outputs a right side asks for: one, or all where it names one of several."""
    if pattern.output is None:
        return 1
    declared = max((len(o.outputs) for o in operators.get(pattern.operator, ())), default=1)
    return max(declared, pattern.output + 1)
