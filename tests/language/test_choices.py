"""Patterns that take any one of several operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.language.choices import operators_of
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_equation
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.language.programs import printed

TEXT = """family Kept = Relu | Abs
family Pointwise = Kept | Neg
rewrite of_two in algebra
    Pointwise(t) => Transpose(Pointwise(x); perm = p)
    let t = Transpose(x; perm = p)
    where rank(Pointwise(x; unused = 1)) == rank(t)
    explores
rewrite of_places in algebra
    (Relu | Neg)((Relu | Neg)(Kept(x))) => Kept(x)
    unsound "a test"
eliminate views in eliminate
    Reshape | Flatten where rank(x) > 0
for Op in Kept, Tanh {
    rewrite twice in algebra
        Op(Op(x)) => x
        unsound "a test"
}
"""


def base_of(tmp_path: Path, text: str, *disable: str) -> RuleBase:
    path = tmp_path / "mine.smr"
    path.write_text(text)
    return load_rules([path], disable)


def test_each_choice_is_a_rule(tmp_path: Path) -> None:
    text = TEXT.replace("    where rank(Pointwise(x; unused = 1)) == rank(t)\n", "")
    rules = {rule.name: print_equation(rule) for rule in base_of(tmp_path, text).rules()}
    assert rules["of_two.Neg"] == "Neg(Transpose(x; perm = p)) => Transpose(Neg(x); perm = p)"
    assert {name for name in rules if name.startswith("of_two")} == {"of_two.Relu", "of_two.Abs", "of_two.Neg"}
    assert rules["of_places.Abs.Neg.Relu"] == "Relu(Neg(Abs(x))) => Abs(x)"
    assert sum(name.startswith("of_places") for name in rules) == 8
    assert rules["twice.Tanh"] == "Tanh(Tanh(x)) => x"
    assert {"twice.Relu", "twice.Abs", "views.Reshape", "views.Flatten"} <= rules.keys()


@pytest.mark.parametrize(("off", "left"), [("of_two", set()), ("of_two.Neg", {"of_two.Relu", "of_two.Abs"})])
def test_a_rule_and_its_choices_are_switched_off(tmp_path: Path, off: str, left: set[str]) -> None:
    text = TEXT.replace("    where rank(Pointwise(x; unused = 1)) == rank(t)\n", "")
    names = base_of(tmp_path, text, off).rule_names()
    assert {name for name in names if name.startswith("of_two")} == left


def test_families_that_name_each_other_end() -> None:
    families = {"A": ("Relu", "B"), "B": ("A", "Abs")}
    assert operators_of("A", families) == ["Relu", "A", "Abs"]


def test_they_are_printed_and_laid_out() -> None:
    tree = parse_text(TEXT)
    assert parse_text(printed(tree)).items == tree.items
    spoilt = TEXT.replace("(Relu | Neg)((Relu | Neg)(", "( Relu|Neg ) ((Relu |Neg) ( ")
    assert format_text(spoilt) == TEXT
    assert format_text(TEXT) == TEXT
