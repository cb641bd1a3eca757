"""Both sides of an index rule at small numbers, and what makes them equal where they differ.

Numbers grow from 0 and 1 on, so that those in a message are the smallest at which the sides differ. What is proposed
was tried: with it the sides are equal at all numbers that were tried.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict

from smartmem_rules.analysis.index_values import Meaningless, applicability, computed, constants_of
from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt

_REACHES = (1, 2, 3, 4, 6)
"""How far numbers reach, one after the other."""
_MOST_POINTS = 12_000
"""Numbers at which a rule is tried with one reach; a larger reach is left out."""


class IndexFinding(TypedDict, total=False):
    """Numbers at which the sides differ, what they give there, and what makes them equal everywhere.

    Attributes:
        name: how many names of the sides stand before the one that is to be another, and that;
            a name of the right side, where one helps.
    """

    numbers: dict[str, int]
    left: int
    right: int | None
    guards: list[str]
    name: tuple[int, str]


def index_finding(rule: s.IndexRule) -> IndexFinding:
    """What trying a rule shows; empty where the sides are equal at all numbers that were tried."""
    failure = _failure(rule)
    if failure is None:
        return {}
    numbers, left, right = failure
    found = IndexFinding(numbers=numbers, left=left, right=right)
    if (guards := _guards_meant(rule, 1)) is not None:
        found["guards"] = guards
    elif (name := _name_meant(rule)) is not None:
        found["name"] = name
    elif (guards := _guards_meant(rule, 2)) is not None:
        found["guards"] = guards
    return found


def sides_unequal(written: s.IndexRule, found: IndexFinding) -> Diagnostic:
    """The message about an index rule whose sides differ."""
    at = ", ".join(f"{name} = {number}" for name, number in found["numbers"].items())
    right = found["right"]
    gives = "the right side divides by 0" if right is None else f"the right side {right}"
    message = f"the sides of `{written.name}` are not equal: at {at} the left side is {found['left']}, {gives}"
    return Diagnostic(Code.INDEX_SIDES_DIFFER, "error", message, written.right.span, fix=_mended(written, found))


def _mended(written: s.IndexRule, found: IndexFinding) -> Fix:
    if "guards" in found:
        wanted = ", ".join(found["guards"])
        several = "guards" if len(found["guards"]) > 1 else "guard"
        return advice(f"add the {several} `{wanted}`: then the sides are equal at all numbers that were tried")
    if "name" in found:
        place, name = found["name"]
        old, span = (node := _names(written)[place]).id, node.span
        return replacement(
            f"write `{name}` for `{old}`: then the sides are equal at all numbers that were tried", span, name
        )
    shown = print_expression(written.left)
    return advice(
        f"compute `{shown}` at these numbers by hand, and change the right side, or add a guard that forbids them"
    )


def _failure(rule: s.IndexRule) -> tuple[dict[str, int], int, int | None] | None:
    """The first numbers that the rule admits and at which its sides differ."""
    admits, left_side, right_side = applicability(rule), computed(rule.left), computed(rule.right)
    for numbers in _numbers(rule):
        if not admits(numbers):
            continue
        try:
            left = left_side(numbers)
        except (Meaningless, ZeroDivisionError):
            continue
        try:
            right: int | None = right_side(numbers)
        except Meaningless:
            return None
        except ZeroDivisionError:
            right = None
        if left != right:
            return numbers, left, right
    return None


def _numbers(rule: s.IndexRule) -> Iterator[dict[str, int]]:
    """Numbers for the names of a rule, small ones first: constants from 1 on, indices below zero, too."""
    names = sorted({node.id for node in nodes((rule.left, rule.right, rule.guards)) if isinstance(node, s.Name)})
    constants = constants_of(rule)
    for reach in _REACHES:
        ranges = [range(1, reach + 2) if name in constants else (*range(2 * reach + 1), -1, -reach) for name in names]
        if math.prod(map(len, ranges)) > _MOST_POINTS:
            return
        for point in itertools.product(*ranges):
            yield dict(zip(names, point, strict=True))


def _guards_meant(rule: s.IndexRule, count: int) -> list[str] | None:
    """So many more guards that make the sides equal; None where none do."""
    constants = sorted(constants_of(rule))
    indices = sorted({node.id for node in nodes((rule.left, rule.right)) if isinstance(node, s.Name)} - set(constants))
    known = set(rule.guards)
    candidates = [
        one
        for one in (
            *(_compared("<", s.Name(s.NOWHERE, i), s.Name(s.NOWHERE, c)) for i in indices for c in constants),
            *(_compared("<=", s.Number(s.NOWHERE, 0), s.Name(s.NOWHERE, i)) for i in indices),
            *(_divides(c, d) for c, d in itertools.permutations(constants, 2)),
        )
        if one not in known
    ]
    for chosen in itertools.combinations(candidates, count):
        more = replace(rule, guards=(*rule.guards, *chosen))
        if _failure(more) is None and _applies_somewhere(more):
            return [print_expression(one) for one in reversed(chosen)]
    return None


def _applies_somewhere(rule: s.IndexRule) -> bool:
    """Whether a rule admits other numbers than those at which its indices are all 0 or its constants all 1."""
    admits, constants = applicability(rule), constants_of(rule)
    return any(
        admits(numbers)
        for numbers in _numbers(rule)
        if len({number for name, number in numbers.items() if name in constants} | {1}) > 1
        and any(number for name, number in numbers.items() if name not in constants)
    )


def _compared(sign: str, left: s.Expression, right: s.Expression) -> s.Expression:
    return s.Binary(s.NOWHERE, sign, left, right)


def _divides(number: str, divisor: str) -> s.Expression:
    rest = s.Binary(s.NOWHERE, "%", s.Name(s.NOWHERE, number), s.Name(s.NOWHERE, divisor))
    return _compared("==", rest, s.Number(s.NOWHERE, 0))


def _names(rule: s.IndexRule) -> list[s.Name]:
    return [node for side in (rule.left, rule.right) for node in nodes(side) if isinstance(node, s.Name)]


def _name_meant(rule: s.IndexRule) -> tuple[int, str] | None:
    """The only name of the right side, else of the left, and the only one in its place that makes the sides equal."""
    known = sorted({node.id for node in nodes(rule.left) if isinstance(node, s.Name)})
    ways: list[tuple[int, str]] = []
    for place, node in enumerate(_names(rule)):
        for other in known:
            if other == node.id:
                continue
            new = s.Name(node.span, other)

            def change(one: s.Syntax, old: s.Name = node, new: s.Name = new) -> s.Syntax | None:
                return new if one is old else None

            changed = replace(rule, left=rebuilt(rule.left, change), right=rebuilt(rule.right, change))
            if changed.left != changed.right and _failure(changed) is None and _applies_somewhere(changed):
                ways.append((place, other))
    on_left = sum(isinstance(node, s.Name) for node in nodes(rule.left))
    in_right = [way for way in ways if way[0] >= on_left]
    nearest = in_right or ways
    return nearest[0] if len(nearest) == 1 else None
