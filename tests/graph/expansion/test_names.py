"""Tensors of a model may have any names, those that an import makes for its own tensors too."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import smartmem_rules as sm
from smartmem_rules.graph.failures import check_new

ENDED_BY_DATA = """
<ir_version: 8, opset_import: ["": 17]>
g (bool[6] x, float[2] y) => (float[2] s, float[n, 2] all) <int64 most = {5}> {
    outer = Neg (y)
    last, p = Loop (most, , outer) <body = b (int64 i, bool g, float[2] a) => (bool goes, float[2] after, float[2] q) {
        goes = Gather (x, i)
        cast = Cast <to = 1> (i)
        sum = Add (a, cast)
        after = Add (sum, outer)
        q = Mul (after, sum)
    }>
    s = Add (last, outer)
    all = Neg (p)
}"""
KNOWN = ENDED_BY_DATA.replace("goes = Gather (x, i)", "goes = Identity (g)")
AROUND = ("outer", "last", "p")
WORDS = ("step", "going", "first", "at", "live", "in/0", "out/0", "limit", "condition", "counted", "number", "taken")
CHOICE = """
<ir_version: 8, opset_import: ["": 17]>
g (bool[1] c, float[2] y) => (float[2] s) {
    outer = Neg (y)
    t = If (c) <
        then_branch = yes () => (float[2] a) { k = Exp (outer) a = Add (k, outer) },
        else_branch = no () => (float[2] b) { b = Add (outer, y) }
    >
    s = Mul (t, outer)
}"""
SCANNED = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, float[3, 2] y) => (float[2] s, float[3, 2] all) {
    outer = Neg (x)
    last, p = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] row) => (float[2] after, float[2] part) {
        sum = Add (a, row)
        after = Add (sum, outer)
        part = Mul (after, sum)
    }> (outer, y)
    s = Add (last, outer)
    all = Neg (p)
}"""


def renamed(text: str, names: dict[str, str]) -> onnx.ModelProto:
    """A model with other names, which the textual form cannot write."""
    model = onnx.parser.parse_model(text)

    def walk(graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            for field in (node.input, node.output):
                field[:] = [names.get(name, name) for name in field]
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g)

    walk(model.graph)
    return model


def same(model: onnx.ModelProto) -> None:
    random = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        few = np.arange(np.prod(shape)) < 2
        feeds[value.name] = few if kind.name == "bool" else random.normal(size=shape).astype(kind)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    plan, left = sm.optimize(model, level="none"), feeds
    if isinstance(plan, sm.SpecializedModel):
        plan, left = plan.plan_for(feeds)
    found = plan.run({name: left[name] for name in plan.plan.inputs})
    for output, array in zip(model.graph.output, wanted, strict=True):
        np.testing.assert_allclose(found[output.name], array, rtol=1e-5)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("word", WORDS)
def test_a_body_names_a_tensor_as_the_import_does(word: str) -> None:
    for text in (ENDED_BY_DATA, KNOWN):
        for name in ("goes", "after", "number") if word != "number" else ("goes", "after"):
            same(renamed(text, {name: word}))


@pytest.mark.covering
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("name", ["goes", "cast", "q", "step", "live"])
def test_a_graph_names_a_tensor_as_an_import_does_in_a_body(name: str, step: int) -> None:
    for other in AROUND:
        same(renamed(ENDED_BY_DATA, {other: f"Loop_1/{step}/{name}"}))


def test_a_body_names_a_tensor_as_what_it_takes_from_around_is_called() -> None:
    nested = ENDED_BY_DATA.replace(
        "sum = Add (a, cast)",
        "sum = If (goes) <then_branch = yes () => (float[2] u) { v = Exp (a) u = Add (v, cast) }, "
        "else_branch = no () => (float[2] w) { w = Sub (a, cast) }>",
    )
    for name in ("cast", "goes", "step", "after"):
        same(renamed(nested, {"v": f"Loop_1/0/{name}"}))
        same(renamed(nested, {"v": "condition", "u": f"If_2/{name}"}))


@pytest.mark.parametrize("name", ["If_1/0/a", "If_1/0/k", "If_1/condition", "If_1/condition/shape", "If_1/1/b"])
def test_names_of_branches(name: str) -> None:
    same(renamed(CHOICE, {"outer": name}))
    same(renamed(CHOICE, {"t": name}))


@pytest.mark.parametrize("name", ["Scan_1/0/part0", "Scan_1/0/part0/place", "Scan_1/1/sum", "Scan_1/p/0", "p/axis"])
def test_names_of_scans(name: str) -> None:
    same(renamed(SCANNED, {"outer": name}))
    same(renamed(SCANNED, {"sum": name.split("/", 2)[-1]}))


def test_nothing_is_given_twice() -> None:
    check_new(["a", ""], [{"": 0}, {"b"}])
    with pytest.raises(RuntimeError, match=r"'b' twice.*report it"):
        check_new(["a", "b"], [{}, {"b"}])
