"""Judges eliminations: the index map against the operator's definition and ONNX's own evaluator, at every index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.expr import Equation, Read, TensorType, own_indices, walk
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.views import IndexMap, map_of_equation
from smartmem_rules.verification.operators import NoReference, reference_outputs, single
from smartmem_rules.verification.semantics.domains import Array, Domain
from smartmem_rules.verification.semantics.evaluate import evaluate
from smartmem_rules.verification.semantics.terms import Application, equation_functions, guards_hold
from smartmem_rules.verification.trials.outcome import Budget
from smartmem_rules.verification.trials.rewrites import ATTEMPTS_PER_TRIAL

REFERENCES = 200
"""Instances of one rule that are compared with ONNX's evaluator."""
REFUSALS = 0.3
REFUSALS_OF_MODES = 0.5
"""The share of instances that ONNX's evaluator may refuse, and where it does not know all modes of an operator."""


@dataclass(kw_only=True)
class EliminationOutcome:
    """What the trials of an elimination gave."""

    trials: int = 0
    generated: int = 0
    satisfied: int = 0
    no_view: int = 0
    references: int = 0
    refusals: int = 0
    last: Application | None = None
    failure: tuple[Application, str] | None = None
    domains: set[str] = field(default_factory=set)


def test_eliminate(rule: ast.Eliminate, instances: Instances, seed: int, budget: Budget) -> EliminationOutcome:
    """Compare the views that an elimination makes with what the operator computes."""
    outcome = EliminationOutcome()
    overloads = list(instances.base.operators.get(rule.operator, ()))
    viewed: list[ast.Operator] = []
    for place, overload in enumerate([*overloads, *reversed(overloads)]):
        again = place >= len(overloads)
        if again and (overload not in viewed or outcome.trials >= budget.trials):
            continue
        before = outcome.trials
        wanted = budget.trials if again else before + budget.trials // len(overloads) + 1
        search = single(overload, instances, seed + place, strict=False)
        for number, case in enumerate(search.cases(budget.trials * ATTEMPTS_PER_TRIAL)):
            if case is not None:
                assert isinstance(case.left, Application)
                _compare(rule, case.left, instances, outcome)
            if outcome.failure is not None:
                return outcome
            if outcome.trials >= wanted or budget.spent or (outcome.trials == before and number >= budget.trials):
                break
        if outcome.trials > before:
            viewed.append(overload)
        outcome.generated += search.statistics.generated
        outcome.satisfied += search.statistics.satisfied
    asked = outcome.references + outcome.refusals
    modes = any(a.kind == "string" for o in overloads for a in o.attributes)
    most = REFUSALS_OF_MODES if modes else REFUSALS
    if outcome.references and outcome.refusals > most * asked and outcome.last is not None:
        outcome.failure = (
            outcome.last,
            f"ONNX's evaluator refuses {outcome.refusals} of {asked} instances that the definition takes",
        )
    return outcome


def _compare(rule: ast.Eliminate, term: Application, instances: Instances, outcome: EliminationOutcome) -> None:
    if not _admitted(rule, term, instances):
        return
    operands = [np.zeros(0) if o is None else positions(o.type) for o in term.operands]
    named = {operand_name(i): (values,) for i, values in enumerate(operands)}
    equations = {e.tensor: e for e in term.instance.equations}
    maps = {place: _map(equations[output_name(place)], term) for place in range(len(term.instance.outputs))}
    if all(map_ is None for map_ in maps.values()):
        outcome.no_view += 1
        if not any(equation_functions(e) for e in equations.values()):
            _compare_unviewed(term, operands, outcome)
        return
    try:
        computed = evaluate(term.instance.equations, named, Domain())
    except (IndexError, ValueError) as error:
        # what no model has may read anywhere; what ONNX computes may not
        if _reference(term, operands, outcome) is not None:
            outcome.failure = term, f"the definition reads outside of its operand: {error}"
        return
    for place, map_ in maps.items():
        read = equations[output_name(place)].view
        if map_ is None or read is None:
            continue
        source = operands[int(read.tensor[1:])]
        expected = np.asarray(computed[output_name(place)][0])
        failure = _wrong_view(map_, source, expected)
        if failure is not None:
            outcome.failure = term, failure
            return
    outcome.trials += 1
    outcome.last = term
    if outcome.references < REFERENCES:
        _compare_reference(term, operands, computed, outcome)


