"""Verdicts are kept by what they are about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.syntax import Rewrite
from smartmem_rules.lsp.hover import status_text
from smartmem_rules.lsp.library import Library
from smartmem_rules.rulebase import base as module
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.digests import Digests
from smartmem_rules.rulebase.verdicts import record, recorded, shipped


@dataclass(frozen=True)
class Report:
    name: str
    verdict: str
    method: str
    trials: int


def test_a_verdict_is_that_of_the_rule_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))
    base = load_rules()
    assert recorded(base) == {}
    assert "smartmem verify --rule add_zero" in status_text(Library(), "add_zero")
    record([Report("add_zero", "tested", "random", 200), Report("no_rule", "failed", "random", 1)], base)
    assert recorded(base) == {"add_zero": "tested (random, 200 trials)"}
    assert status_text(Library(), "add_zero") == "verified: tested (random, 200 trials)"
    place = next(n for n, rule in enumerate(base.rewrites) if rule.name == "add_zero")
    changed = load_rules()
    guards = next(rule.guards for rule in base.rewrites if rule.guards)
    changed.rewrites[place] = replace(changed.rewrites[place], guards=guards)
    assert recorded(changed) == {}
    other = load_rules()
    other.operators["Add"] = other.operators["Sub"]
    assert recorded(other) == {}


def test_digests_that_were_kept_are_those_of_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))
    load_rules()
    module._built_in.cache_clear()  # the next are those of the cache
    base, anew = load_rules(), load_rules()
    anew.digests = None
    assert base.digests is not None
    assert all(base.digests.rules[rule.name][0] is rule for rule in base.rules())
    kept, computed = Digests(base), Digests(anew)
    assert [kept.of(rule) for rule in base.rules()] == [computed.of(rule) for rule in anew.rules()]
    assert load_rules(disable=["add_zero"]).digests == base.digests


def test_digests_that_were_kept_are_not_those_of_changed_functions() -> None:
    base = load_rules()
    rule, name = next(
        (rule, name)
        for rule in base.rewrites
        for name in base.functions
        if any(f"{name}(" in print_expression(guard) for guard in rule.guards)
    )
    before = Digests(base).of(rule)
    other = next(one for one in base.functions.values() if one.name != name)
    base.functions[name] = replace(base.functions[name], body=other.body)
    assert Digests(base).of(rule) != before


def test_the_verdicts_that_ship_are_those_of_the_rules_as_they_stand() -> None:
    """Where it fails: `python bench/verdicts.py` verifies the rules that have changed."""
    base = load_rules()
    sound = {rule.name for rule in base.rules() if not (isinstance(rule, Rewrite) and rule.unsound is not None)}
    assert shipped(base).keys() == sound
