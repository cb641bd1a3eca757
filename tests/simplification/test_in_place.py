"""Large weights that stay in the model's own file: the same model, the same bytes, and damaged files as before."""

from __future__ import annotations

import io
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.runtime.feeds import compare
from smartmem_rules.simplification.encoding import encoded_bytes, header, is_inside, write_encoded
from smartmem_rules.simplification.files import write_model
from smartmem_rules.simplification.in_place import LARGE, mapped, read_in_place
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.rewriting.simplifying import seen_by_rules
from smartmem_rules.simplification.simplify import simplify_file, simplify_model
from tests.simplification.models import drawn, model, run
from tests.simplification.test_simplify import node

WEIGHT = [160, 160]
"""Its bytes are more than what is parsed at most."""


def with_weights(folder: Path) -> Path:
    """A model with weights of several kinds, of which the first three are left in the file."""
    weights = ("large", "described", "plain", "listed")
    nodes = [node("MatMul", f"{place or 'x'} {name}", str(place + 1)) for place, name in enumerate(weights)]
    nodes += [node("Add", "4 small", "e"), node("Relu", "e", "f"), node("Relu", "f", "y")]
    given = model(nodes, {"x": [4, 160]}, ["y"], {"large": drawn(WEIGHT)})
    tensors = given.graph.initializer
    tensors[0].data_location = TensorProto.DEFAULT  # said in so many words, as some exporters do
    tensors.append(numpy_helper.from_array(drawn(WEIGHT, 1), "described"))
    tensors[1].doc_string = "behind the data"
    tensors.append(numpy_helper.from_array(drawn(WEIGHT, 2), "plain"))
    tensors.append(TensorProto(name="listed", data_type=TensorProto.FLOAT, dims=WEIGHT, float_data=drawn(WEIGHT).flat))
    tensors.append(numpy_helper.from_array(drawn([160]), "small"))
    path = folder / "in.onnx"
    path.write_bytes(given.SerializeToString())
    return path


