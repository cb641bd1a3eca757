"""Importing models: what becomes of nodes and constants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.limits import LimitError
from smartmem_rules.rulebase.base import RuleBase, collect, load_rules
from smartmem_rules.tensor.expr import TensorType, tensors_read
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

Build = Callable[..., onnx.ModelProto]

NODE = helper.make_node


def run(graph: Graph, **feeds: np.ndarray) -> list[np.ndarray]:
    values = {**graph.constants, **feeds}
    for node in graph.nodes:
        values.update(evaluate_equations(node.equations, values))
    return [values[name] for name in graph.outputs]


def constant(name: str, values: object, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def test_nodes_carry_equations_over_graph_names(base: RuleBase, build: Build) -> None:
    model = build([NODE("Softmax", ["x"], ["y"], name="top"), NODE("Relu", ["y"], ["z"])], {"x": [3, 4]}, ["z"])
    graph = import_model(model, base)
    top, relu = graph.nodes
    assert [e.tensor for e in top.equations] == ["top.m", "top.e", "top.s", "y"]
    assert tensors_read(relu.equations[0].body) == ["y"]
    assert (relu.name, relu.operator, relu.operands, relu.outputs) == ("Relu_1", "Relu", ("y",), ("z",))
    assert top.attributes == {"axis": -1}
    assert graph.types["top.m"] == TensorType("float32", (3, 1))
    assert (graph.inputs, graph.outputs, graph.constants) == (["x"], ["z"], {})
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    exact = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.testing.assert_allclose(run(graph, x=x)[0], exact, rtol=1e-5)


def test_shape_arithmetic_disappears(build: Build) -> None:
    nodes = [
        NODE("Relu", ["x"], ["r"]),
        NODE("Shape", ["r"], ["s"]),
        NODE("Gather", ["s", "one"], ["n"]),
        NODE("Concat", ["n", "minus"], ["t"], axis=0),
        NODE("Reshape", ["x", "target"], ["y"]),
        NODE("Mul", ["t", "t"], ["target0"]),
        NODE("Sqrt", ["float"], ["root"]),
        NODE("Cast", ["target0"], ["float"], to=onnx.TensorProto.FLOAT),
        NODE("Cast", ["root"], ["target"], to=onnx.TensorProto.INT64),
    ]
    model = build(nodes, {"x": [2, 6]}, ["y"], [constant("one", [1], "int64"), constant("minus", [2], "int64")])
    graph = import_model(model, load_rules())
    assert [node.operator for node in graph.nodes] == ["Reshape"]
    assert graph.types["y"].shape == (6, 2)
    assert graph.nodes[0].attributes["shape"] == (6, 2)
    assert graph.constants == {}
    assert graph.operator_counts.total() == 9
    assert graph.layout_operators == 1


def test_dead_nodes_are_dropped_even_unsupported_ones(base: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["x"], ["y"]), NODE("NonZero", ["x"], ["dead"])], {"x": [2]}, ["y"])
    graph = import_model(model, base)
    assert [node.operator for node in graph.nodes] == ["Relu"]
    assert graph.operator_counts == {"Relu": 1, "NonZero": 1}


def test_nodes_may_stand_in_any_order(base: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["y"], ["z"]), NODE("Relu", ["x"], ["y"])], {"x": [2]}, ["z"])
    assert [node.outputs for node in import_model(model, base).nodes] == [("y",), ("z",)]


@pytest.mark.parametrize(
    ("form", "value", "shape"),
    [("value_float", 2.0, ()), ("value_floats", [1.0, 2.0], (2,)), ("value", constant("", [[1.0, 2.0]]), (1, 2))],
)
def test_constant_nodes(base: RuleBase, build: Build, form: str, value: Any, shape: tuple[int, ...]) -> None:
    nodes = [NODE("Constant", [], ["c"], **{form: value}), NODE("Add", ["x", "c"], ["y"])]
    graph = import_model(build(nodes, {"x": [1, 2]}, ["y"]), base)
    assert graph.constants["c"].shape == shape
    assert graph.operator_counts == {"Add": 1}


def test_constants_and_inputs_may_be_outputs(base: RuleBase, build: Build) -> None:
    nodes = [NODE("Add", ["c", "c"], ["d"])]
    graph = import_model(build(nodes, {"x": [2]}, ["x", "d", "c"], [constant("c", [1.0])]), base)
    assert graph.nodes == []
    np.testing.assert_array_equal(graph.constants["d"], [2.0])
    assert graph.types["c"] == TensorType("float32", (1,))


def test_an_input_with_an_initializer_is_a_constant(base: RuleBase, build: Build) -> None:
    graph = import_model(
        build([NODE("Add", ["x", "c"], ["y"])], {"x": [2], "c": [2]}, ["y"], [constant("c", [1, 2])]), base
    )
    assert graph.inputs == ["x"]
    assert list(graph.constants) == ["c"]


def test_dtypes_of_attributes_become_names(base: RuleBase, build: Build) -> None:
    graph = import_model(build([NODE("Cast", ["x"], ["y"], to=onnx.TensorProto.INT32)], {"x": [2]}, ["y"]), base)
    assert graph.nodes[0].attributes == {"to": "int32"}
    assert graph.types["y"].dtype == "int32"


def test_custom_domains_fold_with_their_definition(base: RuleBase, build: Build) -> None:
    nodes = [
        NODE("Scale", ["c"], ["d"], domain="my.domain", by=3.0),
        NODE("Scale", ["x"], ["s"], domain="my.domain"),
        NODE("Add", ["s", "d"], ["y"]),
    ]
    graph = import_model(build(nodes, {"x": [2]}, ["y"], [constant("c", [1.0, 2.0])]), base)
    np.testing.assert_array_equal(graph.constants["d"], [3.0, 6.0])
    np.testing.assert_array_equal(run(graph, x=np.array([1, 2], np.float32))[0], [5.0, 10.0])


def test_local_functions_are_inlined(base: RuleBase, build: Build) -> None:
    twice = helper.make_function(
        "my.domain", "Twice", ["a"], ["c"], [NODE("Relu", ["a"], ["b"]), NODE("Add", ["b", "b"], ["c"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    nodes = [NODE("Twice", ["x"], ["y"], domain="my.domain")]
    graph = import_model(build(nodes, {"x": [2]}, ["y"], functions=[twice]), base)
    assert [node.operator for node in graph.nodes] == ["Relu", "Add"]


def test_repeated_names_become_unique(base: RuleBase, build: Build) -> None:
    nodes = [NODE("Softmax", ["x"], ["y"], name="a"), NODE("Softmax", ["y"], ["z"], name="a")]
    graph = import_model(build(nodes, {"x": [2, 2]}, ["z"]), base)
    assert [node.name for node in graph.nodes] == ["a", "a_2"]
    tensors = [e.tensor for node in graph.nodes for e in node.equations]
    assert len(set(tensors)) == len(tensors)


def test_symbolic_dimensions_are_bound(base: RuleBase, build: Build) -> None:
    model = build([NODE("Add", ["x", "z"], ["y"])], {"x": ["batch", 3], "z": [None, 3]}, ["y"])
    graph = import_model(model, base, {"batch": 4, "z.0": 1})
    assert graph.types["y"].shape == (4, 3)


def test_models_are_left_unchanged(base: RuleBase, build: Build) -> None:
    model = build([NODE("Add", ["x", "c"], ["y"])], {"x": [2]}, ["y"], [constant("c", [1.0, 2.0])])
    before = model.SerializeToString(deterministic=True)
    import_model(model, base)
    assert model.SerializeToString(deterministic=True) == before


def test_path_bytes_and_data_file_give_the_same(base: RuleBase, build: Build, tmp_path: Path) -> None:
    values = np.arange(600, dtype=np.float32)
    model = build([NODE("Add", ["x", "c"], ["y"])], {"x": [600]}, ["y"], [numpy_helper.from_array(values, "c")])
    onnx.save(model, str(tmp_path / "whole.onnx"))
    external = onnx.ModelProto()
    external.CopyFrom(model)
    onnx.save(external, str(tmp_path / "split.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    for source in (tmp_path / "whole.onnx", str(tmp_path / "split.onnx"), model.SerializeToString()):
        np.testing.assert_array_equal(import_model(source, base).constants["c"], values)


def test_outputs_that_nobody_reads_are_left_out(build: Build) -> None:
    text = """
