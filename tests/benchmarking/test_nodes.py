"""The nodes of launches as models of their own: which nodes go with a launch, and that together they are the model."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import smartmem_rules
from smartmem_rules.benchmarking.peers import missing
from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.zoo import shipped_model
from smartmem_rules.optimized import OptimizedPlan

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `reference`")
BENCH = Path(__file__).parents[2] / "bench"
TEXT = """
<ir_version: 9, opset_import: ["" : 17]>
small (float[1,8,16] x) => (float[1,16,8] y, float[1,4,32] z)
{
  [first] a = MatMul(x, w1)
  [bias] b = Add(a, c1)
  [act] c = Relu(b)
  [turn] d = Transpose <perm = [0, 2, 1]> (c)
  [normal] e = Softmax <axis = 1>(d)
  [second] f = MatMul(e, w2)
  [again] g = Softmax <axis = 1>(f)
  [last] y = Sigmoid(g)
  [extents] s = Shape(x)
  [four] four = Constant <value = int64[1] {4}> ()
  [rest] rest = Constant <value = int64[1] {-1}> ()
  [batch] batch = Slice(s, zero, one)
  [target] target = Concat <axis = 0> (batch, four, rest)
  [shaped] h = Reshape(e, target)
  [out] z = Exp(h)
}
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[None]:
    """The scripts of `bench` import one another by their names."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(BENCH))
        yield


@pytest.fixture(scope="module")
def node_models(bench: None) -> ModuleType:
    return importlib.import_module("node_models")


@pytest.fixture(scope="module")
def nodes(bench: None) -> ModuleType:
    return importlib.import_module("nodes")


def parsed(text: str = TEXT) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(text)
    weights = {"w1": (16, 16), "c1": (16,), "w2": (8, 8)}
    values = {name: random.standard_normal(shape).astype(np.float32) / 4 for name, shape in weights.items()}
    read = {name for node in model.graph.node for name in node.input}
    for name, value in {**values, "zero": np.array([0]), "one": np.array([1])}.items():
        if name in read:
            model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def plan_of(model: onnx.ModelProto) -> OptimizedPlan:
    """Small kernels, a launch for each, that read through views."""
    return smartmem_rules.optimize(model, level="eliminate", disable=["one_after_another"])


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return parsed()


@pytest.fixture(scope="module")
def plan(model: onnx.ModelProto) -> OptimizedPlan:
    return plan_of(model)


def by_name(node_models: ModuleType, model: onnx.ModelProto, plan: OptimizedPlan, node: str) -> tuple[set[str], Any]:
    """The names of the nodes that go with the launch which computes a node, and the part itself."""
    cutter = node_models.Nodes(model, plan.plan)
    launch = next(number for number, one in enumerate(plan.kernels) if node in one.origin)
    part = cutter.part(launch)
    return {cutter.name(place) for place in part.nodes}, part


def test_a_view_goes_with_the_launches_that_read_through_it(
    node_models: ModuleType, model: onnx.ModelProto, plan: OptimizedPlan
) -> None:
    assert not any("turn" in launch.origin or "shaped" in launch.origin for launch in plan.kernels)
    names, part = by_name(node_models, model, plan, "normal")
    assert names == {"turn", "normal", "shaped", "out"}
    assert (part.inputs, part.outputs) == (("c",), ("e", "z"))
    names, part = by_name(node_models, model, plan, "first")
    assert names == {"first", "bias", "act"}
    assert (part.inputs, part.outputs) == (("x",), ("c",))


def test_a_constant_of_an_extent_goes_by_its_value_and_one_of_constants_by_its_nodes(
    node_models: ModuleType, model: onnx.ModelProto, plan: OptimizedPlan
) -> None:
    names, part = by_name(node_models, model, plan, "out")
    assert part.constants == ("target",)
    assert not {"extents", "batch", "target"} & names
    fixed = parsed(TEXT.replace("Shape(x)", "Identity(zero)").replace("Slice(s, zero, one)", "Add(s, one)"))
    names, part = by_name(node_models, fixed, plan_of(fixed), "out")
    assert part.constants == ()
    assert {"extents", "batch", "target", "four"} <= names


def test_the_pieces_together_are_the_model(
    node_models: ModuleType, model: onnx.ModelProto, plan: OptimizedPlan, tmp_path: Path
) -> None:
    feeds = plan.random_feeds()
    known, covered = dict(feeds), set()
    cutter = node_models.Nodes(model, plan.plan)
    for number, piece in node_models.pieces_of(cutter, range(len(plan.kernels)), feeds, tmp_path):
        onnx.checker.check_model(piece.model, full_check=True)
        session = onnxruntime.InferenceSession(piece.model.SerializeToString(), providers=["CPUExecutionProvider"])
        given = {name: known[name] for name in piece.feeds}  # of launches before, not of the run of the whole model
        for name, value in zip(piece.outputs, session.run(list(piece.outputs), given), strict=True):
            np.testing.assert_allclose(value, piece.outputs[name], rtol=1e-5, atol=1e-6)
            known[name] = value
        covered |= {node.name for node in piece.model.graph.node}
        assert set(plan.kernels[number].origin) <= covered
    assert covered == {node.name for node in model.graph.node} - {"extents", "batch", "target", "four", "rest"}
    expected = plan.run(feeds)
    for name in ("y", "z"):
        np.testing.assert_allclose(known[name], expected[name], rtol=1e-4, atol=1e-5)


def keys(node_models: ModuleType, text: str, tmp_path: Path, **values: np.ndarray) -> list[str]:
    model = parsed(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    plan = smartmem_rules.optimize(model, level="none")
    cutter = node_models.Nodes(model, plan.plan)
    found = node_models.pieces_of(cutter, range(len(plan.kernels)), plan.random_feeds(), tmp_path)
    return [piece.key for _, piece in found]


def test_pieces_are_alike_up_to_names_and_values_of_weights(node_models: ModuleType, tmp_path: Path) -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    twice (float[4,4] x) => (float[4,4] y)
    {
      [one] a = MatMul(x, v1)
      [two] b = Mul(a, k1)
      [three] c = MatMul(b, v2)
      [four] d = Mul(c, k2)
      [five] y = Mul(d, k3)
    }
    """
    weights = {f"v{number}": np.full((4, 4), number, np.float32) for number in (1, 2)}
    scales = {f"k{number}": np.float32(value) for number, value in ((1, 2.0), (2, 2.0), (3, 3.0))}
    one, two, three, four, five = keys(node_models, text, tmp_path, **weights, **scales)
    assert one == three
    assert two == four
    assert four != five  # another number
    wide = {**weights, "v2": np.full((4, 5), 2, np.float32)}
    assert keys(node_models, text.replace("float[4,4] y", "float[4,5] y"), tmp_path, **wide, **scales)[2] != one


