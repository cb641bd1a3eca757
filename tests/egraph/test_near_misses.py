"""For each guard of each shipped rewrite an instance on which that guard alone fails: the near miss names the guard."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import truth
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.terms import Leaf, Term
from tests.egraph.building import Builder
from tests.egraph.test_shipped_rewrites import shipped

ATTEMPTS, FEW_ATTEMPTS = 40, 2
"""Of each search, where an instance is known to be found, and where none is."""
REPAIRS = 30
INSTANCES = 3
SEEDS = range(1, 7)
ABSENT = "where it is absent, a guard behind it asks for its value and fails too"
NO_VALUE = "what is no constant has no value, which a guard behind it asks for"
UNSIGNED = "no operator of the left side takes unsigned integers"
ONE_TYPE = "the search draws operands of one type"
EMPTY = "where it fails one of the pieces is empty, and the search draws no empty tensors"
HARD = "few graphs have this left side: a search of seconds may find no instance, so none is asked for"
TWO_TENSORS = "the search binds two names to two tensors, so that each product uses the factor"
UNREACHABLE: dict[tuple[str, str], str] = {
    ("layer_normalization", "constant(e)"): NO_VALUE,
    ("layer_normalization", "present(a)"): ABSENT,
    ("layer_normalization", "present(b)"): ABSENT,
    ("rms_normalization", "constant(e)"): NO_VALUE,
    ("rms_normalization", "present(a)"): ABSENT,
    ("softmax", "present(a)"): ABSENT,
    ("softmax", "present(b)"): ABSENT,
    ("l2_normalization", "present(a)"): ABSENT,
    ("unshifted_softmax", "present(a)"): ABSENT,
    ("clip_as_relu", "present(a)"): ABSENT,
    ("clip_of_relu", "present(a)"): ABSENT,
    ("clip_of_relu", "present(b)"): ABSENT,
    ("relu_of_clip", "present(a)"): ABSENT,
    ("relu_of_clip", "present(b)"): ABSENT,
    ("clip_of_clip", "present(a)"): ABSENT,
    ("clip_of_clip", "present(b)"): ABSENT,
    ("clip_of_clip", "present(c)"): ABSENT,
    ("clip_of_clip", "present(d)"): ABSENT,
    ("scale_after_gemm", "constant(k)"): NO_VALUE,
    ("divide_by_constant", "constant(c)"): NO_VALUE,
    ("absolute_negation", "is_signed(dtype(x))"): UNSIGNED,
    ("batch_normalization_as_scale_and_bias", "dtype(m) == dtype(x)"): ONE_TYPE,
    ("batch_normalization_as_scale_and_bias", "dtype(s) == dtype(x)"): ONE_TYPE,
    ("cyclic_shift", "piece_begin(s, extent(x, wrap(a, rank(x)))) > 0"): EMPTY,
    ("group_normalization", "value(g) == 1"): HARD,
    ("group_normalization", "constant(s)"): HARD,
    ("group_normalization", "constant(b)"): HARD,
    ("group_normalization", "reshape_shape(shape(x), p, 0)[0] == extent(x, 0)"): HARD,
    ("group_normalization", "per_channel(shape(s), extent(x, 1), rank(x))"): HARD,
    ("group_normalization", "per_channel(shape(b), extent(x, 1), rank(x))"): HARD,
    ("factor_common_multiplicand", "uses(a) > 1"): TWO_TENSORS,
    ("factor_common_multiplicand_of_difference", "uses(a) > 1"): TWO_TENSORS,
}
"""Guards that fail alone on no instance that is made here, each by its rule and text, and why."""


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


def named(case: Case, rule: ast.Rewrite, place: int, base: RuleBase) -> bool:
    """Whether the near miss of the only match names the guard."""
    graph = graph_of(case, base)
    saturation = saturate(graph, base, [rule.ruleset], disable=base.rule_names() - {rule.name})
    guard = rule.guards[place]
    return any(miss.place == guard.span and miss.passed == place for miss in saturation.near_misses)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rule", [rule for rule in shipped() if rule.guards], ids=lambda rule: rule.name)
def test_the_near_miss_names_the_guard_that_fails(rule: ast.Rewrite, base: RuleBase) -> None:
    for place, guard in enumerate(rule.guards):
        text = print_expression(guard)
        why = UNREACHABLE.get((rule.name, text))
        if why == HARD:
            continue
        cases = instances(rule, place, base, ATTEMPTS if why is None else FEW_ATTEMPTS)
        reached = any(named(case, rule, place, base) for case in cases)
        assert reached == (why is None), f"guard {place + 1}: {text}"


def test_unreachable_guards_are_guards() -> None:
    guards = {(rule.name, print_expression(guard)) for rule in shipped() for guard in rule.guards}
    assert guards >= UNREACHABLE.keys()
