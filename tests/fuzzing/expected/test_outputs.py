"""The judge itself: it calls wrong what is wrong, and rounding rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.fuzzing.campaigns.worker import Worker
from smartmem_rules.fuzzing.case import Case, Mode, load_case
from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import MORE_RUNS, Reference
from smartmem_rules.fuzzing.reduction import Reducer
from smartmem_rules.fuzzing.sources.by_name import SOURCES
from tests.fuzzing.expected.judged import is_wrong, model_of


def test_a_few_units_in_the_last_place_are_right_and_a_thousandth_is_wrong() -> None:
    model = model_of([helper.make_node("Exp", ["x"], ["y"])], (5,))
    x = np.array([-2, -0.5, 0, 1, 3], np.float32)
    assert not is_wrong(model, x, np.exp(x))
    assert not is_wrong(model, x, np.exp(x) * np.float32(1 + 3e-7))
    wrong = np.exp(x)
    wrong[1] *= np.float32(1.001)
    assert is_wrong(model, x, wrong)


def test_a_long_sum_is_rounded_at_each_addend() -> None:
    """Added one after the other in single precision, 2,000 equal addends are off by more than their own rounding."""
    model = model_of([helper.make_node("MatMul", ["x", "x"], ["y"])], (2000,))
    x = np.full(2000, 0.7071, np.float32)
    running = np.float32(0)
    for addend in x * x:
        running += addend
    assert abs(running - np.dot(x.astype(np.float64), x)) > 30 * 2.0**-24 * running
    assert not is_wrong(model, x, np.array(running))
    assert is_wrong(model, x, np.array(running * np.float32(1 - 1 / 2000)))


def test_a_mean_over_a_wide_window_is_a_long_sum() -> None:
    """Nothing computes such a window in double precision here; equal addends are all rounded alike."""
    wide = {"kernel_shape": [200, 100], "pads": [0, 49, 0, 50]}
    model = model_of([helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **wide)], (1, 1, 200, 20))
    x = np.full((1, 1, 200, 20), 6.775014, np.float32)
    running = np.float32(0)
    for addend in x.reshape(-1):
        running += addend
    right = np.full((1, 1, 1, 20), x.astype(np.float64).sum() / (200 * 100))
    got = np.full((1, 1, 1, 20), running / np.float32(200 * 100))
    assert abs(got / right - 1).max() > 4 * np.sqrt(x.size) * 2.0**-24
    for one in (got, right):
        assert not is_wrong(model, x, one.astype(np.float32))
    assert is_wrong(model, x, (right * 0.98).astype(np.float32))


def test_a_determinant_is_as_exact_as_its_elements() -> None:
    x = (1 / np.add.outer(np.arange(1, 5), np.arange(4))).astype(np.float32)
    model = model_of([helper.make_node("Det", ["x"], ["y"])], (4, 4))
    changed = x.copy()
    changed[3, 3] = np.nextafter(changed[3, 3], np.float32(1))
    exact, near = (np.array(np.linalg.det(m.astype(np.float64)), np.float32) for m in (x, changed))
    assert abs(near - exact) > 64 * 2.0**-24 * exact
    assert not is_wrong(model, x, near)
    assert is_wrong(model, x, exact * np.float32(1.1))


def test_a_place_between_far_neighbours_is_rounded_as_large_as_it_is() -> None:
    model = model_of([helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")], (1, 1, 453, 1))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 1, 18, 1]), "sizes"))
    x = np.random.default_rng(0).uniform(-5, 5, (1, 1, 453, 1)).astype(np.float32)
    right = Reference(model, {"x": x}).native_outputs()["y"]
    assert not is_wrong(model, x, right + np.float32(453 * 2.0**-24 * 5))
    assert is_wrong(model, x, right + np.float32(0.01))


def test_an_exponent_in_half_precision_may_be_an_integer() -> None:
    """(-2) ** 2049.5 is NaN, and 0 or infinite where a half holds the exponent."""
    model = model_of([helper.make_node("Abs", ["x"], ["e"]), helper.make_node("Pow", ["b", "e"], ["y"])], (2,))
    model.graph.initializer.append(numpy_helper.from_array(np.array([-0.5, -0.5], np.float32), "b"))
    x = np.array([2049.5, 3], np.float32)
    got = {"y": np.array([0, -0.125], np.float32)}
    assert not differences(got, Reference(model, {"x": x}, "float16").expected(runs=24))
    assert differences(got, Reference(model, {"x": x}).expected(runs=24))


def test_an_extent_that_a_scale_gives_is_not_rounded_away() -> None:
    """Five rows times a scale a little below 3 would be fourteen, which the matrix does not take."""
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    model = model_of(nodes, (1, 5))
    scales, weights = np.array([1, 3], np.float32), np.ones((15, 2), np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(scales, "scales"), numpy_helper.from_array(weights, "w")])
    x = np.random.default_rng(0).uniform(-5, 5, (1, 5)).astype(np.float32)
    expected = Reference(model, {"x": x}, "float16").expected()
    assert not differences({"y": np.full((1, 2), 3 * x.sum(), np.float32)}, expected)


def test_the_least_of_infinities_over_infinities_may_be_nan() -> None:
    """In half precision 1e10 is infinite, and the least of a row with NaN is NaN wherever in the row it is."""
    nodes = [helper.make_node("Div", ["x", "x"], ["q"]), helper.make_node("ReduceMin", ["q"], ["y"])]
    x = np.array([[2, 1e10, 3]], np.float32)
    for got, dtype, wrong in ((np.nan, "float16", False), (1.0, "float16", False), (np.nan, "float32", True)):
        expected = Reference(model_of(nodes, (1, 3)), {"x": x}, dtype).expected()
        assert bool(differences({"y": np.full((1, 1), got, np.float32)}, expected)) == wrong


def test_a_number_that_is_rounded_to_the_greatest_half_is_no_infinity() -> None:
    """65510 is 65504 in half precision. A product beside it that is infinite there may be kept in single precision."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Div", ["p", "p"], ["y"])]
    model = model_of(nodes, (1, 2), TensorProto.FLOAT16)
    model.graph.initializer.append(numpy_helper.from_array(np.array([[65504, 65504], [6, 4000]], np.float16), "w"))
    expected = Reference(model, {"x": np.ones((1, 2), np.float16)}).expected()
    for second in (np.nan, 1.0):
        assert not differences({"y": np.array([[1, second]], np.float16)}, expected)


