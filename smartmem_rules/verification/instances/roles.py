"""What an operator uses its attributes for, read off its definition: an axis, a permutation, one of some words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import tensors_of
from smartmem_rules.records import dataclass

AXES = "axes"
PERMUTATION = "permutation"
BOUND = "bound"

_ROLES: dict[tuple[str, int], str] = {
    ("permute", 1): PERMUTATION,
    ("unpermute", 1): PERMUTATION,
    ("wrap", 0): AXES,
    ("take", 1): AXES,
    ("drop", 1): AXES,
    ("put", 1): AXES,
    ("insert", 1): AXES,
    ("extent", 1): AXES,
}


@dataclass
class Role:
    """How a definition uses a name.

    Attributes:
        use: `axes`, `permutation`, `bound` (clamped, so that it may be far outside) or None.
        literals: what it is compared with.
    """

    use: str | None = None
    literals: set[int | float | str] = field(default_factory=set)

    def add(self, other: Role) -> None:
        """Take over what another use tells."""
        self.use = self.use or other.use
        self.literals |= other.literals


_known: dict[tuple[int, int], tuple[object, object, dict[str, Role]]] = {}


def operator_roles(operator: ast.Operator, functions: Mapping[str, ast.Function]) -> dict[str, Role]:
    """The roles of an operator's attributes and compile-time operands."""
    key = id(operator), id(functions)
    if key not in _known:
        # the entry keeps both alive, so that their numbers stay theirs
        _known[key] = operator, functions, _find_roles(operator, functions)
    return _known[key][2]


def _find_roles(operator: ast.Operator, functions: Mapping[str, ast.Function]) -> dict[str, Role]:
    expressions = [
        *operator.requires,
        *(let.value for let in operator.lets),
        *(equation.body for equation in operator.equations),
        *(item for output in operator.outputs for item in output.type.shape),
    ]
    names = [a.name for a in operator.attributes] + [i.name for i in operator.inputs if i.constant is not None]
    return {name: _role(name, expressions, functions, 0) for name in names}


def _role(name: str, expressions: list[ast.Expression], functions: Mapping[str, ast.Function], depth: int) -> Role:
    role = Role()
    for expression in expressions:
        for node in nodes(expression):
            role.add(_use(name, node, functions, depth))
    return role


def _use(name: str, node: ast.Expression, functions: Mapping[str, ast.Function], depth: int) -> Role:
    match node:
        case ast.Call(function=function, arguments=arguments):
            return _argument(name, function, arguments, functions, depth)
        case ast.Subscript(base=ast.Name(id=base), items=items) if base != name and any(
            isinstance(i, ast.Name) and i.id == name for i in items
        ):
            return Role(AXES)
        case ast.Binary(operator="==" | "!=", left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ast.Name) and one.id == name and isinstance(other, ast.Number | ast.Text):
                    return Role(None, {other.value})
        case _:
            pass
    return Role()


def _argument(
    name: str, function: str, arguments: tuple[ast.Expression, ...], functions: Mapping[str, ast.Function], depth: int
) -> Role:
    role = Role()
    if function == "clamp" and any(isinstance(n, ast.Name) and n.id == name for n in nodes(arguments[0])):
        return Role(BOUND)
    for place, argument in enumerate(arguments):
        if not (isinstance(argument, ast.Name) and argument.id == name):
            continue
        if function in functions and depth < 6:
            called = functions[function]
            role.add(_role(called.parameters[place], [called.body], functions, depth + 1))
        elif function == "contains" and place == 1 and isinstance(arguments[0], ast.ListOf):
            words = [i.value for i in arguments[0].items if isinstance(i, ast.Text | ast.Number)]
            role.add(Role(None, set(words)))
        else:
            role.add(Role(_ROLES.get((function, place))))
    return role


def nodes(expression: ast.Syntax) -> Iterator[ast.Expression]:
    """All expressions inside an expression, itself included."""
    stack: list[object] = [expression]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(current)
        elif isinstance(current, ast.Syntax):
            if isinstance(current, ast.Expression):
                yield current
            stack.extend(_children(type(current), current))


@lru_cache(maxsize=64)
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(name for name in kind.__dataclass_fields__ if name != "span")  # type: ignore[attr-defined]


def _children(kind: type, node: ast.Syntax) -> Iterator[object]:
    for name in _fields(kind):
        value = getattr(node, name)
        if isinstance(value, ast.Syntax | tuple):
            yield value


@dataclass(kw_only=True)
class Hints:
    """What the guards of a rule say about single names: values that they name, and whether they must be there.

    `near` holds the numbers that guards compare with `near`.
    """

    values: dict[str, list[int | float | str]] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    constant: set[str] = field(default_factory=set)
    variable: set[str] = field(default_factory=set)
    uniform: set[str] = field(default_factory=set)
    bounded: set[str] = field(default_factory=set)
    """The names that guards compare with a number which is no more than a bound of them."""
    elements: set[str] = field(default_factory=set)
    """The tensors over whose elements guards loop."""
    near: list[float] = field(default_factory=list)
    literals: list[float] = field(default_factory=list)
    """All finite numbers of the rule: what it is right up to is often one of them."""
    infinities: list[float] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """All texts of the guards."""


