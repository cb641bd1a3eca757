"""The nodes that all trees of the rule language share, and those of its expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from typing import NamedTuple

from smartmem_rules.records import unguarded


class Span(NamedTuple):
    """A range of source text: 1-based lines and columns, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Span("<engine>", 0, 0, 0, 0)


@unguarded(frozen=True, slots=True)
class Syntax:
    """Base of all nodes; the span takes no part in equality."""

    span: Span = field(compare=False, repr=False)


_PARTS: dict[type[Syntax], tuple[str, ...]] = {}


def parts_of(node: Syntax) -> tuple[str, ...]:
    """The names of the fields that make a node what it is: all but places."""
    kind = type(node)
    known = _PARTS.get(kind)
    if known is None:
        known = _PARTS[kind] = tuple(part.name for part in fields(kind) if part.compare)
    return known


_BRANCHES: dict[type[Syntax], tuple[str, ...]] = {}
_LEAVES = frozenset({"str", "int", "float", "bool", "None", "tuple"})


def branches_of(node: Syntax) -> tuple[str, ...]:
    """Those of `parts_of` that may hold nodes."""
    kind = type(node)
    known = _BRANCHES.get(kind)
    if known is None:
        leaves = {part.name for part in fields(kind) if _LEAVES.issuperset(re.findall(r"\w+", str(part.type)))}
        known = _BRANCHES[kind] = tuple(name for name in parts_of(node) if name not in leaves)
    return known


def nodes(root: object) -> Iterator[Syntax]:
    """All nodes of a tree, or of a tuple of trees, in the order of the text."""
    stack: list[object] = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(reversed(current))
        elif isinstance(current, Syntax):
            yield current
            stack.extend([getattr(current, name) for name in reversed(branches_of(current))])


@unguarded(frozen=True, slots=True)
class Declaration(Syntax):
    """A node with words worth pointing at one by one.

    `places` gives the spans of its parts: `name` always, others by the name of the field that holds the word, or by
    `field:word` where the field holds several.
    """

    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def place(self, key: str) -> Span:
        """The span of a part, or of the whole node where the part has none of its own."""
        return self.places.get(key, self.span)


# --- shapes, attributes, guards and operator definitions share one grammar ----------------------------


@unguarded(frozen=True, slots=True)
class Expression(Syntax):
    pass


@unguarded(frozen=True, slots=True)
class Number(Expression):
    value: int | float


@unguarded(frozen=True, slots=True)
class Text(Expression):
    value: str


@unguarded(frozen=True, slots=True)
class Truth(Expression):
    value: bool


@unguarded(frozen=True, slots=True)
class Name(Expression):
    id: str


@unguarded(frozen=True, slots=True)
class Call(Expression):
    """`f(a, b)`: a builtin, a user function or an elementwise primitive."""

    function: str
    arguments: tuple[Expression, ...]


@unguarded(frozen=True, slots=True)
class Unary(Expression):
    operator: str  # "-" | "not"
    operand: Expression


@unguarded(frozen=True, slots=True)
class Binary(Expression):
    operator: str  # + - * / // % ** < <= > >= == != and or
    left: Expression
    right: Expression


@unguarded(frozen=True, slots=True)
class Conditional(Expression):
    """`if c then a else b`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@unguarded(frozen=True, slots=True)
class Splat(Expression):
    """`*e` inside brackets: the elements of a list in place."""

    operand: Expression


@unguarded(frozen=True, slots=True)
class Broadcast(Expression):
    """`~e` inside a tensor read: the list aligned at the right, 0 where the tensor's extent is 1."""

    operand: Expression


@unguarded(frozen=True, slots=True)
class Slice(Expression):
    """`lo:hi` inside a list subscript."""

    low: Expression | None
    high: Expression | None


@unguarded(frozen=True, slots=True)
class Subscript(Expression):
    """`base[items] else default`: an element of a tensor or of a list.

    With `default` the read gives that value where an index is out of range or the optional tensor is absent.
    """

    base: Expression
    items: tuple[Expression, ...]
    default: Expression | None


@unguarded(frozen=True, slots=True)
class ListOf(Expression):
    """`[a, *b, c]`."""

    items: tuple[Expression, ...]


@unguarded(frozen=True, slots=True)
class Binder(Declaration):
    """`k < K` (a loop), `*k < KS` (a list of loops) or `j in N` (unrolled when the operator is instantiated)."""

    name: str
    kind: str  # "loop" | "loops" | "unrolled"
    bound: Expression


@unguarded(frozen=True, slots=True)
class Comprehension(Expression):
    """`[e for j in N]`, `[e for j in N for k in M if c]`: a list made when the operator is instantiated."""

    body: Expression
    binders: tuple[Binder, ...]
    condition: Expression | None


@unguarded(frozen=True, slots=True)
class Reduction(Expression):
    """`sum(k < K) body`; `first(j in N, condition) body` picks the first j whose condition holds."""

    kind: str  # sum | max | min | prod | any | all | first
    binders: tuple[Binder, ...]
    condition: Expression | None
    body: Expression


def conjuncts(*conditions: Expression) -> Iterator[Expression]:
    """The conditions that `and` joins, one by one."""
    for condition in conditions:
        if isinstance(condition, Binary) and condition.operator == "and":
            yield from conjuncts(condition.left, condition.right)
        else:
            yield condition


_OF_TYPES = frozenset({"shape", "extent", "rank", "dtype", "present"})
"""Functions that ask for the type of a tensor, not for its elements."""


def tensors_of(expression: Syntax) -> Iterator[tuple[str, Span]]:
    """The tensors of which loops inside of an expression read elements, each with the place of the read."""
    stack: list[tuple[object, bool]] = [(expression, False)]
    while stack:
        node, looping = stack.pop()
        if isinstance(node, tuple):
            stack.extend((part, looping) for part in node)
        elif isinstance(node, Syntax):
            looping = looping or isinstance(node, Reduction)
            if looping and isinstance(node, Subscript) and isinstance(node.base, Name):
                yield node.base.id, node.span
            if isinstance(node, Call) and node.function in _OF_TYPES:
                # `extent(xs[m], 0)`: the type of a member of a list says nothing of elements
                members = [part.items if isinstance(part, Subscript) else part for part in node.arguments[:1]]
                stack.append(((*members, *node.arguments[1:]), looping))
                continue
            stack.extend((getattr(node, name), looping) for name in parts_of(node))
