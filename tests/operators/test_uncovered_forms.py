"""Forms of operators that ONNX's node tests do not cover, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize
from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.onnx_backend import SmartmemBackend
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

onnxruntime = pytest.importorskip("onnxruntime")

REGIONS = [[0, 0, 0, 5, 6], [1, 2, 3, 7, 7], [0, 6, 6, 30, 9], [1, 3, 3, 3, 3], [0, 2.5, 1.5, 4.5, 4.5]]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def recurrent(gates: int, directions: int = 1) -> dict[str, np.ndarray]:
    """Inputs of a recurrent network of 4 units for 5 steps, 2 sequences and 3 features."""
    return {"x": 2 * numbers(5, 2, 3), "w": numbers(directions, gates * 4, 3), "r": numbers(directions, gates * 4, 4)}


MIXED = ["Affine", "Elu", "ScaledTanh"]
CASES: list[tuple[str, dict[str, np.ndarray], dict[str, Any]]] = [
    ("MaxRoiPool", {"x": np.zeros((2, 3, 8, 9), np.float32), "rois": np.array(REGIONS, np.float32)},
     {"pooled_shape": [2, 3]}),
    ("MaxRoiPool", {"x": np.zeros((2, 1, 8, 9), np.float32), "rois": np.array(REGIONS, np.float32) * 2},
     {"pooled_shape": [3, 4], "spatial_scale": 0.5}),
    ("RNN", recurrent(1), {"activations": ["Softplus"], "clip": 0.7}),
    ("GRU", recurrent(3), {"clip": 0.5}),
    ("GRU", recurrent(3), {"clip": 0.5, "linear_before_reset": 1}),
    ("GRU", recurrent(3), {"activations": ["HardSigmoid", "LeakyRelu"], "activation_alpha": [0.3, 0.2],
                           "activation_beta": [0.4]}),
    ("LSTM", recurrent(4), {"clip": 0.3}),
    ("LSTM", recurrent(4), {"input_forget": 1}),
    ("LSTM", recurrent(4, 2), {"input_forget": 1, "clip": 0.3, "direction": "bidirectional"}),
    ("LSTM", recurrent(4), {"activations": ["HardSigmoid", "Softsign", "Relu"]}),
    ("LSTM", recurrent(4, 2), {"direction": "bidirectional", "activations": MIXED * 2,
                               "activation_alpha": [0.4, 0.9, 0.8] * 2, "activation_beta": [0.1, 0.7] * 2}),
    ("ReduceL2", {"x": np.arange(-6, 6, dtype=np.int32).reshape(3, 4)}, {"axes": [1]}),
    ("ReduceLogSum", {"x": np.array([[0, 0], [20, 1], [-3, 2], [2**20, 5]], np.int32)}, {"axes": [1]}),
    ("ReduceLogSumExp", {"x": np.array([[8, 8, 7, 7], [3, 3, 3, 2], [-9, 2**30, 5, 0]])}, {"axes": [1]}),
    ("ReduceLogSumExp", {"x": np.array([[-7, -7, -9], [-5, -5, -5], [-1, -7, -7]], np.int32)}, {"axes": [1]}),
]  # fmt: skip


def test_defaults_are_numbers_of_single_precision() -> None:
    """An attribute of ONNX is a float32, also where nobody writes it; doubles show the difference."""
    node = helper.make_node("HardSigmoid", ["x"], ["y"])
    x = numpy_helper.from_array(np.array([1.0]), "x")
    graph = helper.make_graph([node], "one", [], [onnx.ValueInfoProto(name="y")], [x])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)
    assert import_model(model, load_rules()).constants["y"] == np.float64(np.float32(0.2)) + 0.5


def test_angles_that_the_compiler_knows() -> None:
    """LLVM 14 ended the process where it knows the angles and has registers of 256 bits (PoCL 3.0 on a Zen 4)."""
    count = helper.make_tensor_value_info("count", onnx.TensorProto.INT32, [])
    node = helper.make_node("BlackmanWindow", ["count"], ["y"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [10])
    graph = helper.make_graph([node], "one", [count], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (found,) = SmartmemBackend.prepare(model, "CPU").run([np.array(10, np.int32)])  # which does not fold outputs
    assert np.allclose(found, np.blackman(11)[:10], atol=1e-6)


@pytest.mark.parametrize(("left", "right"), [((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((4,), (4,))])
def test_integer_products_of_vectors(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = np.arange(np.prod(left)).reshape(left), np.arange(np.prod(right)).reshape(right) - 3
    node = helper.make_node("MatMulInteger", ["a", "b", "zero"], ["y"])
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, left),
            helper.make_tensor_value_info("b", onnx.TensorProto.INT8, right),
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(2, np.uint8), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)
    found = optimize(model).run({"a": a.astype(np.uint8), "b": b.astype(np.int8)})["y"]
    assert np.array_equal(found, np.matmul(a - 2, b))


def test_nothing_is_selected_from_nothing() -> None:
    """A read with `else` from an empty tensor is its `else`; the bounds of the place do not say so together."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (0, 3))
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "one", [x], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert optimize(model).run({"x": np.zeros((0, 3), np.float32)})["y"].shape == (2, 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("axes", [[1, 1], [1, -3], [0, 3, -1]], ids=str)
@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceL2", "ReduceMax"])
def test_an_axis_that_is_named_twice_is_reduced_once(operator: str, axes: list[int]) -> None:
    x, y = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 3, 1, 5)), onnx.ValueInfoProto(name="y")
    nodes = [helper.make_node(operator, ["x", "axes"], ["r"], keepdims=0), helper.make_node("Relu", ["r"], ["y"])]
    graph = helper.make_graph(nodes, "one", [x], [y], [numpy_helper.from_array(np.array(axes), "axes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    feeds = {"x": numbers(1, 3, 1, 5)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.allclose(optimize(model).run(feeds)["y"], session.run(None, feeds)[0], rtol=1e-6)


def test_axes_are_squeezed_once() -> None:
    x, y = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 3, 1)), onnx.ValueInfoProto(name="y")
    axes = numpy_helper.from_array(np.array([0, -3, 0]), "axes")
    graph = helper.make_graph([helper.make_node("Squeeze", ["x", "axes"], ["y"])], "one", [x], [y], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert optimize(model).run({"x": numbers(1, 3, 1)})["y"].shape == (3, 1)


@pytest.mark.parametrize(
    ("operator", "attributes", "constants", "expected"),
    [
        ("Transpose", {"perm": [0, 1, 1]}, [], "requires sort"),
        ("Unsqueeze", {}, [np.array([0, -5])], "an axis is named twice"),
        ("CenterCropPad", {"axes": [1, -2]}, [np.array([2, 2])], "an axis is named twice"),
    ],
)
def test_axes_are_different_ones(
    operator: str, attributes: dict[str, Any], constants: list[np.ndarray], expected: str
) -> None:
    x, y = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3, 4)), onnx.ValueInfoProto(name="y")
    names = [f"c{k}" for k, _ in enumerate(constants)]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", *names], ["y"], **attributes)],
        "one",
        [x],
        [y],
        [numpy_helper.from_array(c, n) for c, n in zip(constants, names, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(SmartmemError, match=expected):
        optimize(model)


@pytest.mark.parametrize("attributes", [{"exclusive": -1}, {"reverse": 2}])
def test_flags_are_0_or_1(attributes: dict[str, int]) -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (3,))
    axis = numpy_helper.from_array(np.array(0), "axis")
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)
    graph = helper.make_graph([node], "one", [x], [onnx.ValueInfoProto(name="y")], [axis])
    with pytest.raises(SmartmemError, match="CumSum requires"):
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), load_rules())