def root_of(array: Any) -> Any:
    """What the memory of an array belongs to."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def encoded(proto: onnx.ModelProto, folder: Path | None = None) -> bytes:
    stream = io.BytesIO()
    write_encoded(proto, stream, folder)
    assert len(stream.getvalue()) == encoded_bytes(proto)
    return stream.getvalue()


def test_a_model_read_in_place_is_written_as_one_that_is_parsed(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    left, folder = read_in_place(path)
    inside = [tensor.name for tensor in left.graph.initializer if is_inside(tensor)]
    assert inside == ["large", "described", "plain"]
    assert left.ByteSize() < path.stat().st_size - 3 * 4 * 160 * 160 + 1000
    parsed, _ = load_model(path)
    assert encoded(left, folder) == encoded(parsed)


def test_what_was_left_is_mapped(tmp_path: Path) -> None:
    left, folder = read_in_place(with_weights(tmp_path))
    assert folder is not None
    np.testing.assert_array_equal(mapped(left.graph.initializer[1], folder), drawn(WEIGHT, 1))


def test_weights_of_data_files_are_mapped_and_their_pages_let_go(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    given = onnx.load(with_weights(tmp_path))
    onnx.save(given, path, save_as_external_data=True, location="in.data", size_threshold=0)
    proto, folder = read_in_place(path)
    region = seen_by_rules(proto, folder, Options()).region
    assert sorted(region.left) == ["described", "large", "plain"]
    for _ in range(2):
        for place, name in enumerate(("large", "described", "plain")):
            array = region.graph.constants[name]
            assert isinstance(root_of(array), mmap.mmap)
            np.testing.assert_array_equal(array, drawn(WEIGHT, place))
        region.forget_weights()


def test_a_model_simplified_in_place_has_the_same_bytes(tmp_path: Path) -> None:
    path, target = with_weights(tmp_path), tmp_path / "out.onnx"
    report = simplify_file(path, target, Options())
    assert report.changed
    made, other = simplify_model(path.read_bytes(), Options())
    assert target.read_bytes() == write_model(made, None, tmp_path, "parsed.onnx").read_bytes()
    assert (report.before, report.after) == (other.before, other.after)
    assert report.after.bytes == target.stat().st_size


def test_large_computed_weights_are_written_as_those_of_the_file_are(tmp_path: Path) -> None:
    nodes = [node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "a"), node("Relu", "a", "y")]
    given = model(nodes, {"x": [4, 160]}, ["y"], {"w": drawn(WEIGHT)})
    path, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(given, path)
    assert simplify_file(path, target, Options()).changed
    made, _ = simplify_model(given, Options())
    assert max(len(tensor.raw_data) for tensor in made.graph.initializer) > LARGE
    assert target.read_bytes() == write_model(made, None, tmp_path, "parsed.onnx").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.onnx", "parsed.onnx"]


def test_a_model_may_take_its_own_place(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    feeds = {"x": drawn([4, 160], 5)}
    expected = run(str(path), feeds)[0]
    assert simplify_file(path, path, Options()).changed
    assert compare(run(str(path), feeds)[0], expected)[0] < 1e-5


def test_a_link_to_a_model_in_another_folder_is_followed(tmp_path: Path) -> None:
    for name in ("cache", "models"):
        (tmp_path / name).mkdir()
    source, link = with_weights(tmp_path / "cache"), tmp_path / "models" / "model.onnx"
    link.symlink_to(source)
    report = simplify_file(link, tmp_path / "out.onnx", Options())
    assert report.changed
    simplify_file(source, tmp_path / "other.onnx", Options())
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes()


def test_another_order_of_fields_is_parsed(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    given = onnx.load(path)
    tensor = given.graph.initializer[0]
    raw = tensor.raw_data
    del given.graph.initializer[:]
    name = TensorProto(name=tensor.name).SerializeToString()
    rest = TensorProto(data_type=1, dims=tensor.dims).SerializeToString()
    moved = name + header(TensorProto.RAW_DATA_FIELD_NUMBER, len(raw)) + raw + rest
    graph = given.graph.SerializeToString() + header(onnx.GraphProto.INITIALIZER_FIELD_NUMBER, len(moved)) + moved
    given.ClearField("graph")
    path.write_bytes(given.SerializeToString() + header(onnx.ModelProto.GRAPH_FIELD_NUMBER, len(graph)) + graph)
    left, _ = read_in_place(path)
    assert left == onnx.load(path)
    assert left.graph.initializer[0].raw_data == raw


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "no model": lambda data: b"\x0f" + data,
    "too long a number": lambda data: b"\xff" * 20 + data,
    "one byte more": lambda data: data + b"\x3a",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_as_if_it_were_parsed(tmp_path: Path, damage: str) -> None:
    path = with_weights(tmp_path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(GraphError) as parsed:
        load_model(path)
    with pytest.raises(GraphError) as left:
        read_in_place(path)
    assert str(left.value) == str(parsed.value)


def test_a_weight_that_is_too_short_is_damaged_as_before(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    given = onnx.load(path)
    given.graph.initializer[0].raw_data = given.graph.initializer[0].raw_data[:-4]
    path.write_bytes(given.SerializeToString())
    with pytest.raises(GraphError, match="the tensor 'large' has the shape"):
        simplify_file(path, tmp_path / "out.onnx", Options())


def test_two_graphs_are_merged_as_protobuf_does(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    more = onnx.ModelProto(graph=onnx.GraphProto(doc_string="the second part")).SerializeToString()
    path.write_bytes(path.read_bytes() + more)
    left, _ = read_in_place(path)
    assert left == onnx.load(path)


def test_outputs_that_vary_are_told_when_they_differ(tmp_path: Path) -> None:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "b", perm=[1, 0])]
    nodes += [node("Relu", "b", "y"), node("RandomUniformLike", "x", "z")]
    path = tmp_path / "in.onnx"
    onnx.save(model(nodes, {"x": [4, 160]}, ["y", "z"]), path)
    report = simplify_file(path, tmp_path / "out.onnx", Options())
    assert report.changed
    assert report.check is not None
    assert report.check.varying == ("z",)
