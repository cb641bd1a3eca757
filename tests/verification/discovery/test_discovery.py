"""Discovery finds again what is known to be true, and never prints what is false."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.rediscovery import rediscover
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.verification.discovery.discover import discover


@pytest.fixture(scope="module")
def bare() -> RuleBase:
    """The operators without any rewrite."""
    return replace(load_rules(), rewrites=[])


def test_a_search_of_two_operators(bare: RuleBase) -> None:
    discovery = discover(bare, ("Abs", "Neg", "Relu"), 2)
    lines = [rule.text.splitlines()[1].strip() for rule in discovery.rules]
    assert "Neg(Neg(a)) => a" in lines
    assert "Abs(Neg(a)) => Abs(a)" in lines
    for rule in discovery.rules:
        assert len(parse_text(rule.text, "printed.smr").items) == 1


def test_what_is_known_is_not_printed() -> None:
    known = discover(load_rules(), ("Abs", "Neg"), 2)
    assert not known.rules
    assert known.derivable > 0


def test_an_operator_that_is_not_there(bare: RuleBase) -> None:
    with pytest.raises(ValueError, match="Negg"):
        discover(bare, ("Negg",), 2)


def test_printed_rules_are_rediscovered_by_small_searches() -> None:
    """Two of DNNFusion's printed rules and some shipped ones; the full measurement is `bench/discovery.py`."""
    found = rediscover(load_rules(), ((("Mul", "Sqrt"), 3), (("Abs", "Neg", "Relu"), 2)), seconds=20)
    printed, shipped = found.counts
    print(f"\n{printed} printed rules, {shipped} shipped rules")
    assert found.printed["roots"] == ("Mul", "Sqrt")
    assert found.printed["order_of_factors"] is not None
    assert {name for name, source in found.shipped.items() if source} >= {
        "roots_of_one_tensor", "double_negation", "absolute_negation", "double_absolute", "double_relu",
    }  # fmt: skip


@pytest.mark.exhaustive
def test_known_rules_are_rediscovered() -> None:
    found = rediscover(load_rules(), seconds=60)
    printed, shipped = found.counts
    assert printed >= 8, found.printed
    assert shipped >= 20, found.shipped