def _compare_unviewed(term: Application, operands: list[Array], outcome: EliminationOutcome) -> None:
    """Where what only moves elements is no view, ONNX's evaluator says whether it rightly is none."""
    named = {operand_name(i): (values,) for i, values in enumerate(operands)}
    if outcome.references >= REFERENCES or any(i.gathered for e in term.instance.equations for i in _indices(e)):
        return
    try:
        computed = evaluate(term.instance.equations, named, Domain())
    except (IndexError, ValueError):
        return  # only what no model has reads anywhere
    refused = outcome.refusals
    _compare_reference(term, operands, computed, outcome)
    outcome.refusals = refused  # ONNX's evaluator cuts no elements away, and views are what is judged


def _indices(equation: Equation) -> list[Index]:
    return [i for node in walk(equation.body) for i in own_indices(node)]


def positions(type_: TensorType) -> Array:
    """A tensor whose elements are all different: their positions."""
    count = type_.elements
    numbers: Array = np.arange(1, count + 1).reshape(type_.shape)
    if type_.dtype == "bool":
        return np.asarray(numbers % 2 == 0)
    return numbers.astype("float32" if type_.dtype in ("bfloat16", "float16") else type_.dtype)


def _admitted(rule: ast.Eliminate, term: Application, instances: Instances) -> bool:
    try:
        return guards_hold(rule, term, instances)
    except (DefinitionError, Unsupported):
        return False


def _map(equation: Equation, term: Application) -> IndexMap | None:
    read = equation.view
    if not isinstance(read, Read) or not read.tensor.startswith("$"):
        return None
    operand = term.operands[int(read.tensor[1:])]
    if operand is None:
        return None
    map_ = map_of_equation(equation, operand.type.shape)
    if map_ is None or any(index.gathered for index in map_.indices):
        return None
    return map_


def _wrong_view(map_: IndexMap, source: Array, expected: Array) -> str | None:
    through = _through(map_, source)
    if not np.array_equal(through, expected):
        place = tuple(int(i) for i in np.argwhere(through != expected)[0])
        return f"element {list(place)} is {expected[place]} by the definition and {through[place]} through {map_}"
    inverse = map_.inverse
    if inverse is not None and not np.array_equal(_through(inverse, through), source):
        return f"the inverse {inverse} of {map_} does not lead back"
    return None


def _through(map_: IndexMap, source: Array) -> Array:
    type_ = TensorType("float32", map_.shape)
    equation = Equation("%0", map_.variables, Read("$0", map_.indices, "float32"), type_)
    values: Array = evaluate([equation], {"$0": (source,)}, Domain())["%0"][0]
    return values


def _compare_reference(
    term: Application, operands: list[Array], computed: Mapping[str, tuple[Array, ...]], outcome: EliminationOutcome
) -> None:
    count = len(term.instance.outputs)
    expected = _reference(term, operands, outcome)
    if expected is None:
        return
    for place, reference in enumerate(expected[:1] if len(expected) != count else expected):
        actual = np.asarray(computed[output_name(place)][0])
        if reference.shape != actual.shape:
            outcome.failure = (
                term,
                f"ONNX's evaluator gives the shape {list(reference.shape)}, not {list(actual.shape)}",
            )
        elif not np.array_equal(reference, actual):
            at = tuple(int(i) for i in np.argwhere(reference != actual)[0])
            outcome.failure = (
                term,
                f"element {list(at)} is {reference[at]} by ONNX's evaluator and {actual[at]} by the definition",
            )


def _reference(term: Application, operands: list[Array], outcome: EliminationOutcome) -> list[Array] | None:
    """What ONNX's evaluator computes, None where it computes nothing."""
    given: dict[str, Value] = dict(term.attributes)
    try:
        expected = reference_outputs(term.instance.operator, operands, given, len(term.instance.outputs))
    except NoReference:
        # the evaluator's gaps are where there are no axes
        outcome.refusals += any(o is not None and o.type.shape for o in term.operands)
        return None
    outcome.references += 1
    return expected
