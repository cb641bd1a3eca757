"""Analyses and the rules that derive their facts: how they are read, printed, laid out and written out."""

from __future__ import annotations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.analyses import Fact, facts_of, operator_name, term_of
from smartmem_rules.language.expansion import Names, expanded
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_equation, print_expression, print_item, print_pattern
from smartmem_rules.lsp.symbols import occurrences

TEXT = """analysis natural(e: float): bool merge or   # not below zero
    means not (e < 0)

for Op in Relu, Exp {
    derive of_values   # by what the function gives
        natural(Op(x))
}

derive of_sum
    natural(Add(x, t))
    let t = Neg(y)
    where natural(x), natural(y), rank(x) == 2

rewrite already in algebra
    Relu(x) => x
    where natural(x), rank(x) == 2
"""


def items_of(text: str) -> list[s.Item]:
    return list(expanded(parse_text(text, "mine.smr").items))


def test_a_fact_becomes_operators_and_each_derivation_an_equation() -> None:
    items = items_of(TEXT)
    names = [item.name for item in items if isinstance(item, s.Operator)]
    assert names == ["natural__holds", "natural__known"]
    assert names[0] == operator_name("natural")
    rules = [item for item in items if isinstance(item, s.Rewrite)]
    assert [rule.name for rule in rules] == ["of_values.Relu", "of_values.Exp", "of_sum", "already"]
    assert [rule.derives for rule in rules] == ["natural", "natural", "natural", None]
    assert print_pattern(term_of(rules[2])) == "Add(x, Neg(y))"
    assert print_equation(rules[0]) == "natural(Relu(x))"
    assert print_pattern(rules[0].left) == "natural__holds(Relu(x))"
    assert print_pattern(rules[0].right) == "natural__known(Relu(x))"


def test_a_guard_is_a_loop_over_the_elements_of_a_constant() -> None:
    items = items_of(TEXT)
    rule = Names.of(items).resolved(items[-1])
    assert isinstance(rule, s.Rewrite)
    (fact,) = facts_of(rule)
    assert isinstance(fact, Fact)
    assert (fact.analysis, fact.tensor) == ("natural", "x")
    assert print_expression(fact) == "natural(x)"
    assert print_expression(fact.left) == "constant(x)"
    assert print_expression(fact.right) == "all(*_i < shape(x)) (not x[*_i] < 0)"


def test_what_is_printed_is_read_again() -> None:
    for written in parse_text(TEXT, "mine.smr").items:
        (again,) = parse_text(print_item(written), "mine.smr").items
        assert again == written


def test_editors_find_where_a_fact_is_used() -> None:
    found = occurrences(parse_text(TEXT, "mine.smr"))
    places = [(one.span.line, one.is_definition) for one in found if one.symbol.name == "natural"]
    assert places == [(1, True), (6, False), (10, False), (12, False), (12, False), (16, False)]
    assert {one.symbol.name for one in found if one.symbol.kind == "rule"} == {"of_values", "of_sum", "already"}


def test_layout_keeps_the_tree_and_is_stable() -> None:
    spoilt = TEXT.replace("    ", " ").replace(", rank", "  ,rank")
    made = format_text(spoilt)
    assert format_text(made) == made
    assert parse_text(made, "mine.smr").items == parse_text(TEXT, "mine.smr").items
