"""Extents that depend on data: selections against ONNX's evaluator, what may read them, and what is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import smartmem_rules as sm
from smartmem_rules.graph.model import GraphError

Arrays = dict[str, np.ndarray]
PARTS = (0.0, 0.4, 1.0)


def model(nodes: list[onnx.NodeProto], feeds: Arrays, constants: Arrays, outputs: dict[str, int]) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    results = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    weights = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "selection", inputs, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def agrees(nodes: list[onnx.NodeProto], feeds: Arrays, constants: Arrays, outputs: dict[str, int]) -> None:
    made = model(nodes, feeds, constants, outputs)
    results = sm.optimize(made).run(feeds)
    for name, wanted in zip(outputs, ReferenceEvaluator(made).run(None, feeds), strict=True):
        assert results[name].shape == wanted.shape
        assert results[name].dtype == wanted.dtype
        np.testing.assert_allclose(results[name], wanted, rtol=1e-5)


def some(shape: tuple[int, ...], part: float) -> np.ndarray:
    generator = np.random.default_rng(len(shape))
    return np.where(generator.random(shape) < part, generator.random(shape) + 1, 0).astype(np.float32)


@pytest.mark.covering
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shape", [(1,), (3, 14), (2, 3, 4)])
def test_places_of_nonzero_elements_and_what_stands_there(shape: tuple[int, ...], part: float) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Transpose", ["places"], ["columns"]),
        helper.make_node("GatherND", ["x", "columns"], ["values"]),
    ]
    outputs = {"places": TensorProto.INT64, "values": TensorProto.FLOAT}
    agrees(nodes, {"x": some(shape, part)}, {}, outputs)


@pytest.mark.parametrize("part", PARTS)
def test_compressed_axis(part: float) -> None:
    x = some((4, 6, 3), 1.0)
    feeds = {"x": x, "c": some((6,), part) > 0}
    agrees([helper.make_node("Compress", ["x", "c"], ["y"], axis=-2)], feeds, {}, {"y": TensorProto.FLOAT})


@pytest.mark.parametrize("ascending", [0, 1])
def test_unique_values(ascending: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, 40)
    names = ["y", "indices", "inverse", "counts"]
    node = helper.make_node("Unique", ["x"], names, sorted=ascending)
    agrees([node], {"x": x}, {}, dict.fromkeys(names, TensorProto.INT64))


@pytest.mark.parametrize(("most", "classes"), [(1, 1), (3, 2), (2**40, 2)])
def test_boxes_that_remain_are_gathered(most: int, classes: int) -> None:
    generator = np.random.default_rng(most % 97)
    corners = generator.random((1, 30, 2))
    boxes = np.concatenate([corners, corners + 0.1 + 0.3 * generator.random((1, 30, 2))], -1).astype(np.float32)
    feeds = {"boxes": boxes, "scores": generator.random((1, classes, 30)).astype(np.float32)}
    constants = {
        "most": np.array([most]), "iou": np.array([0.3], np.float32), "least": np.array([0.5], np.float32),
        "two": np.array(2),
    }  # fmt: skip
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
        helper.make_node("Gather", ["chosen", "two"], ["places"], axis=1),
        helper.make_node("Gather", ["boxes", "places"], ["kept"], axis=1),
    ]
    agrees(nodes, feeds, constants, {"chosen": TensorProto.INT64, "kept": TensorProto.FLOAT})


def test_a_saved_plan_knows_its_sizes(tmp_path) -> None:
    x = some((5, 5), 0.5)
    plan = sm.optimize(model([helper.make_node("NonZero", ["x"], ["y"])], {"x": x}, {}, {"y": TensorProto.INT64}))
    plan.save(tmp_path / "nonzero.plan")
    assert sm.load(tmp_path / "nonzero.plan").run({"x": x})["y"].tolist() == [list(places) for places in np.nonzero(x)]


def test_shapes_are_known_when_the_model_runs() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["z"]),
        helper.make_node("Shape", ["z"], ["shape"]),
        helper.make_node("Shape", ["z"], ["last"], start=-1),
        helper.make_node("Size", ["z"], ["size"]),
        helper.make_node("Cast", ["last"], ["count"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Div", ["total", "count"], ["mean"]),
    ]
    results = dict.fromkeys(["z", "shape", "last", "size"], TensorProto.INT64) | {"mean": TensorProto.FLOAT}
    agrees(nodes, {"x": some((4, 5), 0.5)}, {}, results)
    agrees(nodes[:4], {"x": some((4, 5), 0.0)}, {}, dict.fromkeys(["shape", "last", "size"], TensorProto.INT64))


READERS = [
    helper.make_node("ReduceMax", ["z"], ["y"]),
    helper.make_node("Reshape", ["z", "flat"], ["y"]),
    helper.make_node("Concat", ["z", "z"], ["y"], axis=1),
    helper.make_node("Concat", ["z", "full"], ["y"], axis=1),
    helper.make_node("Pad", ["z", "behind"], ["y"]),
    helper.make_node("Slice", ["z", "begin", "end", "last"], ["y"]),
]
CONSTANTS = {
    "flat": np.array([-1]), "full": np.zeros((2, 9), np.int64), "behind": np.array([0, 0, 0, 2]),
    "begin": np.array([0]), "end": np.array([2]), "last": np.array([1]),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda node: f"{node.op_type}-{node.input[-1]}")
def test_what_needs_the_size_is_computed_at_it(reader: onnx.NodeProto) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["z"]), reader]
    for share in (0.5, 1.0):
        agrees(nodes, {"x": some((3, 3), share)}, CONSTANTS, {"y": TensorProto.INT64})


def test_what_fits_at_some_sizes_only_is_refused() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["z"]), helper.make_node("Add", ["z", "full"], ["y"])]
    with pytest.raises(GraphError, match=r"Add.*\[2, NonZero_0.1\] and \[2, 9\] do not broadcast"):
        sm.optimize(model(nodes, {"x": some((3, 3), 0.5)}, CONSTANTS, {"y": TensorProto.INT64}))
