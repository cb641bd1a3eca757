"""Discovery finds again what is known to be true, and never prints what is false."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.rediscovery import rediscover
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.checking import check_files
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.discovery.discover import discover, rule_text
from smartmem_rules.verification.discovery.searches import Search, discover_each, merged, run_search, sets_of
from smartmem_rules.verification.semantics.terms import Leaf, apply_operator


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


def test_what_is_found_has_names_that_say_what_it_is_of_and_passes_the_check(bare: RuleBase, tmp_path: Path) -> None:
    found = discover(load_rules(), ("Abs", "Relu"), 2)
    assert {rule.name for rule in found.rules} == {"abs_of_relu", "relu_of_abs"}
    assert all(rule.is_proved for rule in found.rules)
    file = tmp_path / "found.smr"
    file.write_text("\n".join(rule.text for rule in found.rules))
    problems, _ = check_files([file])
    assert not problems


def test_a_rule_that_needs_operands_of_one_shape_says_so() -> None:
    x, y = Leaf("x", TensorType("float32", (3,))), Leaf("y", TensorType("float32", (3,)))
    text = rule_text(x, x, "probe", ("nan",), ("alike",))
    assert "where" not in text  # of one operand alone nothing is asked
    instances = Instances(load_rules())
    product = apply_operator("Mul", [x, y], {}, 1, 0, instances)
    assert "shape(b) == shape(a)" in rule_text(product, x, "probe", (), ("alike",))


def test_searches_side_by_side_leave_out_what_follows() -> None:
    """Both sets find what double negation is; it is there once."""
    disabled = ("double_negation",)
    searches = [Search(operators=s, size=2, seed=1, seconds=20.0, disabled=disabled)
                for s in sets_of(("Neg", "Abs", "Relu"), 2) if "Neg" in s]  # fmt: skip
    together = merged([run_search(search) for search in searches], searches[0])
    assert [rule.name for rule in together.rules] == ["neg_of_neg"]
    assert together.derivable > 0


def test_every_set_of_operators_is_searched_once() -> None:
    assert sets_of(("Add", "Mul", "Add", "Neg"), 2) == [("Add", "Mul"), ("Add", "Neg"), ("Mul", "Neg")]
    assert sets_of(("Add",), 2) == [("Add",)]


def test_what_is_known_is_not_printed() -> None:
    known = discover(load_rules(), ("Abs", "Neg"), 2)
    assert not known.rules
    assert known.derivable > 0


def test_an_operator_that_is_not_there(bare: RuleBase) -> None:
    with pytest.raises(ValueError, match="Negg"):
        discover(bare, ("Negg",), 2)


@pytest.mark.exhaustive  # the search of three operators takes long
def test_printed_rules_are_rediscovered_by_small_searches() -> None:
    """Two of DNNFusion's printed rules and a shipped one; the full measurement is `bench/discovery.py`."""
    found = rediscover(load_rules(), ((("Mul", "Sqrt"), 3),), seconds=20)
    assert found.printed["roots"] == ("Mul", "Sqrt")
    assert found.printed["order_of_factors"] is not None
    assert found.shipped["roots_of_one_tensor"]


def test_shipped_rules_are_rediscovered_by_small_searches() -> None:
    found = rediscover(load_rules(), ((("Abs", "Neg", "Relu"), 2),), seconds=20)
    assert {name for name, source in found.shipped.items() if source} >= {
        "double_negation", "absolute_negation", "double_absolute", "double_relu",
    }  # fmt: skip


@pytest.mark.exhaustive
def test_known_rules_are_rediscovered() -> None:
    found = rediscover(load_rules(), seconds=60)
    printed, shipped = found.counts
    assert printed >= 8, found.printed
    assert shipped >= 20, found.shipped


def test_workers_of_a_cluster_find_what_one_process_finds() -> None:
    distributed = pytest.importorskip("distributed")
    searches = [Search(operators=s, size=2, seed=1, seconds=20.0) for s in (("Abs", "Relu"), ("Abs", "Neg"))]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        found = discover_each(searches, scheduler=cluster.scheduler_address)
    assert {rule.text for rule in found.rules} == {rule.text for rule in discover_each(searches, jobs=1).rules}
    assert "abs_of_relu" in {rule.name for rule in found.rules}
