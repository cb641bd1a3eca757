"""Expressions of the rule language as functions of a scope: they are evaluated often, and their trees walked once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.tensor.builtins import (
    ARITHMETIC,
    DefinitionError,
    Unsupported,
    Value,
    as_list,
    describe,
    plain,
    spread,
)
from smartmem_rules.tensor.definitions.columns import MANY, list_by_arrays
from smartmem_rules.tensor.definitions.scope import Scope
from smartmem_rules.tensor.ranges import same

MOST_MEMBERS = 1 << 22
"""Members of a list that a definition counts out, as the places of a window along an axis."""

Evaluator = Callable[[Scope], Value]

ERRORS = (IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError)
"""What Python raises where an expression asks for something impossible."""
_KEPT: ByIdentity[ast.Expression, Evaluator] = ByIdentity(1 << 15)


def evaluate(expr: ast.Expression, scope: Scope) -> Value:
    """The value of an expression.

    Raises:
        DefinitionError: the expression cannot be computed; the message begins with its place.
        Unsupported: `fail(...)` was reached or an operator's requirement does not hold.
    """
    try:
        found = _KEPT.known.get(id(expr))  # most are: asked without a call, as this is asked most often of all
        return (_KEPT.get(expr, compiled) if found is None else found[1])(scope)
    except ERRORS as error:
        raise DefinitionError(f"{expr.span}: {error}") from error


def truth(expr: ast.Expression, scope: Scope) -> bool:
    """The value of a condition; raises what `evaluate` does."""
    value = evaluate(expr, scope)
    if isinstance(value, bool):
        return value
    raise DefinitionError(f"{expr.span}: a condition is needed, not {describe(value)}")


def value_of(expr: ast.Expression, scope: Scope) -> Value:
    """The value of a part of an expression: what Python raises there, `evaluate` of the whole gives its place."""
    found = _KEPT.known.get(id(expr))
    return (_KEPT.get(expr, compiled) if found is None else found[1])(scope)


def compiled(expr: ast.Expression) -> Evaluator:
    """What computes the value of an expression as `value_of` does."""
    compiler = COMPILERS.get(type(expr))
    return _not_before_the_run(expr) if compiler is None else compiler(expr)


def _not_before_the_run(expr: ast.Expression) -> Evaluator:
    def refuse(scope: Scope) -> Value:
        raise DefinitionError(f"{expr.span}: this cannot be computed before the model runs")

    return refuse


def truth_of(expr: ast.Expression) -> Callable[[Scope], bool]:
    """As `truth` of the expression."""
    valued = compiled(expr)

    def test(scope: Scope) -> bool:
        try:
            value = valued(scope)
        except ERRORS as error:
            raise DefinitionError(f"{expr.span}: {error}") from error
        if isinstance(value, bool):
            return value
        raise DefinitionError(f"{expr.span}: a condition is needed, not {describe(value)}")

    return test


def _literal(expr: ast.Number | ast.Text | ast.Truth) -> Evaluator:
    value = expr.value
    return lambda scope: value


def _list_of(expr: ast.ListOf) -> Evaluator:
    return items_of(expr.items)


def items_of(items: tuple[ast.Expression, ...]) -> Callable[[Scope], tuple[Value, ...]]:
    """The values of bracketed items, with `*lists` spliced in."""
    if not any(isinstance(item, ast.Splat) for item in items):
        match [compiled(item) for item in items]:
            case [one]:
                return lambda scope: (one(scope),)
            case [one, other]:
                return lambda scope: (one(scope), other(scope))
            case several:
                return lambda scope: tuple([valued(scope) for valued in several])
    parts = [
        (True, compiled(item.operand)) if isinstance(item, ast.Splat) else (False, compiled(item)) for item in items
    ]

    def spliced(scope: Scope) -> tuple[Value, ...]:
        result: list[Value] = []
        for is_list, valued in parts:
            if is_list:
                result.extend(as_list(valued(scope)))
            else:
                result.append(valued(scope))
        return tuple(result)

    return spliced


def _unary(expr: ast.Unary) -> Evaluator:
    operand = compiled(expr.operand)
    if expr.operator == "-":
        return lambda scope: spread(_negated, operand(scope))
    return lambda scope: not operand(scope)


def _negated(value: Value) -> Value:
    return ARITHMETIC["*"](value, -1)


def _conditional(expr: ast.Conditional) -> Evaluator:
    test, then, otherwise = truth_of(expr.condition), compiled(expr.then), compiled(expr.otherwise)
    return lambda scope: then(scope) if test(scope) else otherwise(scope)


_NAMED: Mapping[str, Value] = {"inf": float("inf"), "nan": float("nan"), "none": None}


def _name(expr: ast.Name) -> Evaluator:
    name = expr.id

    def value(scope: Scope) -> Value:
        values = scope.values
        if name in values:
            return values[name]
        if name in _NAMED:
            return _NAMED[name]
        raise DefinitionError(f"{expr.span}: {name} has no value here")

    return value


def _binary(expr: ast.Binary) -> Evaluator:
    left, right, symbol = compiled(expr.left), compiled(expr.right), expr.operator
    if symbol == "and":
        return lambda scope: bool(left(scope)) and bool(right(scope))
    if symbol == "or":
        return lambda scope: bool(left(scope)) or bool(right(scope))
    if symbol in ARITHMETIC:
        return _arithmetic(expr, left, right)
    direct = _OF_INTEGERS.get(symbol)

    def compared(scope: Scope) -> Value:
        a, b = left(scope), right(scope)
        if type(a) is int and type(b) is int and direct is not None:
            found: bool = direct(a, b)
            return found
        return compare_values(expr, a, b)

    return compared


# what plain integers, which are most values, give without a look at what else they might be
_OF_INTEGERS: Mapping[str, Callable[[int, int], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _arithmetic(expr: ast.Binary, left: Evaluator, right: Evaluator) -> Evaluator:
    function, direct, is_sum = ARITHMETIC[expr.operator], _OF_INTEGERS.get(expr.operator), expr.operator == "+"

    def computed(scope: Scope) -> Value:
        a, b = left(scope), right(scope)
        if type(a) is int and type(b) is int and direct is not None:
            found: int = direct(a, b)
            return found
        if is_sum and isinstance(a, str) and isinstance(b, str):
            raise DefinitionError(f"{expr.span}: strings cannot be added")
        return spread(function, a, b)

    return computed


def compare_values(expr: ast.Binary, left: Value, right: Value) -> bool:
    left, right = plain(left), plain(right)
    if expr.operator in ("==", "!="):
        return same(left, right) is (expr.operator == "==")
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise DefinitionError(f"{expr.span}: {describe(left)} {expr.operator} {describe(right)} is not decided here")
    match expr.operator:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _reduction(expr: ast.Reduction) -> Evaluator:
    unrolled = expr.kind in ("all", "any") and all(binder.kind != "loops" for binder in expr.binders)
    test = truth_of(expr.body) if unrolled else None

    def reduced(scope: Scope) -> Value:
        if scope.elements is not None:
            return scope.elements(expr, scope)
        if test is not None:
            # without elements: of what types say, `all(m in count(xs)) (shape(xs[m]) == shape(xs[0]))`
            held = (test(inner) for inner in _inner_scopes(expr.binders, scope))
            return all(held) if expr.kind == "all" else any(held)
        raise DefinitionError(f"{expr.span}: elements are not known here")

    return reduced


def _comprehension(expr: ast.Comprehension) -> Evaluator:
    body = compiled(expr.body)
    test = None if expr.condition is None else truth_of(expr.condition)

    def listed(scope: Scope) -> Value:
        if len(expr.binders) == 1 and test is None:
            members = members_of(expr.binders[0].bound, scope)
            found = list_by_arrays(expr, members, scope, value_of) if len(members) >= MANY else None
            if found is not None:
                return found
        scopes = _inner_scopes(expr.binders, scope)
        return tuple([body(inner) for inner in scopes if test is None or test(inner)])

    return listed


def _inner_scopes(binders: Sequence[ast.Binder], scope: Scope) -> Iterable[Scope]:
    """The scope with all combinations of values that the binders can have."""
    if len(binders) == 1:
        return _along(binders[0].name, members_of(binders[0].bound, scope), scope)
    scopes = [scope]
    for binder in binders:
        scopes = [
            outer.with_values(**{binder.name: member}) for outer in scopes for member in members_of(binder.bound, outer)
        ]
    return scopes


def _along(name: str, members: Sequence[Value], scope: Scope) -> Iterator[Scope]:
    """A scope in which a name has one value after the other: it is the same scope each time."""
    inner = scope.with_values()
    for member in members:
        inner.values[name] = member
        yield inner


def members_of(bound: ast.Expression, scope: Scope) -> Sequence[Value]:
    value = plain(value_of(bound, scope))
    if isinstance(value, int) and value > MOST_MEMBERS:
        raise Unsupported(f"a list of {value} members is more than {MOST_MEMBERS}")
    return range(value) if isinstance(value, int) else as_list(value)


COMPILERS: dict[type[ast.Expression], Callable[[Any], Evaluator]] = {
    ast.Number: _literal,
    ast.Text: _literal,
    ast.Truth: _literal,
    ast.Name: _name,
    ast.ListOf: _list_of,
    ast.Unary: _unary,
    ast.Binary: _binary,
    Fact: _binary,
    ast.Conditional: _conditional,
    ast.Comprehension: _comprehension,
    ast.Reduction: _reduction,
}
