"""What a stored element type makes of the numbers of another one, and what that decides."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.outputs import MORE_RUNS, Reference
from smartmem_rules.fuzzing.expected.precisions import PRECISIONS, held_in
from tests.fuzzing.expected.judged import model_of

BETWEEN = 4.984375
"""A half that lies half way between two numbers of bfloat16, 4.96875 and 5."""


@pytest.mark.parametrize("own", ["float32", "float16", "bfloat16", "float64"])
def test_storing_wider_changes_nothing(own: str) -> None:
    assert held_in(own, "float32") == PRECISIONS[own]


def test_both_types_round_and_bound() -> None:
    assert held_in("float32", "bfloat16") == PRECISIONS["bfloat16"]
    held = held_in("float16", "bfloat16")
    assert (held.unit, held.most) == (PRECISIONS["bfloat16"].unit, PRECISIONS["float16"].most)


def is_wrong(got: list[float], storage: str) -> bool:
    """What the judge says of the floors of a tie, a number beside it, and one far from any other integer."""
    model = model_of([helper.make_node("Floor", ["c"], ["y"])], (3,), TensorProto.FLOAT16)
    constants = np.array([BETWEEN, 4.96875, 4.5], np.float16)
    model.graph.initializer.append(numpy_helper.from_array(constants, "c"))
    reference = Reference(model, {"x": np.zeros(3, np.float16)}, storage)
    return bool(differences({"y": np.array(got, np.float16)}, reference.expected(runs=MORE_RUNS)))


@pytest.mark.parametrize("tie", [4, 5])
def test_the_floor_of_a_tie_is_not_known_where_storage_rounds_it(tie: float) -> None:
    assert not is_wrong([tie, 4, 4], "bfloat16")


def test_the_floor_of_what_no_rounding_moves_to_an_integer_is_known() -> None:
    assert is_wrong([4, 4, 6], "bfloat16")
    assert is_wrong([5, 4, 4], "float32")
    assert is_wrong([5, 4, 4], "float16")
