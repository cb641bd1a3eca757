"""Models that compute one side of a rewrite rule: what optimizers look for, at drawn shapes, types and attributes."""

from __future__ import annotations

import random as chance
from functools import lru_cache

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Array, Case, Mode
from smartmem_rules.fuzzing.recipes.values import draw_values
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.verification.discovery.graphs import GraphWriter
from smartmem_rules.verification.instances import case as instance
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.terms import Term, leaves
from smartmem_rules.writing.expressing import express
from smartmem_rules.writing.views import NotExpressible

OPSETS = (13, 17, 18, 21)
_TRIES = 40
_TYPES = frozenset({"float32", "float16", "float64", "int32", "int64", "uint8", "int8", "bool"})


@lru_cache(maxsize=1)
def _rules() -> tuple[RuleBase, tuple[ast.Rewrite, ...]]:
    base = load_rules()
    return base, tuple(rule for rule in base.rewrites if rule.unsound is None)


def side(seed: int) -> Case:
    """The left side of a drawn rule.

    Raises:
        ValueError: none of some tries gave a model.
    """
    base, rules = _rules()
    random = np.random.default_rng((seed, 3))
    for _ in range(_TRIES):
        rule = rules[int(random.integers(len(rules)))]
        found = _instance(rule, base, int(random.integers(1 << 30)))
        if found is not None and _usable(found.left):
            try:
                return _case(f"side-{seed}-{rule.name}", found, Instances(base), random)
            except NotExpressible:
                continue
    raise ValueError(f"no model in {_TRIES} tries")


def _instance(rule: ast.Rewrite, base: RuleBase, seed: int) -> instance.Case | None:
    search = Search(rule, rule.left, rule.right, Instances(base), seed)
    search.random = chance.Random(seed)
    found = (case for case in search.cases(60) if case is not None)
    wanted = int(search.random.random() * 6)
    return next((case for place, case in enumerate(found) if place >= wanted), None)


def _usable(term: Term) -> bool:
    return all(leaf.type.dtype in _TYPES and 0 not in leaf.type.shape for leaf in leaves(term).values())


def _case(name: str, found: instance.Case, instances: Instances, random: np.random.Generator) -> Case:
    writer = GraphWriter()
    feeds: dict[str, Array] = {}
    for leaf in leaves(found.left).values():
        if leaf.number is not None:
            continue
        value = found.uniform.get(leaf.name)
        values = _values(leaf.type, value, random)
        if value is not None or leaf.name in found.constants:
            writer.given[leaf.name] = values
        else:
            feeds[leaf.name] = values
    graph = writer.graph
    graph.outputs.append(writer.write(found.left))
    model = express(graph, instances, int(random.choice(OPSETS)))
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as reason:
        raise NotExpressible(f"the rule base takes more than ONNX does: {reason}") from reason
    return Case(name, model, {n: a for n, a in feeds.items() if n in graph.inputs}, Mode())


def _values(type_: TensorType, number: float | None, random: np.random.Generator) -> Array:
    if number is not None:
        return np.full(type_.shape, number, storage_dtype(type_.dtype))
    return draw_values(random, type_.shape, type_.dtype, special=False)
