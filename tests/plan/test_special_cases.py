"""What kernels must survive: odd element types, no elements, shared outputs, missing quotients, small images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.plan.building import build
from tests.plan.models import Node, i64, model, normal, whole
from tests.plan.running import Mode, agrees, prepare, run

pytestmark = pytest.mark.sampled(40)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
@pytest.mark.parametrize(("rows", "summed", "beside"), [(25, 25, 2), (3, 4, 1), (2, 2, 1), (64, 8, 16)])
def test_a_reduction_is_read_along_rows_and_columns(
    rows: int, summed: int, beside: int, dtype: str, mode: Mode
) -> None:
    feeds = {"x": whole(rows, 1, summed, beside, dtype=dtype, low=-3, high=3)}
    nodes: list[Node] = [
        ("ReduceSum", "x two", "r", {"keepdims": 0}),
        ("Squeeze", "r one", "s"),
        ("Mul", "r s", "y"),
    ]
    agrees(model(nodes, feeds, "y", {"two": i64(2), "one": i64(1)}), feeds, mode)


# --- element types ---


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_float_types(dtype: str, mode: Mode) -> None:
    feeds = {"x": normal(6, 10, dtype=dtype), "w": normal(10, 9, dtype=dtype, seed=1)}
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Tanh", "p", "t"),
        ("Softmax", "t", "s"),
        ("ReduceMean", "t", "m", {"keepdims": 0}),
        ("Transpose", "s", "r"),
        ("Cast", "r", "i", {"to": onnx.TensorProto.INT32}),
        ("Abs", "r", "a"),
    ]
    agrees(model(nodes, feeds, "s m i a"), feeds, mode, 1e-12 if dtype == "float64" else 4e-3)


def test_floats_and_integers_in_one_kernel(mode: Mode) -> None:
    feeds = {"x": normal(3, 19), "n": whole(3, 19, dtype="int64")}
    nodes: list[Node] = [
        ("Cast", "n", "f", {"to": onnx.TensorProto.FLOAT}),
        ("Mul", "x f", "p"),
        ("Greater", "p x", "b"),
        ("Cast", "p", "k", {"to": onnx.TensorProto.INT32}),
        ("Where", "b p x", "w"),
        ("Not", "b", "nb"),
        ("Cast", "b", "c", {"to": onnx.TensorProto.FLOAT16}),
        ("Exp", "x", "e"),
        ("Cast", "b", "d", {"to": onnx.TensorProto.DOUBLE}),
    ]
    agrees(model(nodes, feeds, "p b k w nb c e d"), feeds, mode, 1e-5)


def test_half_storage_of_a_half_model() -> None:
    feeds = {"x": normal(5, 12, dtype="float16")}
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Add", "p b", "q"),
        ("LayerNormalization", "q s", "y", {"epsilon": 0.1}),
    ]
    constants = {"w": normal(12, 9, dtype="float16"), "b": normal(9, dtype="float16"), "s": normal(9, dtype="float16")}
    for memory in ("buffer", "image"):
        for dtype in ("float32", "float16"):
            agrees(model(nodes, feeds, "y q", constants), feeds, Mode("smartmem", memory, dtype), 2e-2)


@pytest.mark.parametrize("kind", ["Sum", "Prod", "Max", "Min", "Mean"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64", "float32"])
def test_reductions_of_every_type(kind: str, dtype: str, mode: Mode) -> None:
    x = whole(3, 5, 9, dtype=dtype, low=-2, high=2)
    proto = model([(f"Reduce{kind}", "x a", "y", {"keepdims": 0})], {"x": x}, "y", {"a": i64(0, 2)})
    if kind == "Mean" and dtype.startswith("int"):
        total = x.sum(axis=(0, 2))
        expected = [(np.sign(total) * (abs(total) // 27)).astype(dtype)]
    else:
        expected = [getattr(np, kind.lower())(x, axis=(0, 2)).astype(dtype)]
    agrees(proto, {"x": x}, mode, expected=expected)


def test_reductions_of_truth_values(mode: Mode) -> None:
    x = whole(4, 9, low=0, high=1).astype(bool)
    proto = model([("ReduceMax", "x a", "y"), ("ReduceMin", "x a", "z")], {"x": x}, "y z", {"a": i64(1)})
    proto.opset_import[0].version = 20
    agrees(proto, {"x": x}, mode, expected=[x.any(axis=1, keepdims=True), x.all(axis=1, keepdims=True)])


# --- ranks and extents ---


def test_rank_0(mode: Mode) -> None:
    feeds = {"x": normal(), "v": normal(5)}
    nodes: list[Node] = [
        ("Exp", "x", "e"),
        ("ReduceSum", "v", "t", {"keepdims": 0}),
        ("Mul", "e t", "p"),
        ("Add", "p v", "q"),
        ("Unsqueeze", "p zero", "u"),
        ("MatMul", "v v", "d"),
    ]
    agrees(model(nodes, feeds, "e t p q u d", {"zero": i64(0)}), feeds, mode)


@pytest.mark.parametrize("axes", [(1,), (0, 1), (2,)])
def test_reductions_over_one_element(axes: tuple[int, ...], mode: Mode) -> None:
    feeds = {"x": normal(1, 1, 6)}
    nodes: list[Node] = [(f"Reduce{k}", "x a", k) for k in ("Sum", "Mean", "Max", "Min", "Prod", "L2", "LogSumExp")]
    nodes += [("Softmax", "x", "s", {"axis": axes[0]}), ("LayerNormalization", "x one", "n", {"axis": axes[0]})]
    outputs = "Sum Mean Max Min Prod L2 LogSumExp s n"
    constants = {"a": i64(*axes), "one": np.ones((1, 1, 6)[axes[0] :], np.float32)}
    agrees(model(nodes, feeds, outputs, constants), feeds, mode)


def test_no_elements(mode: Mode) -> None:
    feeds = {"x": normal(2, 0, 3), "y": normal(2, 4, 3), "left": normal(4, 0), "right": normal(0, 5)}
    nodes: list[Node] = [
        ("Concat", "x y", "c", {"axis": 1}),
        ("Exp", "x", "e"),
        ("Transpose", "x", "t"),
        ("MatMul", "left right", "m"),
        ("ReduceSum", "x one", "s", {"keepdims": 0}),
        ("ReduceMax", "x one", "hi"),
        ("ReduceProd", "x one", "p"),
        ("Gather", "y none", "g"),
        ("Relu", "m", "r"),
        ("Slice", "y three two one", "cut"),
        ("Tile", "x repeats", "again"),
    ]
    constants = {
        "repeats": i64(1, 2, 2),
        "one": i64(1),
        "none": np.zeros((0,), np.int64),
        "two": i64(2),
        "three": i64(3),
    }
    expected = [
        feeds["y"],
        feeds["x"],
        feeds["x"].T,
        np.zeros((4, 5), np.float32),
        np.zeros((2, 3), np.float32),
        np.full((2, 1, 3), -np.inf, np.float32),
        np.ones((2, 1, 3), np.float32),
        feeds["y"][:0],
        np.zeros((4, 5), np.float32),
        feeds["y"][:, 3:2],
        np.zeros((2, 0, 6), np.float32),
    ]
    outputs = "c e t m s hi p g r cut again"
    got = run(model(nodes, feeds, outputs, constants), mode, feeds)
    for name, value in zip(outputs.split(), expected, strict=True):
        np.testing.assert_array_equal(got[name], value, err_msg=name)


# --- outputs ---


def test_outputs_that_nothing_computes(mode: Mode) -> None:
    feeds = {"x": normal(3, 5)}
    constants = {"c": normal(3, 5, seed=4), "k": whole(4, dtype="int64")}
    nodes: list[Node] = [
        ("Identity", "x", "same"),
        ("Identity", "c", "held"),
        ("Add", "x c", "y"),
        ("Identity", "y", "again"),
        ("Transpose", "c", "turned"),
        ("Reshape", "x flat", "z"),
    ]
    agrees(model(nodes, feeds, "same held y again k turned z c", {**constants, "flat": i64(-1)}), feeds, mode)


def test_an_input_as_output_beside_its_readers(mode: Mode) -> None:
    feeds = {"x": normal(4, 6)}
    agrees(model([("Softmax", "x", "y"), ("Transpose", "x", "t"), ("MatMul", "y t", "z")], feeds, "x z y"), feeds, mode)


# --- indices that come from tensors ---


def test_indices_out_of_range_stay_inside_the_tensor(mode: Mode) -> None:
    feeds = {"x": normal(5, 6), "i": np.array([[0, 10**9], [-(10**9), -1]], np.int64)}
    nodes: list[Node] = [
        ("Tanh", "x", "t"),
        ("Gather", "t i", "y", {"axis": 0}),
        ("GatherElements", "t i", "z", {"axis": 1}),
    ]
    got = run(model(nodes, feeds, "y z"), mode, feeds)
    t = np.tanh(feeds["x"])
    np.testing.assert_allclose(got["y"], t[[[0, 4], [0, 4]]], atol=1e-6)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_gathers_and_scatters(index: str, mode: Mode) -> None:
    feeds = {
        "x": normal(5, 6),
        "i": whole(2, 3, dtype=index, low=-5, high=4),
        "j": whole(2, 6, dtype=index, low=-5, high=4),
        "n": whole(3, 2, dtype="int64", low=0, high=4),
        "u": normal(2, 3, seed=5),
        "v": normal(3, seed=6),
        "l": np.array([1, 4, 2, 5, 3, 0], np.int64),
    }
    nodes: list[Node] = [
        ("Gather", "x i", "g"),
        ("Exp", "g", "e"),
        ("GatherElements", "x j", "ge"),
        ("GatherND", "x n", "gn"),
        ("ScatterElements", "x k u", "s"),
        ("ScatterND", "x d v", "sn"),
        ("Gather", "sn i", "gs", {"axis": 0}),
    ]
    distinct = np.array([[0, 1, 2], [3, -1, 1]], index)
    constants = {"k": distinct, "d": np.array([[0, 1], [4, 5], [2, 2]], np.int64)}
    agrees(model(nodes, feeds, "e ge gn s sn gs", constants), feeds, mode)


def test_scatter_by_computed_indices(mode: Mode) -> None:
    feeds = {"x": normal(5, 6), "k": np.array([[0, 1, 2], [3, -1, 1]], np.int64), "u": normal(2, 3, seed=5)}
    nodes: list[Node] = [("ScatterElements", "x k u", "s", {"axis": 0}), ("Tanh", "s", "t")]
    agrees(model(nodes, feeds, "t"), feeds, mode)


def test_reversed_sequences(mode: Mode) -> None:
    feeds = {"x": normal(4, 6), "l": np.array([1, 2, 3, 4, 4, 2], np.int64)}
    agrees(model([("ReverseSequence", "x l", "y"), ("Neg", "y", "z")], feeds, "z"), feeds, mode)


# --- images of a small device ---

NETWORK: list[Node] = [
    ("Conv", "x w b", "c", {"pads": [1, 1, 1, 1]}),
    ("Relu", "c", "r"),
    ("Reshape", "r rows", "f"),
    ("Softmax", "f", "s"),
    ("Transpose", "s", "t", {"perm": [0, 2, 1]}),
    ("MatMul", "t m", "p"),
    ("LayerNormalization", "p g", "y"),
    ("ReduceMax", "p two", "h"),
    ("Gather", "p two", "q", {"axis": 2}),
]


@pytest.mark.parametrize("limits", [(1, 1), (3, 5), (4, 40), (70, 2), (16, 16), (300, 300)])
@pytest.mark.parametrize("level", ["none", "smartmem"])
@pytest.mark.parametrize("kind", ["pocl", "adreno_740"])
def test_what_fits_no_image_lies_in_a_buffer(limits: tuple[int, int], level: str, kind: str) -> None:
    feeds = {"x": normal(2, 3, 7, 6)}
    constants = {
        "w": normal(5, 3, 3, 3) / 5,
        "b": normal(5),
        "rows": i64(2, 5, 42),
        "m": normal(5, 9),
        "g": normal(9),
        "two": i64(2),
    }
    proto = model(NETWORK, feeds, "y h q", constants)
    base = load_rules()
    profile = base.devices[kind]
    profile = replace(profile, memory=replace(profile.memory, image2d=limits))
    plan = build(import_model(proto, base, {}), base, profile, level, "float32", "image")
    images = [t for t in plan.tensors.values() if t.layout.memory == "image"]
    for tensor in images:
        width, height = tensor.layout.image_size(tensor.type.shape)
        assert width <= limits[0], tensor
        assert height <= limits[1], tensor
    assert images or max(limits) < 100
    got = Executor(plan, choose()).run(feeds)
    for name, value in zip(("y", "h", "q"), ReferenceEvaluator(proto).run(None, feeds), strict=True):
        np.testing.assert_allclose(got[name], value, atol=2e-5, err_msg=name)


def test_what_halves_do_not_hold_is_stored_as_float32() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((12, 40)).astype(np.float32)
    w = rng.standard_normal((40, 40)).astype(np.float32) * 1e5
    nodes = [("MatMul", "x w", "a"), ("ReduceMean", "a axes", "m"), ("Sub", "a m", "d"), ("Mul", "d c", "y")]
    proto = model(nodes, {"x": x}, "y", {"w": w, "axes": i64(0), "c": np.float32(1e-5)})
    plan, executor = prepare(proto, Mode(dtype="float16"))
    assert plan.statistics.stored_wide
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(executor.run({"x": x})["y"], wanted, rtol=0, atol=5e-3 * np.abs(wanted).max())
