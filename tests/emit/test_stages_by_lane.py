"""Stages of a row that read one another, computed for several rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.plan.models import i64, model, normal
from tests.plan.running import Mode, run


@pytest.mark.parametrize("mode", [Mode("layout"), Mode("smartmem"), Mode("smartmem", device="nvidia")], ids=str)
def test_a_choice_between_statistics_has_no_vector_form(mode: Mode) -> None:
    feeds = {"x": normal(2, 9, 18), "c": normal(1, 1, 18) > 0}
    nodes = [("ReduceMin", "x axes", "low"), ("Where", "c low other", "y")]
    built = model(nodes, feeds, "y", {"axes": i64(0, 1), "other": np.float32(0.9)})
    (expected,) = ReferenceEvaluator(built).run(None, feeds)
    assert np.array_equal(run(built, mode, feeds)["y"], expected)
