"""Special values in types of few bits: what one side rounds and the other does not is no difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.cases import Search
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
