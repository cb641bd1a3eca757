"""From what an author writes to what the engine runs: families become rules, names become what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from smartmem_rules.language import syntax as s

_Node = TypeVar("_Node", bound=s.Syntax)

MEMBER_SEPARATOR = "."
"""Stands between the name of a family's rule and the member; names themselves have no such character."""


def rebuilt(node: _Node, change: Callable[[s.Syntax], s.Syntax | None]) -> _Node:
    """The tree with every node for which `change` gives another one replaced, outermost first; spans stay."""
    return _rebuilt(node, change)  # type: ignore[return-value]


def _rebuilt(node: object, change: Callable[[s.Syntax], s.Syntax | None]) -> object:
    if isinstance(node, tuple):
        parts = tuple(_rebuilt(part, change) for part in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not isinstance(node, s.Syntax):
        return node
    changed = change(node)
    if changed is not None:
        return changed
    values: dict[str, Any] = {}
    for name in s.parts_of(node):
        old = getattr(node, name)
        new = _rebuilt(old, change)
        if new is not old:
            values[name] = new
    return replace(node, **values) if values else node


# --- families ----------------------------------------------------------------------------------------


def expanded(items: Iterable[s.Item]) -> Iterator[s.Item]:
    """The items with every family replaced by its members; a rule's name gets those of all families around it."""
    for item in items:
        if isinstance(item, s.Family):
            yield from _members(item, ())
        else:
            yield item


def _members(family: s.Family, outer: tuple[str, ...]) -> Iterator[s.Item]:
    for member in family.members:
        words = dict(zip(family.variables, member, strict=False))
        chosen = (*outer, _text(member[0] if member else None))
        for item in family.items:
            made = _member(item, words)
            if isinstance(made, s.Family):
                yield from _members(made, chosen)
            elif isinstance(made, s.Rule) and isinstance(item, s.Rule) and item.name not in words:
                yield replace(made, name=MEMBER_SEPARATOR.join((made.name, *chosen)))
            else:
                yield made


def family_name(rule: str) -> str:
    """The name that stands for all rules of the rule's family; that of the rule itself outside of families."""
    return rule.partition(MEMBER_SEPARATOR)[0]


def _member(item: s.Item, words: Mapping[str, s.Expression]) -> s.Item:
    # a name of an inner family hides one of an outer family
    hidden = item.variables if isinstance(item, s.Family) else ()
    visible = {name: word for name, word in words.items() if name not in hidden}
    return rebuilt(item, lambda node: _with_words(node, visible))


def _with_words(node: s.Syntax, words: Mapping[str, s.Expression]) -> s.Syntax | None:
    if isinstance(node, s.Name) and node.id in words:
        return replace(words[node.id], span=node.span)
    if isinstance(node, s.PatternVariable) and node.name in words:
        value = _constant_number(words[node.name])
        if value is not None:
            return s.PatternNumber(node.span, value)
        return replace(node, name=_text(words[node.name]))
    changes = {}
    for name in ("name", "operator", "function", "ruleset", "dtype"):
        word = getattr(node, name, None)
        if isinstance(word, str) and word in words and not isinstance(node, s.PatternVariable | s.Input | s.Attribute):
            changes[name] = _text(words[word])
    if not changes:
        return None
    # the parts of this node are still to be looked at
    return rebuilt(replace(node, **changes), lambda inner: _with_words(inner, words))  # type: ignore[arg-type]


def _text(word: s.Expression | None) -> str:
    if isinstance(word, s.Name):
        return word.id
    if isinstance(word, s.Unary):
        return f"-{_text(word.operand)}"
    value = getattr(word, "value", "")
    return str(value)


def _constant_number(word: s.Expression) -> int | float | None:
    if isinstance(word, s.Number):
        return word.value
    if isinstance(word, s.Unary) and isinstance(word.operand, s.Number):
        return -word.operand.value
    return None


# --- named predicates and constants ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Names:
    """The predicates and constants of all files that are used together."""

    predicates: Mapping[str, s.Predicate] = field(default_factory=dict)
    constants: Mapping[str, s.Constant] = field(default_factory=dict)

    @staticmethod
    def of(items: Sequence[s.Item]) -> Names:
        """Those that the items define; of two with one name the first."""
        predicates: dict[str, s.Predicate] = {}
        constants: dict[str, s.Constant] = {}
        for item in items:
            if isinstance(item, s.Predicate):
                predicates.setdefault(item.name, item)
            elif isinstance(item, s.Constant):
                constants.setdefault(item.name, item)
        return Names(predicates, constants)

    def resolved(self, item: s.Item) -> s.Item:
        """The item with predicates and constants written out; a guard keeps the span of what its author wrote."""
        if not self._occur_in(item):
            return item
        hidden = _bound_in(item) if isinstance(item, s.Operator | s.Function) else frozenset()
        return rebuilt(item, lambda node: self._resolved(node, hidden))

    def _occur_in(self, item: s.Item) -> bool:
        """Whether an item speaks of any of them; most do not."""
        stack: list[object] = [item]
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):
                stack.extend(node)
            elif isinstance(node, s.Syntax):
                if isinstance(node, s.Name):
                    if node.id in self.constants:
                        return True
                    continue
                if isinstance(node, s.PatternVariable) and node.name in self.constants:
                    return True
                if isinstance(node, s.Call) and node.function in self.predicates:
                    return True
                stack.extend([getattr(node, name) for name in s.parts_of(node)])
        return False

    def _resolved(self, node: s.Syntax, hidden: frozenset[str]) -> s.Syntax | None:
        if isinstance(node, s.Name) and node.id in self.constants and node.id not in hidden:
            value = rebuilt(self.constants[node.id].value, lambda inner: self._resolved(inner, hidden))
            return replace(value, span=node.span)
        if isinstance(node, s.PatternVariable) and node.name in self.constants:
            value = rebuilt(self.constants[node.name].value, lambda inner: self._resolved(inner, hidden))
            number = _constant_number(value)
            return None if number is None else s.PatternNumber(node.span, number)
        if isinstance(node, s.Call) and node.function in self.predicates:
            predicate = self.predicates[node.function]
            arguments = tuple(
                rebuilt(argument, lambda inner: self._resolved(inner, hidden)) for argument in node.arguments
            )
            given = dict(zip(predicate.parameters, arguments, strict=False))
            body = rebuilt(predicate.body, lambda inner: self._resolved(inner, hidden | given.keys()))
            return replace(rebuilt(body, lambda inner: _argument(inner, given)), span=node.span)
        return None


