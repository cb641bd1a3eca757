"""Discovery finds again what is known to be true, and never prints what is false."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from smartmem_rules.egraph.instances import Instances
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.parser import parse_text
from smartmem_rules.language.rulebase import RuleBase, load_rules
from smartmem_rules.verify.cases import Search
from smartmem_rules.verify.discover import Discovery, discover, underivable

PRINTED = {
    "Mul(Reciprocal(a), Reciprocal(Mul(a, b))) => Mul(Mul(Reciprocal(a), Reciprocal(a)), Reciprocal(b))": "recip",
    "Mul(Mul(a, Sqrt(b)), Mul(Sqrt(b), c)) => Mul(Mul(a, b), c)": "sqrt",
    "Mul(Mul(Abs(a), b), Abs(c)) => Mul(Abs(Mul(a, c)), b)": "abs",
    "Mul(Mul(a, ReduceSum(b; axes = t, keepdims = k)), Mul(ReduceSum(b; axes = t, keepdims = k), c))"
    " => Mul(Mul(a, Mul(ReduceSum(b; axes = t, keepdims = k), ReduceSum(b; axes = t, keepdims = k))), c)": "add",
    "Add(Mul(a, c), Mul(a, b)) => Mul(a, Add(b, c))": "add",
    "Add(a, Mul(a, b)) => Mul(a, Add(b, 1))": "add",
    "Sub(Mul(Add(a, b), Add(a, b)), Mul(Add(a, b), c)) => Mul(Add(a, b), Sub(Add(a, b), c))": "sub",
    "Mul(a, b) => Mul(b, a)": "recip",
    "ReduceProd(Exp(x); axes = t, keepdims = k) => Exp(ReduceSum(x; axes = t, keepdims = k))": "exp",
}
"""DNNFusion's printed rules in their sound forms, but for the one on bit shifts, each with the search that finds it."""
SEARCHES = {
    "recip": (("Mul", "Reciprocal"), 3),
    "sqrt": (("Mul", "Sqrt"), 3),
    "abs": (("Mul", "Abs"), 3),
    "add": (("Add", "Mul"), 3),
    "sub": (("Sub", "Mul"), 3),
    "exp": (("Exp", "ReduceSum", "ReduceProd"), 2),
}
MORE = {
    "signs": (("Neg", "Add", "Sub"), 2),
    "quotients": (("Mul", "Div", "Reciprocal"), 2),
    "unary": (("Abs", "Neg", "Relu"), 2),
    "functions": (("Exp", "Log", "Sigmoid", "Relu"), 2),
    "divisors": (("Add", "Div"), 3),
}
full = pytest.mark.skipif("SMARTMEM_FULL" not in os.environ, reason="takes minutes: set SMARTMEM_FULL=1")


@pytest.fixture(scope="module")
def bare() -> RuleBase:
    """The operators without any rewrite."""
    return replace(load_rules(), rewrites=[])


@pytest.fixture(scope="module")
def found(bare: RuleBase) -> dict[str, Discovery]:
    return {name: discover(bare, *search, seconds=60) for name, search in SEARCHES.items()}


def with_discovered(base: RuleBase, *discoveries: Discovery) -> RuleBase:
    """A rule base whose rewrites are what was discovered."""
    return replace(base, rewrites=[rule for discovery in discoveries for rule in discovery.working])


def follows(rule: ast.Rewrite, base: RuleBase) -> bool:
    """Whether equality saturation makes both sides of an instance of the rule equal."""
    search = Search(rule, rule.left, rule.right, Instances(base), 3)
    for case in search.cases(200):
        if case is None or case.right is None or case.left.type.dtype != "float32":
            continue
        if min(case.left.type.shape, default=0) > 1:
            return not underivable([(case.left, case.right)], base)
    raise AssertionError(f"{rule.name} has no instance")


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


@full
def test_printed_rules_are_rediscovered(bare: RuleBase, found: dict[str, Discovery]) -> None:
    missed = []
    for number, (text, search) in enumerate(PRINTED.items()):
        (rule,) = parse_text(f"rewrite printed_{number} in algebra  # as printed\n    {text}\n", "printed.smr").items
        assert isinstance(rule, ast.Rewrite)
        if not follows(rule, with_discovered(bare, found[search])):
            missed.append(text)
    print(f"\n{len(PRINTED) - len(missed)} of 10 printed rules; missed {missed}")
    assert len(PRINTED) - len(missed) >= 8


@full
def test_shipped_rules_are_rediscovered(bare: RuleBase, found: dict[str, Discovery]) -> None:
    everything = [*found.values(), *(discover(bare, *search, seconds=60) for search in MORE.values())]
    shipped = [r for r in load_rules().rewrites if r.unsound is None and r.ruleset in ("algebra", "recognise")]
    again = []
    for rule in shipped:
        used = operators_of(rule.left) | operators_of(rule.right)
        for discovery, (operators, _) in zip(everything, [*SEARCHES.values(), *MORE.values()], strict=True):
            if used <= set(operators) and follows(rule, with_discovered(bare, discovery)):
                again.append(rule.name)
                break
    print(f"\n{len(again)} shipped rules: {again}")
    assert len(again) >= 20


def operators_of(pattern: ast.Pattern) -> set[str]:
    if not isinstance(pattern, ast.PatternOperator):
        return set()
    return {pattern.operator}.union(*(operators_of(a) for a in pattern.arguments))
