"""Single nodes, computed by implementations that are not the plan's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from smartmem_rules.checking.kernels import DEFINITIONS, DOUBLE, EVALUATOR, Kernels
from smartmem_rules.rulebase.base import load_rules


@pytest.mark.parametrize(("channels", "by"), [(2, EVALUATOR), (2048, DEFINITIONS)])
def test_the_evaluator_is_not_asked_to_write_out_wide_gaps(channels: int, by: str) -> None:
    """It would make 529 x 509 elements of each 2 x 2 taps; machines that promise more than they have run out of it."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="dilated", dilations=[528, 508])
    kernels = Kernels(helper.make_model(helper.make_graph([node], "one", [], [])), lambda: load_rules([]))
    x = np.zeros((1, 5, 529, 509))
    x[..., 0, 0] = x[..., -1, -1] = 3
    weights = np.ones((channels, 5, 2, 2))
    made = kernels.attempt(node, DOUBLE, [x, weights], {}, (EVALUATOR, DEFINITIONS))
    assert made is not None
    assert made.by == by
    assert made.outputs[0] is not None
    assert np.array_equal(made.outputs[0], np.full((1, channels, 1, 1), 30))
