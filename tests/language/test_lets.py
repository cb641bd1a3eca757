"""Names that a rule gives to terms and values, and constants that it computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.language import syntax as s
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_equation, print_guards
from smartmem_rules.rulebase.base import RuleBase, load_rules

RULE = """rewrite folded in algebra
    Add(t, Mul(x, c)) => Mul(Relu(t), twice * n)
    let t = Mul(x, c)
    let twice = value(c) * 2
    where rank(t) == n, shape(t) == shape(x)
    let n = rank(x)
    explores
"""


def base_of(tmp_path: Path, text: str) -> RuleBase:
    path = tmp_path / "mine.smr"
    path.write_text(text)
    return load_rules([path])


def test_names_are_written_out(tmp_path: Path) -> None:
    rule = next(one for one in base_of(tmp_path, RULE).rewrites if one.name == "folded")
    assert print_equation(rule) == "Add(Mul(x, c), Mul(x, c)) => Mul(Relu(Mul(x, c)), value(c) * 2 * rank(x))"
    assert print_guards(rule) == "rank(Mul(x, c)) == rank(x), shape(Mul(x, c)) == shape(x)"


def test_a_constant_behind_a_rule_is_no_name_of_the_rule() -> None:
    rule, constant = parse_text("rewrite r in algebra\n    Relu(Relu(x)) => Relu(x)\nlet HALF = 0.5\n").items
    assert isinstance(rule, s.Rewrite)
    assert isinstance(constant, s.Constant)
    assert rule.lets == ()


def test_a_let_of_an_operator_is_none_of_a_rule() -> None:
    text = """rewrite r in algebra
    Relu(Relu(x)) => Relu(x)
operator Own(x: T[*S]) -> y: T[*S] {
    internal
    let n = rank(S)
    y[*i] = x[*i] * n
}
"""
    _, operator = parse_text(text).items
    assert isinstance(operator, s.Operator)
    assert [let.name for let in operator.lets] == ["n"]


def test_the_formatter_indents_names_like_other_clauses() -> None:
    flat = "\n".join(line.strip() for line in RULE.splitlines())
    assert format_text(flat) == RULE
    assert format_text(RULE + "let HALF = 0.5\n") == RULE + "let HALF = 0.5\n"


def test_a_family_of_lower_case_operators_gives_terms_too(tmp_path: Path) -> None:
    text = """for op in Relu, Abs {
    rewrite twice in algebra
        op(t) => t
        let t = op(Transpose(x; perm = p))
        unsound "a test"
}
"""
    rules = {one.name: one for one in base_of(tmp_path, text).rewrites}
    turned = "Abs(Transpose(x; perm = p))"
    assert print_equation(rules["twice.Abs"]) == f"Abs({turned}) => {turned}"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Add(x, -1.5)", s.PatternNumber(s.NOWHERE, -1.5)),
        ("Add(x, 1 / 4)", s.PatternNumber(s.NOWHERE, 0.25)),
        ("Add(x, -inf)", s.PatternNumber(s.NOWHERE, float("-inf"))),
        ("Add(x, y)", s.PatternVariable(s.NOWHERE, "y")),
        ("Add(x, rank(x))", s.PatternComputed(s.NOWHERE, s.Call(s.NOWHERE, "rank", (s.Name(s.NOWHERE, "x"),)))),
    ],
)
def test_what_an_operand_may_be(written: str, read: s.Pattern) -> None:
    (rule,) = parse_text(f"rewrite r in algebra Relu(x) => {written}").items
    assert isinstance(rule, s.Rewrite)
    assert isinstance(rule.right, s.PatternOperator)
    assert rule.right.arguments[1] == read


def test_an_attribute_is_an_operand_of_the_right_side(tmp_path: Path) -> None:
    text = """rewrite r in algebra
    Clip(x; min = a, max = b) => Min(Max(x, a), b)
    where present(a), present(b)
    explores
"""
    rule = next(one for one in base_of(tmp_path, text).rewrites if one.name == "r")
    assert isinstance(rule.right, s.PatternOperator)
    assert isinstance(rule.right.arguments[1], s.PatternComputed)
