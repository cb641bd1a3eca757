"""Whether any values satisfy the guards of a rule, by an SMT solver.

Everything that the solver cannot compute with (shapes, functions of lists) stands for an unknown value of its own, so
that "no values" is certain and "some values" is not.  Without z3 (the extra `verify`) nothing is claimed.
"""

from __future__ import annotations

import importlib.util
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.vocabulary import GIVING_LISTS

TIMEOUT_MS = 2000
_SMALL = (1, 2, 0, 3, 4, 6, -1, 7, 12)
_MOST_SEARCHED = 4
_AT_LEAST_ONE = ("uses", "count")
"""Of what is counted; a rank may be 0, and so is the extent of an empty tensor."""


def has_solver() -> bool:
    """Whether z3 is installed."""
    return importlib.util.find_spec("z3") is not None


def satisfiable(guards: Sequence[s.Expression], positive: frozenset[str] = frozenset()) -> bool | None:
    """Whether values exist that satisfy all guards; None where that is not known.

    Args:
        positive: names of integers above zero.
    """
    guards = [*guards, *_axes_there(guards), *_entries(guards)]
    if not guards or (not positive and _few_values_satisfy(guards)):
        return True
    if not has_solver():
        return None
    import z3  # type: ignore[import-untyped]

    translation = _Translation(z3, _fractions(guards))
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    try:
        for guard in guards:
            solver.add(translation.truth(guard))
        for name in positive:
            solver.add(translation.number(s.Name(s.NOWHERE, name)) > 0)
    except (z3.Z3Exception, OverflowError, ValueError):
        return None
    for fact in translation.facts:
        solver.add(fact)
    answer = solver.check()
    return None if answer == z3.unknown else bool(answer == z3.sat)


def _axes_there(guards: Sequence[s.Expression]) -> Iterator[s.Expression]:
    """That a tensor has the axes whose extents are compared: without them the comparison does not hold."""
    for guard in conjuncts(*guards):
        if not isinstance(guard, s.Binary) or guard.operator not in _COMPARISONS:
            continue
        for side in (guard.left, guard.right):
            match side:
                case s.Call(function="extent", arguments=(s.Name() as tensor, axis)):
                    yield from _within_rank(tensor, axis)
                case s.Subscript(base=s.Call(function="shape", arguments=(s.Name() as tensor,)), items=(axis,)) if (
                    not isinstance(axis, s.Slice)
                ):
                    yield from _within_rank(tensor, axis)
                case _:
                    pass


def _entries(guards: Sequence[s.Expression]) -> Iterator[s.Expression]:
    """What equations of lists say of their lengths and entries: `p == [1, 0]`, `shape(x) == [2, 3]`, `p == q`."""
    for guard in conjuncts(*guards):
        match guard:
            case s.Binary(operator="==", left=s.Name() as one, right=s.Name() as other):
                ranks = (s.Call(guard.span, "rank", (name,)) for name in (one, other))
                yield s.Binary(guard.span, "==", *ranks)
            case (
                s.Binary(operator="==", left=known, right=s.ListOf(items=items))
                | s.Binary(operator="==", left=s.ListOf(items=items), right=known)
            ) if not any(isinstance(item, s.Splat) for item in items):
                yield from _entries_of(known, items)
            case _:
                pass


def _entries_of(known: s.Expression, items: Sequence[s.Expression]) -> Iterator[s.Expression]:
    """The length and the entries of a list that a name or the shape of a tensor stands for, counted from both ends."""
    shape = isinstance(known, s.Call) and known.function == "shape"
    if not shape and not isinstance(known, s.Name):
        return
    span, owner = known.span, known.arguments[0] if isinstance(known, s.Call) else known
    yield s.Binary(span, "==", s.Call(span, "rank", (owner,)), s.Number(span, len(items)))
    for place, item in enumerate(items):
        places = (s.Number(span, place), s.Unary(span, "-", s.Number(span, len(items) - place)))
        for at in places:
            yield s.Binary(span, "==", s.Subscript(span, known, (at,), None), item)
            if shape:
                yield s.Binary(span, "==", s.Call(span, "extent", (owner, at)), item)


def _within_rank(tensor: s.Name, axis: s.Expression) -> Iterator[s.Expression]:
    """That an axis, which counts from the end where it is below zero, is one of a tensor."""
    rank = s.Call(axis.span, "rank", (tensor,))
    match axis:
        case s.Number(value=int(number)):
            yield s.Binary(axis.span, ">=", rank, s.Number(axis.span, number + 1))
        case s.Unary(operator="-", operand=s.Number(value=int(number))):
            yield s.Binary(axis.span, ">=", rank, s.Number(axis.span, number))
        case _ if any(isinstance(node, s.Call) and node.function == "rank" for node in nodes(axis)):
            yield s.Binary(axis.span, "<", axis, rank)
            yield s.Binary(axis.span, ">=", axis, s.Unary(axis.span, "-", rank))


