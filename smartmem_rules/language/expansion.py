"""From what an author writes to what the engine runs: families become rules, names become what they stand for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.analyses import equation_of, guard_of, operators_of as operators_of_analysis
from smartmem_rules.language.blocks.strategy import Phase
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.choices import MEMBER_SEPARATOR, Families, chosen, families_of, operators_of
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.lets import with_attribute_operands, with_lets
from smartmem_rules.language.patterns import application_of, as_operator, number_of, pattern_of
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.language.roots import equations
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS
from smartmem_rules.records import dataclass

_MOST_MODULES = 64
_MOST_ITEMS = 4096

# --- families ----------------------------------------------------------------------------------------


def expanded_modules(modules: Iterable[s.Module], families: Families) -> list[s.Item]:
    """What `expanded` gives of all items of modules; the same objects for a module that was expanded before."""
    return [item for module in modules for item in _expanded_module(module, families)]


def _expanded_module(module: s.Module, families: Families) -> tuple[s.Item, ...]:
    known = _EXPANDED.get(module, lambda _: {})
    key = tuple(sorted((name, tuple(members)) for name, members in families.items()))
    found = known.get(key)
    if found is None:
        found = tuple(expanded(module.items, families))
        known.clear()  # families seldom change, and what they were before is not asked for again
        known[key] = found
    return found


_Key = tuple[tuple[str, tuple[str, ...]], ...]
_EXPANDED: ByIdentity[s.Module, dict[_Key, tuple[s.Item, ...]]] = ByIdentity(_MOST_MODULES)


def expanded(items: Iterable[s.Item], families: Families | None = None) -> Iterator[s.Item]:
    """The items with every family replaced by its members, and rules with what their `let` clauses name written out.

    A rule's name gets those of all families around it, and of the operators that its left side chooses; of a rule of
    several patterns there is one for the equation of each.

    Args:
        families: the named families of all files that are used together; those of the items where None.
    """
    items = list(items)
    families = families_of(items) if families is None else families
    for item in items:
        for made in _members(item, (), families) if isinstance(item, s.Family) else (item,):
            if isinstance(made, s.Analysis):
                yield from (made, *operators_of_analysis(made))
            elif isinstance(made, s.Rule):
                plain = equation_of(made) if isinstance(made, s.Derive) else made
                for one in chosen(with_lets(plain), families):
                    yield from map(with_attribute_operands, equations(one)) if isinstance(one, s.Rewrite) else (one,)
            else:
                yield made


def _members(family: s.Family, outer: tuple[str, ...], families: Families) -> Iterator[s.Item]:
    for member in _written_out(family.members, families):
        words = dict(zip(family.variables, member, strict=False))
        chosen_words = (*outer, _text(member[0] if member else None))
        for item in family.items:
            made = _member(item, words)
            if isinstance(made, s.Family):
                yield from _members(made, chosen_words, families)
            elif isinstance(made, s.Rule) and isinstance(item, s.Rule) and item.name not in words:
                yield replace(made, name=MEMBER_SEPARATOR.join((made.name, *chosen_words)))
            else:
                yield made


def _written_out(members: Iterable[tuple[s.Expression, ...]], families: Families) -> Iterator[tuple[s.Expression, ...]]:
    """The members with a named family replaced by its operators."""
    for member in members:
        if len(member) == 1 and isinstance(member[0], s.Name) and member[0].id in families:
            yield from ((replace(member[0], id=name),) for name in operators_of(member[0].id, families))
        else:
            yield member


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
        value = number_of(words[node.name])
        if value is not None:
            return s.PatternNumber(node.span, value)
        return replace(node, name=_text(words[node.name]))
    if isinstance(node, s.RuleLet) and isinstance(node.value, s.Call) and node.value.function in words:
        named = application_of(node.value)
        return replace(node, value=rebuilt(named, lambda inner: _with_words(inner, words)))
    if isinstance(node, s.PatternComputed) and isinstance(node.value, s.Call) and node.value.function in words:
        application = as_operator(node)
        return None if application is None else rebuilt(application, lambda inner: _with_words(inner, words))
    changes = {}
    for name in ("name", "operator", "function", "ruleset", "dtype"):
        word = getattr(node, name, None)
        if isinstance(word, str) and word in words and not isinstance(node, s.PatternVariable | s.Input | s.Attribute):
            changes[name] = _text(words[word])
    if not changes:
        return None
    # the parts of this node are still to be looked at; its own words are not, which may be those of the family again
    changed = replace(node, **changes)  # type: ignore[arg-type]
    return rebuilt(changed, lambda inner: None if inner is changed else _with_words(inner, words))


def _text(word: s.Expression | None) -> str:
    if isinstance(word, s.Name):
        return word.id
    if isinstance(word, s.Unary):
        return f"-{_text(word.operand)}"
    value = getattr(word, "value", "")
    return str(value)


# --- named predicates and constants ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mentions:
    """What an item speaks of.

    Attributes:
        words: all names in it, those that it defines among them.
        computes: whether something stands where it may be a computed number or an operator's application.
    """

    words: frozenset[str]
    computes: bool


def mentions(item: s.Item) -> Mentions:
    """What an item speaks of; the same for the same object without looking at its tree again."""
    return _MENTIONS.get(item, _mentions)


def _mentions(item: s.Item) -> Mentions:
    words: set[str] = set()
    computes = False
    for node in nodes(item):
        computes = computes or isinstance(node, s.PatternComputed)
        for part in s.parts_of(node):
            value = getattr(node, part)
            if isinstance(value, str):
                words.add(value)
            elif isinstance(value, tuple):
                words.update(one for one in value if isinstance(one, str))
    return Mentions(frozenset(words), computes)


_MENTIONS: ByIdentity[s.Item, Mentions] = ByIdentity(_MOST_ITEMS)
_RESOLVED: ByIdentity[s.Item, list[tuple[tuple[object, ...], s.Item]]] = ByIdentity(_MOST_ITEMS)
_MOST_MEANINGS = 3
"""Meanings of the names in an item, of the last so many of which it is known how the item is written out."""


@dataclass(frozen=True, slots=True)
class Names:
    """The predicates, constants and functions of all files that are used together."""

    predicates: Mapping[str, s.Predicate] = field(default_factory=dict)
    constants: Mapping[str, s.Constant] = field(default_factory=dict)
    functions: frozenset[str] = frozenset()
    analyses: Mapping[str, s.Analysis] = field(default_factory=dict)

    @staticmethod
    def of(items: Sequence[s.Item]) -> Names:
        """Those that the items define; of two with one name the first."""
        predicates: dict[str, s.Predicate] = {}
        constants: dict[str, s.Constant] = {}
        functions = frozenset(item.name for item in items if isinstance(item, s.Function))
        analyses = {item.name: item for item in reversed(items) if isinstance(item, s.Analysis)}
        for item in items:
            if isinstance(item, s.Predicate):
                predicates.setdefault(item.name, item)
            elif isinstance(item, s.Constant):
                constants.setdefault(item.name, item)
        return Names(predicates, constants, functions, analyses)

    def resolved(self, item: s.Item) -> s.Item:
        """The item with predicates and constants written out; a guard keeps the span of what its author wrote.

        What a rule names by `let` was written out when it was expanded: the names are left out here. Where the names
        in it mean the same objects as before, it is the same object as before.
        """
        meant = self._meant(item)
        known = _RESOLVED.get(item, lambda _: [])
        for objects, made in known:
            if len(objects) == len(meant) and all(new is old for new, old in zip(meant, objects, strict=True)):
                return made
        made = self._written_out(item)
        known.append((meant, made))
        del known[:-_MOST_MEANINGS]
        return made

    def _meant(self, item: s.Item) -> tuple[object, ...]:
        """All that decides how an item is written out: what the names in it mean, and those in what they mean."""
        found: dict[str, object] = {}
        looked_at = mentions(item).words
        calls = looked_at & self.functions
        open_words = set(looked_at)
        while open_words:
            words, open_words = open_words, set()
            for table in (self.constants, self.predicates, self.analyses):
                for word in words.intersection(table):
                    one: s.Item = table[word]
                    found[f"{type(one).__name__} {word}"] = one
                    more = mentions(one).words - looked_at
                    looked_at |= more
                    calls |= more & self.functions
                    open_words |= more
        return (*(found[key] for key in sorted(found)), *map(sys.intern, sorted(calls)))

    def _written_out(self, item: s.Item) -> s.Item:
        if isinstance(item, s.Rule) and item.lets:
            item = replace(item, lets=())
        if not self._occur_in(item):
            return item
        hidden = bound_in(item) if isinstance(item, s.Operator | s.Function) else frozenset()
        return rebuilt(item, lambda node: self._resolved(node, hidden))

    def application(self, pattern: s.Pattern) -> s.PatternOperator | None:
        """The application that a call in the place of a pattern is, None where it calls a function."""
        application = as_operator(pattern)
        if application is None or application.operator in self.functions | ALL_FUNCTIONS.keys():
            return None
        return application

    def with_applications(self, rule: s.Rewrite) -> s.Rewrite:
        """The rule with calls of what is no function read as applications of operators."""
        return rebuilt(rule, lambda node: self.application(node) if isinstance(node, s.PatternComputed) else None)

    def _occur_in(self, item: s.Item) -> bool:
        """Whether an item may speak of any of them; most do not."""
        found = mentions(item)
        known = (self.constants, self.predicates, self.analyses)
        return found.computes or not all(found.words.isdisjoint(names) for names in known)

    def _resolved(self, node: s.Syntax, hidden: frozenset[str]) -> s.Syntax | None:
        if isinstance(node, s.Name) and node.id in self.constants and node.id not in hidden:
            value = rebuilt(self.constants[node.id].value, lambda inner: self._resolved(inner, hidden))
            return replace(value, span=node.span)
        if isinstance(node, s.PatternVariable) and node.name in self.constants:
            value = rebuilt(self.constants[node.name].value, lambda inner: self._resolved(inner, hidden))
            return pattern_of(replace(value, span=node.span))
        if isinstance(node, s.PatternComputed):
            application = self.application(node)
            if application is not None:
                return rebuilt(application, lambda inner: self._resolved(inner, hidden))
            value = rebuilt(node.value, lambda inner: self._resolved(inner, hidden))
            return replace(node, value=value) if isinstance(value, s.Name) else pattern_of(value)
        if isinstance(node, s.Call) and node.function in self.analyses:
            return guard_of(node, self.analyses[node.function])
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


def bound_in(item: s.Item) -> frozenset[str]:
    """All names that a definition gives a meaning of its own, the extents of its operands among them."""
    found: set[str] = set()
    for node in nodes(item):
        match node:
            case s.Function(parameters=parameters) | s.Predicate(parameters=parameters):
                found.update(parameters)
            case s.Input() | s.Attribute() | s.Output() | s.Let() | s.Binder() | s.DtypeVariable():
                found.add(node.name)
            case s.TensorType(shape=shape):
                extents = (extent.operand if isinstance(extent, s.Splat) else extent for extent in shape)
                found.update(extent.id for extent in extents if isinstance(extent, s.Name))
    return frozenset(found)


# --- the order of rule sets --------------------------------------------------------------------------


def with_rulesets(phases: Iterable[Phase], rulesets: Sequence[s.Ruleset], named: frozenset[str]) -> tuple[Phase, ...]:
    """A level's phases with each set that no level names put behind the last of those that it runs after.

    A set joins only where the level runs all that it is after.
    """
    order = list(phases)
    waiting = [one for one in rulesets if one.after and one.name not in named]
    joined = True
    while joined:
        joined = False
        for one in waiting:
            there = {name for phase in order for name in phase.rulesets}
            if one.name not in there and set(one.after) <= there:
                last = max(place for place, phase in enumerate(order) if set(phase.rulesets) & set(one.after))
                order.insert(last + 1, Phase(rulesets=(one.name,)))
                joined = True
    return tuple(order)
