"""Damage to the trees of rule files: each part may be gone, twice there, or what another tree has in such a place.

The text that is printed of a damaged tree follows the grammar mostly, so that it reaches what is checked behind it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes, parts_of
from smartmem_rules.language.printing.printer import print_item
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules

_NUMBERS = (0, 1, -1, 2, 5, 127, 2**31, 2**63, 0.5)
_WORDS = ("x", "S", "T", "axis", "float32", "none", "rank", "Add", "unknown")
_ALWAYS = {(s.Input, "type"), (s.Input, "constant")}
"""One of which each input has: no text has neither."""
_AT = s.NOWHERE
_LITERALS: tuple[s.Expression, ...] = (
    s.Number(_AT, 0),
    s.Number(_AT, 3),
    s.Number(_AT, 0.5),
    s.Unary(_AT, "-", s.Number(_AT, 1)),
    s.Text(_AT, "float32"),
    s.Truth(_AT, True),
    s.ListOf(_AT, ()),
    s.ListOf(_AT, (s.Number(_AT, 1), s.Number(_AT, 0))),
    s.Name(_AT, "x"),
    s.Name(_AT, "none"),
    s.Splat(_AT, s.Name(_AT, "S")),
    s.Call(_AT, "rank", ()),
    s.Call(_AT, "extent", (s.Name(_AT, "x"), s.Number(_AT, 7))),
    s.Call(_AT, "value", (s.Name(_AT, "x"),)),
    s.Subscript(_AT, s.Name(_AT, "x"), (s.Number(_AT, 0),), None),
    s.Subscript(_AT, s.Name(_AT, "x"), (), None),
)


def damaged_rules(draw: random.Random) -> str:
    """A rule file of which one item was damaged at one to three places."""
    own = bool(draw.randrange(3))
    module = draw.choice(_own() if own else built_in())
    items = [item for item in module.items if not isinstance(item, s.Import)]
    if not items:
        return module.text
    item = draw.choice(items)
    changed = item
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        changed = _damaged(changed, draw)
    lines = module.text.split("\n")
    begin, end = item.span.line - 1, item.span.end_line
    kept = (lines[:begin], lines[end:]) if own else ([], [])  # what is shipped cannot be defined once more
    return "\n".join([*kept[0], print_item(changed), *kept[1]]) + "\n"


@cache
def built_in() -> tuple[s.Module, ...]:
    """The shipped rule files, which the others are checked with."""
    return tuple(load_modules(sorted(rules_path().rglob("*.smr"))))


@cache
def _own() -> tuple[s.Module, ...]:
    folder = Path(__file__).parents[1] / "corpus" / "pass"
    modules = load_modules(sorted(folder.glob("*.smr")))
    return tuple(one for one in modules if not any(isinstance(item, s.Import) for item in one.items))


@cache
def _donors() -> dict[tuple[type[s.Syntax], str], list[object]]:
    """What stands in each kind of place of all trees."""
    found: dict[tuple[type[s.Syntax], str], list[object]] = defaultdict(list)
    for module in (*_own(), *built_in()):
        for node in nodes(module.items):
            for name in parts_of(node):
                found[type(node), name].append(getattr(node, name))
    return found


@cache
def _expressions() -> tuple[s.Expression, ...]:
    found = {node: None for module in (*_own(), *built_in()) for node in _short(module.items)}
    return tuple(found)


def _short(items: Sequence[s.Item]) -> Iterator[s.Expression]:
    for node in nodes(items):
        if isinstance(node, s.Expression) and sum(1 for _ in nodes(node)) < 12:
            yield node


def _damaged(item: s.Item, draw: random.Random) -> s.Item:
    """The item with one field of one of its nodes changed."""
    places = [(node, name) for node in nodes(item) for name in parts_of(node) if (type(node), name) not in _ALWAYS]
    node, name = draw.choice(places)
    new = replace(node, **{name: _other(node, name, draw)})  # type: ignore[arg-type]
    return rebuilt(item, lambda one: new if one is node else None)


def _other(node: s.Syntax, name: str, draw: random.Random) -> object:
    value = getattr(node, name)
    donors = _donors()[type(node), name]
    if isinstance(value, tuple):
        parts = list(value)
        kind = draw.randrange(5)
        at = draw.randrange(len(parts)) if parts else 0
        if kind == 0 and parts:
            del parts[at]
        elif kind == 1 and parts:
            parts.insert(at, parts[at])
        elif kind == 2 and len(parts) > 1:
            draw.shuffle(parts)
        else:
            given = draw.choice(donors)
            if isinstance(given, tuple) and given:
                parts.insert(at, draw.choice(given))
            elif name in ("arguments", "items") and isinstance(node, s.Expression):
                parts.insert(at, draw.choice(_LITERALS))
        return tuple(parts)
    if isinstance(value, s.Expression) and draw.randrange(3):
        return draw.choice(_LITERALS) if draw.randrange(2) else draw.choice(_expressions())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return draw.choice([*_NUMBERS, value + 1, value - 1])
    if isinstance(value, str) and not (name == "operator" and isinstance(node, s.Expression)) and not draw.randrange(4):
        return draw.choice(_WORDS)
    return draw.choice(donors)
