"""Evaluates compile-time expressions over shapes with unknowns.

What has no form of its own (a permutation by an attribute, a product of unknown extents) becomes an unknown that is
equal for equal arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from smartmem_rules.analysis.types.environment import Environment, Unproven
from smartmem_rules.analysis.types.shapes import Atom, Dim, Join, Rest, Shape, add, dim, scale
from smartmem_rules.analysis.types.symbolic_lists import LISTS, Symbolic, as_shape, axis, computed, product, rank
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """An element type, by the name that the environment knows, and a shape."""

    dtype: str
    shape: Shape


@dataclass
class Names:
    """What the names of an expression stand for; None for an absent tensor."""

    values: dict[str, Symbolic] = field(default_factory=dict)
    tensors: dict[str, Type | None] = field(default_factory=dict)


_FACTS = frozenset({"constant", "value", "uses", "near"})
"""Functions of what a type does not tell."""
_TOTAL = frozenset({"rank", "prod"})
"""Functions of lists that have a value for all lists."""


@dataclass
class Evaluator:
    """Evaluates under what an environment knows."""

    environment: Environment
    functions: Mapping[str, s.Function]

    def value(self, expr: s.Expression, names: Names) -> Symbolic:
        """The value of an expression.

        Raises:
            Unproven: on the right side, where it is not known to have one.
            Clash: it has none.
        """
        found = self._value(expr, names)
        if isinstance(found, Shape):
            return self.environment.shape(found)
        if isinstance(found, Dim):
            return self.environment.dim(found)
        if isinstance(found, Atom) and found.name in self.environment.shapes:
            return self.environment.shape(self.environment.shapes[found.name])
        return found

    def shape_of(self, items: tuple[s.Expression, ...], names: Names) -> Shape:
        """The list that bracketed items make."""
        made: list[Dim | Rest | Join] = []
        for item in items:
            if isinstance(item, s.Splat):
                made.extend(as_shape(self.value(item.operand, names)).segments)
            else:
                made.append(_as_dim(self.value(item, names)))
        return self.environment.shape(Shape(tuple(made)))

    def _value(self, expr: s.Expression, names: Names) -> Symbolic:
        match expr:
            case s.Number(value=int(value)):
                return Dim(value)
            case s.Number(value=value) | s.Text(value=value) | s.Truth(value=value):
                return value
            case s.Name(id=name):
                return self._name(name, names)
            case s.ListOf(items=items) if not any(isinstance(i, s.Text) for i in items):
                return self.shape_of(items, names)
            case s.Unary(operator="not", operand=operand):
                inner = self.value(operand, names)
                return not inner if isinstance(inner, bool) else self._unknown(expr, names, total=True)
            case s.Unary(operand=operand):
                inner = self.value(operand, names)
                return scale(inner, -1) if isinstance(inner, Dim) else self._unknown(expr, names)
            case s.Binary(operator="and" | "or"):
                return self._logic(expr, names)
            case s.Binary():
                return self._binary(expr, names)
            case s.Conditional():
                return self._conditional(expr, names)
            case s.Call():
                return self._call(expr, names)
            case s.Subscript(base=s.Expression() as base, items=(s.Expression() as item,), default=None):
                return self._element(expr, base, item, names)
            case _:
                return self._unknown(expr, names)

    def _name(self, name: str, names: Names) -> Symbolic:
        if name in names.values:
            return names.values[name]
        if name in ("inf", "nan"):
            return float(name)
        if name == "none":
            return None
        raise Unproven

    def _logic(self, expr: s.Binary, names: Names) -> Symbolic:
        deciding = expr.operator == "or"
        left = self.value(expr.left, names)
        if isinstance(left, bool):
            return left if left is deciding else self.value(expr.right, names)
        right = self.value(expr.right, names)
        if isinstance(right, bool):
            return right if right is deciding else left
        return Atom(expr.operator, (left, right), "?")

    def _binary(self, expr: s.Binary, names: Names) -> Symbolic:
        left, right = self.value(expr.left, names), self.value(expr.right, names)
        unknown = Atom(expr.operator, (left, right), "?")
        if expr.operator in ("==", "!="):
            same = self._same(left, right)
            return unknown if same is None else same is (expr.operator == "==")
        if not isinstance(left, Dim) or not isinstance(right, Dim):
            return unknown if expr.operator in "+-*" else self._known(unknown)
        difference = add(left, right, -1)
        if expr.operator in ("<", "<=", ">", ">="):
            if not difference.is_constant:
                return unknown
            d = difference.constant
            return {"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0}[expr.operator]
        match expr.operator:
            case "+":
                return add(left, right)
            case "-":
                return difference
            case "*" if left.is_constant or right.is_constant:
                return scale(right, left.constant) if left.is_constant else scale(left, right.constant)
            case "*":
                return product(self.environment, [Shape((left, right))])
            case "//" if left.is_constant and right.is_constant and right.constant > 0:
                return Dim(left.constant // right.constant)
            case "%" if left.is_constant and right.is_constant and right.constant > 0:
                return Dim(left.constant % right.constant)
            case _:
                return self._known(unknown)

    def _same(self, left: Symbolic, right: Symbolic) -> bool | None:
        """Whether two values are equal, None where that is not known."""
        if left == right and type(left) is type(right):
            return True
        if isinstance(left, Atom) or isinstance(right, Atom):
            return None
        if isinstance(left, Dim) and isinstance(right, Dim):
            return None if not add(left, right, -1).is_constant else False
        if isinstance(left, Shape) and isinstance(right, Shape):
            one, other = left.dims, right.dims
            return False if one is not None and other is not None and len(one) != len(other) else None
        return False

    def _conditional(self, expr: s.Conditional, names: Names) -> Symbolic:
        condition = self.value(expr.condition, names)
        if not isinstance(condition, bool) and self.environment.holds(condition):
            condition = True
        if isinstance(condition, bool):
            return self.value(expr.then if condition else expr.otherwise, names)
        environment = self.environment
        outer, environment.doubtful = environment.doubtful, False
        environment.supposed += 1
        try:
            then, otherwise = self.value(expr.then, names), self.value(expr.otherwise, names)
        finally:
            environment.supposed -= 1
            doubtful, environment.doubtful = environment.doubtful, outer
        if then == otherwise and not doubtful:
            return then
        unknown = Atom("if", (condition, then, otherwise), "?")
        return self._known(unknown) if doubtful else unknown

    # --- calls ---

    def _call(self, expr: s.Call, names: Names) -> Symbolic:
        if expr.function in _FACTS:
            return self._unknown(expr, names, total=True)
        query = self._query(expr, names)
        if query is not _NOT_A_QUERY:
            return query  # type: ignore[return-value]
        function = self.functions.get(expr.function)
        if function is not None:
            if any(isinstance(argument, s.Splat) for argument in expr.arguments):
                return self._unknown(expr, names)
            arguments = [self.value(argument, names) for argument in expr.arguments]
            return self.value(function.body, Names(dict(zip(function.parameters, arguments, strict=True))))
        if any(isinstance(a, s.Splat | s.Text) or _makes_texts(a) for a in expr.arguments):
            return self._unknown(expr, names)
        arguments = [self.value(argument, names) for argument in expr.arguments]
        known = LISTS.get(expr.function)
        made = known(self.environment, arguments) if known is not None else None
        if made is None:
            made = computed(expr.function, arguments)
        if made is not None:
            return made
        unknown = Atom(expr.function, tuple(arguments), "?")
        return unknown if expr.function in _TOTAL else self._known(unknown)

    def _query(self, expr: s.Call, names: Names) -> object:
        if expr.function not in ("shape", "extent", "dtype", "present", "rank", "count") or not expr.arguments:
            return _NOT_A_QUERY
        subject = expr.arguments[0]
        if not isinstance(subject, s.Name) or subject.id not in names.tensors:
            return self._presence(subject, names) if expr.function == "present" else _NOT_A_QUERY
        type_ = names.tensors[subject.id]
        if expr.function == "present":
            return type_ is not None
        if type_ is None:
            return self._unknown(expr, names)
        if expr.function == "dtype":
            return self._dtype(type_)
        if expr.function == "shape":
            return type_.shape
        if expr.function == "rank":
            return rank(type_.shape)
        if expr.function == "extent" and len(expr.arguments) == 2:
            position = self.value(expr.arguments[1], names)
            found = axis(self.environment.shape(type_.shape), position)
            return self._known(Atom("[]", (type_.shape, position), "?")) if found is None else found
        return self._unknown(expr, names)

    def _presence(self, subject: s.Expression, names: Names) -> Symbolic:
        value = self.value(subject, names)
        return Atom("present", (value,)) if isinstance(value, Atom) else value is not None

    def _dtype(self, type_: Type) -> Symbolic:
        name = self.environment.dtype(type_.dtype)
        allowed = self.environment.allowed[name]
        return next(iter(allowed)) if len(allowed) == 1 else Atom("dtype", (name,))

    def _element(self, expr: s.Expression, base: s.Expression, item: s.Expression, names: Names) -> Symbolic:
        if isinstance(item, s.Slice | s.Splat | s.Broadcast):
            return self._unknown(expr, names)
        items, place = self.value(base, names), self.value(item, names)
        found = axis(items, place) if isinstance(items, Shape) else None
        return self._known(Atom("[]", (items, place), "?")) if found is None else found

    # --- unknowns ---

    def _unknown(self, expr: s.Expression, names: Names, total: bool = False) -> Atom:
        """The value of an expression of which nothing is known but what it depends on."""
        used: list[object] = []
        for name in dict.fromkeys(node.id for node in nodes(expr) if isinstance(node, s.Name)):
            if name in names.tensors:
                type_ = names.tensors[name]
                used.append((name, None if type_ is None else (self.environment.dtype(type_.dtype), type_.shape)))
            elif name in names.values:
                used.append((name, names.values[name]))
        atom = Atom(repr(expr), tuple(used), "?")
        return atom if total else self._known(atom)

    def _known(self, atom: Atom) -> Atom:
        """An unknown that is known to have a value."""
        self.environment.known(atom)
        return atom


_NOT_A_QUERY = object()


def _makes_texts(expr: s.Expression) -> bool:
    return isinstance(expr, s.ListOf) and any(isinstance(item, s.Text) for item in expr.items)


def _as_dim(value: Symbolic) -> Dim:
    if isinstance(value, Dim):
        return value
    if isinstance(value, Atom):
        return dim(value)
    raise Unproven
