"""Long lists of the rule language computed by arrays: each operation once for all members of the list.

The tables of a `Resize` have as many elements as its result has rows. Arrays give the same numbers as Python does, bit
for bit. What they do not, or not surely, is left to the caller, which computes the members one by one: integers beyond
2 ** 53, values that are not finite, members of which some are integers and others are not, and every error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import (
    ARITHMETIC,
    FUNCTIONS,
    DefinitionError,
    Unsupported,
    Value,
    element_at,
    spread,
)

if TYPE_CHECKING:
    from smartmem_rules.tensor.definitions.values import Scope

MANY = 64
"""From so many members on a list is computed by arrays."""
_EXACT = 1 << 53
"""Integers up to this are numbers of float64, too."""
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]
Evaluate = Callable[[ast.Expression, "Scope"], Value]


class NotByArraysError(Exception):
    """Arrays do not surely give what Python's numbers give."""


@dataclass(frozen=True, eq=False)
class Column:
    """One number, or truth value, for each member: all integers, all floats or all truth values."""

    values: Array

    def __post_init__(self) -> None:
        match self.values.dtype.kind:
            case "i":
                fits = bool((np.abs(self.values) <= _EXACT).all())
            case "f":
                fits = bool(np.isfinite(self.values).all())
            case _:
                fits = self.values.dtype.kind == "b"
        if not fits:
            raise NotByArraysError

    def taken(self, mask: Array) -> Column:
        return Column(self.values[mask])


def list_by_arrays(
    expr: ast.Comprehension, members: Sequence[Value], scope: Scope, evaluate: Evaluate
) -> tuple[Value, ...] | None:
    """The elements of `[body for name in members]`; None where they have to be computed one by one.

    Args:
        evaluate: gives the value of an expression that does not depend on the member.
    """
    if len({*map(type, members)}) != 1 or type(members[0]) not in (int, float):
        return None
    (binder,) = expr.binders
    try:
        with np.errstate(all="ignore"):
            numbers = Column(np.array(members, np.int64 if type(members[0]) is int else np.float64))
            made = _Members(scope, {binder.name: numbers}, evaluate).value(expr.body)
    except (NotByArraysError, DefinitionError, Unsupported, ArithmeticError, LookupError, ValueError, TypeError):
        return None  # an error is raised again for the first member that has it
    return tuple(_rows(made, len(members)))


