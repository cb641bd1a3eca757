"""For each guard of each shipped rewrite an instance on which that guard alone fails: the near miss names the guard."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import truth
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.terms import Leaf, Term
from tests.egraph.building import Builder, Spec
from tests.egraph.test_shipped_rewrites import random, shipped, spec_of

ATTEMPTS = 40
"""Of each search."""
REPAIRS = 30
INSTANCES = 3
SEEDS = range(1, 7)
UNREACHABLE: dict[tuple[str, str], str] = {
    ("divide_by_constant", "constant(c)"): "the guard behind it loops over the elements, which only a constant has; "
    "`smartmem check` refuses such a guard without this one (SMR0314)",
}
"""Guards that cannot fail alone, each by its rule and text, and why."""
HALVES = np.float16
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
LAST: Spec = {"x": (2, 6, 4, 6), "Reshape": {"shape": (2, 6, 4, 6)}}
"""As many places along the last axis as channels."""
PER_TENSOR = (
    '(contains(["int8", "uint8"], dtype(z{0})) and dtype({0}) == dtype(z{0}) and constant(z{0}) and '
    'prod(shape(z{0})) == 1 and (constant(s{0}) and dtype(s{0}) == "float32" and all(*i < shape(s{0})) '
    "(s{0}[*i] >= 1e-12 and s{0}[*i] <= 1000000000000.0))) and prod(shape(s{0})) == 1"
)
OUTPUT = PER_TENSOR.format("y").replace("dtype(y)", "dtype(zy)")
PER_PLACE = (
    '(contains(["int8", "uint8"], dtype({0})) and constant(z{0}) and (constant(s{0}) and dtype(s{0}) == "float32" and '
    "all(*i < shape(s{0})) (s{0}[*i] >= 1e-12 and s{0}[*i] <= 1000000000000.0))) and (prod(shape(s{0})) == 1 or "
    "shape(s{0}) == [extent({0}, {1})] and wrap(p, rank({0})) == wrap({1}, rank({0}))) and shape(z{0}) == shape(s{0})"
)
BIAS = (
    '(((dtype({0}) == "int32" and rank({0}) == 1 and (constant(s{0}) and dtype(s{0}) == "float32" and '
    "all(*i < shape(s{0})) (s{0}[*i] >= 1e-12 and s{0}[*i] <= 1000000000000.0))) and shape(s{0}) == shape(s{2}) and "
    "constant({0}) and all(*i < shape({0})) ({0}[*i] <= 2147000000 - 65025 * {3} and "
    "{0}[*i] >= 65025 * {3} - 2147000000)) and "
    "(q == 0 or prod(shape(s{0})) == 1) and constant(z{0}) and all(*i < shape(z{0})) (z{0}[*i] == 0)) and "
    "all(*i < shape(s{0})) (abs(s{0}[*i] - value(s{1}) * s{2}[*i]) <= 1e-06 * s{0}[*i])"
)
WINDOW, DEPTH = "prod(shape(w)[1:])", "extent(b, if u == 0 then 0 else 1)"
"""How many products a sum of a convolution, and of a product of matrices, has."""
CRAFTED: dict[tuple[str, str], Spec] = {
    ("biased_convolution_of_integers", OUTPUT): {"zy": ()},
    ("biased_convolution_of_integers", BIAS.format("b", "x", "w", WINDOW)): {"b": np.full(5, 2**31 - 1, np.int32)},
    ("gemm_of_integers", OUTPUT): {"zy": ()},
    ("gemm_of_integers", BIAS.format("c", "a", "b", DEPTH)): {"sc": random(6)},
    ("biased_convolution_of_integers", PER_PLACE.format("w", "0")): {"zw": (5,)},
    ("gemm_of_integers", PER_PLACE.format("b", "if u == 0 then 1 else 0")): {"zb": (6,)},
    ("biased_convolution_of_integers", PER_TENSOR.format("x")): {"zx": ()},
    ("gemm_of_integers", PER_TENSOR.format("a")): {"za": ()},
    ("product_of_integers", "extent(b, rank(b) - 2) <= 33025"): {"a": (1, 33026), "b": (33026, 6)},
    ("convolution_of_integers", f"{WINDOW} <= 33025"): {"x": (1, 33026, 1, 1), "w": (5, 33026, 1, 1)},
    ("unbiased_gemm_of_integers", f"{DEPTH} <= 33025"): {"a": (1, 33026), "b": (33026, 6)},
    ("batch_normalization_as_scale_and_bias", "dtype(m) == dtype(x)"): {
        "m": random(3).astype(HALVES), "v": random(3).astype(HALVES),
    },
    ("batch_normalization_as_scale_and_bias", "dtype(s) == dtype(x)"): {
        "s": random(3).astype(HALVES), "o": random(3).astype(HALVES),
    },
    ("group_normalization", "value(g) == 1"): {"g": np.full(3, 2, np.float32)},
    ("group_normalization", "constant(s)"): {"s": (6, 1, 1)},
    ("group_normalization", "constant(b)"): {"b": (6, 1, 1)},
    ("group_normalization", "reshape_shape(shape(x), p, 0)[0] == extent(x, 0)"): {"p": (1, 3, -1)},
    ("group_normalization", "per_channel(shape(s), extent(x, 1), rank(x))"): {**LAST, "s": random(6)},
    ("group_normalization", "per_channel(shape(b), extent(x, 1), rank(x))"): {**LAST, "b": random(6)},
    ("factor_common_multiplicand", "uses(a) > 1"): {"c": "b"},
    ("factor_common_multiplicand_of_difference", "uses(a) > 1"): {"c": "b"},
    **{(f"of_one_element.{name}", "prod(shape(x)) > 0"): {"x": (0, 1, 4)} for name in REDUCTIONS},
}  # fmt: skip
"""What makes a guard fail alone where a search of seconds finds no instance: changes of the rule's own instance."""


