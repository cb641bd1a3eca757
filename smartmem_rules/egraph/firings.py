"""Which rules did what at which classes: kept by egglog where a certificate is wanted, and read back.

Each rule of a program has a table of its own; a row is one match that was rewritten.  Its columns are classes in their
final numbers, so that a row says which equation held, not in which form its operands were written then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from smartmem_rules.egraph.bindings import bindings
from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.patterns import Left, MatchedOperator
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.roots import roots_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.views import IndexMap


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A rewrite at classes.

    Attributes:
        backward: whether the rule was read from right to left.
        results: the class of each operator of the left side, in the order of `operators_of_all`.
        attributes: of each operator.
        tensors, members: the classes of the pattern's names and lists.
        numbers: the classes of the constants that the pattern names by their value.
    """

    rule: ast.Rewrite
    backward: bool
    results: tuple[int, ...]
    attributes: tuple[Mapping[str, Value], ...]
    tensors: Mapping[str, int]
    members: Mapping[str, tuple[int, ...]]
    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Viewed:
    """An operator that an eliminate rule made a view of one of its operands."""

    rule: ast.Eliminate
    operand: int
    result: int
    operands: tuple[int, ...]
    attributes: Mapping[str, Value]
    outputs: int
    output: int
    map: IndexMap


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A view of a view that became one view."""

    result: int
    between: int
    source: int
    inner: IndexMap
    outer: IndexMap
    map: IndexMap


Firing = Rewritten | Viewed | Composed


@dataclass(frozen=True, kw_only=True)
class Table:
    """One rule's table: the egglog variables of its columns, classes before texts, and how to read a row."""

    name: str
    classes: tuple[str, ...]
    texts: tuple[str, ...]
    read: Callable[[Host, Sequence[int], Sequence[str]], Firing]

    @property
    def declaration(self) -> str:
        return f"(relation {self.name} ({'T ' * len(self.classes)}{'String ' * len(self.texts)}))"

    @property
    def action(self) -> str:
        return f"({self.name} {' '.join((*self.classes, *self.texts))})"


def table_of_rewrite(number: int, rule: ast.Rewrite, backward: bool, left: Left) -> Table:
    """The table of one direction of a rewrite at fixed operand counts."""
    operators, numbers_of_left = _in_order(left, rule.right if backward else rule.left)
    results = tuple(f"?r{one.attributes}" for one in operators)
    members = [name for names in left.members.values() for name in names]
    classes = (*results, *left.variables.values(), *members, *numbers_of_left)

    def read(host: Host, numbers: Sequence[int], texts: Sequence[str]) -> Rewritten:
        rest = iter(numbers)
        return Rewritten(
            rule=rule,
            backward=backward,
            results=tuple(next(rest) for _ in results),
            attributes=tuple(map(host.attribute, texts)),
            tensors={name: next(rest) for name in left.variables},
            members={name: tuple(next(rest) for _ in names) for name, names in left.members.items()},
            numbers=tuple(next(rest) for _ in numbers_of_left),
        )

    return Table(
        name=f"fired_{number}", classes=classes, texts=tuple(f"?a{o.attributes}" for o in operators), read=read
    )


def _in_order(left: Left, side: ast.Pattern) -> tuple[list[MatchedOperator], list[str]]:
    """The operators and numbers of a left side, in the order in which a rule has its patterns."""
    roots = [left.roots[pattern] for pattern in reversed(roots_of(side))]
    operators = [left.operators[place] for root in roots for place in root.operators]
    return operators, [left.numbers[place] for root in roots for place in root.numbers]


def table_of_elimination(number: int, rule: ast.Eliminate, operand: int, counts: tuple[int, int], output: int) -> Table:
    """The table of an eliminate rule for one operand and one output."""
    operands = tuple(f"?x{place}" for place in range(counts[0]))

    def read(host: Host, numbers: Sequence[int], texts: Sequence[str]) -> Viewed:
        return Viewed(
            rule=rule,
            operand=operand,
            result=numbers[0],
            operands=tuple(numbers[1:]),
            attributes=host.attribute(texts[0]),
            outputs=counts[1],
            output=output,
            map=host.map(texts[1]),
        )

    return Table(name=f"fired_{number}", classes=("?r", *operands), texts=("?t", "?k"), read=read)


def _read_composed(host: Host, numbers: Sequence[int], texts: Sequence[str]) -> Composed:
    result, between, source = numbers
    inner, outer, map_ = map(host.map, texts)
    return Composed(result=result, between=between, source=source, inner=inner, outer=outer, map=map_)


COMPOSED = Table(
    name="fired_compose", classes=("?r", "?v", "?x"), texts=("?inner", "?outer", "?k"), read=_read_composed
)


def read_firings(
    egraph: bindings.EGraph,
    host: Host,
    tables: Sequence[Table],
    rows: Callable[[str], Sequence[Sequence[bindings.Value]]],
    number: Callable[[bindings.Value], int],
) -> Iterator[Firing]:
    """All matches that were rewritten."""
    for table in tables:
        split = len(table.classes)
        for row in rows(table.name):
            texts = [egraph.value_to_string(value) for value in row[split:]]
            yield table.read(host, [number(value) for value in row[:split]], texts)
