"""Recurrent networks on the device against onnxruntime, at sizes that fill vectors; one scan kernel for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import SmartmemError, optimize

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("pyopencl")

STEPS, BATCH, INPUT, HIDDEN = 7, 3, 12, 20
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.covering
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


def _recurrence(operator: str, steps: int, direction: str, lengths: Sequence[int] | None, **attributes: Any) -> Any:
    """A model with first states, and what it is given."""
    directions, gates = 1 + (direction == "bidirectional"), GATES[operator]
    rng = np.random.default_rng(gates)
    shapes = {
        "x": (steps, 3, 4), "w": (directions, gates * 5, 4), "r": (directions, gates * 5, 5), "h0": (directions, 3, 5)
    }  # fmt: skip
    shapes |= {"c0": (directions, 3, 5)} if operator == "LSTM" else {}
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    operands = ["x", "w", "r", "", "lengths" if lengths else "", *[*shapes][3:]]
    outputs = ["y", "h", "c"][: 3 if operator == "LSTM" else 2]
    node = helper.make_node(operator, operands, outputs, hidden_size=5, direction=direction, **attributes)
    graph = helper.make_graph(
        [node],
        operator,
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(np.array(lengths, np.int32), "lengths")] if lengths else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def _by_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, feeds)]


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_recurrence_of_no_steps_ends_with_zeros(operator: str, direction: str) -> None:
    # ONNX Runtime ends the process for a GRU, and gives an LSTM's states memory that nobody wrote
    model, feeds = _recurrence(operator, 0, direction, None)
    y, *states = optimize(model).run(feeds).values()
    assert y.shape == (0, *states[0].shape)
    assert len(states) == (2 if operator == "LSTM" else 1)
    for state in states:
        np.testing.assert_array_equal(state, np.zeros_like(feeds["h0"]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_sequence_of_no_steps_ends_with_zeros(operator: str, direction: str) -> None:
    model, feeds = _recurrence(operator, 4, direction, [4, 0, 2])
    for result, wanted in zip(optimize(model).run(feeds).values(), _by_onnxruntime(model, feeds), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("operator", GATES)
def test_a_bound_below_zero_is_refused(operator: str) -> None:
    model, _ = _recurrence(operator, 4, "forward", None, clip=-0.5)
    with pytest.raises(SmartmemError, match="clip has to be at least 0") as refusal:
        optimize(model, device="pocl")
    assert str(refusal.value).count("at least 0") == 1
