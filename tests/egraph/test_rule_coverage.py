"""Every shipped rule fires or holds in a test of its own: eliminations and index rules here, rewrites beside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from bench.rule_coverage import NEVER, report
from smartmem_rules.analysis.tries import Probe, tried
from smartmem_rules.egraph import saturate
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.checks.index_checks import divisors
from smartmem_rules.tensor.builtins import DefinitionError, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Instance, instantiate
from tests.egraph.building import Builder
from tests.egraph.test_shipped_rewrites import shipped

RULES = load_rules()
WANTED = 50
PLACES: list[tuple[str, TensorType, dict[str, Value]]] = [
    ("resize", TensorType("float32", (1, 2, 3, 4)), {"scales": (1.0, 1.0, 2.0, 2.0)}),
    ("unsqueeze", TensorType("float32", (2, 3)), {"axes": (0, 3)}),
]
"""Uses of operators whose attributes are hard to guess."""
LIST = Path(__file__).parents[2] / "docs" / "rules_by_model.md"


def fires(rule: ast.Eliminate, probe: Probe, base: RuleBase) -> bool:
    builder = Builder(base)
    operands = [
        None if type_ is None else builder.input(f"x{place}", type_.shape, type_.dtype)
        for place, type_ in enumerate(probe.operands)
    ]
    outputs = len(probe.instance.outputs)
    root = builder.add(rule.operator, *operands, outputs=outputs, **probe.attributes)
    saturation = saturate(builder.finish(root), base, [rule.ruleset], disable=base.rule_names() - {rule.name})
    return saturation.statistics[rule.name].fired > 0


@pytest.mark.parametrize("rule", RULES.eliminates, ids=lambda rule: rule.name)
def test_every_elimination_fires(rule: ast.Eliminate, base: RuleBase) -> None:
    overloads = base.operators[rule.operator]
    probes = [probe for operator in overloads for probe in tried(base, operator, 8).probes]
    probes += [
        Probe((type_,), attributes, tried_at(base, rule.operator, type_, attributes))
        for name, type_, attributes in PLACES
        if name == rule.name
    ]
    assert any(fires(rule, probe, base) for probe in probes)


def tried_at(base: RuleBase, operator: str, type_: TensorType, attributes: Mapping[str, Value]) -> Instance:
    return instantiate(base, operator, [type_], attributes)


@pytest.mark.parametrize("rule", RULES.index_rules, ids=lambda rule: rule.name)
def test_every_index_rule_holds_where_its_guards_do(rule: ast.IndexRule) -> None:
    names = sorted({node.id for node in nodes((rule.left, *rule.guards)) if isinstance(node, ast.Name)})
    positive = divisors(rule.left)
    random = Random(rule.name)
    held = 0
    for _ in range(200_000):
        scope = Scope({name: random.randint(1, 12) if name in positive else random.randint(-9, 40) for name in names})
        try:
            if not all(truth(guard, scope) for guard in rule.guards):
                continue
            assert evaluate(rule.left, scope) == evaluate(rule.right, scope), scope.values
        except DefinitionError:
            continue
        held += 1
        if held == WANTED:
            break
    assert held == WANTED


def listed(text: str) -> tuple[set[str], set[str]]:
    """The rules that fire on some model and those that fire on none, as the list has them."""
    fired, never = text.split(NEVER)
    return set(re.findall(r"^- `([\w.]+)` \d+:", fired, re.M)), set(re.findall(r"^- `([\w.]+)`:", never, re.M))


def test_the_list_of_rules_by_model_names_the_shipped_rules() -> None:
    """Where it fails: `python bench/rule_coverage.py --write docs/rules_by_model.md MODEL ...` writes the list anew."""
    fired, never = listed(LIST.read_text("utf-8"))
    tested = {rule.name for rule in shipped()} | {rule.name for rule in RULES.eliminates}
    assert fired
    assert not never & fired
    assert never | fired == tested


def test_a_rule_that_fires_on_no_model_cites_where_it_comes_from() -> None:
    fired, _ = listed(LIST.read_text("utf-8"))
    rules = [rule for rule in (*shipped(), *RULES.eliminates) if rule.name not in fired]
    assert [rule.name for rule in rules if not rule.cites] == []


def test_the_report_names_rules_that_never_fired() -> None:
    text = report({"add_zero": {"vit": 3, "swin": 4}, "double_negation": {}}, RULES)
    assert "- `add_zero` 7: swin 4, vit 3" in text
    assert "- `double_negation`: TensorFlow Grappler, RemoveInvolution" in text
    assert listed(text) == ({"add_zero"}, {"double_negation"})
