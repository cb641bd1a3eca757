"""Index rules at given numbers: what their sides and guards give there."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes


class Meaningless(Exception):
    """An expression divides by zero."""


def constants_of(rule: ast.IndexRule) -> set[str]:
    """The names that multiply or divide on the left: constants, in the engine's reading."""
    return {
        n.right.id
        for n in nodes(rule.left)
        if isinstance(n, ast.Binary) and n.operator in ("*", "//", "%") and isinstance(n.right, ast.Name)
    }


def divisors_of(expression: ast.Expression) -> list[ast.Expression]:
    """What an expression divides by."""
    return [n.right for n in nodes(expression) if isinstance(n, ast.Binary) and n.operator in ("//", "%")]


Numbers = Mapping[str, int]
_Computed = Callable[[Numbers], int]
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_TESTS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def value(expression: ast.Expression, names: Numbers) -> int:
    """The value at given numbers; division floors. Raises Meaningless for a division by zero."""
    try:
        return computed(expression)(names)
    except ZeroDivisionError:
        raise Meaningless from None


def computed(expression: ast.Expression) -> _Computed:
    """How an expression is computed at given numbers; divisions by zero raise ZeroDivisionError, others Meaningless."""
    match expression:
        case ast.Number(value=number):
            whole = int(number)
            return lambda names: whole
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.Unary(operator="-", operand=operand):
            inner = computed(operand)
            return lambda names: -inner(names)
        case ast.Binary(operator=sign, left=left, right=right) if sign in _ARITHMETIC:
            one, other, combine = computed(left), computed(right), _ARITHMETIC[sign]
            return lambda names: combine(one(names), other(names))
    return _meaningless


def _meaningless(names: Numbers) -> int:
    raise Meaningless


def guard_test(guard: ast.Expression) -> Callable[[Numbers], bool]:
    """How a guard is asked at given numbers; the exceptions are those of `computed`."""
    match guard:
        case ast.Truth(value=truth):
            return lambda names: truth
        case ast.Unary(operator="not", operand=operand):
            inner = guard_test(operand)
            return lambda names: not inner(names)
        case ast.Binary(operator="and" | "or" as word, left=left, right=right):
            first, second = guard_test(left), guard_test(right)
            if word == "and":
                return lambda names: first(names) and second(names)
            return lambda names: first(names) or second(names)
        case ast.Binary(operator=sign, left=left, right=right) if sign in _TESTS:
            one, other, compare = computed(left), computed(right), _TESTS[sign]
            return lambda names: compare(one(names), other(names))
    return lambda names: bool(_meaningless(names))


def applicability(rule: ast.IndexRule) -> Callable[[Numbers], bool]:
    """Whether the engine may apply a rule at given numbers: left divisors are positive and all guards hold."""
    divisors = [computed(d) for d in divisors_of(rule.left)]
    guards = [guard_test(g) for g in rule.guards]

    def asked(names: Numbers) -> bool:
        try:
            return all(d(names) > 0 for d in divisors) and all(g(names) for g in guards)
        except (Meaningless, ZeroDivisionError):
            return False

    return asked
