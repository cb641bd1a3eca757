"""Evaluates compile-time expressions of the rule language: shapes, attributes, guards and index lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import UNKNOWN_EXTENT
from smartmem_rules.tensor.builtins import (
    ARITHMETIC,
    FUNCTIONS,
    ConstantTensor,
    DefinitionError,
    Unsupported,
    Value,
    as_list,
    constant_element,
    describe,
    element_at,
    integers,
    plain,
    spread,
)
from smartmem_rules.tensor.definitions.columns import MANY, list_by_arrays
from smartmem_rules.tensor.expr import Compare, Condition, Logic, TensorType, compare, logic
from smartmem_rules.tensor.index import Index, as_index
from smartmem_rules.tensor.ranges import agree, same
from smartmem_rules.tensor.substitution import gathered

MOST_MEMBERS = 1 << 22
"""Members of a list that a definition counts out, as the places of a window along an axis."""


@dataclass(frozen=True)
class TensorName:
    """A tensor of the operator: the name that equations use for it and its type."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class TensorList:
    """A variadic operand."""

    members: Sequence[TensorName]


ABSENT = object()


@dataclass
class Scope:
    """The names visible to an expression."""

    values: dict[str, Value] = field(default_factory=dict)
    tensors: dict[str, TensorName | TensorList | None] = field(default_factory=dict)
    functions: Mapping[str, ast.Function] = field(default_factory=dict)
    queries: Mapping[str, Callable[..., Value]] = field(default_factory=dict)
    term: Callable[[ast.Pattern], TensorType | None] | None = None
    """The type of a term that a rule names."""
    elements: Callable[[ast.Reduction, Scope], Value] | None = None
    """The value of a loop over the elements of constants."""

    def with_values(self, **values: Value) -> Scope:
        return Scope({**self.values, **values}, self.tensors, self.functions, self.queries, self.term, self.elements)


