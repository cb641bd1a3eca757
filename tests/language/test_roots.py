"""Rules of several patterns: how they are read, printed, laid out and written out."""

from __future__ import annotations

from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expansion import expanded
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_equation, print_item
from smartmem_rules.language.roots import BESIDE, roots_of
from smartmem_rules.rulebase.base import load_rules

RULE = """rewrite both in algebra   # x a and x b
    MatMul(x, a), twin => Slice(p; starts = [0]), Slice(p; starts = [n])
    let twin = MatMul(x, b)
    let p = MatMul(x, Concat(a, b; axis = 1))
    let n = extent(a, 1)
    where constant(a), constant(b)
"""


def rules_of(text: str) -> list[s.Rewrite]:
    return [one for one in expanded(parse_text(text, "mine.smr").items) if isinstance(one, s.Rewrite)]


def test_each_pattern_has_an_equation_beside_the_others() -> None:
    first, second = rules_of(RULE)
    assert (first.name, second.name) == ("both.1", "both.2")
    assert first.part_of == second.part_of == "both"
    assert isinstance(first.left, s.PatternOperator)
    assert first.left.operator == BESIDE
    assert roots_of(first.left) == tuple(reversed(roots_of(second.left)))
    assert print_equation(first) == (
        "MatMul(x, a) beside MatMul(x, b) => Slice(MatMul(x, Concat(a, b; axis = 1)); starts = [0])"
    )
    assert print_equation(second).startswith("MatMul(x, b) beside MatMul(x, a) => ")
    assert first.guards == second.guards


def test_a_rule_of_one_pattern_stays_as_it_is() -> None:
    (rule,) = rules_of("rewrite one in algebra Relu(Relu(x)) => Relu(x)")
    assert (rule.name, rule.part_of) == ("one", None)


def test_what_is_printed_is_read_again() -> None:
    (written,) = parse_text(RULE, "mine.smr").items
    (again,) = parse_text(print_item(written), "mine.smr").items
    assert again == written


def test_layout_keeps_the_tree_and_is_stable() -> None:
    text = RULE.replace("starts = [0]", "starts = [0], ends = [n + 0 * n + 0 * n + 0 * n + 0 * n], axes = [-1]")
    made = format_text(text)
    assert format_text(made) == made
    assert max(map(len, made.split("\n"))) <= 120
    assert parse_text(made, "mine.smr").items == parse_text(text, "mine.smr").items


def test_families_choose_in_all_patterns() -> None:
    text = "family Curve = Sin | Cos\nrewrite curves in algebra Curve(x), Neg(x) => Curve(Neg(Neg(x))), Neg(x)\n"
    assert [rule.name for rule in rules_of(text)] == [
        "curves.Sin.1", "curves.Sin.2", "curves.Cos.1", "curves.Cos.2",
    ]  # fmt: skip


def test_an_equation_is_switched_off_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text(RULE.replace("starts = [0]", "starts = [0], ends = [n], axes = [1]").replace(
        "starts = [n]", "starts = [n], ends = [n + extent(b, 1)], axes = [1]"
    ).replace("constant(a),", "constant(a), rank(x) == 2, rank(a) == 2, rank(b) == 2,"))  # fmt: skip
    names = {rule.name for rule in load_rules([path]).rewrites}
    assert {"both.1", "both.2"} <= names
    assert "both.1" not in {rule.name for rule in load_rules([path], ["both.1"]).rewrites}
    assert not {"both.1", "both.2"} & {rule.name for rule in load_rules([path], ["both"]).rewrites}
