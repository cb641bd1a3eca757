"""Guards about the elements of constants: `all(*i < shape(c)) (c[*i] >= 0)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.builtins import FUNCTIONS, DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.elements import ELEMENT_FUNCTIONS, Elements
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.expr import Equation, Expr, Reduce, TensorType, tensors_read
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_equations
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.primitives import Array

LOOPED_OVER = 1 << 24
"""The largest constant of the model, in elements, over which a guard may loop."""
_RESULT = "%result"


def over_elements(array_of: Callable[[str], Array | None]) -> Callable[[ast.Reduction, Scope], Value]:
    """What computes loops over elements, given the elements of the tensors of a scope, None for those of no constant.

    A loop without elements has the value that its kind gives nothing: `all` holds, a `sum` is 0.
    """

    def value(expr: ast.Reduction, scope: Scope) -> Value:
        try:
            loop = _loop(expr, scope, "float32")
        except OutsideError as failure:
            raise DefinitionError(str(failure)) from failure
        arrays: dict[str, Array] = {}
        for name in loop.read:
            array = array_of(name)
            if array is None:
                raise Unsupported(f"the elements of {name} are not known, or too many to look at")
            arrays[name] = array
        try:
            found = evaluate_equations((loop.whole,), arrays)[_RESULT]
        except InterpretError as failure:
            raise DefinitionError(f"{expr.span}: {failure}") from failure
        made: Value = found.item()
        return made

    return value


@dataclass(frozen=True)
class _Loop:
    """A loop over elements.

    Attributes:
        body: the loop as an expression.
        whole: its value as an equation.
        places: what its body is at each of its places, as an equation.
        read: the tensors that it reads, in the order of their names.
    """

    body: Expr

    @lazy
    def whole(self) -> Equation:
        return Equation(_RESULT, (), self.body, TensorType(self.body.dtype, ()))

    @lazy
    def places(self) -> Equation:
        body, variables = self.body, tuple[Var, ...]()
        if isinstance(body, Reduce):
            variables, body = body.variables, body.body
        return Equation(_RESULT, variables, body, TensorType(body.dtype, tuple(var.extent for var in variables)))

    @lazy
    def read(self) -> list[str]:
        return sorted(tensors_read(self.body))


def _loop(expr: ast.Reduction, scope: Scope, dtype: str) -> _Loop:
    """A loop over elements with its literals in a dtype; the same again where all that it is made of is the same."""
    names = _DECIDING.get(expr, _deciding)
    if names is None or not scope.functions.keys().isdisjoint(_CALLED.get(expr, _called)):
        return _Loop(Elements(FreshNames()).build(expr, scope, dtype))
    parts = [(repr(scope.values.get(name, _MISSING)), scope.tensors.get(name, _MISSING)) for name in names]
    key = (dtype, *parts)
    known = _LOOPS.get(expr, lambda _: {})
    loop = known.get(key)
    if loop is None:
        loop = _Loop(Elements(FreshNames()).build(expr, scope, dtype))
        if len(known) == _MOST_LOOPS:
            known.clear()
        known[key] = loop
    return loop


def _deciding(expr: ast.Reduction) -> tuple[str, ...] | None:
    """The names whose values and types decide what a loop is; None where more does, as who reads a tensor."""
    known = FUNCTIONS.keys() | ELEMENT_FUNCTIONS | _OF_TYPES
    if any(isinstance(node, ast.Term) for node in nodes(expr)) or not _CALLED.get(expr, _called) <= known:
        return None
    return tuple(sorted(names_in(expr)))


def _called(expr: ast.Reduction) -> frozenset[str]:
    return frozenset(node.function for node in nodes(expr) if isinstance(node, ast.Call))


_OF_TYPES = frozenset({"shape", "rank", "extent", "dtype", "count", "present"})
_MISSING = None, "missing"
_MOST_LOOPS = 1 << 8
_DECIDING: ByIdentity[ast.Reduction, tuple[str, ...] | None] = ByIdentity(1 << 10)
_CALLED: ByIdentity[ast.Reduction, frozenset[str]] = ByIdentity(1 << 10)
_LOOPS: ByIdentity[ast.Reduction, dict[tuple[object, ...], _Loop]] = ByIdentity(1 << 8)


def uniform_value(array: Array) -> float | None:
    """The number that all elements equal, None where they differ or there are none."""
    if array.size == 0:
        return None
    flat = array.reshape(-1)
    first = flat[0]
    # a look at a few elements spares the whole scan of nearly every weight
    if flat[-1] != first or flat[len(flat) // 2] != first or flat[len(flat) // 3] != first:
        return None
    return float(first) if bool((flat == first).all()) else None


def at_each_place(expr: ast.Reduction, scope: Scope, arrays: Mapping[str, Array]) -> Array | None:
    """Where the body of a loop holds, row-major; None where the loop is no `all` over what can be computed."""
    return values_at_each_place(expr, scope, arrays) if expr.kind == "all" else None


def values_at_each_place(
    expr: ast.Reduction, scope: Scope, arrays: Mapping[str, Array], dtype: str = "float32"
) -> Array | None:
    """What the body of a loop is at each of its places, row-major; None where it cannot be computed.

    Args:
        dtype: the type of the numbers in the body.
    """
    body = body_of(expr, scope, dtype)
    return None if body is None else values_of(body, arrays)


def body_of(expr: ast.Reduction, scope: Scope, dtype: str = "float32") -> Equation | None:
    """The body of a loop as an equation over its places, for `values_of`; None where it has no meaning in a scope."""
    try:
        return _loop(expr, scope, dtype).places
    except (DefinitionError, Unsupported, OutsideError):
        return None


def values_of(body: Equation, arrays: Mapping[str, Array]) -> Array | None:
    """What the body of a loop is at each of its places, row-major; None where it cannot be computed."""
    if not set(tensors_read(body.body)) <= set(arrays):
        return None
    try:
        return evaluate_equations((body,), dict(arrays))[_RESULT].reshape(-1)
    except (DefinitionError, Unsupported, InterpretError):
        return None
