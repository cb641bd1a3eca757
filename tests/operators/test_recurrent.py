"""Recurrent networks on the device against onnxruntime, at sizes that fill vectors; one scan kernel for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize

pytest.importorskip("onnxruntime")
pytest.importorskip("pyopencl")

STEPS, BATCH, INPUT, HIDDEN = 7, 3, 12, 20
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_recurrence_agrees_and_is_one_kernel(operator: str, direction: str, dtype: str) -> None:
    directions, gates = 1 + (direction == "bidirectional"), GATES[operator]
    rng = np.random.default_rng(gates)
    shapes = {
        "w": (directions, gates * HIDDEN, INPUT),
        "r": (directions, gates * HIDDEN, HIDDEN),
        "b": (directions, 2 * gates * HIDDEN),
        "h0": (directions, BATCH, HIDDEN),
    }
    constants = [numpy_helper.from_array(0.3 * rng.standard_normal(s, np.float32), n) for n, s in shapes.items()]
    constants.append(numpy_helper.from_array(np.array([7, 4, 2], np.int32), "lengths"))
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": direction}
    if operator == "GRU":
        attributes["linear_before_reset"] = 1
    node = helper.make_node(operator, ["x", "w", "r", "b", "lengths", "h0"], ["y", "last"], **attributes)
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in ("y", "last")]
    graph = helper.make_graph(
        [node], operator, [helper.make_tensor_value_info("x", 1, (STEPS, BATCH, INPUT))], outputs, constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    plan = optimize(model, dtype=dtype)
    assert sum(kernel.form == "scan" for launch in plan.kernels for kernel in launch.kernels) == 1
    check = plan.check()
    assert not check.notes, check  # ONNX Runtime agrees with the definitions
    assert check.passed, check