def _argument(node: s.Syntax, given: Mapping[str, s.Expression]) -> s.Syntax | None:
    return given.get(node.id) if isinstance(node, s.Name) else None


def _bound_in(node: object) -> frozenset[str]:
    """All names that a definition gives a meaning of its own."""
    found: set[str] = set()
    stack: list[object] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(current)
        elif isinstance(current, s.Function):
            found.update(current.parameters)
            stack.append(current.body)
        elif isinstance(current, s.Syntax):
            if isinstance(current, s.Input | s.Attribute | s.Output | s.Let | s.Binder | s.DtypeVariable):
                found.add(current.name)
            if isinstance(current, s.TensorType):
                found.update(_shape_names(current))
            stack.extend(getattr(current, name) for name in s.parts_of(current))
    return frozenset(found)


def _shape_names(type_: s.TensorType) -> Iterator[str]:
    for extent in type_.shape:
        bound = extent.operand if isinstance(extent, s.Splat) else extent
        if isinstance(bound, s.Name):
            yield bound.id


# --- the order of rule sets --------------------------------------------------------------------------


def with_rulesets(order: Sequence[str], rulesets: Sequence[s.Ruleset], named: frozenset[str]) -> tuple[str, ...]:
    """A level's rule sets with each that no level names put behind the last of those that it runs after.

    A set joins only where the level runs all that it is after.
    """
    order = list(order)
    waiting = [one for one in rulesets if one.after and one.name not in named]
    joined = True
    while joined:
        joined = False
        for one in waiting:
            if one.name not in order and set(one.after) <= set(order):
                last = max(place for place, name in enumerate(order) if name in one.after)
                order.insert(last + 1, one.name)
                joined = True
    return tuple(order)
