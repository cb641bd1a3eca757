"""Models that describe their weights: both models read one file of them, and the result describes them as before."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smartmem_rules.graph.described import Tensors
from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.weights import location, stored_bytes
from smartmem_rules.graph.zoo import materialized_model
from smartmem_rules.runtime.feeds import compare
from smartmem_rules.simplification.checking import Checker
from smartmem_rules.simplification.drawn import Drawn, is_described
from smartmem_rules.simplification.in_place import read_in_place
from smartmem_rules.simplification.options import Options, SimplifyError
from smartmem_rules.simplification.rewriting.simplifying import seen_by_rules
from smartmem_rules.simplification.simplify import simplify_file, simplify_model
from tests.simplification.models import drawn, model, run
from tests.simplification.test_simplify import node

SHAPE = [288, 288]
"""Its bytes are more than what is put into a model."""
FEEDS = {"x": drawn([4, 288], 5)}


def described(tensor: TensorProto, **entries: str) -> TensorProto:
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def normal(name: str, shape: list[int], seed: int, code: int = TensorProto.FLOAT) -> TensorProto:
    moments = {"std": "0.1", "mean": "0", "min": "-1", "max": "1"}
    return described(
        TensorProto(name=name, data_type=code, dims=shape), location="seeded-normal", offset=str(seed), **moments
    )


def packed(name: str, array: np.ndarray) -> TensorProto:
    text = base64.b64encode(zlib.compress(array.tobytes())).decode()
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    return described(TensorProto(name=name, data_type=code, dims=array.shape), location="zlib-base64", data=text)


def written(folder: Path, kinds: tuple[str, ...] = (), own: bool = False) -> Path:
    """A model of described weights: large, of two types, two alike, small, packed, and of a node.

    Args:
        kinds: `file` for a large weight in the file as well, `data` for one in a data file.
        own: whether a node in between is one that ONNX Runtime does not know.
    """
    names = ["large", "twin", "wide", *kinds]
    nodes = [node("Cast", "half", "wide", to=TensorProto.FLOAT), node("Constant", "", "held")]
    nodes[-1].attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(normal("", [288], 4))
    value = "x"
    for operator, name in (*(("MatMul", name) for name in names), ("Add", "small"), ("Mul", "listed"), ("Add", "held")):
        nodes += [node(operator, f"{value} {name}", f"{name}_done"), node("Tanh", f"{name}_done", f"{name}_over")]
        value = f"{name}_over"
    if own:
        nodes += [helper.make_node("Owned", [value], ["o"], domain="own"), node("Relu", "o", "d")]
    nodes += [node("Relu", "d" if own else value, "e"), node("Relu", "e", "y")]
    arrays = {name: drawn(SHAPE, seed) * 0.1 for seed, name in enumerate(kinds)}
    given = model(nodes, {"x": [4, 288]}, ["y"], arrays, others=("own",))
    tensors = given.graph.initializer
    if own:
        given.graph.value_info.append(helper.make_tensor_value_info("o", TensorProto.FLOAT, [4, 288]))
    tensors.extend([normal("large", SHAPE, 1), normal("twin", SHAPE, 1), normal("small", [288], 3)])
    tensors.extend([normal("half", SHAPE, 2, TensorProto.FLOAT16), packed("listed", drawn([288]))])
    if "data" in kinds:
        tensor = next(one for one in tensors if one.name == "data")
        (folder / "in.data").write_bytes(b"none" + tensor.raw_data)
        tensor.ClearField("raw_data")
        described(tensor, location="in.data", offset="4", length=str(stored_bytes(tensor)))
    path = folder / "in.onnx"
    path.write_bytes(given.SerializeToString())
    return path


def complete(path: Path) -> onnx.ModelProto:
    """The model of a file with all its weights."""
    made = materialized_model(path)
    onnx.load_external_data_for_model(made, str(path.parent))
    return made


@pytest.mark.parametrize("kinds", [(), ("file",), ("data",), ("file", "data")], ids="+".join)
def test_described_weights_are_drawn_once_for_both_models(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    path, target, place = written(tmp_path, kinds), tmp_path / "out.onnx", tmp_path / "place"
    expected = run(complete(path), FEEDS)[0]
    report = simplify_file(path, target, Options())
    assert report.changed
    assert report.check is not None
    assert report.check.max_relative_error < 1e-5
    assert {file.name for file in tmp_path.iterdir()} == {"in.onnx", "out.onnx"} | (
        {"in.data", "out.onnx.data"} if "data" in kinds else set()
    )
    made, _ = load_model(target)
    assert {t.name for t in made.graph.initializer if is_described(t)} >= {"large", "twin", "small", "listed"}
    assert compare(run(complete(target), FEEDS)[0], expected)[0] < 1e-5

    place.mkdir()
    checker = Checker(path, load_model(path)[0], {}, place)
    size = (place / "drawn.data").stat().st_size
    checker.check(target)
    # large and twin are alike; what lies in files is copied for each of the two
    large = 288 * 288 * 4
    assert size >= large + 288 * 288 * 2 + len(kinds) * large
    assert size < 2 * large + 288 * 288 * 2 + len(kinds) * large
    grown = (place / "drawn.data").stat().st_size - size
    # what was computed lies in the file of the result
    assert len(kinds) * large < grown < (1 + len(kinds)) * (large + 4096)


def test_the_completed_model_is_the_materialized_one(tmp_path: Path) -> None:
    path, place = written(tmp_path, ("file", "data")), tmp_path / "place"
    place.mkdir()
    made, _ = read_in_place(path)
    assert Drawn(place).complete(made, tmp_path) == place
    assert not any(is_described(tensor) for tensor in made.graph.initializer)
    onnx.load_external_data_for_model(made, str(place))
    wanted = {tensor.name: tensor.raw_data for tensor in complete(path).graph.initializer}
    assert {tensor.name: tensor.raw_data for tensor in made.graph.initializer} == wanted


def test_a_model_that_describes_nothing_stays_where_it_is(tmp_path: Path) -> None:
    given = model([node("MatMul", "x w", "y")], {"x": [4, 288]}, ["y"], {"w": drawn(SHAPE)})
    path = tmp_path / "in.onnx"
    onnx.save(given, path)
    made, _ = read_in_place(path)
    entries = location(made.graph.initializer[0])
    assert Drawn(tmp_path / "none").complete(made, tmp_path) == tmp_path
    assert location(made.graph.initializer[0]) == entries


def test_the_import_draws_no_weight_that_no_rule_looks_at(tmp_path: Path) -> None:
    proto, folder = load_model(written(tmp_path))
    constants = seen_by_rules(proto, folder, Options()).region.graph.constants
    assert isinstance(constants, Tensors)
    assert constants.is_described("large")
    assert constants.is_described("twin")


def test_nodes_that_onnx_runtime_does_not_run_may_stand_between_described_weights(tmp_path: Path) -> None:
    path, target = written(tmp_path, own=True), tmp_path / "out.onnx"
    report = simplify_file(path, target, Options())
    assert report.changed
    assert report.check is not None
    assert len(report.check.left_out) == 1
    assert any(is_described(tensor) for tensor in load_model(target)[0].graph.initializer)


def test_a_model_in_memory_keeps_its_descriptions(tmp_path: Path) -> None:
    made, report = simplify_model(written(tmp_path).read_bytes(), Options())
    assert report.changed
    assert any(is_described(tensor) for tensor in made.graph.initializer)


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(SimplifyError, match=r"drawn.data: it cannot be written"):
        Checker(path, load_model(path)[0], {}, tmp_path / "missing")