def instances(rule: ast.Rewrite, place: int, base: RuleBase, attempts: int) -> Iterator[Case]:
    """Left sides of a rule on which all guards hold but one: aimed at, then drawn without it."""
    guard = rule.guards[place]
    others = rule.guards[:place] + rule.guards[place + 1 :]
    aimed = (*others, ast.Unary(guard.span, "not", guard))
    for guards, seed in itertools.product((aimed, others), SEEDS):
        search = Search(replace(rule, guards=guards), rule.left, rule.left, Instances(base), seed, REPAIRS)
        search.one_sided = True
        found = (case for case in search.cases(attempts) if case is not None and not holds(guard, case))
        yield from itertools.islice(found, INSTANCES)


def holds(guard: ast.Expression, case: Case) -> bool:
    """Whether the guard holds; one that cannot be computed does not."""
    try:
        return truth(guard, case.scope)
    except (DefinitionError, Unsupported):
        return False


def graph_of(case: Case, base: RuleBase) -> Graph:
    """The left side as a graph; constants hold the value that the guards were told."""
    builder = Builder(base)
    names: dict[Term, str] = {}
    applications: dict[tuple[object, ...], str] = {}

    def leaf(term: Leaf) -> str:
        shape = term.type.shape
        if term.name not in case.constants:
            return builder.input(term.name, shape, term.type.dtype)
        number = term.number if term.number is not None else case.uniform.get(term.name)
        if term.name in case.elements:
            return builder.constant(term.name, case.elements[term.name].astype(term.type.dtype))
        values = np.arange(1, 1 + term.type.elements).reshape(shape) if number is None else np.full(shape, number)
        return builder.constant(term.name, values.astype(term.type.dtype))

    def visit(term: Term) -> str:
        if term not in names:
            if isinstance(term, Leaf):
                names[term] = leaf(term)
            else:
                key = (term.operator, term.operands, repr(sorted(term.attributes.items())), term.outputs)
                if key not in applications:
                    operands = [None if operand is None else visit(operand) for operand in term.operands]
                    applications[key] = builder.add(
                        term.operator, *operands, outputs=term.outputs, **term.attributes
                    ).removesuffix(".0")
                names[term] = f"{applications[key]}.{term.place}"
        return names[term]

    return builder.finish(visit(case.left))


def crafted(rule: ast.Rewrite, changes: Spec, base: RuleBase) -> Graph:
    """The left side of a rule by hand."""
    builder = Builder(base)
    root = builder.pattern(rule.left, {**spec_of(rule), **changes})
    assert root is not None
    return builder.finish(root)


def named(graph: Graph, rule: ast.Rewrite, place: int, base: RuleBase) -> bool:
    """Whether the near miss of the only match names the guard."""
    saturation = saturate(graph, base, [rule.ruleset], disable=base.rule_names() - {rule.name})
    guard = rule.guards[place]
    return any(miss.place == guard.span and miss.passed == place for miss in saturation.near_misses)


def others_hold(graph: Graph, rule: ast.Rewrite, place: int, base: RuleBase) -> bool:
    """Whether no other guard turns the match down where the rule does not ask for this one."""
    lax = replace(rule, guards=rule.guards[:place] + rule.guards[place + 1 :])
    saturation = saturate(graph, replace(base, rewrites=[lax]), [rule.ruleset])
    guards = {guard.span for guard in lax.guards}
    statistics = saturation.statistics[rule.name]
    return statistics.tried > 0 and not any(miss.place in guards for miss in saturation.near_misses)


SEARCHED_LONG = {"product_of_integers", "rows_of_packed_product"}


def guarded() -> list[Any]:
    """The rules with guards; those whose instances are searched for seconds only with --all."""
    long = pytest.mark.exhaustive
    return [pytest.param(rule, marks=[long] if rule.name in SEARCHED_LONG else [], id=rule.name)
            for rule in shipped() if rule.guards]  # fmt: skip


@pytest.mark.sampled(48)
@pytest.mark.parametrize("rule", guarded())
def test_the_near_miss_names_the_guard_that_fails(rule: ast.Rewrite, base: RuleBase) -> None:
    for place, guard in enumerate(rule.guards):
        if isinstance(guard, Fact):  # a fact that is not known matches nothing
            continue
        key = (rule.name, print_expression(guard))
        if key in UNREACHABLE or key in CRAFTED:
            continue
        cases = instances(rule, place, base, ATTEMPTS)
        assert any(named(graph_of(case, base), rule, place, base) for case in cases), f"guard {place + 1}: {key[1]}"


@pytest.mark.parametrize(("name", "text"), CRAFTED, ids=lambda value: value)
def test_the_near_miss_of_an_instance_by_hand_names_the_guard(name: str, text: str, base: RuleBase) -> None:
    (rule,) = (rule for rule in shipped() if rule.name == name)
    (place,) = (place for place, guard in enumerate(rule.guards) if print_expression(guard) == text)
    graph = crafted(rule, CRAFTED[name, text], base)
    assert named(graph, rule, place, base)
    assert others_hold(graph, rule, place, base)


def test_guards_without_a_search_are_guards() -> None:
    guards = {(rule.name, print_expression(guard)) for rule in shipped() for guard in rule.guards}
    assert guards >= UNREACHABLE.keys() | CRAFTED.keys()
