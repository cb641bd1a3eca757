"""Which rewrites follow from the others, and what each of those costs (Pal et al., Enumo, OOPSLA 2023).

A rule follows from others if equality saturation with them alone makes both sides of its instances equal. Rules are
taken away one after the other, those with the largest left sides first, so that what is left is small and general:
none of it follows from the rest. It is a minimal rule base, not the least one; another order may leave other rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np

from smartmem_rules.egraph.saturation import Bounds, EngineError, saturate
from smartmem_rules.extraction.extract import extract
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.discovery.graphs import GraphWriter
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.terms import Leaf, leaves

INSTANCES = 4
"""Instances of a rule that must all follow, of different shapes, types and attributes."""
_ATTEMPTS = 60
_BOUNDS = Bounds(enodes=4000, seconds=4.0, iterations=8)
_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class Redundant:
    """A rule that follows from others.

    Attributes:
        sources: the fewest rules found from which it follows.
        instances: how many instances were looked at.
    """

    rule: str
    sources: tuple[str, ...]
    instances: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a rule, or all redundant ones together, do to the saturation of some models.

    Attributes:
        tried, fired, enodes: matches looked at, rewrites done, e-nodes that only the rule made; 0 for all together.
        with_it, without_it: seconds of saturation, the fastest of three runs, summed over the models.
        form_with, form_without: modelled nanoseconds of the extracted forms, summed over the models.
    """

    tried: int
    fired: int
    enodes: int
    with_it: float
    without_it: float
    form_with: float
    form_without: float


@dataclass
class Minimal:
    """A minimal rule base.

    Attributes:
        kept: the rules that do not follow from the others that are kept.
        unseen: rules of which no instance was found; they are kept.
        costs: of each redundant rule, by name, and of all of them under `""`; empty without models.
    """

    kept: list[str] = field(default_factory=list)
    redundant: list[Redundant] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    costs: dict[str, Cost] = field(default_factory=dict)

    def data(self) -> dict[str, object]:
        """JSON data."""
        return {
            "kept": self.kept,
            "unseen": self.unseen,
            "redundant": [asdict(one) | {"cost": self._cost(one.rule)} for one in self.redundant],
            "together": self._cost(""),
        }

    def _cost(self, name: str) -> dict[str, Any] | None:
        return asdict(self.costs[name]) if name in self.costs else None


@dataclass(frozen=True)
class Subject:
    """A model in which rules are measured: its name, its graph, and the rulesets in their order."""

    name: str
    graph: Graph
    rulesets: tuple[str, ...]
    device: str


