"""Small ONNX files, whole and broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def chain(path: Path, rows: int | str = 6, nodes: list[onnx.NodeProto] | None = None) -> Path:
    """y = softmax(transpose(relu(x) w)), with x of shape [rows, 8]; `nodes` replaces these."""
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32), "w")
    own = [
        helper.make_node("Relu", ["x"], ["a"], name="/relu"),
        helper.make_node("MatMul", ["a", "w"], ["b"], name="/matmul"),
        helper.make_node("Transpose", ["b"], ["t"], perm=[1, 0], name="/transpose"),
        helper.make_node("Softmax", ["t"], ["y"], axis=1, name="/softmax"),
    ]
    graph = helper.make_graph(
        own if nodes is None else nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    return save(graph, path)


def embedding(path: Path) -> Path:
    """y = table[ids], with a table of 7 rows."""
    table = numpy_helper.from_array(np.arange(28, dtype=np.float32).reshape(7, 4), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"], name="/gather")],
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [50])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [table],
    )
    return save(graph, path)


def save(graph: onnx.GraphProto, path: Path) -> Path:
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def truncated(folder: Path) -> Path:
    path = chain(folder / "truncated.onnx")
    path.write_bytes(path.read_bytes()[:-60])
    return path


def no_onnx(folder: Path) -> Path:
    path = folder / "text.onnx"
    path.write_text("this is a text, not a model")
    return path


def empty(folder: Path) -> Path:
    path = folder / "empty.onnx"
    path.write_bytes(b"")
    return path


def missing(folder: Path) -> Path:
    chain(folder / "there.onnx")
    return folder / "ther.onnx"


def cyclic(folder: Path) -> Path:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="/first"),
        helper.make_node("Relu", ["a"], ["b"], name="/second"),
        helper.make_node("Relu", ["b"], ["y"], name="/third"),
    ]
    return chain(folder / "cyclic.onnx", nodes=nodes)


def without_data(folder: Path) -> Path:
    path = chain(folder / "external.onnx")
    model = onnx.load(str(path))
    onnx.save(
        model,
        str(path),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="gone.data",
        size_threshold=0,
    )
    (folder / "gone.data").unlink()
    return path


def unsupported(folder: Path) -> Path:
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="/one", domain="com.example"),
        helper.make_node("Riddle", ["a"], ["y"], name="/two", domain="com.example"),
    ]
    return chain(folder / "unsupported.onnx", nodes=nodes)


def symbolic(folder: Path) -> Path:
    return chain(folder / "symbolic.onnx", rows="batch")
