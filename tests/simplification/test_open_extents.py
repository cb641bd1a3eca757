"""Extents that are known at run time only: what rules do around them holds for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import smartmem_rules as sm
from smartmem_rules.graph.zoo import save_materialized
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.rewriting import assembling
from smartmem_rules.simplification.rewriting.extents import OpenWriter, extent_nodes
from smartmem_rules.simplification.rewriting.narrowing import greatest_extents
from smartmem_rules.simplification.simplify import simplify_file, simplify_model
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import Dimension, at, symbol
from smartmem_rules.tensor.ranges import maximum, minimum
from smartmem_rules.writing.views import NotExpressible
from tests.simplification.models import drawn, kinds, run

HEAD = '<ir_version: 10, opset_import: ["" : {opset}]>'
CACHED = Path(__file__).parents[2] / "examples" / "models" / "cached"
HEADS = """
    s = Shape (x)  at = Constant <value = int64 {0}> ()  b = Gather (s, at)
    zero = Constant <value = int64[1] {0}> ()  ub = Unsqueeze (b, zero)
    at1 = Constant <value = int64 {1}> ()  l = Gather (s, at1)  ul = Unsqueeze (l, zero)
    rest = Constant <value = int64[2] {2, 3}> ()  to = Concat <axis = 0> (ub, ul, rest)
    h = Reshape (x, to)  t = Transpose <perm = [0, 2, 1, 3]> (h)  r = Relu (t)
