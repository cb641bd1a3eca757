"""Tries whether a `keep` rule ever holds: its guards at random constants."""

from __future__ import annotations

import numpy as np

from smartmem_rules.guards.constant_elements import LOOPED_OVER, uniform_value
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.kept import Constant, keeps
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.operators import single
from smartmem_rules.verification.semantics.terms import Application
from smartmem_rules.verification.trials.outcome import Budget
from smartmem_rules.verification.trials.rewrites import ATTEMPTS_PER_TRIAL

_SCALES = (1, 8, 64)
"""Guards of rules about weights ask for large ones, which instances are not."""
MOST_TRIALS = 50
_LARGEST = 4
"""Of drawn elements, by magnitude: guards ask for signs and for equal elements."""


@dataclass
class KeepOutcome:
    """How many instances there were, and how many the rule keeps."""

    trials: int = 0
    generated: int = 0


def test_keep(rule: ast.Keep, instances: Instances, seed: int, budget: Budget) -> KeepOutcome:
    """Ask the guards at instances of all overloads of the operator, all operands of which are constants."""
    outcome = KeepOutcome()
    generator = np.random.default_rng(seed)
    overloads = list(instances.base.operators.get(rule.operator, ()))
    for place, overload in enumerate(overloads):
        wanted = min(budget.trials, MOST_TRIALS) * (place + 1) // len(overloads)
        for case in single(overload, instances, seed + place, strict=False).cases(budget.trials * ATTEMPTS_PER_TRIAL):
            if outcome.trials >= wanted or budget.spent:
                break
            if case is None:
                continue
            assert isinstance(case.left, Application)
            outcome.generated += 1
            outcome.trials += any(_holds(rule, instances, case.left, scale, generator) for scale in _SCALES)
    return outcome


def _holds(rule: ast.Keep, instances: Instances, term: Application, scale: int, generator: np.random.Generator) -> bool:
    """Whether the rule keeps an instance, all of whose extents are multiplied by a scale."""
    types = [None if o is None else _scaled(o.type, scale) for o in term.operands]
    try:
        instance = instances.get(rule.operator, types, dict(term.attributes), len(term.instance.outputs))
    except Unsupported:
        return False
    operands = [None if type_ is None else _drawn(type_, generator) for type_ in types]
    return keeps(rule, instances.base, instance, operands)


def _scaled(type_: TensorType, scale: int) -> TensorType:
    return TensorType(type_.dtype, tuple(extent * scale for extent in type_.shape))


def _drawn(type_: TensorType, generator: np.random.Generator) -> Constant:
    alike, value = generator.random() < 0.5, int(generator.integers(0, _LARGEST + 1))
    seed = int(generator.integers(1 << 31))

    def elements() -> Array | None:
        if type_.elements > LOOPED_OVER:
            return None
        numbers = np.random.default_rng(seed).integers(-_LARGEST, _LARGEST + 1, type_.shape)
        made: Array = (np.full(type_.shape, value) if alike else numbers).astype(storage_dtype(type_.dtype))
        return made

    def uniform() -> float | None:
        array = elements()
        return None if array is None else uniform_value(array)

    return Constant(type=type_, uniform=uniform, elements=elements)