def hints_of(guards: tuple[ast.Expression, ...], right: ast.Pattern, left: ast.Pattern | None = None) -> Hints:
    """The hints of a rule's guards; attributes of its right side say whose single value is needed."""
    hints = Hints()
    for guard in guards:
        _read_guard(guard, True, hints)
        _find_uniform(guard, hints)
    for expression in attribute_expressions(right):
        _find_uniform(expression, hints)
    hints.values = {name: _with_neighbours(values) for name, values in hints.values.items()}
    hints.elements = {name for part in (*guards, right) for name, _ in tensors_of(part)}
    parts = [*guards, right] if left is None else [*guards, left, right]
    numbers = {number for part in parts for number in _numbers(part)}
    hints.literals = sorted(filter(math.isfinite, numbers))
    hints.infinities = sorted(filter(math.isinf, numbers))
    hints.words = [node.value for guard in guards for node in nodes(guard) if isinstance(node, ast.Text)]
    return hints


def number_of(expression: ast.Expression) -> float | None:
    """The number that an expression is, a negative one too."""
    match expression:
        case ast.Number(value=value):
            return value
        case ast.Unary(operator="-", operand=operand):
            inner = number_of(operand)
            return None if inner is None else -inner
        case _:
            return None


def _numbers(part: ast.Syntax) -> Iterator[float]:
    stack: list[object] = [part]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(current)
            continue
        if isinstance(current, ast.PatternNumber):
            yield float(current.value)
        number = number_of(current) if isinstance(current, ast.Expression) else None
        if number is not None:
            yield float(number)
        elif isinstance(current, ast.Syntax):
            stack.extend(_children(type(current), current))


def _with_neighbours(values: list[int | float | str]) -> list[int | float | str]:
    """What guards name, what lies between two of them, and what lies beside each."""
    numbers = sorted({value for value in values if not isinstance(value, str)})
    between = [(a + b) / 2 for a, b in itertools.pairwise(numbers)]
    between += [a + (b - a) * 0.25 for a, b in itertools.pairwise(numbers)]
    beside = [number + step for number in numbers for step in (1, -1)]
    beside += [number * factor for number in numbers for factor in (2, 0.5) if isinstance(number, float) or factor == 2]
    found = [*values, *values, *values, *between, *beside]
    return [int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else v for v in found]


def attribute_expressions(pattern: ast.Pattern) -> Iterator[ast.Expression]:
    """The expressions of a pattern: attributes and computed constants."""
    if isinstance(pattern, ast.PatternOperator):
        for attribute in pattern.attributes:
            yield attribute.value
        for argument in pattern.arguments:
            yield from attribute_expressions(argument)
    elif isinstance(pattern, ast.PatternComputed):
        yield pattern.value


def _find_uniform(expression: ast.Expression, hints: Hints) -> None:
    for node in nodes(expression):
        if isinstance(node, ast.Call) and node.function == "value" and isinstance(node.arguments[0], ast.Name):
            hints.uniform.add(node.arguments[0].id)


def _read_guard(guard: ast.Expression, holds: bool, hints: Hints) -> None:
    match guard:
        case ast.Unary(operator="not", operand=operand):
            _read_guard(operand, not holds, hints)
        case ast.Binary(operator="and" | "or", left=left, right=right):
            if guard.operator == "and" and holds:
                _read_guard(left, True, hints)
                _read_guard(right, True, hints)
        case ast.Call(function="constant", arguments=(ast.Name(id=name),)):
            (hints.constant if holds else hints.variable).add(name)
        case ast.Call(function="present", arguments=(subject,)):
            asked = _subject(subject)
            if asked is not None:
                (hints.present if holds else hints.absent).add(asked)
        case ast.Call(function="near", arguments=(subject, other)) if (number := number_of(other)) is not None:
            _note(subject, number, hints)
            hints.near.append(float(number))
        case ast.Binary(left=left, right=ast.Text(value=word)) | ast.Binary(left=ast.Text(value=word), right=left):
            _note(left, word, hints)
        case ast.Binary(operator=operator, left=left, right=right) if (number := number_of(right)) is not None:
            _note(left, number, hints, bound=(operator == "==") != holds)
        case ast.Binary(operator=operator, left=left, right=right) if (number := number_of(left)) is not None:
            _note(right, number, hints, bound=(operator == "==") != holds)
        case _:
            pass


def _note(subject: ast.Expression, value: int | float | str, hints: Hints, bound: bool = False) -> None:
    name = _subject(subject)
    if name is not None:
        hints.values.setdefault(name, []).append(value)
        if bound:
            hints.bounded.add(name)


def _subject(expression: ast.Expression) -> str | None:
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Call(function="value", arguments=(ast.Name(id=name),)):
            return name
    return None
