"""Families, predicates, constants, rule sets, tags: what the engine gets of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.printer import print_equation, print_expression, print_guards
from smartmem_rules.rulebase.base import RuleBase, load_rules


def base_of(tmp_path: Path, text: str, *disable: str) -> RuleBase:
    path = tmp_path / "mine.smr"
    path.write_text(text)
    return load_rules([path], disable)


FAMILY = """for Op, n in (Relu, 2), (Exp, 3) {
    rewrite after_transpose in algebra
        Op(Transpose(x; perm = p)) => Transpose(Op(x); perm = p)
        where rank(x) == n
        explores
        tags made_up
}
"""


def test_a_family_gives_one_rule_for_each_member(tmp_path: Path) -> None:
    rules = {rule.name: rule for rule in base_of(tmp_path, FAMILY).rewrites}
    assert print_equation(rules["after_transpose.Exp"]) == (
        "Exp(Transpose(x; perm = p)) => Transpose(Exp(x); perm = p)"
    )
    assert print_guards(rules["after_transpose.Relu"]) == "rank(x) == 2"


NESTED = """for F in Neg, Exp {
    for G, n in (Relu, 2), (F, 3) {
        rewrite after_transpose in algebra
            G(F(Transpose(x; perm = p))) => Transpose(G(F(x)); perm = p)
            where rank(x) == n
            explores
    }
    rewrite twice in algebra
        F(F(x)) => F(x)
        explores
}
"""


def test_families_nest(tmp_path: Path) -> None:
    rules = {rule.name: rule for rule in base_of(tmp_path, NESTED).rewrites}
    made = [name for name in rules if name.startswith(("after_", "twice"))]
    assert made == [
        "after_transpose.Neg.Relu",
        "after_transpose.Neg.Neg",
        "twice.Neg",
        "after_transpose.Exp.Relu",
        "after_transpose.Exp.Exp",
        "twice.Exp",
    ]
    assert print_equation(rules["after_transpose.Exp.Relu"]) == (
        "Relu(Exp(Transpose(x; perm = p))) => Transpose(Relu(Exp(x)); perm = p)"
    )
    assert print_guards(rules["after_transpose.Neg.Neg"]) == "rank(x) == 3"
    names = base_of(tmp_path, NESTED, "after_transpose.Neg", "twice.Exp").rule_names()
    assert {name for name in names if name in made} == {
        "after_transpose.Exp.Relu",
        "after_transpose.Exp.Exp",
        "twice.Neg",
    }


def test_an_inner_family_hides_the_names_of_an_outer_one(tmp_path: Path) -> None:
    text = (
        "for F in Neg {\n    for F in Exp {\n        rewrite same in algebra\n            F(F(x)) => F(x)\n    }\n}\n"
    )
    (rule,) = [rule for rule in base_of(tmp_path, text).rewrites if rule.name.startswith("same")]
    assert (rule.name, print_equation(rule)) == ("same.Neg.Exp", "Exp(Exp(x)) => Exp(x)")


@pytest.mark.parametrize(
    ("disable", "left"),
    [("after_transpose", set()), ("after_transpose.Exp", {"after_transpose.Relu"}), ("tag:made_up", set())],
)
def test_members_are_switched_off_one_by_one_or_together(tmp_path: Path, disable: str, left: set[str]) -> None:
    names = base_of(tmp_path, FAMILY, disable).rule_names()
    assert {name for name in names if name.startswith("after_")} == left


def test_an_unknown_tag_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="tag:made_up"):
        base_of(tmp_path, FAMILY, "tag:made_op")


def test_predicates_and_constants_are_written_out(tmp_path: Path) -> None:
    base = base_of(
        tmp_path,
        "let HALF = 0.5\nlet ONE = HALF + HALF\npredicate scalar(t) = constant(t) and rank(t) == 0\n"
        "predicate half(t) = scalar(t) and near(value(t), HALF)\n"
        "rewrite made_up in algebra\n    Mul(Mul(x, HALF), c) => Mul(x, c)\n    where half(c), extent(x, 0) == ONE\n",
    )
    rule = next(rule for rule in base.rewrites if rule.name == "made_up")
    assert print_equation(rule) == "Mul(Mul(x, 0.5), c) => Mul(x, c)"
    assert print_guards(rule) == ("constant(c) and rank(c) == 0 and near(value(c), 0.5), extent(x, 0) == 0.5 + 0.5")
    # a near miss shows what the author wrote
    assert (rule.guards[0].span.column, rule.guards[0].span.end_column) == (11, 18)


def test_an_extent_hides_a_constant_of_its_name(tmp_path: Path) -> None:
    text = "let K = 3\noperator MadeUp(x: T[K]) -> y: T[K] { y[i] = x[i] * K }\nfunction made_up(n) = n + K\n"
    base = base_of(tmp_path, text)
    assert print_expression(base.operators["MadeUp"][0].equations[0].body) == "x[i] * K"
    assert print_expression(base.functions["made_up"].body) == "n + 3"


def test_a_rule_set_joins_the_levels_that_run_what_it_is_after(tmp_path: Path) -> None:
    base = base_of(tmp_path, "ruleset mine after algebra, recognise\nruleset last after mine\n")

    def order(level: str) -> list[str]:
        return list(base.levels[level].rulesets)

    assert order("none") == []
    names = order("smartmem")
    assert names.index("algebra") < names.index("mine") < names.index("last")
    assert len(names) == 6


def test_an_operator_stands_for_several_onnx_operators(tmp_path: Path) -> None:
    text = (
        "operator MadeUp(x: T[*S]) -> y: T[*S] {\n    onnx ai.onnx::MadeUp 3.. ;\n    onnx my.domain::MadeUpToo ;\n"
        "    y[*i] = x[*i]\n}\n"
    )
    found = [operator.onnx for operator in base_of(tmp_path, text).operators["MadeUp"]]
    assert [(one.domain, one.name, one.since) for one in found if one] == [
        ("ai.onnx", "MadeUp", 3),
        ("my.domain", "MadeUpToo", 1),
    ]


RULE = """rewrite mine in algebra
    Mul(x, beside(SCALE)) => Neg(x)
    where small(x)
"""
WORLDS = [
    ("let SCALE = 2", "predicate small(t) = rank(t) < LEAST", "let LEAST = 3"),
    ("let SCALE = 5", "predicate small(t) = rank(t) < LEAST", "let LEAST = 3"),
    ("let SCALE = 2", "predicate small(t) = rank(t) < LEAST", "let LEAST = 4"),
    ("let SCALE = 2", "predicate small(t) = rank(t) == 0", "let LEAST = 3"),
    ("let SCALE = 2", "predicate small(t) = rank(t) < LEAST", "let LEAST = 3", "function beside(n) = n + 1"),
]


def test_one_rule_is_written_out_anew_where_its_names_mean_something_else() -> None:
    (rule,) = parse_text(RULE).items
    defined = [[item for text in texts for item in parse_text(text).items] for texts in WORLDS]
    names = [Names.of([rule, *items]) for items in defined]
    apart = [names.resolved(replace(rule)) for names in names]  # copies, of which nothing is known
    assert len({repr(one) for one in apart}) == len(WORLDS)
    for _ in range(2):
        assert [names.resolved(rule) for names in names] == apart
    others = [Names.of([rule, *items, *parse_text("let OTHER = 7").items]) for items in defined[-1:]]
    assert others[0].resolved(rule) is names[-1].resolved(rule)