operator Pair(x: T[*S]) -> a: T[*S], b: T[*S] { onnx my.domain::Pair 1.. ; a[*i] = x[*i] + 1  b[*i] = x[*i] + 2 }
operator Cut(x: T[N]) -> ys[j]: T[N // count(ys)] {
    onnx my.domain::Cut 1.. ;
    ys[j][i] = x[i + j * (N // count(ys))]
}
"""
    base = collect([parse_text(text, "pair.smr")], [])
    nodes = [
        NODE("Pair", ["x"], ["a", "b"], domain="my.domain"),
        NODE("Pair", ["a"], ["", "c"], domain="my.domain", name="second"),
        NODE("Cut", ["c"], ["d", "e", "f"], domain="my.domain"),
    ]
    graph = import_model(build(nodes, {"x": [6]}, ["e"]), base)
    assert [node.outputs for node in graph.nodes] == [("a",), ("second.0", "c"), ("d", "e", "f")]
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run(graph, x=x)[0], x[2:4] + 3)


def test_the_shape_of_what_may_be_large_is_an_extent(base: RuleBase, build: Build) -> None:
    """No rule that keeps operators of constants asks for the elements of a tensor that the run gives."""
    model = build([NODE("Shape", ["x"], ["s"]), NODE("Reshape", ["x", "s"], ["y"])], {"x": ["n", 4096]}, ["y"])
    (reshape,) = import_model(model, base, {"n": (1, 100_000)}).nodes
    assert repr(reshape.attributes["shape"]) == "(n, 4096)"


def test_limits_leave_open_extents_alone_where_no_kernel_is_made(base: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["x"], ["y"])], {"x": ["n", "m"]}, ["y"])
    dims = {"n": (0, 2**31 - 1), "m": (0, 2**31 - 1)}
    with pytest.raises(LimitError, match="more than the limit"):
        import_model(model, base, dims)
    assert len(import_model(model, base, dims, any_extent=True).nodes) == 1
    closed = build([NODE("Relu", ["x"], ["y"])], {"x": [2**16, 2**16]}, ["y"])
    with pytest.raises(LimitError, match="more than the limit"):
        import_model(closed, base, any_extent=True)
