"""Special values in types of few bits: what one side rounds and the other does not is no difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.terms import Application, compute
from smartmem_rules.verification.trials.comparison import Comparison
from smartmem_rules.verification.trials.outcome import Outcome
from smartmem_rules.verification.trials.special_values import at_special

CHOICES = {"dtype": "bfloat16", "alike": 0, "shape:x": (), "shape:#0.1": (), "dtype:#0.1": "float64", "overload:0": 1}


@pytest.mark.parametrize(("right", "differs"), [("Reciprocal", False), ("Sqrt", True)])
def test_bfloat16_that_one_side_alone_rounds(right: str, differs: bool) -> None:
    (rule,) = [one for one in load_rules().rewrites if one.name == "reciprocal_of_power"]
    assert isinstance(rule.right, ast.PatternOperator)
    changed = replace(rule, right=replace(rule.right, operator=right))
    case = Search(changed, changed.left, changed.right, Instances(load_rules()), seed=1).build(dict(CHOICES))
    assert case is not None
    assert case.right is not None, case.refusal
    tensors = {"x": (np.array(1.7468013763427734, np.float32),), "#0.1": (np.array(-1.0),)}
    found = at_special(Comparison((), frozenset()), case, tensors, Outcome())
    assert (found is not None) == differs, found


CANCELLED = {
    "dtype": "bfloat16", "alike": 0, "shape:x": (1, 1, 2), "shape:g": (1,), "shape:z": (1,), "shape:s": (1, 1),
    "shape:b": (1, 1), "name:p": (1, 1, 2), "name:e": 0.0009765625, "uniform:g": 1.0, "uniform:z": 0.0, "one:s": False,
    "constant:g": True, "constant:z": True, "given:0.0.0": {"shape": (1, 1, 2), "allowzero": 0},
    **{f"dtype:{name}": None for name in "xgzsb"},
}  # fmt: skip


@pytest.mark.parametrize("differs", [False, True])
def test_what_is_left_of_halves_that_cancel_is_rounding(differs: bool) -> None:
    base = load_rules()
    (rule,) = [one for one in base.rewrites if one.name == "group_normalization"]
    case = Search(rule, rule.left, rule.right, Instances(base), seed=1).build(dict(CANCELLED))
    assert case is not None
    assert isinstance(case.right, Application), case.refusal
    numbers = {"x": [[[1.0, -1.01]]], "g": [1.0], "z": [0.0], "s": [[1.0]], "b": [[-0.9993]]}
    tensors = {name: (np.array(value, np.float32),) for name, value in numbers.items()}
    tried = replace(case, right=case.right.operands[0]) if differs else case
    left, right = (float(compute(side, tensors, Domain())[0].flat[0]) for side in (case.left, case.right))
    assert abs(left - right) > 2**-6 * max(abs(left), abs(right))
    found = at_special(Comparison((), frozenset({"signed_zero"})), tried, tensors, Outcome())
    assert (found is not None) == differs, found
