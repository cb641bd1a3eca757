"""How rules stand to each other: which one says the same as another, says less, or takes another's step back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.records import dataclass

Binding = dict[str, s.Pattern | s.Expression]
"""What the names of the more general rule stand for in the other."""

_UNKNOWN = s.Name(s.NOWHERE, "?")


def matches(general: s.Pattern, specific: s.Pattern, commutative: Collection[str], bound: Binding) -> Iterator[Binding]:
    """All ways in which `specific` is an instance of `general`."""
    if isinstance(general, s.PatternVariable):
        known = bound.get(general.name)
        if general.name == "_":
            if general == specific:
                yield bound
        elif known is None:
            yield {**bound, general.name: specific}
        elif known == specific:
            yield bound
    elif isinstance(general, s.PatternNumber):
        if isinstance(specific, s.PatternNumber) and general.value == specific.value:
            yield bound
    elif isinstance(general, s.PatternOperator) and isinstance(specific, s.PatternOperator):
        yield from _operators(general, specific, commutative, bound)


def _operators(
    general: s.PatternOperator, specific: s.PatternOperator, commutative: Collection[str], bound: Binding
) -> Iterator[Binding]:
    bound = dict(bound)
    same = (general.operator, len(general.arguments), general.output, general.variadic is None)
    if same != (specific.operator, len(specific.arguments), specific.output, specific.variadic is None):
        return
    if general.variadic is not None and specific.variadic is not None:
        bound = {**bound, general.variadic: s.PatternVariable(s.NOWHERE, specific.variadic)}
    if general.bundle is not None:
        rest = _bundled(general, specific)
        if bound.setdefault(f"@{general.bundle}", rest) != rest:
            return
    orders: list[tuple[s.Pattern, ...]] = [specific.arguments]
    if general.operator in commutative and len(specific.arguments) == 2:
        orders.append(specific.arguments[::-1])
    for order in orders:
        ways = [bound]
        for one, other in zip(general.arguments, order, strict=True):
            ways = [found for way in ways for found in matches(one, other, commutative, way)]
        for way in ways:
            whole = _attributes(general, specific, way)
            if whole is not None:
                yield whole


def _bundled(general: s.PatternOperator, specific: s.PatternOperator) -> s.PatternOperator:
    """What the bundle of `general` stands for: the attributes of `specific` that `general` does not name."""
    named = {attribute.name for attribute in general.attributes}
    rest = tuple(attribute for attribute in specific.attributes if attribute.name not in named)
    return s.PatternOperator(s.NOWHERE, "@", (), rest, specific.bundle, None, None)


def _attributes(general: s.PatternOperator, specific: s.PatternOperator, bound: Binding) -> Binding | None:
    given = {attribute.name: attribute.value for attribute in specific.attributes}
    for attribute in general.attributes:
        if isinstance(attribute.value, s.Name):
            actual = given.get(attribute.name, _UNKNOWN)
            known = bound.get(attribute.value.id)
            if known is not None and known != actual:
                return None
            bound = {**bound, attribute.value.id: actual}
        elif given.get(attribute.name) != substituted(attribute.value, bound):
            return None
    return bound


def substituted(tree: s.Syntax, bound: Binding) -> s.Syntax:
    """A side or guard of the general rule in the words of the other one."""

    def change(node: s.Syntax) -> s.Syntax | None:
        if isinstance(node, s.PatternVariable):
            found = bound.get(node.name)
            return found if isinstance(found, s.Pattern) else None
        if isinstance(node, s.Name):
            found = bound.get(node.id)
            if isinstance(found, s.PatternVariable):
                return s.Name(node.span, found.name)
            return found if isinstance(found, s.Expression) else _UNKNOWN if found is not None else None
        bundled = bound.get(f"@{node.bundle}") if isinstance(node, s.PatternOperator) else None
        if isinstance(node, s.PatternOperator) and (node.variadic in bound or bundled is not None):
            found = bound.get(node.variadic or "")
            variadic = found.name if isinstance(found, s.PatternVariable) else node.variadic
            arguments = tuple(substituted(argument, bound) for argument in node.arguments)
            attributes = tuple(substituted(attribute, bound) for attribute in node.attributes)
            bundle = node.bundle
            if isinstance(bundled, s.PatternOperator):
                bundle = bundled.bundle
                named = {attribute.name for attribute in node.attributes}
                attributes += tuple(one for one in bundled.attributes if one.name not in named)
            return replace(
                node,
                arguments=arguments,  # type: ignore[arg-type]
                attributes=attributes,  # type: ignore[arg-type]
                variadic=variadic,
                bundle=bundle,
            )
        return None

    return rebuilt(tree, change)


Shape = frozenset[tuple[object, int]]


def shape(pattern: s.Pattern) -> Shape:
    """The operators and numbers of a pattern, counted: the same for all that differ in names and order only."""
    parts = nodes(pattern)
    found: Iterator[object] = (
        part.operator if isinstance(part, s.PatternOperator) else part.value
        for part in parts
        if isinstance(part, s.PatternOperator | s.PatternNumber)
    )
    return frozenset(Counter(found).items())


ANY, BIDIRECTIONAL = "any rule", "bidirectional rules"
"""Keys of `Parts` beside operators and numbers."""


@dataclass(frozen=True)
class Parts:
    """What a side consists of; the quick question before matching."""

    operators: Counter[str]
    numbers: frozenset[int | float]
    bidirectional: bool

    @staticmethod
    def of(rule: s.Rewrite) -> Parts:
        """The parts of the left side of a rule."""
        parts = list(nodes(rule.left))
        operators = Counter(part.operator for part in parts if isinstance(part, s.PatternOperator))
        numbers = frozenset(part.value for part in parts if isinstance(part, s.PatternNumber))
        return Parts(operators, numbers, rule.bidirectional)

    @property
    def keys(self) -> Iterator[object]:
        """What a rule with these parts is found by."""
        yield ANY
        yield from self.operators
        yield from self.numbers
        if self.bidirectional:
            yield BIDIRECTIONAL

    @property
    def required(self) -> Iterator[object]:
        """What a rule has that a rule with these parts covers, unless it is bidirectional."""
        yield ANY
        if not self.bidirectional:
            yield from self.operators
            yield from self.numbers

    def may_cover(self, other: Parts) -> bool:
        """Whether a rule with these parts could be the more general one."""
        if self.bidirectional or other.bidirectional:
            return True
        return self.operators <= other.operators and self.numbers <= other.numbers


@dataclass(frozen=True)
class Relations:
    """Compares rewrites of one rule base."""

    commutative: frozenset[str]

    def subsumes(self, general: s.Rewrite, specific: s.Rewrite) -> bool:
        """Whether `general` does all that `specific` does."""
        for left, right in _directions(specific):
            if not any(self._covers(general, ways, left, right, specific.guards) for ways in _directions(general)):
                return False
        return True

    def _covers(
        self,
        general: s.Rewrite,
        sides: tuple[s.Pattern, s.Pattern],
        left: s.Pattern,
        right: s.Pattern,
        guards: Sequence[s.Expression],
    ) -> bool:
        for bound in matches(sides[0], left, self.commutative, {}):
            if self._same(substituted(sides[1], bound), right):
                wanted = [substituted(guard, bound) for guard in general.guards]
                if all(guard in guards for guard in wanted):
                    return True
        return False

    def inverse(self, rule: s.Rewrite, other: s.Rewrite) -> bool:
        """Whether each of two directed rules takes the other's step back."""
        if rule.bidirectional or other.bidirectional or _exclude(rule.guards, other.guards):
            return False
        return self._renames(rule, other) and self._renames(other, rule)

    def _renames(self, rule: s.Rewrite, other: s.Rewrite) -> bool:
        for bound in matches(rule.left, other.right, self.commutative, {}):
            plain = all(
                isinstance(value, s.PatternVariable | s.Name) or _whole_bundle(value) is not None
                for value in bound.values()
            )
            if plain and self._same(substituted(rule.right, bound), other.left):
                return True
        return False

    def _same(self, one: s.Syntax, other: s.Pattern) -> bool:
        # in both directions: an attribute that only one of them gives makes them two
        return isinstance(one, s.Pattern) and self._names_alike(one, other) and self._names_alike(other, one)

    def _names_alike(self, one: s.Pattern, other: s.Pattern) -> bool:
        return any(
            all(
                value in (s.PatternVariable(s.NOWHERE, name), s.Name(s.NOWHERE, name))
                or f"@{_whole_bundle(value)}" == name
                for name, value in way.items()
            )
            for way in matches(one, other, self.commutative, {})
        )


def _whole_bundle(value: s.Pattern | s.Expression) -> str | None:
    """The bundle that a bundle stands for, None for a value that holds more."""
    return value.bundle if isinstance(value, s.PatternOperator) and not value.attributes else None


def _directions(rule: s.Rewrite) -> list[tuple[s.Pattern, s.Pattern]]:
    sides = [(rule.left, rule.right)]
    return [*sides, (rule.right, rule.left)] if rule.bidirectional else sides


def _exclude(guards: Sequence[s.Expression], others: Sequence[s.Expression]) -> bool:
    """Whether a guard of one rule is the negation of a guard of the other, up to names."""
    return any(_negation(guard, other) or _negation(other, guard) for guard in guards for other in others)


def _negation(guard: s.Expression, other: s.Expression) -> bool:
    if not isinstance(other, s.Unary) or other.operator != "not":
        return False
    unnamed = lambda node: s.Name(s.NOWHERE, "") if isinstance(node, s.Name) else None  # noqa: E731
    return rebuilt(other.operand, unnamed) == rebuilt(guard, unnamed)


def root(pattern: s.Pattern) -> str:
    """The operator at the top of a pattern."""
    return pattern.operator if isinstance(pattern, s.PatternOperator) else ""