def minimize(
    base: RuleBase,
    chosen: Sequence[str] | None = None,
    subjects: Sequence[Subject] = (),
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Minimal:
    """A minimal rule base.

    Args:
        chosen: names of rewrites that may go; all by default. Eliminations, index rules and derivations always stay.
        subjects: models in which the redundant rules are measured.
    """
    rules = [rule for rule in _equations(base) if rule.unsound is None and (chosen is None or rule.name in chosen)]
    found, working = Minimal(), base
    gone: list[tuple[ast.Rewrite, list[Case]]] = []
    for number, rule in enumerate(sorted(rules, key=lambda rule: (-_size(rule.left), rule.name))):
        if progress is not None:
            progress(number, len(rules))
        cases = instances_of(rule, base, seed)
        rest = without(working, [rule.name])
        if not cases:
            found.unseen.append(rule.name)
        elif all(follows(case, rest) for case in cases):
            working = rest
            gone.append((rule, cases))
    for rule, cases in gone:
        sources = _sources(cases, working)
        if sources is None:  # it followed by way of rules that went later, further than saturation goes without them
            working = replace(working, rewrites=[*working.rewrites, rule])
        else:
            found.redundant.append(Redundant(rule=rule.name, sources=tuple(sources), instances=len(cases)))
    redundant = {one.rule for one in found.redundant}
    found.kept = [rule.name for rule in rules if rule.name not in redundant]
    for one in found.redundant if subjects else ():
        found.costs[one.rule] = measure(base, [one.rule], subjects)
    if subjects and found.redundant:
        found.costs[""] = measure(base, [one.rule for one in found.redundant], subjects)
    return found


def _size(pattern: ast.Pattern) -> int:
    if not isinstance(pattern, ast.PatternOperator):
        return 0
    return 1 + sum(_size(argument) for argument in pattern.arguments)


def _sources(cases: Sequence[Case], base: RuleBase) -> list[str] | None:
    """The smallest set of rules from which the instances follow; None where all rules together do not give them."""

    def enough(names: Sequence[str]) -> bool:
        kept = only(base, names)
        return all(follows(case, kept) for case in cases)

    names = [rule.name for rule in _equations(base) if rule.unsound is None]
    return fewest(names, enough) if enough(names) else None


def without(base: RuleBase, names: Sequence[str]) -> RuleBase:
    """The rule base without some rewrites."""
    return replace(base, rewrites=[rule for rule in base.rewrites if rule.name not in names])


def only(base: RuleBase, names: Sequence[str]) -> RuleBase:
    """The rule base with some rewrites only, and all that facts are derived by."""
    return replace(base, rewrites=[rule for rule in base.rewrites if rule.name in names or rule.derives is not None])


def _equations(base: RuleBase) -> list[ast.Rewrite]:
    """The rewrites that make tensors equal: what derives facts does not."""
    return [rule for rule in base.rewrites if rule.derives is None]


def instances_of(rule: ast.Rewrite, base: RuleBase, seed: int) -> list[Case]:
    """Some instances of a rule, of different types and shapes."""
    search = Search(rule, rule.left, rule.right, Instances(base), seed)
    found: dict[str, Case] = {}
    for case in search.cases(_ATTEMPTS):
        if case is not None and case.right is not None and 0 not in case.left.type.shape:
            found.setdefault(str(case.left.type), case)
        if len(found) >= INSTANCES:
            break
    return list(found.values())


def follows(case: Case, base: RuleBase) -> bool:
    """Whether saturation makes both sides of an instance equal."""
    assert case.right is not None
    writer, random = GraphWriter(), np.random.default_rng(1)
    for leaf in (leaves(case.left) | leaves(case.right)).values():
        if leaf.number is None and (leaf.name in case.constants or leaf.name in case.uniform):
            writer.given[leaf.name] = _elements(leaf, case.uniform.get(leaf.name), random)
    sides = [writer.write(case.left), writer.write(case.right)]
    writer.graph.outputs.extend(dict.fromkeys(sides))
    named = [*(rule.ruleset for rule in _equations(base)), *(rule.ruleset for rule in base.eliminates)]
    rulesets = tuple(dict.fromkeys(named))
    try:
        classes = saturate(writer.graph, base, rulesets * 2, bounds=_BOUNDS).tensor_class
    except EngineError:
        return False
    return classes[sides[0]] == classes[sides[1]]


def _elements(leaf: Leaf, number: float | None, random: np.random.Generator) -> Array:
    kind = storage_dtype(leaf.type.dtype)
    if number is not None:
        return np.full(leaf.type.shape, number, kind)
    return np.asarray(random.integers(1, 9, leaf.type.shape)).astype(kind)


def fewest(names: list[str], enough: Callable[[Sequence[str]], bool]) -> list[str]:
    """Names of which none can be left out, found by leaving out large shares first."""
    size = max(1, len(names) // 2)
    while True:
        place = 0
        while place < len(names):
            rest = names[:place] + names[place + size :]
            if enough(rest):
                names = rest
            else:
                place += size
        if size == 1:
            return names
        size = max(1, size // 2)


def measure(base: RuleBase, names: Sequence[str], subjects: Sequence[Subject]) -> Cost:
    """What some rules do to the saturation of models, and to what is extracted."""
    rest = without(base, names)
    tried = fired = enodes = 0
    seconds, forms = [0.0, 0.0], [0.0, 0.0]
    for subject in subjects:
        for place, rules in enumerate((base, rest)):
            best = float("inf")
            for _ in range(_RUNS):
                began = time.perf_counter()
                saturation = saturate(subject.graph, rules, subject.rulesets)
                best = min(best, time.perf_counter() - began)
            seconds[place] += best
            forms[place] += extract(saturation, subject.graph, base.devices[subject.device])[1].cost
            if place == 0 and len(names) == 1 and names[0] in saturation.statistics:
                counted = saturation.statistics[names[0]]
                tried, fired, enodes = tried + counted.tried, fired + counted.fired, enodes + counted.enodes
    return Cost(
        tried=tried,
        fired=fired,
        enodes=enodes,
        with_it=seconds[0],
        without_it=seconds[1],
        form_with=forms[0],
        form_without=forms[1],
    )
