"""Index rules in the e-graph: they agree with the normaliser, an author's rule has effect, a false one has none."""

from __future__ import annotations

import pytest

from smartmem_rules.analysis.everywhere import equal_indices
from smartmem_rules.egraph import index_rules
from smartmem_rules.egraph.index_compile import IndexRuleError, compile_index_rules
from smartmem_rules.egraph.index_rules import Improver, cost, is_simple
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, collect
from smartmem_rules.tensor.atoms import Div, Mod, Var
from smartmem_rules.tensor.index import Index, div, mod
from smartmem_rules.tensor.views import index_map

OUTER, INNER = Var("i0", 8), Var("i1", 7)
SUM = Index(0, ((OUTER, 7), (INNER, 1)))


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (Index(0, ((Div(SUM, 7), 1),)), Index(0, ((OUTER, 1),))),
        (Index(0, ((Mod(SUM, 7), 1),)), Index(0, ((INNER, 1),))),
        (Index(0, ((Mod(SUM, 56), 1),)), SUM),
        (Index(0, ((Div(Index(56, SUM.terms), 56), 1),)), Index(1)),
    ],
)
def test_rules_find_what_the_normaliser_knows(index: Index, expected: Index, base: RuleBase) -> None:
    """The atoms are built without the normalising constructors."""
    assert Improver(base).improve(index_map((8, 7), (56,), (index,))).indices == (expected,)


@pytest.mark.parametrize("by", [1, 3, 10])
@pytest.mark.parametrize("divisor", [7, 8, 56])
def test_nothing_cheaper_than_the_normal_form(by: int, divisor: int, base: RuleBase) -> None:
    shifted = mod(Index(by, SUM.terms), 56)
    for index in (div(shifted, divisor), mod(shifted, divisor)):
        (better,) = Improver(base).improve(index_map((8, 7), (56,), (index,))).indices
        assert cost(better) == cost(index)
        assert equal_indices(better, index)


def test_an_authors_rule_has_effect() -> None:
    text = """
index shift_by_one_of_two  # (a + 1) % 2 = 1 - a, for 0 <= a < 2
    (a + 1) % 2 => 1 - a
    where 0 <= a, a < 2
"""
    rules = collect([parse_text(text, "mine.smr")], [])
    index = mod(Index(1, ((Var("i0", 2), 1),)), 2)
    (better,) = Improver(rules).improve(index_map((2,), (2,), (index,))).indices
    assert better == Index(1, ((Var("i0", 2), -1),))


def test_a_false_rule_is_not_taken() -> None:
    rules = collect([parse_text("index wrong  # wrong\n    a % c => a where c > 0\n", "wrong.smr")], [])
    index = mod(Index(3, ((OUTER, 1),)), 8)
    assert Improver(rules).improve(index_map((8,), (8,), (index,))).indices == (index,)


def test_searches_end_by_what_they_write_and_not_by_the_clock(base: RuleBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rules, "ALL_ROWS", 0)
    improver = Improver(base)
    first, second = Index(0, ((Div(SUM, 7), 1),)), Index(0, ((Mod(SUM, 7), 1),))
    better = improver.improve(index_map((8, 7), (56, 56), (first, second))).indices
    assert better == (Index(0, ((OUTER, 1),)), second)


def test_an_index_is_searched_once_whatever_its_variables_are_called(
    base: RuleBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Index] = []
    search = Improver._search

    def noted(improver: Improver, index: Index) -> Index | None:
        searched.append(index)
        return search(improver, index)

    monkeypatch.setattr(Improver, "_search", noted)
    improver = Improver(base)
    other = Index(0, ((Var("i2", 8), 7), (Var("i5", 7), 1)))
    indices = tuple(mod(Index(3, one.terms), 28) for one in (SUM, other))
    assert [improver._improve(index) for index in indices] == [*indices]
    assert len(searched) == 1


def test_digits_are_left_alone() -> None:
    assert is_simple(div(Index(0, ((OUTER, 1),)), 2))
    assert not is_simple(mod(Index(3, ((OUTER, 1),)), 8))


def test_a_guard_that_intervals_cannot_decide_is_an_error() -> None:
    module = parse_text("index odd  # odd\n    a // c => a where a * a < c\n", "odd.smr")
    with pytest.raises(IndexRuleError, match=r"odd.smr:2:"):
        compile_index_rules(collect([module], []).index_rules)
