"""Evaluates compile-time expressions of the rule language: shapes, attributes, guards and index lists."""

from __future__ import annotations

from collections.abc import Callable

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.atoms import UNKNOWN_EXTENT
from smartmem_rules.tensor.builtins import (
    FUNCTIONS,
    ConstantTensor,
    DefinitionError,
    Unsupported,
    Value,
    as_list,
    constant_element,
    element_at,
    integers,
    plain,
)
from smartmem_rules.tensor.definitions.compiled import (
    COMPILERS,
    ERRORS,
    Evaluator,
    compare_values,
    compiled,
    evaluate,
    items_of,
    members_of,
    truth,
    value_of,
)
from smartmem_rules.tensor.definitions.scope import ABSENT, Scope, TensorList, TensorName
from smartmem_rules.tensor.expr import Compare, Condition, Logic, compare, logic
from smartmem_rules.tensor.index import Index, as_index
from smartmem_rules.tensor.ranges import agree
from smartmem_rules.tensor.substitution import gathered


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
            place = plain(value_of(expr.items[0], scope))
            if isinstance(place, int):
                return members.members[place]
    return ABSENT


_QUERIES = frozenset({"shape", "extent", "dtype", "count", "present"})


def _call(expr: ast.Call) -> Evaluator:
    name, arguments_of, built_in = expr.function, items_of(expr.arguments), FUNCTIONS.get(expr.function)
    query = _tensor_query(expr) if name in _QUERIES and expr.arguments else None

    def call(scope: Scope) -> Value:
        asked = scope.queries.get(name)
        if asked is not None:
            return asked(expr, scope)
        if query is not None:
            return query(scope)
        arguments = arguments_of(scope)
        function = scope.functions.get(name)
        if function is not None:
            local = Scope(dict(zip(function.parameters, arguments, strict=True)), {}, scope.functions, scope.queries)
            return value_of(function.body, local)
        if built_in is None:
            raise DefinitionError(f"{expr.span}: {name} is not known before the model runs")
        try:
            return built_in(*arguments)
        except (DefinitionError, *ERRORS) as error:
            raise DefinitionError(f"{expr.span}: {error}") from error

    return call


def _tensor_query(expr: ast.Call) -> Evaluator:
    name, subject = expr.function, expr.arguments[0]
    valued, place_of = compiled(subject), compiled(expr.arguments[1]) if len(expr.arguments) > 1 else None

    def of_value(scope: Scope) -> Value:
        value = valued(scope)
        if name == "present":
            return value is not None
        if name == "shape" and isinstance(value, ConstantTensor):
            return value.shape
        if name == "dtype" and isinstance(value, ConstantTensor):
            return value.dtype
        if name == "count":
            return len(as_list(value))
        raise DefinitionError(f"{expr.span}: {name} needs a tensor")

    def query(scope: Scope) -> Value:
        tensor = tensor_of(subject, scope)
        if tensor is ABSENT:
            return of_value(scope)
        if name == "present":
            return tensor is not None
        if name == "count":
            return len(tensor.members) if isinstance(tensor, TensorList) else 1
        if not isinstance(tensor, TensorName):
            raise DefinitionError(f"{expr.span}: the tensor is absent")
        if name == "dtype":
            return tensor.type.dtype
        if name == "shape":
            return tensor.type.shape
        if place_of is None:
            raise IndexError("tuple index out of range")
        return element_at(tensor.type.shape, place_of(scope))

    return query


def _subscript(expr: ast.Subscript) -> Evaluator:
    base_of, element_of = compiled(expr.base), _element(expr)

    def subscript(scope: Scope) -> Value:
        tensor = tensor_of(expr.base, scope)
        if isinstance(tensor, TensorName):
            return _integer_read(expr, tensor, scope)
        return element_of(base_of(scope), scope)

    return subscript


def _element(expr: ast.Subscript) -> Callable[[Value, Scope], Value]:
    """What a subscript takes of the value of its base."""
    positions = items_of(expr.items)
    part = expr.items[0] if len(expr.items) == 1 and isinstance(expr.items[0], ast.Slice) else None

    def element(base: Value, scope: Scope) -> Value:
        if isinstance(base, ConstantTensor):
            return constant_element(base, positions(scope))
        if part is not None:
            low, high = (
                None if bound is None else integers(value_of(bound, scope))[0] for bound in (part.low, part.high)
            )
            return as_list(base)[low:high]
        (position,) = positions(scope)
        return element_at(base, position)

    return element


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
            result.extend(as_list(value_of(item.operand, scope)))
        elif isinstance(item, ast.Broadcast):
            aligned = as_list(value_of(item.operand, scope))
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
            result.append(_one_index(value_of(item, scope), item))
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


def condition(expr: ast.Expression, scope: Scope) -> Condition | bool:
    """A condition over indices, decided as far as intervals allow."""
    match expr:
        case ast.Binary(operator="and" | "or" as operator, left=left, right=right):
            return logic(operator, (condition(left, scope), condition(right, scope)))
        case ast.Unary(operator="not", operand=operand):
            return logic("not", (condition(operand, scope),))
        case ast.Binary(operator="<" | "<=" | ">" | ">=" | "==" | "!=" as operator):
            first, second = value_of(expr.left, scope), value_of(expr.right, scope)
            if not isinstance(first, Index) and not isinstance(second, Index):
                return compare_values(expr, first, second)
            a, b = as_index(first), as_index(second)  # type: ignore[arg-type]
            if operator in (">", ">="):
                return compare("<" if operator == ">" else "<=", b, a)
            return compare(operator, a, b)
        case ast.Reduction(kind="all" | "any" as kind, binders=(ast.Binder(kind="unrolled") as binder,), body=body):
            members = (scope.with_values(**{binder.name: member}) for member in members_of(binder.bound, scope))
            return logic("and" if kind == "all" else "or", tuple(condition(body, inner) for inner in members))
        case _:
            return truth(expr, scope)


__all__ = [
    "ABSENT",
    "Compare",
    "Logic",
    "Scope",
    "TensorList",
    "TensorName",
    "Unsupported",
    "condition",
    "evaluate",
    "truth",
]


# what names tensors is compiled here, beside what else is asked of them
COMPILERS[ast.Call] = _call
COMPILERS[ast.Subscript] = _subscript