def _fractions(guards: Sequence[s.Expression]) -> frozenset[str]:
    """The names that are compared with fractions, and so are attributes of floats."""
    found: set[str] = set()
    for node in (node for guard in guards for node in nodes(guard)):
        match node:
            case s.Call(function="near", arguments=(left, right)) | s.Binary(left=left, right=right):
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, s.Name) and isinstance(other, s.Number) and isinstance(other.value, float):
                        found.add(one.id)
    return frozenset(found)


def _few_values_satisfy(guards: Sequence[s.Expression]) -> bool:
    """Whether small values satisfy the guards, taken together where they share unknowns; spares the solver."""
    groups: list[tuple[set[_Unknown], list[s.Expression]]] = []
    for guard in conjuncts(*guards):
        unknowns = set(_unknowns(guard, "truth"))
        members = [guard]
        for group in [group for group in groups if group[0] & unknowns]:
            groups.remove(group)
            unknowns |= group[0]
            members = group[1] + members
        groups.append((unknowns, members))
    return all(_has_witness(sorted(unknowns, key=repr), members) for unknowns, members in groups)


_Unknown = tuple[str, s.Expression]
"""An expression that may have any value of a sort: truth, number or text."""
_NUMBERS = (1, 2, 0, 3, 5, 0.5, -1)
_TEXTS = ("a", "b")
_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _has_witness(unknowns: Sequence[_Unknown], guards: Sequence[s.Expression]) -> bool:
    if len(unknowns) > _MOST_SEARCHED:
        return False
    numbers = {node.value for guard in guards for node in nodes(guard) if isinstance(node, s.Number)}
    texts = {node.value for guard in guards for node in nodes(guard) if isinstance(node, s.Text)}
    fractions = _fractions(guards)
    domains: list[Sequence[object]] = []
    for sort, expr in unknowns:
        if sort == "truth":
            domains.append((True, False))
        elif sort == "text":
            domains.append((*texts, *_TEXTS))
        else:
            domains.append([value for value in (*numbers, *_NUMBERS) if _may_be(expr, value, fractions)])
    for values in itertools.product(*domains):
        known = dict(zip(unknowns, values, strict=True))
        if all(_truth(guard, known) for guard in guards):
            return True
    return False


def _may_be(expr: s.Expression, value: float, fractions: frozenset[str]) -> bool:
    if isinstance(expr, s.Name):
        return expr.id in fractions or value == int(value)
    if isinstance(expr, s.Call) and expr.function in ("rank", "extent", "uses", "count"):
        return value == int(value) and value >= (1 if expr.function in _AT_LEAST_ONE else 0)
    return True


def _unknowns(expr: s.Expression, sort: str) -> Iterator[_Unknown]:
    """What an expression leaves open; the same forms are open as for the solver."""
    match expr:
        case s.Number() | s.Text() | s.Truth():
            return
        case s.Unary(operator="not", operand=operand) if sort == "truth":
            yield from _unknowns(operand, sort)
        case s.Unary(operator="-", operand=operand) if sort == "number":
            yield from _unknowns(operand, sort)
        case s.Binary(operator="and" | "or", left=left, right=right) if sort == "truth":
            yield from _unknowns(left, sort)
            yield from _unknowns(right, sort)
        case s.Binary(operator=word, left=left, right=right) if sort == "truth" and word in _COMPARISONS:
            if _is_list(left) or _is_list(right):
                yield "truth", expr
                return
            inner = "text" if isinstance(left, s.Text) or isinstance(right, s.Text) else "number"
            yield from _unknowns(left, inner)
            yield from _unknowns(right, inner)
        case s.Binary(operator=word, left=left, right=right) if sort == "number" and word in _ARITHMETIC:
            yield from _unknowns(left, sort)
            yield from _unknowns(right, sort)
        case s.Call(function="near", arguments=(left, right)) if sort == "truth":
            yield from _unknowns(left, "number")
            yield from _unknowns(right, "number")
        case _:
            yield sort, expr


def _truth(expr: s.Expression, known: Mapping[_Unknown, object]) -> bool:
    match expr:
        case s.Truth(value=value):
            return value
        case s.Unary(operator="not", operand=operand):
            return not _truth(operand, known)
        case s.Binary(operator="and", left=left, right=right):
            return _truth(left, known) and _truth(right, known)
        case s.Binary(operator="or", left=left, right=right):
            return _truth(left, known) or _truth(right, known)
        case s.Binary(operator=word, left=left, right=right) if ("truth", expr) not in known:
            return bool(_COMPARISONS[word](_value(left, known), _value(right, known)))
        case s.Call(function="near", arguments=(left, right)) if ("truth", expr) not in known:
            return bool(_value(left, known) == _value(right, known))
        case _:
            return bool(known["truth", expr])


def _value(expr: s.Expression, known: Mapping[_Unknown, object]) -> Any:
    match expr:
        case s.Number(value=value) | s.Text(value=value):
            return value
        case s.Truth(value=value):
            return value
        case s.Unary(operator="-", operand=operand):
            return -_value(operand, known)
        case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
            return _ARITHMETIC[word](_value(left, known), _value(right, known))
        case _:
            return known["number", expr] if ("number", expr) in known else known["text", expr]