def evaluate(expr: ast.Expression, scope: Scope) -> Value:
    """The value of an expression.

    Raises:
        DefinitionError: the expression cannot be computed; the message begins with its place.
        Unsupported: `fail(...)` was reached or an operator's requirement does not hold.
    """
    try:
        return _evaluate(expr, scope)
    except (IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise DefinitionError(f"{expr.span}: {error}") from error


def truth(expr: ast.Expression, scope: Scope) -> bool:
    value = evaluate(expr, scope)
    if isinstance(value, bool):
        return value
    raise DefinitionError(f"{expr.span}: a condition is needed, not {describe(value)}")


def _evaluate(expr: ast.Expression, scope: Scope) -> Value:
    evaluator = _EVALUATORS.get(type(expr))
    if evaluator is None:
        raise DefinitionError(f"{expr.span}: this cannot be computed before the model runs")
    return evaluator(expr, scope)


def _literal(expr: ast.Number | ast.Text | ast.Truth, _: Scope) -> Value:
    return expr.value


def _list_of(expr: ast.ListOf, scope: Scope) -> Value:
    return expand(expr.items, scope)


def _unary(expr: ast.Unary, scope: Scope) -> Value:
    operand = _evaluate(expr.operand, scope)
    return spread(lambda v: ARITHMETIC["*"](v, -1), operand) if expr.operator == "-" else not operand


def _conditional(expr: ast.Conditional, scope: Scope) -> Value:
    return _evaluate(expr.then if truth(expr.condition, scope) else expr.otherwise, scope)


def _name(expr: ast.Name, scope: Scope) -> Value:
    name = expr.id
    if name in scope.values:
        return scope.values[name]
    constants: dict[str, Value] = {"inf": float("inf"), "nan": float("nan"), "none": None}
    if name in constants:
        return constants[name]
    raise DefinitionError(f"{expr.span}: {name} has no value here")


def expand(items: tuple[ast.Expression, ...], scope: Scope) -> tuple[Value, ...]:
    """The values of bracketed items, with `*lists` spliced in."""
    result: list[Value] = []
    for item in items:
        if isinstance(item, ast.Splat):
            result.extend(as_list(_evaluate(item.operand, scope)))
        else:
            result.append(_evaluate(item, scope))
    return tuple(result)


def _binary(expr: ast.Binary, scope: Scope) -> Value:
    if expr.operator == "and":
        return bool(_evaluate(expr.left, scope)) and bool(_evaluate(expr.right, scope))
    if expr.operator == "or":
        return bool(_evaluate(expr.left, scope)) or bool(_evaluate(expr.right, scope))
    left, right = _evaluate(expr.left, scope), _evaluate(expr.right, scope)
    if expr.operator in ARITHMETIC:
        if expr.operator == "+" and isinstance(left, str) and isinstance(right, str):
            raise DefinitionError(f"{expr.span}: strings cannot be added")
        return spread(ARITHMETIC[expr.operator], left, right)
    return _compare(expr, left, right)


def _compare(expr: ast.Binary, left: Value, right: Value) -> bool:
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


def tensor_of(expr: ast.Expression, scope: Scope) -> TensorName | TensorList | object | None:
    """The tensor that an expression names, None for an absent optional one, ABSENT if it names no tensor."""
    if isinstance(expr, ast.Name):
        return scope.tensors.get(expr.id, ABSENT)
    if isinstance(expr, ast.Term) and scope.term is not None:
        type_ = scope.term(expr.pattern)
        return None if type_ is None else TensorName("", type_)
    if isinstance(expr, ast.Subscript) and isinstance(expr.base, ast.Name):
        members = scope.tensors.get(expr.base.id)
        if isinstance(members, TensorList) and len(expr.items) == 1:
            place = plain(_evaluate(expr.items[0], scope))
            if isinstance(place, int):
                return members.members[place]
    return ABSENT


def _call(expr: ast.Call, scope: Scope) -> Value:
    if expr.function in scope.queries:
        return scope.queries[expr.function](expr, scope)
    if expr.function in ("shape", "extent", "dtype", "count", "present") and expr.arguments:
        return _tensor_query(expr, scope)
    arguments = expand(expr.arguments, scope)
    function = scope.functions.get(expr.function)
    if function is not None:
        local = Scope(dict(zip(function.parameters, arguments, strict=True)), {}, scope.functions, scope.queries)
        return _evaluate(function.body, local)
    if expr.function not in FUNCTIONS:
        raise DefinitionError(f"{expr.span}: {expr.function} is not known before the model runs")
    try:
        return FUNCTIONS[expr.function](*arguments)
    except (DefinitionError, IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise DefinitionError(f"{expr.span}: {error}") from error


def _tensor_query(expr: ast.Call, scope: Scope) -> Value:
    subject = expr.arguments[0]
    tensor = tensor_of(subject, scope)
    if tensor is ABSENT:
        value = _evaluate(subject, scope)
        if expr.function == "present":
            return value is not None
        if expr.function == "shape" and isinstance(value, ConstantTensor):
            return value.shape
        if expr.function == "dtype" and isinstance(value, ConstantTensor):
            return value.dtype
        if expr.function == "count":
            return len(as_list(value))
        raise DefinitionError(f"{expr.span}: {expr.function} needs a tensor")
    if expr.function == "present":
        return tensor is not None
    if expr.function == "count":
        return len(tensor.members) if isinstance(tensor, TensorList) else 1
    if not isinstance(tensor, TensorName):
        raise DefinitionError(f"{expr.span}: the tensor is absent")
    if expr.function == "dtype":
        return tensor.type.dtype
    if expr.function == "shape":
        return tensor.type.shape
    return element_at(tensor.type.shape, _evaluate(expr.arguments[1], scope))


def _subscript(expr: ast.Subscript, scope: Scope) -> Value:
    tensor = tensor_of(expr.base, scope)
    if isinstance(tensor, TensorName):
        return _integer_read(expr, tensor, scope)
    base = _evaluate(expr.base, scope)
    if isinstance(base, ConstantTensor):
        return constant_element(base, expand(expr.items, scope))
    if len(expr.items) == 1 and isinstance(expr.items[0], ast.Slice):
        low, high = (
            None if bound is None else integers(_evaluate(bound, scope))[0]
            for bound in (expr.items[0].low, expr.items[0].high)
        )
        return as_list(base)[low:high]
    (position,) = expand(expr.items, scope)
    return element_at(base, position)


def _integer_read(expr: ast.Subscript, tensor: TensorName, scope: Scope) -> Value:
    """An element of an integer tensor inside an index."""
    if not tensor.type.dtype.startswith(("int", "uint")):
        raise DefinitionError(f"{expr.span}: an element of the {tensor.type.dtype} tensor is used as an index")
    indices = tuple(as_index(i) for i in read_indices(expr, tensor, scope))  # type: ignore[arg-type]
    return gathered(tensor.name, indices, UNKNOWN_EXTENT, False)


def read_indices(expr: ast.Subscript, tensor: TensorName, scope: Scope) -> tuple[Value, ...]:
    """The indices of a tensor read, with `~lists` aligned to the tensor's own axes."""
    result: list[Value] = []
    rank = len(tensor.type.shape)
    for item in expr.items:
        if isinstance(item, ast.Splat):
            result.extend(as_list(_evaluate(item.operand, scope)))
        elif isinstance(item, ast.Broadcast):
            aligned = as_list(_evaluate(item.operand, scope))
            others = len(expr.items) - 1
            width = rank - others
            if width > len(aligned):
                raise DefinitionError(f"{expr.span}: the tensor has more axes than ~ gives indices")
            aligned = aligned[len(aligned) - width :]
            extents = tensor.type.shape[len(result) : len(result) + width]
            result.extend(
                i if _runs_over(i, n) or not agree(n, 1) else 0 for i, n in zip(aligned, extents, strict=True)
            )
        else:
            result.append(_one_index(_evaluate(item, scope), item))
    if len(result) != rank:
        raise DefinitionError(f"{expr.span}: {len(result)} indices for a tensor of rank {rank}")
    return tuple(result)


def _one_index(index: Value, item: ast.Expression) -> Value:
    if isinstance(index, tuple):
        raise DefinitionError(f"{item.span}: this index is a list; `*` before it gives one index for each axis")
    return index


def _runs_over(index: Value, extent: int) -> bool:
    """Whether an index is the loop variable of an axis of this extent: it need not be known whether that is 1."""
    return isinstance(index, Index) and index.loop is not None and index.loop.extent == extent


def _reduction(expr: ast.Reduction, scope: Scope) -> Value:
    if scope.elements is not None:
        return scope.elements(expr, scope)
    if expr.kind in ("all", "any") and all(binder.kind != "loops" for binder in expr.binders):
        # without elements: of what types say, `all(m in count(xs)) (shape(xs[m]) == shape(xs[0]))`
        held = (truth(expr.body, inner) for inner in _inner_scopes(expr.binders, scope))
        return all(held) if expr.kind == "all" else any(held)
    raise DefinitionError(f"{expr.span}: elements are not known here")


def _comprehension(expr: ast.Comprehension, scope: Scope) -> Value:
    if len(expr.binders) == 1 and expr.condition is None:
        members = _members(expr.binders[0].bound, scope)
        found = list_by_arrays(expr, members, scope, _evaluate) if len(members) >= MANY else None
        if found is not None:
            return found
    scopes = _inner_scopes(expr.binders, scope)
    chosen = (inner for inner in scopes if expr.condition is None or truth(expr.condition, inner))
    return tuple(_evaluate(expr.body, inner) for inner in chosen)


def _inner_scopes(binders: Sequence[ast.Binder], scope: Scope) -> Sequence[Scope]:
    """The scope with all combinations of values that the binders can have."""
    scopes = [scope]
    for binder in binders:
        scopes = [
            outer.with_values(**{binder.name: member}) for outer in scopes for member in _members(binder.bound, outer)
        ]
    return scopes


def _members(bound: ast.Expression, scope: Scope) -> Sequence[Value]:
    value = plain(_evaluate(bound, scope))
    if isinstance(value, int) and value > MOST_MEMBERS:
        raise Unsupported(f"a list of {value} members is more than {MOST_MEMBERS}")
    return range(value) if isinstance(value, int) else as_list(value)


def condition(expr: ast.Expression, scope: Scope) -> Condition | bool:
    """A condition over indices, decided as far as intervals allow."""
    match expr:
        case ast.Binary(operator="and" | "or" as operator, left=left, right=right):
            return logic(operator, (condition(left, scope), condition(right, scope)))
        case ast.Unary(operator="not", operand=operand):
            return logic("not", (condition(operand, scope),))
        case ast.Binary(operator="<" | "<=" | ">" | ">=" | "==" | "!=" as operator):
            first, second = _evaluate(expr.left, scope), _evaluate(expr.right, scope)
            if not isinstance(first, Index) and not isinstance(second, Index):
                return _compare(expr, first, second)
            a, b = as_index(first), as_index(second)  # type: ignore[arg-type]
            if operator in (">", ">="):
                return compare("<" if operator == ">" else "<=", b, a)
            return compare(operator, a, b)
        case ast.Reduction(kind="all" | "any" as kind, binders=(ast.Binder(kind="unrolled") as binder,), body=body):
            members = (scope.with_values(**{binder.name: member}) for member in _members(binder.bound, scope))
            return logic("and" if kind == "all" else "or", tuple(condition(body, inner) for inner in members))
        case _:
            return truth(expr, scope)


__all__ = ["ABSENT", "Compare", "Logic", "Scope", "TensorList", "TensorName", "Unsupported", "condition", "evaluate"]


# by type, because definitions are evaluated often and a chain of patterns is slow
_EVALUATORS: dict[type[ast.Expression], Callable[[Any, Scope], Value]] = {
    ast.Number: _literal,
    ast.Text: _literal,
    ast.Truth: _literal,
    ast.Name: _name,
    ast.ListOf: _list_of,
    ast.Unary: _unary,
    ast.Binary: _binary,
    Fact: _binary,
    ast.Conditional: _conditional,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Comprehension: _comprehension,
    ast.Reduction: _reduction,
}
