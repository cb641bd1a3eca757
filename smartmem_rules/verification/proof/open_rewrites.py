"""Proves rewrites for all extents: both sides are written out as their definitions say and put into normal form.

Every instance of a left side whose operands have ranks up to a bound is on one of the ways that are looked at: ranks,
attributes and outcomes of comparisons are enumerated, extents and numbers stay open. On each way both sides are
expressions over the operands' elements, whose normal forms (`normal_form`) must be the same and need the same to be
defined. docs/verification.md says why ranks above the bound bring nothing new.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.expr import Expr, Read
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.verification.instances.roles import hints_of, nodes
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.normal_form import Forms
from smartmem_rules.verification.proof.open_cases import NoInstance, OpenCase, rank_bound
from smartmem_rules.verification.proof.open_instances import OpenInstances
from smartmem_rules.verification.proof.paths import Path, TooManyWays, ways
from smartmem_rules.verification.proof.polynomials import Key, NoNormalForm
from smartmem_rules.verification.semantics.expressions import expression
from smartmem_rules.verification.semantics.terms import Leaf, Term, leaves, term_text

MOST_WAYS = 40_000
"""Ways beyond which a rule counts as not proved."""


@dataclass
class Found:
    """What came of the ways: how many are instances of the rule, and up to which rank."""

    instances: int = 0
    bound: int = 0


def prove_open(
    rule: ast.Rewrite, left: ast.Pattern, right: ast.Pattern, instances: Instances, z3: Any, most: int = MOST_WAYS
) -> Found:
    """Whether both sides have one normal form at all extents.

    Raises:
        Unprovable: they have not, or the rule is outside of what is proved.
    """
    if any(isinstance(node, ast.Call) and node.function == "near" for guard in rule.guards for node in nodes(guard)):
        raise Unprovable("a number that is near to another has no normal form")
    # facts of elements are not used: what holds of all elements holds of those, too
    rule = replace(rule, guards=tuple(guard for guard in rule.guards if not isinstance(guard, Fact)))
    bound = rank_bound(rule, instances.base.operators)
    _check_literals(rule, bound)
    known = OpenInstances(instances.base)
    hints = hints_of(rule.guards, rule.right, rule.left)
    compared: set[Hashable] = set()
    found = Found(bound=bound)

    def run(path: Path) -> None:
        known.path = path
        case = OpenCase(rule, left, path, known, bound, hints)
        try:
            one = case.left()
            other = case.right(right, one)
        except NoInstance:
            return
        key = known.meaning(one), known.meaning(other), tuple(sorted(case.uniform.items()))
        asked = len(path.asked)
        try:
            if key not in compared:
                _compare(rule, case, one, other)
        except Unprovable:
            if path.is_possible:
                raise
            return
        if len(path.asked) == asked:  # what needs no answer is the same on all ways
            compared.add(key)
        found.instances += 1

    try:
        for _ in ways(run, z3, most):
            pass
    except TooManyWays:
        raise Unprovable(f"more than {most} cases of ranks, attributes and extents") from None
    if not found.instances:
        raise Unprovable("no instance of open extents was found")
    return found


def _check_literals(rule: ast.Rewrite, bound: int) -> None:
    """A guard that names a whole number above the bound may speak of ranks that are not looked at."""
    for guard in rule.guards:
        for node in nodes(guard):
            if isinstance(node, ast.Number) and isinstance(node.value, int) and abs(node.value) >= bound:
                raise Unprovable(f"a guard names {node.value}, ranks are looked at up to {bound}")


def _compare(rule: ast.Rewrite, case: OpenCase, one: Term, other: Term) -> None:
    first, second = _written_out(one), _written_out(other)
    before = Forms(_exact, {**case.uniform, **_numbers(one)})
    try:
        form = before.form(first)
        nonzero = frozenset(k for what, k in before.needs if what == "not zero")
        after = Forms(_exact, {**case.uniform, **_numbers(other)}, nonzero)
        same = form == after.form(second)
    except NoNormalForm as reason:
        raise Unprovable(str(reason)) from reason
    if not same:
        raise Unprovable(f"the normal forms differ at {one.type} for {_shown(one)}")
    _compare_needs(rule, before.needs, after.needs)


def _compare_needs(rule: ast.Rewrite, left: set[tuple[str, Key]], right: set[tuple[str, Key]]) -> None:
    """Both sides are to be defined at the same points; NaN is a root's only failure, a quotient has infinities, too."""
    relaxed = set(rule.relaxes)
    if {"nan", "infinities"} <= relaxed:
        return
    apart = {need for need in left ^ right if need[0] != "not negative" or "nan" not in relaxed}
    if apart & right:
        raise Unprovable("the right side may not be defined where the left is")
    if apart & left:
        raise Unprovable("the left side may not be defined where the right is")


def _written_out(term: Term) -> Expr:
    if isinstance(term, Leaf):
        names = FreshNames("x")
        return Read(term.name, tuple(variable(names.var(n)) for n in term.type.shape), term.type.dtype)
    made = expression(term)
    if made is None:
        raise Unprovable("a side is too large, or elements decide its indices")
    return made


def _numbers(term: Term) -> dict[str, float]:
    return {name: leaf.number for name, leaf in leaves(term).items() if leaf.number is not None}


def _exact(value: float) -> Fraction:
    return Fraction(repr(value))


def _shown(term: Term) -> str:
    operands = ", ".join(f"{leaf.name}: {leaf.type}" for leaf in leaves(term).values())
    return f"{term_text(term)} on {operands}"