def test_a_saturated_state_may_be_exactly_one() -> None:
    nodes = [helper.make_node("RNN", ["x", "w", "r"], ["h"], hidden_size=1), helper.make_node("Floor", ["h"], ["y"])]
    model = model_of(nodes, (1, 1, 1))
    model.graph.initializer.extend(numpy_helper.from_array(np.ones((1, 1, 1), np.float32), name) for name in "wr")
    expected = Reference(model, {"x": np.full((1, 1, 1), 8.5, np.float32)}).expected()  # tanh is 1 - 8e-8
    for got, wrong in ((1.0, False), (0.0, False), (100.0, True)):
        assert bool(differences({"y": np.full((1, 1, 1, 1), got, np.float32)}, expected)) == wrong


def test_what_is_left_of_large_addends_has_no_digit_in_common() -> None:
    model = model_of([helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)], (4,))
    x = np.array([1e38, 1e37, -1e38, -1e37], np.float32)
    for got, wrong in ((0.0, False), (1e30, False), (1e36, True), (np.inf, True)):
        assert is_wrong(model, x, np.array(got, np.float32)) == wrong


def test_what_a_vanished_sum_divides_is_not_known() -> None:
    """A sum that cancels is a multiple of its own rounding or nothing at all, and a denormal may be nothing, too."""
    mean = helper.make_node("GlobalAveragePool", ["x"], ["m"])
    model = model_of([mean, helper.make_node("Reciprocal", ["m"], ["y"])], (1, 1, 33))
    x = np.random.default_rng(3).normal(size=(1, 1, 33)).astype(np.float32) * np.float32(1e8)
    x[0, 0, -1] = -np.float64(x[0, 0, :-1]).sum()
    assert not is_wrong(model, x, np.full((1, 1, 1), np.inf, np.float32))
    x[0, 0, -1] = 1e9
    assert is_wrong(model, x, np.full((1, 1, 1), np.inf, np.float32))
    model = model_of([helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Reciprocal", ["e"], ["y"])], (2,))
    assert not is_wrong(model, np.array([-98.06, 1], np.float32), np.array([np.inf, np.exp(-1)], np.float32))
    assert is_wrong(model, np.array([-80, 1], np.float32), np.array([np.inf, np.exp(-1)], np.float32))


def test_a_bias_may_cancel_what_is_normalized() -> None:
    """A row of two is -1 and 1 whatever it holds; beside a bias of 1 the roundings of 1 are all that is left."""
    model = model_of([helper.make_node("LayerNormalization", ["x", "one", "one"], ["y"], epsilon=1e-12)], (1, 2))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "one"))
    x = np.array([[0.25, 0.75]], np.float32)
    assert not is_wrong(model, x, np.array([[2e-7, 2]], np.float32))
    assert is_wrong(model, x, np.array([[1e-4, 2]], np.float32))


