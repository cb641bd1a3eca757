"""Where reads find their elements is computed once, and never taken for another tensor's, or for other elements'."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation, Read, TensorType
from smartmem_rules.tensor.index import Index
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.evaluate import evaluate


def _equations(operator: str, *operands: TensorType, **attributes: Value) -> tuple[Equation, ...]:
    return Instances(load_rules()).get(operator, operands, attributes).equations


def test_the_same_read_of_a_shorter_tensor_leaves_it() -> None:
    equations = _equations("Slice", TensorType("float32", (5,)), starts=(1,), ends=(5,), axes=(0,))
    whole = np.arange(5, dtype=np.float32)
    for _ in range(2):
        found = evaluate(equations, {"$0": (whole,)}, Domain())["%0"][0]
        assert found.tolist() == [1, 2, 3, 4]
        with pytest.raises(IndexError, match="leaves the extent 3"):
            evaluate(equations, {"$0": (whole[:3],)}, Domain())


def test_what_other_tensors_say_is_asked_each_time() -> None:
    equations = _equations("Gather", TensorType("float32", (4,)), TensorType("int64", (2,)))
    values = np.array([5, 6, 7, 8], np.float32)
    for places in ([0, 3], [2, 1], [-1, 0]):
        given = {"$0": (values,), "$1": (np.array(places),)}
        assert evaluate(equations, given, Domain())["%0"][0].tolist() == values[places].tolist()


def test_one_body_along_other_axes() -> None:
    (equation,) = _equations("Transpose", TensorType("float32", (2, 3)), perm=(1, 0))
    turned = Equation("%0", equation.variables[::-1], equation.body, TensorType("float32", (2, 3)))
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    for one, wanted in ((equation, matrix.T), (turned, matrix), (equation, matrix.T)):
        assert evaluate((one,), {"$0": (matrix,)}, Domain())["%0"][0].tolist() == wanted.tolist()


@pytest.mark.parametrize("step", [-1, 1])
def test_a_read_before_or_behind_its_tensor_is_refused(step: int) -> None:
    var = Var("i", 3)
    body = Read("$0", (Index(step, ((var, 1),)),), "float32")
    equation = Equation("%0", (var,), body, TensorType("float32", (3,)))
    with pytest.raises(IndexError, match="leaves the extent 3"):
        evaluate((equation,), {"$0": (np.zeros(3, np.float32),)}, Domain())