@pytest.mark.parametrize(("operator", "feeds", "attributes"), CASES)
def test_same_as_onnxruntime(operator: str, feeds: dict[str, np.ndarray], attributes: dict[str, Any]) -> None:
    if operator == "MaxRoiPool":
        feeds["rois"][:, 0] = np.array(REGIONS)[:, 0]
        feeds["x"] = np.random.default_rng(1).standard_normal(feeds["x"].shape).astype(np.float32)
    if "r" in feeds:
        attributes = {"hidden_size": 4, **attributes}
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    node = helper.make_node(operator, list(feeds), ["y"], **attributes)
    graph = helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    imported = import_model(model, load_rules())
    known: dict[str, Any] = dict(imported.constants) | dict(feeds)
    for one in imported.nodes:
        known.update(evaluate_equations(one.equations, known))
    np.testing.assert_allclose(known["y"], session.run(None, feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.optimized  # it computes for longer than it is compiled
@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float16, 2.0**-11)])
def test_a_long_transform_has_exact_turns(dtype: type, bound: float) -> None:
    """Beyond 2^24 the products of places and frequencies are no numbers of single precision, beyond 2^11 no halves."""
    x = np.random.default_rng(0).standard_normal((1, 6000, 1)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    described = [helper.make_tensor_value_info(n, kind, s) for n, s in (("x", x.shape), ("y", None))]
    node = helper.make_node("DFT", ["x"], ["y"], axis=1, onesided=1)
    graph = helper.make_graph([node], "one", described[:1], described[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    found = optimize(model).run({"x": x})["y"].astype(np.float64)
    expected = np.fft.rfft(x[..., 0].astype(np.float64), axis=1)
    assert np.abs(found[..., 0] + 1j * found[..., 1] - expected).max() < bound * np.abs(expected).max()


LONG = [[0, 0, 9, 9], [1, 2, 5.5, 7.25], [-4, -3, 3, 3], [4, 4, 4, 4], [6, 6, 300, 30], [3, 3, 2, 1]]
"""Regions inside, over the edges, of no extent, far longer than the data, and with their ends before their starts."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("opset", "attributes"),
    [(10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"})],
)
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("below", [0.0, 5.0])
def test_samples_as_many_as_a_region_is_long(opset: int, attributes: dict[str, Any], mode: str, below: float) -> None:
    feeds = {
        "x": numbers(2, 3, 10, 11) - np.float32(below),  # where all are negative, the least weights count
        "rois": np.array(LONG, np.float32) * 4,
        "batches": np.array([0, 1, 0, 1, 1, 0]),
    }
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    node = helper.make_node(
        "RoiAlign", list(feeds), ["y"], output_height=3, output_width=2, spatial_scale=0.25, mode=mode, **attributes
    )
    graph = helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(optimize(model).run(feeds)["y"], session.run(None, feeds)[0], rtol=1e-4, atol=1e-5)


MATRICES = np.array([[[0, 1, 0], [0, 0, 2], [3, 0, 0]], [[4, 1, -2], [1, 3, 0.5], [0.25, 0, -5]]], np.float32)


@pytest.mark.parametrize(
    ("operator", "x", "attributes", "outputs"),
    [
        ("Inverse", MATRICES, {}, 1),
        ("Unique", np.array([2, 1, 1, 3, 4, 3], np.float32), {}, 3),
        ("NhwcMaxPool", np.arange(-90, 90, dtype=np.int8).reshape(1, 6, 6, 5) * 7, {"kernel_shape": [3, 2]}, 1),
    ],
)
def test_same_as_the_operators_of_onnxruntime(
    operator: str, x: np.ndarray, attributes: dict[str, Any], outputs: int
) -> None:
    names = [f"y{place}" for place in range(outputs)]
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    node = helper.make_node(operator, ["x"], names, domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "one", [given], [onnx.ValueInfoProto(name=name) for name in names])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = optimize(model).run({"x": x})
    for name, wanted in zip(names, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("counts", "indexes"), [([2], [0, 3]), ([1, 2], [2, 0]), ([0, 2], [0, 1, 2])], ids=str)
def test_grams_begin_where_their_counts_say(counts: list[int], indexes: list[int]) -> None:
    """What stands in the pool before the first count is no gram, and takes no index."""
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", ngram_counts=counts, ngram_indexes=indexes, min_gram_length=1,
        max_gram_length=len(counts), max_skip_count=0, pool_int64s=[1, 2, 0, -1],
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT32, (4,))
    graph = helper.make_graph([node], "one", [x], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    tokens = {"x": np.array([1, -3, -1, 2], np.int32)}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, tokens)
    assert np.any(wanted)
    assert np.array_equal(optimize(model).run(tokens)["y"], wanted)


@pytest.mark.parametrize("zero_point", [["z"], []], ids=["int8", "uint8"])
def test_an_element_type_that_is_undefined_is_left_out(zero_point: list[str]) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s", *zero_point], ["y"], output_dtype=0)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (3, 4))
    known = [numpy_helper.from_array(np.float32(0.1), "s"), numpy_helper.from_array(np.int8(3), "z")]
    graph = helper.make_graph([node], "one", [x], [onnx.ValueInfoProto(name="y")], known[: 1 + len(zero_point)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    feeds = {"x": numbers(3, 4)}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    found = optimize(model).run(feeds)["y"]
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


def test_an_element_type_that_an_operator_needs_is_not_left_out() -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (3, 4))
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=0)], "one", [x], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    with pytest.raises(SmartmemError, match="its attribute to is 0, which is no dtype"):
        optimize(model)
