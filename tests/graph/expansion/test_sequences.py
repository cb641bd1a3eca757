"""Sequences and optional values become the tensors that they hold, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from smartmem_rules.graph.failures import UnknownValuesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph, GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array

onnxruntime = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


def interpret(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    known = dict(graph.constants) | dict(feeds)
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    return [known[name] for name in graph.outputs]


SAME = {
    "insert and erase": """
f (float[2, 3] a, float[2, 3] b) => (float[2, 3] y, int64 n) {
    one = Constant <value_int = -1> ()
    zero = Constant <value_int = 0> ()
    s = SequenceEmpty ()
    t = SequenceInsert (s, a)
    u = SequenceInsert (t, b, zero)
    c = Neg (a)
    v = SequenceInsert (u, c, one)
    w = SequenceErase (v, zero)
    y = SequenceAt (w, zero)
    n = SequenceLength (v)
}""",
    "join": """
f (float[2, 3] a, float[4, 3] b) => (float[6, 3] y) {
    s = SequenceConstruct (a, b)
    y = ConcatFromSequence <axis = 0> (s)
}""",
    "stack": """
f (float[2, 3] a, float[2, 3] b) => (float[2, 2, 3] y) {
    s = SequenceConstruct (a, b)
    y = ConcatFromSequence <axis = -2, new_axis = 1> (s)
}""",
    "split by sizes": """
f (float[2, 7] a) => (float[2, 4] y, int64 n) {
    sizes = Constant <value_ints = [1, 2, 4]> ()
    last = Constant <value_int = -1> ()
    s = SplitToSequence <axis = 1> (a, sizes)
    y = SequenceAt (s, last)
    n = SequenceLength (s)
}""",
    "split evenly": """
f (float[7, 2] a) => (float[1, 2] y) {
    size = Constant <value: tensor = int64 {3}> ()
    at = Constant <value_int = 2> ()
    s = SplitToSequence <axis = 0> (a, size)
    y = SequenceAt (s, at)
}""",
    "split into single slices": """
f (float[3, 2] a) => (float[2] y) {
    at = Constant <value_int = 1> ()
    s = SplitToSequence <axis = 0, keepdims = 0> (a)
    y = SequenceAt (s, at)
}""",
    "computed position": """
f (float[3, 2] a, int64 at) => (float[1, 2] y) {
    s = SplitToSequence <axis = 0> (a)
    y = SequenceAt (s, at)
}""",
    "sequence carried by a loop": """
f (float[2, 3] x) => (float[4, 2, 3] y) {
    n = Constant <value: tensor = int64 {4}> ()
    go = Constant <value: tensor = bool {1}> ()
    s = SequenceEmpty ()
    t = Loop (n, go, s) <
        body = step (int64 i, bool g, seq(float[2, 3]) q) => (bool h, seq(float[2, 3]) r) {
            h = Identity (g)
            k = Cast <to = 1> (i)
            e = Mul (x, k)
            r = SequenceInsert (q, e)
        }
    >
    y = ConcatFromSequence <axis = 0, new_axis = 1> (t)
}""",
    "optional values": """
f (float[2] x) => (float[2] y, bool there) {
    o = Optional (x)
    there = OptionalHasElement (o)
    e = OptionalGetElement (o)
    y = Neg (e)
}""",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_same_as_onnxruntime(rules: RuleBase, text: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    generator = np.random.default_rng(3)
    feeds = {
        value.name: np.asarray(2)
        if value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        else generator.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
    }
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    for actual, reference in zip(interpret(import_model(model, rules), feeds), wanted, strict=True):
        np.testing.assert_array_equal(actual, reference)


MAP = """
f (float[4, 2] x, float[2] b) => (float[4, 2] y) {
    s = SplitToSequence <axis = 0> (x)
    t = SequenceMap (s, b) <
        body = add (float[1, 2] part, float[2] c) => (float[1, 2] sum) { sum = Add (part, c) }
    >
    y = ConcatFromSequence <axis = 0> (t)
}"""


def test_a_map_is_its_body_for_every_member(rules: RuleBase) -> None:
    graph = import_model(onnx.parser.parse_model(HEAD + MAP), rules)
    x, b = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1, 2], np.float32)
    (y,) = interpret(graph, {"x": x, "b": b})
    np.testing.assert_array_equal(y, x + b)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f (float[2] a) => (seq(float[2]) s) { s = SequenceConstruct (a) }", "outputs 's' are sequences"),
        ("f (float[2] a) => (float[2] y) { s = SequenceConstruct (a)  i = Constant <value_int = 1> ()\n"
         "y = SequenceAt (s, i) }", "position 1 is outside of the sequence, which has 1 members"),
        ("f (float[2] a) => (float[2] y) { s = SequenceConstruct (a)  y = Neg (s) }", "takes neither sequences"),
        ("f (float[2] a, float[3] b, int64 i) => (float[2] y) { s = SequenceConstruct (a, b)\n"
         "y = SequenceAt (s, i) }", "the members differ in shape and the position 'i' is computed"),
        ("f (float a) => (int64 n) { s = SplitToSequence <axis = 0> (a)  n = SequenceLength (s) }",
         "axis 0 of a tensor with 0 axes"),
        ("f (float[2] a) => (int64 n) { s = SplitToSequence <axis = -2> (a)  n = SequenceLength (s) }",
         "axis -2 of a tensor with 1 axes"),
    ],
)  # fmt: skip
def test_what_cannot_be_unfolded_says_why(rules: RuleBase, text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        import_model(onnx.parser.parse_model(HEAD + text), rules)


def test_sizes_that_are_computed_are_named(rules: RuleBase) -> None:
    text = """
f (float[7] x, int64[2] sizes) => (int64 n) { s = SplitToSequence (x, sizes)  n = SequenceLength (s) }"""
    with pytest.raises(UnknownValuesError) as raised:
        import_model(onnx.parser.parse_model(HEAD + text), rules)
    assert raised.value.tensors == {"sizes"}