def test_defaults_of_attributes_are_in_single_precision() -> None:
    x = np.ones((1, 1, 1, 1))
    model = model_of([helper.make_node("LRN", ["x"], ["y"], size=1, beta=1.0)], x.shape, TensorProto.DOUBLE)
    assert not is_wrong(model, x, x / (1 + np.float64(np.float32(0.0001))))
    assert is_wrong(model, x, x / 1.0001)


def test_what_double_precision_alone_gives_is_not_asked_for() -> None:
    """Ceil(3 + 1e-9) is 3 in the model's own single precision; where both precisions agree, the element is known."""
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array([1e-9], np.float32))),
        helper.make_node("Add", ["x", "c"], ["sum"]),
        helper.make_node("Ceil", ["sum"], ["y"]),
    ]
    model = model_of(nodes, (2,))
    x = np.array([3, 2.5], np.float32)
    for way in (3, 4):
        assert not is_wrong(model, x, np.array([way, 3], np.float32))
    assert is_wrong(model, x, np.array([3, 4], np.float32))


@pytest.mark.parametrize(
    ("operator", "x", "y"),
    [
        ("Softplus", -29.0, 2.5436656473765994e-13),
        ("Sigmoid", -48.0, 1.4251640827409352e-21),
        ("Mish", -40.0, -1.6993417021166355e-16),
        ("Elu", -1e-30, -1e-30),
        ("Selu", -1e-30, -1.7580993463430305e-30),
        ("Celu", -1e-30, -1e-30),
        ("Gelu", -10.0, -7.619853024160526e-23),
    ],
)
def test_functions_do_not_cancel(operator: str, x: float, y: float) -> None:
    """ONNX Runtime's or the evaluator's result in double precision has no right digit here."""
    model = model_of([helper.make_node(operator, ["x"], ["y"])], (1,), TensorProto.DOUBLE)
    model.opset_import[0].version = 20
    expected = Reference(model, {"x": np.array([x])}).expected()["y"]
    assert abs(expected.value[0] - y) <= 1e-14 * abs(y)


def test_shapes_of_the_evaluator_are_looked_at() -> None:
    """ONNX Runtime has no such pool of doubles, and the evaluator's result of rank 3 has rank 2."""
    model = model_of([helper.make_node("GlobalMaxPool", ["x"], ["y"])], (4, 2, 5), TensorProto.DOUBLE)
    with pytest.raises(NoReference, match="shape"):
        Reference(model, {"x": np.ones((4, 2, 5))})


