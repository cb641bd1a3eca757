"""Patterns out of expressions: names, numbers, operators, and computations where an operand is wanted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Fix, advice

OR = " | "
"""Between the operators of which a pattern takes any one, in the name that stands for them."""

DEEPEST = 100
"""Levels of a tree, from its item down, that the parser accepts."""
Problem = Callable[[s.Span, str, Fix], None]
_ARITHMETIC: dict[str, Callable[..., int | float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def pattern_of(value: s.Expression, problem: Problem | None = None, depth: int = 0) -> s.Pattern:
    """The pattern that an expression is in the place of one.

    A name is a variable, a call whose name begins with an upper-case letter an operator, a number is a constant tensor,
    and all else computes one.  `problem` is told what no pattern can be.  What is nested deeper than the parser accepts
    stays an expression.
    """
    number = number_of(value)
    if number is not None:
        return s.PatternNumber(value.span, number)
    match value:
        case s.Name(id=name):
            return s.PatternVariable(value.span, name)
        case s.Term(pattern=pattern):
            return pattern
        case s.Call(function=function) if function[0].isupper() and depth <= DEEPEST:
            return application_of(value, problem, depth)
        case _:
            return s.PatternComputed(value.span, value)


def application_of(call: s.Call, problem: Problem | None = None, depth: int = 0) -> s.PatternOperator:
    """The application of an operator that a call writes; `*xs` as the last argument stands for all further operands."""
    variadic, places = None, {"name": _head(call)}
    arguments = call.arguments
    for place, argument in enumerate(arguments):
        if not isinstance(argument, s.Splat):
            continue
        if place < len(arguments) - 1 or not isinstance(argument.operand, s.Name):
            said = "`*` gives one name to all further operands and must be the last"
            if problem is not None:
                problem(argument.span, said, advice("put it behind all other operands: `Concat(x, *xs)`"))
        else:
            variadic, places["variadic"] = argument.operand.id, argument.span
    operands = (argument for argument in arguments if not isinstance(argument, s.Splat))
    plain = tuple(pattern_of(operand, problem, depth + 1) for operand in operands)
    return s.PatternOperator(call.span, call.function, plain, (), None, variadic, None, places=places)


def _head(call: s.Call) -> s.Span:
    return call.span._replace(end_line=call.span.line, end_column=call.span.column + len(call.function))


def as_operator(pattern: s.Pattern) -> s.PatternOperator | None:
    """The application that `op(x, y)` is where `op` is no function; None for what is no call."""
    is_call = isinstance(pattern, s.PatternComputed) and isinstance(pattern.value, s.Call)
    return application_of(pattern.value) if is_call else None  # type: ignore[attr-defined]


def number_of(value: s.Expression, depth: int = 0) -> int | float | None:
    """The number that arithmetic with literals gives; None for any other expression, and for one nested too deep."""
    if depth > DEEPEST:
        return None
    match value:
        case s.Number():
            return value.value
        case s.Unary(operator="-", operand=operand):
            inner = number_of(operand, depth + 1)
            return None if inner is None else -inner
        case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
            one, other = number_of(left, depth + 1), number_of(right, depth + 1)
            if one is None or other is None or (word == "/" and other == 0):
                return None
            return _ARITHMETIC[word](one, other)
        case _:
            return None


def subpatterns(pattern: s.Pattern) -> Iterator[s.Pattern]:
    """A pattern and all patterns inside of it, operands first."""
    if isinstance(pattern, s.PatternOperator):
        for argument in pattern.arguments:
            yield from subpatterns(argument)
    yield pattern