def test_nodes_that_cannot_be_cut_out_say_why(node_models: ModuleType, tmp_path: Path) -> None:
    model = parsed(TEXT.replace("[second]", "[first]"))
    plan = smartmem_rules.optimize(model, level="none")
    cutter = node_models.Nodes(model, plan.plan)
    found = dict(node_models.pieces_of(cutter, range(len(plan.kernels)), plan.random_feeds(), tmp_path))
    reasons = {str(piece) for piece in found.values() if isinstance(piece, node_models.NoPiece)}
    assert reasons == {"2 nodes are called first"}
    assert len(found) > 2


@pytest.mark.parametrize("name", [pytest.param("mobilenetv2", marks=pytest.mark.exhaustive), "mmoe", "lstm10"])
def test_pieces_of_shipped_models_cover_what_launches_compute(node_models: ModuleType, name: str) -> None:
    path = shipped_model(name)
    plan = smartmem_rules.optimize(path, disable=["one_after_another"])
    cutter = node_models.Nodes(load_model(path)[0], plan.plan)
    parts = [cutter.part(number) for number in range(len(plan.kernels))]
    covered = {cutter.name(place) for part in parts for place in part.nodes}
    assert {node for launch in plan.kernels for node in launch.origin} <= covered
    known = set(plan.plan.inputs)
    for part in parts:  # each reads only what launches before it give
        assert known.issuperset(part.inputs)
        known.update(part.outputs)
    assert known.issuperset(plan.plan.outputs)


def row(nodes: ModuleType, names: str, ours: float, peers: dict[str, float | str], reason: str = "") -> object:
    launches = {number: type("Launch", (), {"name": name, "origin": (name,)})() for number, name in enumerate(names)}
    times = nodes.Times(ours=dict.fromkeys(launches, ours), peers=peers)
    return nodes.Row(launches=launches, operators="Conv", times=times, in_run=1.0, roof_share=0.5, reason=reason)


def test_the_table_counts_each_launch_and_says_what_is_missing(nodes: ModuleType) -> None:
    rows = [
        row(nodes, "abc", 2.0, {"onnxruntime": 3.0, "openvino": 1.5}),
        row(nodes, "d", 1.0, {"onnxruntime": 4.0, "openvino": "openvino does not run it: no Conv"}),
        row(nodes, "e", 1.0, {}, "2 nodes are called f"),
    ]
    whole = {"ours": 5.0, "onnxruntime": 9.0, "openvino": 4.5}
    called = dict.fromkeys(whole, 0.01)
    table = nodes.Table(model="m", conditions=["a processor"], rows=rows, called=called, whole=whole)
    cells = [line.strip("| ").split(" | ") for line in str(table).splitlines() if line.startswith("|")]
    found = {line[0]: line[-4:] for line in cells}
    assert found["a and 2 more"] == ["6.000", "9.000", "4.500", "+1.500"]
    assert found["d"] == ["1.000", "4.000", "-", "-3.000"]
    assert found["e"] == ["1.000", "-", "-", "-"]
    assert found["sum of 1 rows"] == found["a and 2 more"]
    assert found["the whole model"] == ["5.000", "9.000", "4.500", "+0.500"]
    assert "d: openvino does not run it: no Conv" in str(table)
    assert "e: 2 nodes are called f" in str(table)
    data = json.loads(json.dumps(table.data()))
    assert data["rows"][0]["nodes"] == [["a"], ["b"], ["c"]]
    assert data["rows"][0]["lost_ms"] == 1.5


@pytest.mark.exhaustive
@pytest.mark.skipif(missing("openvino") is not None, reason="openvino is not installed")
def test_the_command_times_each_launch_in_each_system(model: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(model, str(tmp_path / "small.onnx"))
    command = [sys.executable, str(BENCH / "nodes.py"), str(tmp_path / "small.onnx"), "--turns", "1", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert {node for one in found["rows"] for nodes in one["nodes"] for node in nodes} >= {"first", "second", "out"}
    for one in found["rows"]:
        assert set(one["peers_ms"]) == {"onnxruntime", "openvino"}
        assert all(isinstance(ms, float) for ms in one["peers_ms"].values())
