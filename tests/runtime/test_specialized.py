"""Models that are planned when they run: a plan for each kind of inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

pytest.importorskip("pyopencl")

from smartmem_rules import SpecializedModel, optimize
from smartmem_rules.graph.errors import GraphError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
EXPANDED = "f (float[3, 1] x, int64[2] shape) => (float[N, M] y) { e = Exp (x)  y = Expand (e, shape) }"
COMPUTED = """
f (float[3, 4] x, int64[1] k) => (float[N, M] y) {
    two = Constant <value_ints = [2]> ()
    rows = Div (k, two)
    z = Constant <value_ints = [0]> ()
    y = Slice (x, z, rows, z)
}"""
OPEN = "f (float[N, 4] x, float[M, 4] b) => (float[N, M] y) { t = Transpose <perm = [1, 0]> (b)  y = MatMul (x, t) }"
COUNTED = """
f (int64 n, float[2] x) => (float[2] y) {
    go = Constant <value: tensor = bool {1}> ()
    y = Loop (n, go, x) <
        body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t) { h = Identity (g)  t = Add (s, x) }
    >
}"""

CHOSEN = """
f (bool first, float[2, 3] x, float[4, 3] z) => (float[N, 3] y) {
    s = If (first) <
        then_branch = a () => (seq(float) p) { p = SequenceConstruct (x, z) },
        else_branch = b () => (seq(float) q) { q = SequenceConstruct (z) }
    >
    y = ConcatFromSequence <axis = 0> (s)
}"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_a_shape_that_is_an_input() -> None:
    made = SpecializedModel(model(EXPANDED))
    assert made.plan_ahead() is None
    assert made.fixed == ("shape",)
    x = numbers(3, 1)
    for shape in ([3, 5], [3, 2], [3, 5]):
        y = made.run({"x": x, "shape": np.array(shape)})["y"]
        np.testing.assert_allclose(y, np.broadcast_to(np.exp(x), shape), rtol=1e-6)
    assert len(made.plans) == 2


def test_a_bound_computed_from_an_input() -> None:
    made = SpecializedModel(model(COMPUTED))
    x = numbers(3, 4)
    for k in (2, 4):
        np.testing.assert_array_equal(made.run({"x": x, "k": np.array([k])})["y"], x[: k // 2])
    assert made.fixed == ("k",)


def test_open_dimensions_take_those_of_the_inputs_and_old_plans_go() -> None:
    made = SpecializedModel(model(OPEN), most_plans=2)
    for rows in (1, 3, 7):
        x, b = numbers(rows, 4), numbers(rows + 1, 4)
        np.testing.assert_allclose(made.run({"x": x, "b": b})["y"], x @ b.T, rtol=1e-5, atol=1e-6)
    assert len(made.plans) == 2


def test_a_loop_of_as_many_steps_as_an_input_says() -> None:
    made = SpecializedModel(model(COUNTED))
    x = numbers(2)
    for n in (0, 3):
        np.testing.assert_allclose(made.run({"n": np.asarray(n), "x": x})["y"], x * (n + 1), rtol=1e-6)


def test_a_choice_among_sequences() -> None:
    x, z = numbers(2, 3), numbers(4, 3)
    chosen = optimize(model(CHOSEN))
    for first, expected in ((True, np.concatenate([x, z])), (False, z)):
        assert np.array_equal(chosen.run({"first": np.array(first), "x": x, "z": z})["y"], expected)


def test_optimize_gives_a_model_that_is_planned_on_demand() -> None:
    made = optimize(model(EXPANDED))
    assert isinstance(made, SpecializedModel)
    for ask in (lambda: made.kernels, made.prepare, lambda: made.save("never.plan"), made.random_feeds):
        with pytest.raises(GraphError, match="Expand needs shape as a constant, but 'shape' is computed"):
            ask()
    feeds = made.random_feeds(given={"shape": np.array([3, 4])})
    assert made.run(feeds)["y"].shape == (3, 4)
    assert len(made.kernels) == 1
    assert made.check().passed
    assert made.random_feeds().keys() == {"x", "shape"}


def test_inputs_without_a_rank() -> None:
    given = model("f (float[2, 3] x) => (float[2, 3] y) { y = Neg (x) }")
    given.graph.input[0].type.tensor_type.ClearField("shape")
    given.graph.output[0].type.tensor_type.ClearField("shape")
    made = optimize(given)
    for shape in ((), (4,), (2, 3)):
        np.testing.assert_array_equal(made.run({"x": numbers(*shape)})["y"], -numbers(*shape))


def test_sequences_and_optional_inputs() -> None:
    joined = SpecializedModel(model("f (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence <axis = 0> (s) }"))
    np.testing.assert_array_equal(joined.run({"s": [numbers(2), numbers(3)]})["y"], np.r_[numbers(2), numbers(3)])
    there = SpecializedModel(model("f (optional(float[3]) o) => (bool y) { y = OptionalHasElement (o) }"))
    assert not there.run({"o": None})["y"]
    assert there.run({"o": numbers(3)})["y"]


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": numbers(3, 1)}, "the input 'shape' is missing"),
        (
            {"x": numbers(3, 2), "shape": np.array([3, 2])},
            r"the input 'x' has shape \[3, 2\]; the model takes \[3, 1\]",
        ),
        ({"x": np.zeros((3, 1)), "shape": np.array([3, 2])}, "elements of type float64; the model takes float32"),
        ({"x": [numbers(3, 1)], "shape": np.array([3, 2])}, "is given a list; the model takes a tensor"),
        ({"x": numbers(3, 1), "shape": np.array([2, 2])}, "do not broadcast"),
    ],
)
def test_inputs_that_do_not_fit(feeds: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        SpecializedModel(model(EXPANDED)).run(feeds)


def test_values_that_are_data_cannot_decide() -> None:
    text = (
        "f (float[2] x, float[99] d) => (float[N] y) { s = ReduceSum <keepdims = 0> (d)  c = Cast <to = 7> (s)\n"
        "z = Constant <value_ints = [-1]> ()  k = Reshape (c, z)  y = Expand (x, k) }"
    )
    with pytest.raises(GraphError, match="Expand needs shape as a constant"):
        SpecializedModel(model(text)).run({"x": numbers(2), "d": np.ones(99, np.float32)})