@dataclass(frozen=True)
class _Members:
    """Evaluates expressions for all members at once.

    Attributes:
        scope: the names that do not depend on the member.
        columns: those that do: a `Column`, or a list with columns in it.
    """

    scope: Scope
    columns: Mapping[str, Any]
    evaluate: Evaluate

    def value(self, expr: ast.Expression) -> Any:
        """A value as the scope has them, a `Column`, or a list of these."""
        if not any(isinstance(node, ast.Name) and node.id in self.columns for node in nodes(expr)):
            return self.evaluate(expr, self.scope)
        match expr:
            case ast.Name(id=name):
                return self.columns[name]
            case ast.Unary(operator="-", operand=operand):
                return spread(lambda v: _applied("*", v, -1), self.value(operand))
            case ast.Unary(operand=operand):
                return Column(~_truths(self.value(operand)))
            case ast.Binary(operator="and" | "or"):
                return self._logical(expr)
            case ast.Binary(operator=sign, left=left, right=right) if sign in _COMPARISONS:
                return Column(_COMPARISONS[sign](_number(self.value(left)), _number(self.value(right))))
            case ast.Binary(operator=sign, left=left, right=right):
                return spread(lambda a, b: _applied(sign, a, b), self.value(left), self.value(right))
            case ast.Conditional():
                return self._conditional(expr)
            case ast.Call():
                return self._call(expr)
            case ast.ListOf(items=items):
                return self._items(items)
            case ast.Comprehension():
                return self._comprehension(expr)
            case ast.Subscript(base=base, items=(item,)) if not isinstance(item, ast.Slice):
                return self._element(self.value(base), self.value(item))
            case _:
                raise NotByArraysError

    def _logical(self, expr: ast.Binary) -> Any:
        is_and = expr.operator == "and"
        left = self.value(expr.left)
        if not isinstance(left, Column):
            return self.value(expr.right) if bool(left) is is_and else not is_and
        right = self.value(expr.right)
        if not isinstance(right, Column):
            return left if bool(right) is is_and else not is_and
        join = np.logical_and if is_and else np.logical_or
        return Column(join(_truths(left), _truths(right)))

    def _conditional(self, expr: ast.Conditional) -> Any:
        """Each branch is computed for those members alone that take it."""
        condition = self.value(expr.condition)
        if isinstance(condition, bool):
            return self.value(expr.then if condition else expr.otherwise)
        mask = _truths(condition)
        if mask.all() or not mask.any():
            return self.value(expr.then if mask.all() else expr.otherwise)
        return _merged(mask, self._where(mask).value(expr.then), self._where(~mask).value(expr.otherwise))

    def _where(self, mask: Array) -> _Members:
        return _Members(self.scope, {name: _taken(v, mask) for name, v in self.columns.items()}, self.evaluate)

    def _call(self, expr: ast.Call) -> Any:
        if expr.function in self.scope.queries:
            raise NotByArraysError
        arguments = self._items(expr.arguments)
        function = self.scope.functions.get(expr.function)
        if function is None:
            return _builtin(expr.function, arguments)
        named = dict(zip(function.parameters, arguments, strict=True))
        columns = {name: value for name, value in named.items() if _has_column(value)}
        values = {name: value for name, value in named.items() if name not in columns}
        scope = type(self.scope)(values, {}, self.scope.functions, self.scope.queries)
        return _Members(scope, columns, self.evaluate).value(function.body)

    def _items(self, items: Sequence[ast.Expression]) -> tuple[Any, ...]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, ast.Splat):
                found.extend(_list(self.value(item.operand)))
            else:
                found.append(self.value(item))
        return tuple(found)

    def _comprehension(self, expr: ast.Comprehension) -> tuple[Any, ...]:
        inner = [self]
        for binder in expr.binders:
            inner = [one._with(binder.name, member) for one in inner for member in one._members(binder.bound)]
        if expr.condition is not None:
            inner = [one for one in inner if one._is_true(expr.condition)]
        return tuple(one.value(expr.body) for one in inner)

    def _members(self, bound: ast.Expression) -> Sequence[Any]:
        value = self.value(bound)
        return range(value) if type(value) is int else _list(value)

    def _with(self, name: str, value: Any) -> _Members:
        if _has_column(value):
            return _Members(self.scope, {**self.columns, name: value}, self.evaluate)
        columns = {known: column for known, column in self.columns.items() if known != name}
        return _Members(self.scope.with_values(**{name: value}), columns, self.evaluate)

    def _is_true(self, condition: ast.Expression) -> bool:
        found = self.value(condition)
        if not isinstance(found, bool):
            raise NotByArraysError
        return found

    @staticmethod
    def _element(items: Any, position: Any) -> Any:
        if isinstance(items, Column) or isinstance(position, Column):
            raise NotByArraysError
        return element_at(items, position)


def _has_column(value: Any) -> bool:
    return isinstance(value, Column) or (isinstance(value, tuple) and any(map(_has_column, value)))


def _taken(value: Any, mask: Array) -> Any:
    """The value for those members alone for which the mask is true."""
    if isinstance(value, Column):
        return value.taken(mask)
    return tuple(_taken(v, mask) for v in value) if isinstance(value, tuple) else value


def _merged(mask: Array, then: Any, otherwise: Any) -> Any:
    """What members have of which the mask says whether they are the next of `then` or of `otherwise`."""
    if isinstance(then, tuple) and isinstance(otherwise, tuple) and len(then) == len(otherwise):
        return tuple(_merged(mask, a, b) for a, b in zip(then, otherwise, strict=True))
    a, b = _number(then), _number(otherwise)
    if a.dtype != b.dtype:
        raise NotByArraysError
    merged = np.empty(mask.shape, a.dtype)
    merged[mask], merged[~mask] = a, b
    return Column(merged)


def _rows(value: Any, count: int) -> Sequence[Value]:
    """The value of each member."""
    if isinstance(value, Column):
        return value.values.tolist()  # type: ignore[no-any-return]
    if isinstance(value, tuple) and value and _has_column(value):
        return [*zip(*(_rows(v, count) for v in value), strict=True)]
    return [value] * count