"""


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    return parser.parse_model(HEAD.format(opset=opset) + text)


def assert_equal(given: onnx.ModelProto, made: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    feeds = {name: drawn(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    for wanted, got in zip(run(given, feeds), run(made, feeds), strict=True):
        assert wanted.shape == got.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [13, 18])
def test_a_computed_shape_becomes_a_list_of_numbers(opset: int) -> None:
    given = model(f"g (float[b, l, 6] x) => (float[b, 2, l, 3] y) {{ {HEADS} y = Neg (r) }}", opset)
    made = sm.simplify(given)
    assert kinds(made) == ["Reshape", "Transpose", "Relu", "Neg"]
    for b, length in itertools.product((0, 1, 2, 5), (0, 1, 3)):
        assert_equal(given, made, {"x": (b, length, 6)})


def test_views_around_open_extents_cancel() -> None:
    given = model(
        "g (float[b, l, 4] x) => (float[b, l, 4] y) {"
        "t = Transpose <perm = [1, 0, 2]> (x)  u = Transpose <perm = [1, 0, 2]> (t)"
        "axis = Constant <value = int64[1] {1}> ()  w = Unsqueeze (u, axis)  v = Squeeze (w, axis)  y = Relu (v) }"
    )
    made = sm.simplify(given)
    assert kinds(made) == ["Relu"]
    assert_equal(given, made, {"x": (2, 3, 4)})


def test_what_holds_for_some_extents_only_is_left_alone() -> None:
    given = model(
        "g (float[b, 4] x) => (float[c, 4] y) { zero = Constant <value = int64[1] {0}> ()"
        "three = Constant <value = int64[1] {3}> ()  i = Identity (x)  s = Slice (i, zero, three, zero) y = Relu (s) }"
    )
    made = sm.simplify(given)
    assert kinds(made) == ["Slice", "Relu"]
    for b in (1, 2, 3, 5):
        assert_equal(given, made, {"x": (b, 4)})


EXPANDED = "{ i = Identity (x)  s = Shape (z)  e = Expand (i, s)  y = Relu (e) }"


def test_inputs_of_one_name_have_one_extent_and_those_of_two_names_may_differ() -> None:
    same = model(f"g (float[n, 4] x, float[n, 4] z) => (float[n, 4] y) {EXPANDED}")
    assert kinds(sm.simplify(same)) == ["Relu"]
    other = model(f"g (float[n, 4] x, float[m, 4] z) => (float[k, 4] y) {EXPANDED}")
    made = sm.simplify(other)
    assert sorted(kinds(made)) == ["Expand", "Relu", "Shape"]
    assert_equal(other, made, {"x": (1, 4), "z": (3, 4)})


def test_what_a_model_declares_of_its_own_results_is_not_relied_on() -> None:
    """Exporters write one name for extents that differ."""
    given = model(
        "g (float[n] x) => (float[k] y) { i = Identity (x)  p = NonZero (x)  axis = Constant <value = int64[1] {0}> ()"
        "q = Squeeze (p, axis)  s = Shape (q)  e = Expand (i, s)  y = Relu (e) }"
    )
    for name, kind in (("q", TensorProto.INT64), ("e", TensorProto.FLOAT)):
        given.graph.value_info.append(helper.make_tensor_value_info(name, kind, ["n"]))
    made = sm.simplify(given)
    assert "Expand" in kinds(made)
    feeds = {"x": np.array([3.0], np.float32)}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])


def test_an_extent_of_nothing_that_reshape_takes_from_its_operand_is_found() -> None:
    """At n = 0 the second extent of the list is that of the operand, 1: no rule says so."""
    given = model(
        "g (float[9, 1, n, 9] x) => (float[a, b, c] y) { at = Constant <value = int64[1] {2}> ()  s = Shape (x)"
        "n1 = Gather (s, at)  last = Constant <value = int64[1] {3}> ()  n2 = Gather (s, last)"
        "first = Constant <value = int64[1] {-1}> ()  to = Concat <axis = 0> (first, n1, n2)"
        "i = Identity (x)  r = Relu (i)  r2 = Relu (r)  y = Reshape (r2, to) }"
    )
    made, report = simplify_model(given, Options())
    assert report.changed
    assert not report.differed
    assert report.kept == {"no definition covers it": ("Reshape number 10",)}
    for n in (0, 1, 4):
        assert_equal(given, made, {"x": (9, 1, n, 9)})


def test_where_an_extent_cannot_be_written_nodes_of_open_extents_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(writer: OpenWriter, *_: object) -> list[onnx.NodeProto]:
        if writer.wanted:
            raise NotExpressible("no operator computes it")
        return []

    monkeypatch.setattr(assembling, "extent_nodes", refused)
    given = model(
        "g (float[m] x, float[4] z) => (int64[1] y, float[4] w) {"
        "a = Identity (x)  y = Shape (a)  r = Relu (z)  w = Relu (r) }"
    )
    made, report = simplify_model(given, Options())
    assert sorted(kinds(made)) == ["Identity", "Relu", "Shape"]
    assert "the shape of 'x' is not known" in report.kept


def test_a_table_that_ends_says_how_long_a_sequence_may_be() -> None:
    text = (
        "g (float[b, n, 4] x) => (float[b, n, 4] y) { s = Shape (x)"
        "one = Constant <value = int64[1] {1}> ()  n1 = Gather (s, one)  zero = Constant <value = int64[1] {0}> ()"
        "p = Slice (table, zero, n1, one)  a = Add (x, p)  t = Transpose <perm = [0, 2, 1]> (a)"
        "u = Transpose <perm = [0, 2, 1]> (t)  y = Relu (u) }"
    )
    given = model(text)
    given.graph.initializer.append(numpy_helper.from_array(drawn((1, 8, 4)), "table"))
    made = sm.simplify(given)
    assert "Transpose" not in kinds(made)
    for n in (1, 5, 8):
        assert_equal(given, made, {"x": (2, n, 4)})


def test_the_greatest_extent_is_one_at_which_operands_stop_to_fit() -> None:
    base = load_rules()
    n, m = symbol(Dimension("n", 0, 1 << 20)), symbol(Dimension("m", 0, 1 << 20))
    cut, other = TensorType("float32", (1, minimum(n, 9), 4)), TensorType("float32", (m, n, 4))
    assert greatest_extents("Add", [other, cut], base) == {"n": 9}
    assert greatest_extents("Add", [cut, other], base) == {"n": 9}
    assert greatest_extents("Add", [other, TensorType("float32", (1, minimum(m, 9), 4))], base) == {}
    ends_at_one = TensorType("float32", (1, minimum(n, 1), 4))
    assert greatest_extents("Add", [other, ends_at_one], base) == {}, "one row is added to each"


@pytest.mark.parametrize(("name", "most"), [("llama_tiny", 172), ("pythia_tiny", 126)])
def test_decoders_with_a_cache_are_simplified_and_right_for_every_length(name: str, most: int, tmp_path: Path) -> None:
    source, target = CACHED / f"{name}.onnx", tmp_path / "out.onnx"
    report = simplify_file(source, target, Options())
    assert report.changed
    assert report.after.nodes <= most
    assert report.check is not None
    assert report.check.runs >= 4, "an empty cache is one of them"
    drawn_weights = tmp_path / "in.onnx"
    save_materialized(source, drawn_weights)
    save_materialized(target, target)
    for batch, length, past in ((1, 1, 0), (2, 3, 0), (1, 1, 7), (3, 2, 5)):
        feeds = _decoder_feeds(onnx.load(drawn_weights), batch, length, past)
        for wanted, got in zip(run(str(drawn_weights), feeds), run(str(target), feeds), strict=True):
            assert wanted.shape == got.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def _decoder_feeds(given: onnx.ModelProto, batch: int, length: int, past: int) -> dict[str, np.ndarray]:
    extents = {"batch_size": batch, "sequence_length": length, "past_sequence_length": past}
    extents["past_sequence_length + sequence_length"] = past + length
    feeds = {}
    for value in given.graph.input:
        shape = [dim.dim_value or extents[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = drawn(shape, len(feeds))
    feeds["input_ids"] = np.arange(batch * length).reshape(batch, length) % 512
    feeds["position_ids"] = np.tile(np.arange(past, past + length), (batch, 1))
    feeds["attention_mask"] = np.ones((batch, past + length), np.int64)
    return feeds


N, M = (symbol(Dimension(name, 0, 1 << 20)) for name in "nm")
LISTS = {
    "a whole shape": [N, 3, M],
    "parts of shapes": [2, N, 3, 7, M],
    "arithmetic": [N * M * 4 + 5, 1, N - 3],
    "a quotient": [(N + 1) // 2],
    "extremes": [maximum(N, M, 4), minimum(N, 9)],
}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
def test_lists_of_extents_are_computed_from_shapes(values: list[int], opset: int) -> None:
    writer = OpenWriter("s.")
    name = writer.constant(values)
    nodes = extent_nodes(writer, opset, {"x": (N, 3, M)}, {})
    graph = helper.make_graph(
        nodes,
        "lists",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "m"])],
        [helper.make_tensor_value_info(name, TensorProto.INT64, [None])],
        writer.initializers(),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    for n, m in itertools.product((0, 1, 4, 12), (1, 5)):
        (got,) = run(made, {"x": np.zeros((n, 3, m), np.float32)})
        assert got.tolist() == [at(value, {"n": n, "m": m}) for value in values]


def test_a_model_of_an_old_opset_has_no_arithmetic_of_extents() -> None:
    closed = model("g (float[2, 3] x) => (float[2, 3] y) { a = Relu (x)  y = Relu (a) }", 6)
    assert kinds(sm.simplify(closed)) == ["Relu"]
    writer = OpenWriter("s.")
    writer.constant([N * 2])
    with pytest.raises(NotExpressible, match="before opset 7"):
        extent_nodes(writer, 6, {"x": (N,)}, {})


@pytest.mark.parametrize(("value", "given"), [((N - 1) // 2, (N,)), (N + M, (N,))], ids=["may be negative", "unknown"])
def test_what_no_operator_computes_is_not_written(value: int, given: tuple[int, ...]) -> None:
    writer = OpenWriter("s.")
    writer.constant([value])
    with pytest.raises(NotExpressible):
        extent_nodes(writer, 18, {"x": given}, {})


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
def test_recurrences_of_open_batches(operator: str) -> None:
    """ONNX Runtime ends the process where a GRU or an LSTM has an empty batch, so that no run may draw one."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node(operator, ["i", "w", "r"], ["y"], hidden_size=5),
    ]
    random = np.random.default_rng(0)
    shapes = {"w": (1, 5 * gates, 4), "r": (1, 5 * gates, 5)}
    weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    given = helper.make_graph(
        nodes,
        "recurrence",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, "batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, "batch", 5])],
        weights,
    )
    proto = helper.make_model(given, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    made, _ = simplify_model(proto, Options())
    assert [node.op_type for node in made.graph.node] == [operator]