def test_sums_that_overflow_on_their_way_alone_are_not_known() -> None:
    """3e38 * 2 - 3e38 * 2 is NaN, infinite or 0, as an implementation rounds and orders; the other sums are known."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], (2, 3))
    model.graph.initializer.append(numpy_helper.from_array(np.array([[2], [-2], [1]], np.float32), "w"))
    x = np.array([[3e38, 3e38, 1], [3, 1, 2]], np.float32)
    for way in (np.nan, np.inf, -np.inf, 1.0):
        assert not is_wrong(model, x, np.array([[way], [6]], np.float32))
    assert is_wrong(model, x, np.array([[1], [6.001]], np.float32))


def test_an_infinity_beside_a_product_that_overflows_is_not_known() -> None:
    """-inf * -1 + 3e38 * -2 is infinite, or NaN where the product is rounded; without the product it is infinite."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], (2, 2))
    model.graph.initializer.append(numpy_helper.from_array(np.array([[-1], [-2]], np.float32), "w"))
    x = np.array([[-np.inf, 3e38], [-np.inf, 3]], np.float32)
    for way in (np.nan, np.inf):
        assert not is_wrong(model, x, np.array([[way], [np.inf]], np.float32))
    assert is_wrong(model, x, np.array([[np.inf], [np.nan]], np.float32))


def test_doubles_are_normalised_in_single_precision() -> None:
    """ONNX's `stash_type`: what the bias cancels is not known better than single precision."""
    model = model_of([helper.make_node("LayerNormalization", ["x", "one", "bias"], ["y"])], (1, 3), TensorProto.DOUBLE)
    x = np.array([[0.3, -1.7, 1.1]])
    rows = (x - x.mean()) / np.sqrt(x.var() + np.float32(1e-5))
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), n) for n, v in {"one": np.ones(3), "bias": 1e-3 - rows[0]}.items()
    )
    assert not is_wrong(model, x, np.full((1, 3), 1e-3 + 5e-8))
    assert is_wrong(model, x, np.full((1, 3), 1e-3 + 1e-4))


def test_one_wrong_element_beside_a_huge_one_is_seen() -> None:
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], (4,))
    x = np.array([1e10, 0.006, 1.0, np.nan], np.float32)
    assert not is_wrong(model, x, -x)
    assert is_wrong(model, x, np.array([-1e10, -0.012, -1.0, np.nan], np.float32))
    assert is_wrong(model, x, np.array([-1e10, -0.006, -1.0, 0.0], np.float32))


def test_a_difference_that_cancellation_explains_is_rounding() -> None:
    nodes = [
        helper.make_node("Sin", ["x"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["r"], keepdims=1),
        helper.make_node("Sub", ["r", "r"], ["y"]),
    ]
    model = model_of(nodes, (64,))
    x = np.linspace(-3, 3, 64).astype(np.float32)
    sums = np.sin(x.astype(np.float64)).sum()
    assert not is_wrong(model, x, np.array([0.0], np.float32))
    assert abs(sums) < 1e-6  # the sum itself is nothing but rounding
    whole = model_of(nodes[:2], (64,))
    whole.graph.node[1].output[0] = "y"
    assert not is_wrong(whole, x, np.array([3e-7], np.float32))
    assert is_wrong(whole, x, np.array([3e-3], np.float32))


@pytest.mark.parametrize("seed", range(40))
def test_drawn_models_are_models(seed: int) -> None:
    """ONNX's checker takes them, and one seed gives one model."""
    case = SOURCES["drawn"](seed)
    onnx.checker.check_model(case.model)
    again = SOURCES["drawn"](seed)
    assert again.model.SerializeToString() == case.model.SerializeToString()
    assert again.mode == case.mode


def test_a_failure_becomes_small() -> None:
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Exp", ["a"], ["e"]),
        helper.make_node("Transpose", ["e"], ["t"], perm=[1, 0]),
        helper.make_node("Neg", ["t"], ["y"]),
    ]
    case = Case("c", model_of(nodes, (16, 9)), {"x": np.ones((16, 9), np.float32)}, Mode(level="none", debug=True))
    small = Reducer(lambda c: any(n.op_type == "Transpose" for n in c.model.graph.node)).reduce(case)
    assert [n.op_type for n in small.model.graph.node] == ["Transpose"]
    assert [list(a.shape) for a in small.feeds.values()] == [[1, 1]]
    assert small.mode == Mode()


def test_kept_cases_come_back_whole(tmp_path: Path) -> None:
    case = SOURCES["drawn"](3)
    path = case.save(tmp_path, "a line")
    again = load_case(path)
    assert again.mode == case.mode
    assert again.model == case.model
    for name, array in case.feeds.items():
        np.testing.assert_array_equal(array, again.feeds[name])


