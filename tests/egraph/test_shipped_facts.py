"""Every shipped derivation: the fact is known of its term where it is known of what the guards name, and only there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import facts_of, guard_of, term_of
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.egraph.building import Builder
from tests.egraph.test_shipped_rewrites import X, variables

MANY: dict[str, dict[str, Any]] = {
    "moderate_clip": {"a": -2.0, "b": 30.0},
    "nonnegative_of_elements.Reshape": {"Reshape": {"shape": (2, 3, 16)}},
    "moderate_elements.Reshape": {"Reshape": {"shape": (2, 3, 16)}},
}
"""Attributes that have no default."""
FIRST = "Sigmoid"
"""Gives what both facts hold of."""


def derivations() -> list[ast.Rewrite]:
    return [rule for rule in load_rules().rewrites if rule.derives is not None]


def asking(base: RuleBase, fact: str) -> ast.Rewrite:
    """A rule that takes a sign away where the fact is known: no law, but what fires shows what is known."""
    (rule,) = (rule for rule in base.rewrites if rule.name == "absolute_negation")
    place = rule.span
    guard = guard_of(ast.Call(place, fact, (ast.Name(place, "x"),)), base.analyses[fact])
    assert guard is not None
    return replace(rule, name="asks", guards=(guard,))


def is_known(rule: ast.Rewrite, base: RuleBase, first: str) -> bool:
    """Whether the fact is known of the term of a derivation, whose operands are what an operator gives."""
    builder = Builder(base)
    spec: dict[str, Any] = dict(MANY.get(rule.name, {}))
    for name in sorted(variables(term_of(rule))):
        spec[name] = builder.add(first, builder.input(f"{name}_in", X))
    term = builder.pattern(term_of(rule), spec)
    assert term is not None
    graph = builder.finish(builder.add("Abs", builder.add("Neg", term)))
    assert rule.derives is not None
    asks = asking(base, rule.derives)
    enough = [one for one in base.rewrites if one.name in (rule.name, f"{rule.derives}_by_function.{FIRST}")]
    found = saturate(graph, replace(base, rewrites=[asks, *enough]), [asks.ruleset])
    return found.statistics["asks"].fired > 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rule", derivations(), ids=lambda rule: rule.name)
def test_a_shipped_fact_is_known(rule: ast.Rewrite, base: RuleBase) -> None:
    assert is_known(rule, base, FIRST)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rule", [r for r in derivations() if any(facts_of(r))], ids=lambda rule: rule.name)
def test_nothing_is_known_of_what_may_be_anything(rule: ast.Rewrite, base: RuleBase) -> None:
    assert not is_known(rule, base, "Identity")


def test_a_root_below_zero_stays_what_it_is(base: RuleBase) -> None:
    """(a sqrt b) (sqrt b c) is NaN where b is below zero, and (a b) c is a number."""
    (rule,) = (rule for rule in base.rewrites if rule.name == "roots_of_one_tensor")
    for values, fires in (((1.0, 4.0, 0.0), True), ((1.0, -4.0, 0.0), False)):
        builder = Builder(base)
        root = builder.pattern(rule.left, {"a": (3,), "b": np.array(values, np.float32), "c": (3,)})
        assert root is not None
        saturation = saturate(builder.finish(root), base, ["algebra"])
        assert (saturation.statistics[rule.name].fired > 0) is fires
