"""Right outputs pass and planted errors do not, in well and in ill conditioned models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from smartmem_rules.api import optimize
from smartmem_rules.checking.compare import Comparer, Verdict, compare
from tests.checking import models
from tests.checking.models import ILL, WELL, Array, Net, drawn, planted, runtime

pytestmark = pytest.mark.sampled(12)


def verdict_of(kind: Callable[[Net], str], seed: int, change: Callable[[Array], Array]) -> Verdict:
    model, feeds, output = drawn(kind, seed)
    return compare(model, feeds, {output: change(runtime(model, feeds, optimized=False))})


@pytest.mark.parametrize("kind", [*WELL, *ILL], ids=lambda kind: kind.__name__)
def test_planted_errors(kind: Callable[[Net], str], examples: int) -> None:
    for seed in range(examples or 1):
        model, feeds, output = drawn(kind, seed)
        comparer = Comparer(model)
        right = runtime(model, feeds, optimized=False)
        verdict = comparer.compare(feeds, {output: right})
        assert verdict.passed is not False, (kind.__name__, seed, verdict)
        for name, wrong in planted(right, np.random.default_rng(seed)):
            assert comparer.compare(feeds, {output: wrong}).passed is False, (kind.__name__, seed, name)


@pytest.mark.parametrize("kind", [*WELL, *ILL], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_plans_are_right(kind: Callable[[Net], str], dtype: str) -> None:
    model, feeds, output = drawn(kind, 7)
    got = optimize(model, dtype=dtype).run(feeds)[output]
    verdict = compare(model, feeds, {output: got}, dtype)
    assert verdict.passed is not False, verdict
    assert verdict.passed or kind in ILL, verdict
    assert verdict.error_to_bound is not None
    assert verdict.error_to_bound < 0.5


def test_what_ill_conditioning_does_to_the_bound() -> None:
    """Twelve layers that enlarge errors: single precision is off by more than a fixed tolerance would allow."""
    well = verdict_of(models.convolutions, 0, lambda right: right)
    ill = verdict_of(models.amplifying, 0, lambda right: right)
    assert well.passed
    assert ill.passed
    assert well.bound is not None
    assert ill.bound is not None
    assert well.bound < 2e-5
    assert ill.bound > 50 * well.bound


def test_the_inexact_one_is_found() -> None:
    """ONNX Runtime joins a block-wise DequantizeLinear with the MatMul behind it, and quantizes the other operand."""
    model, feeds, output = drawn(models.blocks, 0)
    comparer = Comparer(model)
    inexact, exact = runtime(model, feeds), runtime(model, feeds, optimized=False)
    assert float(np.abs(inexact - exact).max()) > 1e-3 * float(np.abs(exact).max())
    assert comparer.compare(feeds, {output: exact}).passed
    assert comparer.compare(feeds, {output: inexact}).passed is False


def test_exact_operators_leave_nothing_to_rounding() -> None:
    """Halves round to even: that is no matter of rounding errors where the inputs are exact."""
    net = Net(0)
    x = net.input(np.array([0.5, 1.5, 2.5, 3.5, -0.5], np.float32))
    model = net.model(net.node("Round", x))
    assert compare(model, net.feeds, {"t0": np.array([0, 2, 2, 4, 0], np.float32)}).passed
    assert compare(model, net.feeds, {"t0": np.array([1, 2, 3, 4, 0], np.float32)}).passed is False


def test_a_choice_that_rounding_decides() -> None:
    """Two columns of a product are equal but for rounding: either is the largest, and a third one is not."""
    net = Net(3)
    weight = net.normal(64, 3, scale=0.1)
    x = np.abs(net.normal(6, 64))
    weight[:, 1] = weight[::-1, 0] = np.abs(weight[:, 0]) + 1
    x[:] = (x + x[:, ::-1]) / 2
    product = net.node("MatMul", net.input(x), weight)
    model = net.model(net.node("ArgMax", product, axis=1, keepdims=0))
    for answer in (0, 1):
        assert compare(model, net.feeds, {"t1": np.full(6, answer)}).passed, answer
    assert compare(model, net.feeds, {"t1": np.full(6, 2)}).passed is False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda right: right[:-1], "its shape is"),
        (lambda right: right > 0, "its elements are bool"),
        (lambda right: np.full_like(right, np.nan), "not finite"),
        (lambda right: right + np.float32(0.1), "elements are wrong"),
    ],
)
def test_what_a_verdict_says(change: Callable[[Array], Array], reason: str) -> None:
    verdict = verdict_of(models.attention, 0, change)
    assert verdict.passed is False
    assert reason in verdict.reason
    assert (verdict.precision, verdict.reference) == ("double", "onnxruntime")


def test_an_output_that_the_model_does_not_have() -> None:
    model, feeds, output = drawn(models.moved, 0)
    right = runtime(model, feeds)
    verdict = compare(model, feeds, {output: right, "other": right})
    assert verdict.passed is False
    assert "no output 'other'" in verdict.reason


def test_models_of_halves_and_doubles() -> None:
    for dtype in (np.float16, np.float64):
        net = Net(1)
        x = net.input(net.normal(4, 8).astype(dtype))
        model = net.model(net.node("Tanh", net.node("MatMul", x, net.normal(8, 5).astype(dtype))))
        right = np.tanh(net.feeds["x0"].astype(np.float64) @ onnx.numpy_helper.to_array(model.graph.initializer[0]))
        wrong = right.copy()
        wrong[2, 3] *= 1.1
        assert compare(model, net.feeds, {"t1": right.astype(dtype)}).passed, dtype
        assert compare(model, net.feeds, {"t1": wrong.astype(dtype)}).passed is False, dtype


def test_subgraphs_and_operators_that_choose_sizes() -> None:
    net = Net(2)
    x = net.input(net.normal(6, 5))
    exp, neg = (
        helper.make_graph([helper.make_node(name, [x], ["inside"])], name, [], [onnx.ValueInfoProto(name="inside")])
        for name in ("Exp", "Neg")
    )
    condition = net.constant(np.array(True))
    net.nodes.append(helper.make_node("If", [condition], ["t0"], then_branch=exp, else_branch=neg))
    net.nodes.append(helper.make_node("NonZero", [net.node("Relu", x)], ["t2"]))
    model = net.model("t0", "t2")
    array = net.feeds[x]
    right = {"t0": np.exp(array), "t2": np.stack(np.nonzero(np.maximum(array, 0)))}
    assert compare(model, net.feeds, right).passed
    assert compare(model, net.feeds, {**right, "t2": right["t2"][:, ::-1]}).passed is False
    assert compare(model, net.feeds, {**right, "t0": -array}).passed is False


def test_what_nothing_computes() -> None:
    node = helper.make_node("Unheard", ["x"], ["y"], domain="nowhere")
    values = [helper.make_tensor_value_info(name, 1, [3]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("nowhere", 1)])
    feeds = {"x": np.ones(3, np.float32)}
    verdict = compare(model, feeds, {"y": feeds["x"]})
    assert verdict.passed is None
    assert "Unheard" in verdict.reason


def test_models_that_are_computed_as_a_whole() -> None:
    net = Net(4)
    x = net.input(net.normal(8, 6))
    parts = net.node("SplitToSequence", net.node("MatMul", x, net.normal(6, 6)), np.array([4, 4]), axis=0)
    model = net.model(net.node("ConcatFromSequence", parts, axis=1))
    right = runtime(model, net.feeds)
    verdict = compare(model, net.feeds, {"t2": right})
    assert (verdict.passed, verdict.precision) == (True, "float32")
    for name, wrong in planted(right, np.random.default_rng(0)):
        assert compare(model, net.feeds, {"t2": wrong}).passed is False, name


@pytest.mark.parametrize(("operator", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_recurrences_of_empty_batches(operator: str, gates: int) -> None:
    """ONNX Runtime ends the process where a GRU or an LSTM has an empty batch: their definitions are the reference."""
    proto = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[3, batch, 4] x, float[1, {5 * gates}, 4] w, float[1, {5 * gates}, 5] r) => (float[3, 1, batch, 5] y) {{
            y = {operator} <hidden_size = 5> (x, w, r)
        }}"""
    )
    assert optimize(proto, dims={"batch": (0, 3)}).check().passed