def test_a_process_that_ends_is_a_result() -> None:
    with Worker() as worker:
        verdict, _ = worker.ask({"file": "/nowhere/at/all.onnx"})
        assert verdict.kind == "crash"
        assert "nowhere" in verdict.detail


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [("Relu", []), ("Tanh", []), ("Clip", [-1.5, 2.0]), ("LeakyRelu", [0.25]), ("HardSigmoid", [0.3, 0.4])],
)
def test_a_fused_convolution_is_a_long_sum(activation: str, numbers: list[float]) -> None:
    """ONNX Runtime computes it in single precision only; the judge takes it apart, and knows doubles."""
    given = {"activation_params": numbers} if numbers else {}
    node = helper.make_node(
        "FusedConv", ["x", "w", "b", "z"], ["y"], "fused", domain="com.microsoft", activation=activation, **given
    )
    draw = np.random.default_rng(0)
    w, b, z = (draw.normal(size=shape).astype(np.float32) for shape in ((2, 700, 1, 1), (2,), (1, 2, 3, 1)))
    model = model_of([node], (1, 700, 3, 1))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for v, n in ((w, "w"), (b, "b"), (z, "z")))
    x = draw.normal(size=(1, 700, 3, 1)).astype(np.float32)
    x[0, 0] = 3e4  # cancels, so that the sum's roundings are larger than the sum's own
    x[0, 1] = -3e4 * w[:, 0, 0, 0].mean() / w[:, 1, 0, 0].mean()
    own = Reference(model, {"x": x})
    fused = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = fused.run(None, {"x": x})[0]
    assert not is_wrong(model, x, got)
    assert is_wrong(model, x, got + np.float32(1))
    assert own.precise_ways[0]


@pytest.mark.parametrize("operator", ["Sin", "Cos"])
def test_a_sine_of_a_large_number_is_any_number_up_to_one(operator: str) -> None:
    """Drawn 2000004522: sines as large as 100 hid that each of a row's elements may be the largest."""
    model = model_of([helper.make_node(operator, ["x"], ["y"])], (64,))
    x = np.linspace(1e9, 2e10, 64).astype(np.float32)
    drawn = Reference(model, {"x": x}).compute(np.random.default_rng(1), overflow=False)["y"]
    assert np.abs(drawn).max() <= 1
    assert drawn.min() < -0.8
    assert drawn.max() > 0.8


def test_large_elements_round_all_results_of_a_fourier_transform() -> None:
    """Drawn 2200001199: the sine of a half turn is not exactly 0, and 3e38 times it covers what is small."""
    model = model_of([helper.make_node("DFT", ["x"], ["y"], axis=2)], (1, 1, 2, 2), TensorProto.DOUBLE)
    x = np.array([88.8, -0.8, 3e38, 1.3], np.float64).reshape(1, 1, 2, 2)
    pairs = x[0, 0, :, 0] + 1j * x[0, 0, :, 1]
    exact = np.array([pairs.sum(), pairs[0] - pairs[1]])
    got = np.stack([exact.real, exact.imag], axis=-1).reshape(x.shape)
    assert not is_wrong(model, x, got)
    assert is_wrong(model, x, got * (1 + 1e-6))


def test_a_bias_cancels_what_is_normalized_by_groups() -> None:
    """Drawn 2200007001: 0.0054 is left of a bias of 1.9, and a unit in its last place is 8e-8."""
    model = model_of([helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=2)], (3, 4))
    scale = np.array([1.0198492, 1.8755832], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scale, "s"))
    x = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)
    right = Reference(model, {"x": x}).expected()["y"].value.astype(np.float32)
    assert not is_wrong(model, x, right + np.float32(2e-7))
    assert is_wrong(model, x, right + np.float32(1e-3))


