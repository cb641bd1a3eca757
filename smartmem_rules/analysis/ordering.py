"""The order in which directed rules decrease: fewer operators, then cheaper ones, then fewer operands.

Operators over constants count nothing, since they are computed once.  A rule that does not decrease may still be right,
but with others it can rewrite in circles; the e-graph bears that, at the price of its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes

Measure = tuple[int, int, int]
"""Distinct operators at run time, the work of their definitions, operands."""

_INFIX = {"+": 2, "-": 3, "*": 4, "/": 8, "//": 8, "%": 8, "**": 16}
_FUNCTIONS = {
    **dict.fromkeys(
        ["exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "erf", "sigmoid"], 12
    ),
    **dict.fromkeys(["sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid"], 12),
    **dict.fromkeys(["abs", "neg", "sign", "floor", "ceil", "round", "select"], 2),
    **{"min": 2, "max": 2, "recip": 7, "sqrt": 8, "rsqrt": 8, "pow": 16, "mod": 8, "fmod": 8, "fma": 6},
}
_REDUCTIONS = {"sum": 20, "max": 20, "min": 20, "any": 20, "all": 20, "prod": 24, "mean": 28, "first": 2}


def work(overloads: Sequence[s.Operator]) -> int:
    """What one element of the result costs by the lightest definition, in rough units."""
    return min((_work_of(operator) for operator in overloads), default=0)


def _work_of(operator: s.Operator) -> int:
    total = 0
    for equation in operator.equations:
        for node in nodes(equation.body):
            if isinstance(node, s.Binary):
                total += _INFIX.get(node.operator, 1)
            elif isinstance(node, s.Unary):
                total += 2
            elif isinstance(node, s.Call):
                total += _FUNCTIONS.get(node.function, 0)
            elif isinstance(node, s.Reduction):
                total += _REDUCTIONS[node.kind]
    return total


def measure(pattern: s.Pattern, constants: frozenset[str], operators: Mapping[str, Sequence[s.Operator]]) -> Measure:
    """The measure of one side of a rule; `constants` are the variables that its guards want constant."""
    parts = list(dict.fromkeys(_at_run_time(pattern, constants)))
    applications = [part for part in parts if isinstance(part, s.PatternOperator)]
    leaves = sum(len(part.arguments) + (part.variadic is not None) for part in applications)
    return len(applications), sum(work(operators.get(part.operator, ())) for part in applications), leaves


def decreases(rule: s.Rewrite, operators: Mapping[str, Sequence[s.Operator]]) -> bool:
    """Whether the right side of a directed rule is smaller than its left side."""
    constants = constant_names(rule.guards)
    return measure(rule.right, constants, operators) < measure(rule.left, constants, operators)


def constant_names(guards: Sequence[s.Expression]) -> frozenset[str]:
    """The tensors that a guard asks to be constant, as one of the things that must hold."""
    found: set[str] = set()
    stack = list(guards)
    while stack:
        match stack.pop():
            case s.Binary(operator="and", left=left, right=right):
                stack += [left, right]
            case s.Call(function="constant", arguments=(s.Name(id=name),)):
                found.add(name)
    return frozenset(found)


def _at_run_time(pattern: s.Pattern, constants: frozenset[str]) -> Iterator[s.Pattern]:
    if not isinstance(pattern, s.PatternOperator) or is_constant(pattern, constants):
        return
    yield pattern
    for argument in pattern.arguments:
        yield from _at_run_time(argument, constants)


def is_constant(pattern: s.Pattern, constants: frozenset[str]) -> bool:
    """Whether all leaves of a pattern are known when the model is optimized."""
    if isinstance(pattern, s.PatternOperator):
        return pattern.variadic is None and all(is_constant(argument, constants) for argument in pattern.arguments)
    return not isinstance(pattern, s.PatternVariable) or pattern.name in constants or pattern.name == "_"
