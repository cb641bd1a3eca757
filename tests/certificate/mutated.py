"""Certificates of what a mutated rule did: a graph on which it fires, and the steps of an optimizer that has it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartmem_rules.certificate.replay import Replay
from smartmem_rules.certificate.terms import Refused
from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.saturation import EngineError
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import facts_of
from smartmem_rules.provenance.derivation import Derivation
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.mutation.mutate import Mutant
from smartmem_rules.verification.operators import single
from smartmem_rules.verification.semantics.terms import Application, Leaf, Term
from tests.egraph.building import Array, Builder, feeds_of

DTYPES = frozenset({"float32", "float64", "int32", "int64", "bool", "int8", "uint8"})
ATTEMPTS = 60
CASES = 3


@dataclass(frozen=True, kw_only=True)
class Fired:
    """A graph at which a mutant fired, and the steps of the certificate, each with the terms that it says are equal."""

    graph: Graph
    steps: list[Mapping[str, Any]]
    derivation: Derivation
    sides: list[tuple[int, int]]


def base_with(mutant: Mutant, base: RuleBase) -> RuleBase:
    """The shipped rules with the mutant in the place of its rule, or with the changed definition."""
    if mutant.operator is not None:
        old, new = mutant.operator
        operators = {**base.operators, old.name: [new if o is old else o for o in base.operators[old.name]]}
        return replace(base, operators=operators)
    if isinstance(mutant.rule, ast.Rewrite):
        return replace(base, rewrites=[mutant.rule if r.name == mutant.name else r for r in base.rewrites])
    assert isinstance(mutant.rule, ast.Eliminate)
    return replace(base, eliminates=[mutant.rule if r.name == mutant.name else r for r in base.eliminates])


def fired(mutant: Mutant, base: RuleBase) -> Iterator[Fired]:
    """Some graphs at which a mutant fires, those first that its rule would refuse."""
    changed = base_with(mutant, base)
    for graph in itertools.islice(_graphs(mutant, changed), 2 * CASES):
        try:
            found = _fired(graph, mutant, changed)
        except EngineError:
            continue  # the engine noticed
        # steps that only say what constants are worth are no work of a mutated rule
        if mutant.operator is not None or any(step.get("rule") == mutant.rule.name for step in found.steps):
            yield found


def _fired(graph: Graph, mutant: Mutant, changed: RuleBase) -> Fired:
    rule = mutant.rule
    assert isinstance(rule, ast.Rewrite | ast.Eliminate)
    others = changed.rule_names() - {rule.name}
    saturation = saturate(graph, changed, [rule.ruleset], disable=others, record=True)
    derivation = Derivation(graph, changed, saturation)
    replay = Replay(graph, changed)
    steps, sides = [], []
    for one in derivation.taken:
        step, applied = replay.take(one.step)
        steps.append(step)
        sides.append((applied.left, applied.right))
    return Fired(graph=graph, steps=steps, derivation=derivation, sides=sides)


def _graphs(mutant: Mutant, changed: RuleBase) -> Iterator[Graph]:
    instances = Instances(changed)
    rule = mutant.rule
    # of a constant a fact is known by its elements
    known = {fact.tensor for fact in facts_of(rule)} if isinstance(rule, ast.Rewrite) else set()
    if isinstance(rule, ast.Rewrite):
        guards = rule.guards
        if mutant.targeted is not None:
            guards = (*guards, ast.Unary(mutant.targeted.span, "not", mutant.targeted))
        search = Search(replace(rule, guards=guards), rule.left, rule.right, instances, seed=1)
    else:
        assert mutant.operator is not None
        search = single(mutant.operator[1], instances, 1, strict=False)
    for case in itertools.islice(search.cases(ATTEMPTS), ATTEMPTS):
        if case is None:
            continue
        builder = Builder(changed)
        try:
            graph = builder.finish(_build(case.left, case, builder, known))
        except (Unsupported, DefinitionError, KeyError):
            continue
        if all(type_.dtype in DTYPES and type_.elements for type_ in graph.types.values()):
            yield graph


def _build(term: Term, case: Case, builder: Builder, known: Collection[str]) -> str:
    if isinstance(term, Leaf):
        if term.name in builder.graph.types:
            return term.name
        if term.name in case.elements:
            return builder.constant(term.name, case.elements[term.name].astype(term.type.dtype))
        if term.number is None and term.name not in case.constants and term.name not in known:
            return builder.input(term.name, term.type.shape, term.type.dtype)
        value = case.uniform.get(term.name) if term.number is None else term.number
        drawn = np.random.default_rng(len(term.name)).integers(1, 4, term.type.shape)
        array = drawn if value is None else np.full(term.type.shape, value)
        return builder.constant(term.name, np.asarray(array, term.type.dtype))
    assert isinstance(term, Application)
    operands = [None if o is None else _build(o, case, builder, known) for o in term.operands]
    while operands and operands[-1] is None:
        operands.pop()
    alike = [n for n in builder.graph.nodes if (n.operator, list(n.operands)) == (term.operator, operands)]
    alike = [n for n in alike if n.attributes == term.attributes and len(n.outputs) == term.outputs]
    if alike:
        return alike[0].outputs[term.place]
    builder.add(term.operator, *operands, outputs=term.outputs, **dict(term.attributes))
    return builder.graph.nodes[-1].outputs[term.place]


def refusal(found: Fired, base: RuleBase) -> str | None:
    """Why the checker refuses the certificate, by the shipped rules; None where it does not."""
    replay = Replay(found.graph, base)
    for step in found.steps:
        try:
            replay.step(step)
        except Refused as reason:
            return str(reason)
    return None


def both_sides(found: Fired, base: RuleBase) -> list[tuple[Array, Array]]:
    """The elements of both sides of each step, for random inputs."""
    replay = Replay(found.graph, base)
    for step in found.steps:
        replay.step(step)
    feeds = feeds_of(found.graph, signed=True)
    for name, number in replay.model.numbers.items():
        if name in feeds:
            replay.terms.arrays[number] = feeds[name]
    return [(_value(replay, left), _value(replay, right)) for left, right in found.sides]


def _value(replay: Replay, number: int) -> Array:
    """A term's elements where those of the inputs are known."""
    terms = replay.terms
    for child in terms.terms[number].children:
        if child >= 0 and child not in terms.arrays and terms.terms[number].operator != "Out":
            _value(replay, child)
    if number not in terms.arrays:
        folded = terms.terms[number].children
        terms.terms[number] = replace(terms.terms[number], folded=folded)
        if terms.terms[number].operator == "Out":
            joint = terms.terms[number].children[0]
            for child in terms.terms[joint].children:
                if child >= 0:
                    _value(replay, child)
            terms.terms[joint] = replace(terms.terms[joint], folded=terms.terms[joint].children)
    return terms.value(number)