def test_what_is_moved_before_a_product_need_not_be_stored() -> None:
    """Large 2243000095: 3e38 times 1e10 is infinite, or NaN in parts; as halves both factors are infinite before."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    x = np.array([[3e38, 1e10, -np.inf]], np.float32)
    model = model_of(nodes, x.shape)
    expected = Reference(model, {"x": x}, "float16").expected(runs=MORE_RUNS)["y"]
    assert not expected.known.any()


def test_how_many_numbers_differ_hangs_on_roundings() -> None:
    """Drawn 2440009485: squares that are denormal are 0 where a device has none, and then equal."""
    nodes = [helper.make_node("Mul", ["x", "x"], ["t"]), helper.make_node("Unique", ["t"], ["y"])]
    x = np.array([1e-20, 2e-20, 1], np.float32)
    model = model_of(nodes, x.shape)
    assert not is_wrong(model, x, np.array([0, 1], np.float32))
    assert not is_wrong(model, x, x * x)
    assert is_wrong(model, x, np.array([[0], [1]], np.float32))
    assert is_wrong(model, x, np.array([0, 1]))
    given = model_of([helper.make_node("Unique", ["x"], ["y"])], x.shape)
    assert is_wrong(given, np.array([1, 1, 2], np.float32), np.array([1, 1, 2], np.float32))


def test_a_size_that_hangs_on_roundings_is_open() -> None:
    """Where a maximum is stored in half precision, elements that are not may be greater than it."""
    nodes = [helper.make_node("ReduceMax", ["x"], ["m"]), helper.make_node("Greater", ["x", "m"], ["g"])]
    model = model_of([*nodes, helper.make_node("NonZero", ["g"], ["y"])], (2,))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    wanted = Reference(model, {"x": np.array([2.3456789, 1], np.float32)}, "bfloat16").expected()
    assert wanted["y"].extents == (1, None)
    for shape, wrong in (((1, 0), False), ((1, 1), False), ((2, 0), True), ((0,), True)):
        assert bool(differences({"y": np.zeros(shape, np.int64)}, wanted)) == wrong, shape
    whole = Reference(model, {"x": np.array([2.3456789, 1], np.float32)}).expected()
    assert differences({"y": np.zeros((1, 1), np.int64)}, whole)


def test_values_of_an_attention_may_cancel() -> None:
    node = helper.make_node("MultiHeadAttention", ["q", "x", "x"], ["y"], num_heads=1, domain="com.microsoft")
    model = model_of([node], (1, 2, 2))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 1, 2), np.float32), "q"))
    x = np.array([[[0.7, 0.3], [-0.7, 0.4]]], np.float32)  # rows that count alike: the mean of the first column is 0
    assert not is_wrong(model, x, np.array([[[3e-8, 0.35]]], np.float32))
    assert is_wrong(model, x, np.array([[[3e-5, 0.35]]], np.float32))


def test_neighbours_that_a_region_averages_may_cancel() -> None:
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "batches"], ["y"], output_height=1, output_width=1, sampling_ratio=2
    )
    model = model_of([node], (1, 1, 2, 2))
    model.graph.initializer.append(numpy_helper.from_array(np.array([[0.5, 0.5, 1.5, 1.5]], np.float32), "rois"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "batches"))
    x = np.array([[[[0.7, -0.7], [-0.3, 0.3]]]], np.float32)
    assert not is_wrong(model, x, np.array([[[[3e-8]]]], np.float32))
    assert is_wrong(model, x, np.array([[[[3e-5]]]], np.float32))


@pytest.mark.parametrize("products", [1, 2])
def test_infinities_meet_others_where_two_products_become_one(products: int) -> None:
    """(x v) w is inf - inf where x (v w) is infinite; one product alone has one answer."""
    v, w = np.array([[1.0, -1.0], [2.0, 1.0]], np.float32), np.array([[1.0, 2.0], [3.0, 1.0]], np.float32)
    nodes = [helper.make_node("MatMul", ["x", "v"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])]
    model = model_of(nodes if products == 2 else [helper.make_node("MatMul", ["x", "v"], ["y"])], (1, 2))
    model.graph.initializer.extend([numpy_helper.from_array(v, "v"), numpy_helper.from_array(w, "w")])
    x = np.array([[np.inf, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        right, other = (x @ v @ w, x @ (v @ w)) if products == 2 else (x @ v, -(x @ v))
    assert not is_wrong(model, x, right)
    assert not np.array_equal(right, other, equal_nan=True)
    assert is_wrong(model, x, other) == (products == 1)