def _list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise NotByArraysError
    return value


def _truths(value: Any) -> Array:
    if not isinstance(value, Column) or value.values.dtype.kind != "b":
        raise NotByArraysError
    return value.values


def _number(value: Any) -> Array:
    """The numbers of a column, or a number as an array without axes."""
    if isinstance(value, Column) and value.values.dtype.kind != "b":
        return value.values
    if type(value) in (int, float):
        return Column(np.array(value, np.int64 if type(value) is int else np.float64)).values
    raise NotByArraysError


# --- arithmetic and functions of numbers ---


def _applied(sign: str, a: Any, b: Any) -> Any:
    """An operator of two numbers of which each may be a column."""
    if not isinstance(a, Column) and not isinstance(b, Column):
        return ARITHMETIC[sign](a, b)
    return Column(_ARITHMETIC[sign](_number(a), _number(b)))


def _product(a: Array, b: Array) -> Array:
    if a.dtype.kind == b.dtype.kind == "i" and int(np.abs(a).max()) * int(np.abs(b).max()) > _EXACT:
        raise NotByArraysError
    return a * b


def _divisor(b: Array) -> Array:
    if (b == 0).any():
        raise NotByArraysError
    return b


def _power(a: Array, b: Array) -> Array:
    # numpy's powers may differ from those of the C library in the last bit
    if b.ndim:
        raise NotByArraysError
    exponent = b.item()
    powers = [ARITHMETIC["**"](value, exponent) for value in a.tolist()]
    if len({*map(type, powers)}) != 1:
        raise NotByArraysError
    return np.array(powers)


def _extreme(is_better: Callable[[Any, Any], Any], *values: Array) -> Array:
    """The first of the best values, as Python's `max` and `min` choose it."""
    best, *others = values
    for value in others:
        if value.dtype != best.dtype:
            raise NotByArraysError
        best = np.where(is_better(value, best), value, best)
    return best


def _least(*values: Array) -> Array:
    return _extreme(operator.lt, *values)


def _greatest(*values: Array) -> Array:
    return _extreme(operator.gt, *values)


def _whole(values: Array) -> Array:
    """Floats without a fraction as integers."""
    if (np.abs(values) > _EXACT).any() or (values != np.trunc(values)).any():
        raise NotByArraysError
    return values.astype(np.int64)


def _single(values: Array) -> Array:
    return values.astype(np.float32).astype(np.float64)


_ARITHMETIC: Mapping[str, Callable[[Array, Array], Array]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _product,
    "//": lambda a, b: a // _divisor(b),
    "%": lambda a, b: a % _divisor(b),
    "/": lambda a, b: a / _divisor(b),
    "**": _power,
}
_ELEMENTWISE: Mapping[str, Callable[..., Array]] = {
    "abs": np.abs,
    "sign": lambda x: (x > 0).astype(np.int64) - (x < 0),
    "floor": lambda x: _whole(np.floor(x)),
    "ceil": lambda x: _whole(np.ceil(x)),
    "round": lambda x: _whole(np.rint(x)),
    "int": lambda x: _whole(np.trunc(x)),
    "single": _single,
    "sqrt": np.sqrt,
    "min": _least,
    "max": _greatest,
    "clamp": lambda x, low, high: _least(_greatest(x, low), high),
    "ceil_div": lambda a, b: -(-_whole(a) // _divisor(_whole(b))),
}


def _builtin(name: str, arguments: tuple[Any, ...]) -> Any:
    """A compile-time function of values of which some have columns."""
    if not any(map(_has_column, arguments)):
        return FUNCTIONS[name](*arguments)
    if name == "sum_of":
        return reduce(lambda a, b: _applied("+", a, b), _list(*arguments), 0)
    if name in ("min", "max") and len(arguments) == 1:
        arguments = _list(*arguments)
    computed = _ELEMENTWISE.get(name)
    if computed is None:
        raise NotByArraysError

    def one(*scalars: Any) -> Any:
        if not any(isinstance(v, Column) for v in scalars):
            return FUNCTIONS[name](*scalars)
        return Column(computed(*map(_number, scalars)))

    return spread(one, *arguments)