def small_witness(guards: Sequence[s.Expression], positive: frozenset[str]) -> bool:
    """Whether small integers satisfy guards of plain arithmetic; the cheap question before the solver's."""
    names = sorted({node.id for guard in guards for node in nodes(guard) if isinstance(node, s.Name)})
    if len(names) > _MOST_SEARCHED:
        return False
    for values in itertools.product(_SMALL, repeat=len(names)):
        known = dict(zip(names, values, strict=True))
        if all(known[name] > 0 for name in positive & known.keys()) and all(_holds(g, known) for g in guards):
            return True
    return False


def _holds(guard: s.Expression, known: dict[str, int]) -> bool:
    from smartmem_rules.tensor.builtins import DefinitionError, Unsupported  # start-up time
    from smartmem_rules.tensor.definitions.values import Scope, truth  # start-up time

    try:
        return truth(guard, Scope(dict(known)))
    except (DefinitionError, Unsupported):
        return False


class _Translation:
    """From guards to formulas; whatever has the same text is the same unknown."""

    def __init__(self, z3: Any, fractions: frozenset[str]) -> None:
        self.z3 = z3
        self.fractions = fractions
        self.facts: list[Any] = []
        self._unknown: dict[tuple[str, str], Any] = {}

    def truth(self, expr: s.Expression) -> Any:
        """A condition."""
        z3 = self.z3
        match expr:
            case s.Truth(value=value):
                return z3.BoolVal(value)
            case s.Unary(operator="not", operand=operand):
                return z3.Not(self.truth(operand))
            case s.Binary(operator="and", left=left, right=right):
                return z3.And(self.truth(left), self.truth(right))
            case s.Binary(operator="or", left=left, right=right):
                return z3.Or(self.truth(left), self.truth(right))
            case s.Binary(operator="<" | "<=" | ">" | ">=" | "==" | "!=" as operator, left=left, right=right):
                return self._comparison(operator, left, right)
            case s.Call(function="near", arguments=(left, right)):
                return self.number(left) == self.number(right)
            case s.Conditional(condition=condition, then=then, otherwise=otherwise):
                return z3.If(self.truth(condition), self.truth(then), self.truth(otherwise))
            case _:
                return self._named("truth", repr(expr), z3.Bool)

    def _comparison(self, operator: str, left: s.Expression, right: s.Expression) -> Any:
        if isinstance(left, s.Text) or isinstance(right, s.Text):
            a, b = self._text(left), self._text(right)
        elif _is_list(left) or _is_list(right):
            return self._named("truth", repr((operator, left, right)), self.z3.Bool)
        else:
            a, b = self.number(left), self.number(right)
        match operator:
            case "<":
                return a < b
            case "<=":
                return a <= b
            case ">":
                return a > b
            case ">=":
                return a >= b
            case "==":
                return a == b
            case _:
                return a != b

    def number(self, expr: s.Expression) -> Any:
        """A number."""
        z3 = self.z3
        match expr:
            case s.Number(value=int(value)):
                return z3.IntVal(value)
            case s.Number(value=value):
                return z3.RealVal(repr(value))
            case s.Unary(operator="-", operand=operand):
                return -self.number(operand)
            case s.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
                a, b = self.number(left), self.number(right)
                return a + b if operator == "+" else a - b if operator == "-" else a * b
            case s.Binary(operator="//" | "%" as operator, left=left, right=s.Number(value=int(value))) if value > 0:
                a = self.number(left)
                if z3.is_int(a):
                    return a / value if operator == "//" else a % value
            case s.Conditional(condition=condition, then=then, otherwise=otherwise):
                return z3.If(self.truth(condition), self.number(then), self.number(otherwise))
            case s.Call(function="value"):
                return self._named("number", repr(expr), z3.Real)
            case s.Call(function="rank" | "extent" | "uses" | "count" as function):
                made = self._named("number", repr(expr), z3.Int)
                self.facts.append(made >= (1 if function in _AT_LEAST_ONE else 0))
                return made
            case s.Name(id=name):
                return self._named("number", repr(expr), z3.Real if name in self.fractions else z3.Int)
        return self._named("number", repr(expr), z3.Real)

    def _text(self, expr: s.Expression) -> Any:
        if isinstance(expr, s.Text):
            return self.z3.StringVal(expr.value)
        return self._named("text", repr(expr), self.z3.String)

    def _named(self, sort: str, text: str, make: Any) -> Any:
        key = (sort, text)
        if key not in self._unknown:
            self._unknown[key] = make(f"{sort}{len(self._unknown)}")
        return self._unknown[key]


def _is_list(expr: s.Expression) -> bool:
    if isinstance(expr, s.ListOf | s.Comprehension):
        return True
    return isinstance(expr, s.Call) and expr.function in GIVING_LISTS
