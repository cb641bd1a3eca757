"""Compares the definition of an operator with the numpy function that it names."""

from __future__ import annotations

import numpy as np

from smartmem_rules.checking.own_references import OwnReferenceError, by_reference
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import FLOATS, operand_name, output_name
from smartmem_rules.tensor.builtins import ConstantTensor, Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_equations
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.operators import single
from smartmem_rules.verification.semantics.terms import Application, term_text
from smartmem_rules.verification.trials.outcome import Budget
from smartmem_rules.verification.trials.rewrites import ATTEMPTS_PER_TRIAL

MOST_TRIALS = 60
TOLERANCE, TOLERANCE_OF_SINGLES = 1e-6, 1e-3
"""Relative to the largest element, in double and in single precision: both sum in other ways."""
_LARGEST = 3


@dataclass
class ReferenceOutcome:
    """How many instances agreed, and the lines that show the first that does not."""

    trials: int = 0
    failure: tuple[str, ...] | None = None


def test_reference(operator: ast.Operator, instances: Instances, seed: int, budget: Budget) -> ReferenceOutcome:
    """Compute random instances of an overload by its definition and by the function that it names."""
    outcome = ReferenceOutcome()
    generator = np.random.default_rng(seed)
    for case in single(operator, instances, seed).cases(budget.trials * ATTEMPTS_PER_TRIAL):
        if outcome.trials >= min(budget.trials, MOST_TRIALS) or budget.spent or outcome.failure is not None:
            break
        if case is not None:
            assert isinstance(case.left, Application)
            _compare(operator, case.left, instances, generator, outcome)
    return outcome


def _compare(
    operator: ast.Operator,
    term: Application,
    instances: Instances,
    generator: np.random.Generator,
    outcome: ReferenceOutcome,
) -> None:
    types, instance = _in_doubles(term, instances)
    if instance.operator.span != operator.span:
        return  # another overload takes these operands
    operands = [None if type_ is None else _drawn(type_, generator) for type_ in types]
    given: dict[str, Value] = dict(term.attributes)
    named = {operand_name(place): array for place, array in enumerate(operands) if array is not None}
    try:
        defined = evaluate_equations(instance.equations, named)
    except InterpretError:
        return  # it reads outside of an operand, which no model may
    shown = [f"  {term_text(term)}", *(f"  operand {place}: {one!r}" for place, one in enumerate(operands))]
    attributes = {one.name: given[one.name] for one in operator.attributes if given.get(one.name) is not None}
    try:
        functions = instances.base.functions
        results = by_reference(operator, _in_order(operator, operands, given), attributes, instance.declared, functions)
    except OwnReferenceError as failure:
        outcome.failure = (*shown, f"  {failure}")
        return
    for place in range(instance.declared):
        wrong = _difference(defined[output_name(place)], results[place])
        if wrong is not None:
            outcome.failure = (*shown, f"  result {place}: {wrong}")
            return
    outcome.trials += 1


def _in_doubles(term: Application, instances: Instances) -> tuple[list[TensorType | None], Instance]:
    """The types of the operands and the operator at them, in double precision where the definition admits it."""
    types = [None if o is None else _wide(o.type) for o in term.operands]
    try:
        made = instances.get(term.instance.operator.name, types, dict(term.attributes), len(term.instance.outputs))
    except Unsupported:
        return [None if o is None else o.type for o in term.operands], term.instance
    return types, made


def _wide(type_: TensorType) -> TensorType:
    return TensorType("float64", type_.shape) if type_.dtype in FLOATS else type_


def _drawn(type_: TensorType, generator: np.random.Generator) -> Array:
    kind = storage_dtype(type_.dtype)
    if kind.kind == "f":
        return np.asarray(generator.standard_normal(type_.shape))
    least = 0 if kind.kind in "ub" else -_LARGEST
    return np.asarray(generator.integers(least, (1 if kind.kind == "b" else _LARGEST) + 1, type_.shape)).astype(kind)


def _in_order(operator: ast.Operator, operands: list[Array | None], given: dict[str, Value]) -> list[Array | None]:
    """The operands as a node has them, `const` inputs among them."""
    made: list[Array | None] = []
    rest = list(operands)
    for formal in operator.inputs:
        if formal.constant is not None:
            made.append(_constant(given.get(formal.name)))
        elif formal.variadic:
            made += rest
        else:
            made.append(rest.pop(0) if rest else None)
    return made


def _constant(value: Value) -> Array | None:
    if value is None:
        return None
    if isinstance(value, ConstantTensor):
        return np.asarray(value.values).reshape(value.shape)
    return np.asarray(value)


def _difference(defined: Array, referred: Array) -> str | None:
    """How two results differ, None where rounding explains it."""
    if defined.shape != referred.shape:
        return f"the definition gives the shape {list(defined.shape)}, the reference {list(referred.shape)}"
    if not defined.size:
        return None
    one, other = np.asarray(defined, np.float64), np.asarray(referred, np.float64)
    scale = float(np.max(np.abs(one[np.isfinite(one)]), initial=1.0))
    most = TOLERANCE_OF_SINGLES if defined.dtype.itemsize < np.dtype(np.float64).itemsize else TOLERANCE
    same = np.isclose(one, other, rtol=0, atol=most * scale, equal_nan=True)
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"element {list(at)} is {defined[at]} by the definition and {referred[at]} by the reference"
