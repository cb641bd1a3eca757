"""The judge's own recurrences, against ONNX Runtime in single precision and ONNX's evaluator in doubles."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, NoReference
from smartmem_rules.fuzzing.expected.outputs import Reference
from smartmem_rules.fuzzing.expected.recurrent import recurrent, rounding_by
from smartmem_rules.fuzzing.sources.by_name import SOURCES

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def drawn(operator: str, seed: int) -> tuple[onnx.NodeProto, list[np.ndarray | None]]:
    """A node and its operands in single precision; any of what is optional may be left out."""
    random = np.random.default_rng(seed)
    steps, batch, width, size = (int(n) for n in random.integers(1, 6, 4))
    direction = str(random.choice(["forward", "reverse", "bidirectional"]))
    ways, gates = (2 if direction == "bidirectional" else 1), GATES[operator]
    given: dict[str, object] = {"hidden_size": size, "direction": direction}
    if random.random() < 0.3:
        given["clip"] = 0.5
    if operator == "GRU":
        given["linear_before_reset"] = int(random.integers(2))
    if seed % 4 == 0:  # of activations that take none
        given["activation_beta"] = [2.0] * (ways if operator == "RNN" else 3 * ways)
    shapes = [(steps, batch, width), (ways, gates * size, width), (ways, gates * size, size), (ways, 2 * gates * size)]
    operands: list[np.ndarray | None] = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    operands.append(random.integers(0, steps + 1, batch).astype(np.int32))
    states = 2 if operator == "LSTM" else 1
    operands += [random.standard_normal((ways, batch, size)).astype(np.float32) for _ in range(states)]
    if operator == "LSTM":
        operands.append(random.standard_normal((ways, 3 * size)).astype(np.float32))
    operands = [o if place < 3 or random.random() < 0.7 else None for place, o in enumerate(operands)]
    names = [f"x{place}" if o is not None else "" for place, o in enumerate(operands)]
    outputs = ["y", "h", "c"][: 1 + states]
    return helper.make_node(operator, names, outputs, **given), operands


def model(node: onnx.NodeProto, operands: list[np.ndarray | None]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    feeds = {name: o for name, o in zip(node.input, operands, strict=True) if o is not None}
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    dtype = helper.np_dtype_to_tensor_dtype(feeds["x0"].dtype)
    outputs = [helper.make_tensor_value_info(name, dtype, None) for name in node.output]
    graph = helper.make_graph([node], "recurrent", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=9), feeds


def wide(operands: list[np.ndarray | None]) -> list[np.ndarray | None]:
    return [o.astype(np.float64) if o is not None and o.dtype == np.float32 else o for o in operands]


@pytest.mark.parametrize("operator", GATES)
def test_onnxruntime_agrees(operator: str) -> None:
    import onnxruntime

    for seed in range(40):
        node, operands = drawn(operator, seed)
        made, feeds = model(node, operands)
        wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)
        found = recurrent(node, wide(operands))
        assert found is not None
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape, seed
            np.testing.assert_allclose(one, other, atol=2e-5, err_msg=f"seed {seed}: {node}")


@pytest.mark.parametrize("operator", GATES)
def test_the_evaluator_agrees_to_the_last_digits(operator: str) -> None:
    compared = 0
    for seed in range(300):
        node, operands = drawn(operator, seed)
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        # what the evaluator leaves out of account
        if given["direction"] != b"forward" or "clip" in given or (len(operands) > 4 and operands[4] is not None):
            continue
        made, feeds = model(node, wide(operands))
        found = recurrent(node, wide(operands))
        assert found is not None
        for one, other in zip(found, ReferenceEvaluator(made).run(None, feeds), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13, err_msg=f"seed {seed}: {node}")
        compared += 1
    assert compared > 5


def test_activations_of_ones_own_are_left_to_others() -> None:
    node, operands = drawn("RNN", 0)
    node.attribute.append(helper.make_attribute("activations", ["Relu"] * 2))
    assert recurrent(node, wide(operands)) is None


@pytest.mark.parametrize("operator", GATES)
def test_operands_that_do_not_fit_have_no_reference(operator: str) -> None:
    """Textured 2235000013: an extent that was opened went into a weight, whose gates had no equal parts any more."""
    node, operands = drawn(operator, 3)
    weights = operands[2]
    assert weights is not None
    runner = NodeRunner(node, [helper.make_opsetid("", 14)], {})
    with pytest.raises(NoReference, match="do not fit"):
        runner.native(wide([*operands[:2], weights[:, :, : weights.shape[2] // 2], *operands[3:]]))


@pytest.mark.parametrize("operator", GATES)
def test_products_that_cancel_are_rounded_as_large_as_they_are(operator: str) -> None:
    """Gates of 0 by two products of 1e4 are known to 1e4 units, those by products of 1 to a few."""
    unit, spreads = 2.0**-24, []
    for size in (1.0, 1e4):
        weights = np.tile(np.array([size, -size]), (1, GATES[operator], 1))
        operands = [np.ones((1, 1, 2)), weights, np.zeros((1, GATES[operator], 1))]
        node = helper.make_node(operator, ["x", "w", "r"], ["y"], hidden_size=1)
        exact = recurrent(node, operands)
        assert exact is not None
        drawn_ones = [recurrent(node, operands, rounding_by(np.random.default_rng(k), unit)) for k in range(20)]
        spreads.append(max(float(np.abs(one[0] - exact[0]).max()) for one in drawn_ones if one is not None))
    assert 0 < spreads[0] < 16 * unit
    assert 0.1e4 * unit < spreads[1] < 16e4 * unit


def test_a_state_near_zero_behind_a_view_is_as_exact_as_its_gates() -> None:
    """Dynamic 2550000256: -0.0015140 was 2.4e-8 off, by gates that are rounded as numbers of their size are."""
    case = SOURCES["dynamic"](2550000256)
    reference = Reference(case.model, case.feeds)
    expected, off = {"t3": reference.expected()["t3"]}, reference.native_outputs()["t3"].copy()
    off[4, 2, 0] += np.float32(2.4e-8)
    assert not differences({"t3": off}, expected)
    off[4, 2, 0] += np.float32(1e-5)
    assert differences({"t3": off}, expected)
