"""Operators that have to know extents that depend on data, against ONNX Runtime at every number of elements."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import smartmem_rules as sm
from smartmem_rules.graph.counting.opened import Opened
from smartmem_rules.graph.counting.parts import parts_of
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import OPENED, GraphError, Node
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.rulebase.base import load_rules

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
SELECTED = (
    "zero = Constant <value_float = 0.0> () m = Greater(x, zero) i = NonZero(m) t = Transpose(i) v = GatherND(x, t)"
)
COUNTED = f"{SELECTED} s = Shape(v) four = Constant <value_ints = [4]> () k = Min(s, four) best, at = TopK(v, k)"
MODELS = {
    "a mean": f"{SELECTED} y = ReduceMean <keepdims = 0> (v)",
    "a softmax": f"{SELECTED} y = Softmax <axis = 0> (v)",
    "the best few": COUNTED.replace("best", "y"),
    "the best few, joined": f"{COUNTED} y = Concat <axis = 0> (best, v, best)",
    "their product": (
        f"{SELECTED} one = Constant <value_ints = [1]> () c = Unsqueeze(v, one) r = Transpose(c) y = MatMul(c, r)"
    ),
    "a product over them": (
        f"{SELECTED} one = Constant <value_ints = [1]> () c = Unsqueeze(v, one) r = Transpose(c) y = MatMul(r, c)"
    ),
    "selected once more": f"{COUNTED} half = Constant <value_float = 0.5> () g = Greater(best, half) y = NonZero(g)",
    "one mask, two tensors": f"{SELECTED} z = Exp(x) w = GatherND(z, t) y = Mul(v, w)",
    "one mask, asked twice": (
        f"{SELECTED} z = Exp(x) i2 = NonZero(m) t2 = Transpose(i2) w = GatherND(z, t2) y = Add(v, w)"
    ),
    "a part of the shape": (
        "u, at = Unique(x) s = Shape(u) c = Constant <value = bool[1] {1}> () n = Compress(s, c) "
        "nought = Constant <value_ints = [0]> () y = ReduceSum(n, nought)"
    ),
    "all but the first": (
        f"{SELECTED} one = Constant <value_ints = [1]> () most = Constant <value_ints = [9223372036854775807]> () "
        "nought = Constant <value_ints = [0]> () y = Slice(v, one, most, nought)"
    ),
    "backwards": (
        f"{SELECTED} least = Constant <value_ints = [-9223372036854775807]> () most = Constant <value_ints = [-1]> () "
        "nought = Constant <value_ints = [0]> () y = Slice(v, most, least, nought, most)"
    ),
    "as many ones": f"{SELECTED} s = Shape(v) o = ConstantOfShape <value = float[1] {{1.0}}> (s) y = Add(v, o)",
    "their numbers": (
        f"{SELECTED} s = Shape(v) n = Squeeze(s) a = Constant <value_int = 0> () d = Constant <value_int = 1> () "
        "y = Range(a, n, d)"
    ),
    "sums so far": f"{SELECTED} a = Constant <value_int = 0> () y = CumSum(v, a)",
    "all or what is selected": (
        f"{SELECTED} none = Constant <value_int = 3> () n = Size(v) big = Less(none, n) y = If (big) <"
        "then_branch = yes () => (float[p] a) { a = Identity(v) }, else_branch = no () => (float[p] b) "
        "{ flat = Constant <value_ints = [-1]> () b = Reshape(x, flat) }>"
    ),
}


def made(name: str) -> onnx.ModelProto:
    return parser.parse_model(f"{HEAD} g (float[3, 4] x) => (y) {{ {MODELS[name]} }}")


def fed(count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(count)
    x = -1 - generator.random(12)
    x[generator.permutation(12)[:count]] = generator.permutation(12)[:count] / 10 + 0.05
    return {"x": x.reshape(3, 4).astype(np.float32)}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", MODELS)
def test_each_number_of_elements_gives_what_onnx_runtime_gives(name: str) -> None:
    model = made(name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options)
    plan = sm.optimize(model)
    for count in (5, 0, 12, 1, 4, 11, 0):
        (wanted,), (given,) = reference.run(None, fed(count)), plan.run(fed(count)).values()
        assert given.dtype == wanted.dtype
        assert given.shape == wanted.shape
        np.testing.assert_allclose(given, wanted, rtol=2e-5, atol=1e-6)


def test_a_saved_plan_counts_too(tmp_path) -> None:
    plan = sm.optimize(made("the best few, joined"))
    plan.save(tmp_path / "counting.plan")
    loaded = sm.load(tmp_path / "counting.plan")
    assert loaded.plan.counted == plan.plan.counted
    for count in (0, 7, 12):
        np.testing.assert_array_equal(loaded.run(fed(count))["y"], plan.run(fed(count))["y"])


def test_a_debug_build_finds_no_access_outside_of_tensors() -> None:
    plan = sm.optimize(made("the best few, joined"), debug=True)
    for count in (0, 3, 12):
        assert plan.run(fed(count))["y"].shape == (count + 2 * min(count, 4),)


def test_a_graph_that_counts_is_taken_apart() -> None:
    graph = import_model(made("selected once more"), load_rules(), counts=True)
    (first,) = (one.dimension for one in graph.counted)
    parts = [part.graph for part in parts_of(graph)]
    assert [part.dimensions for part in parts] == [(), (first,)]
    for part in parts:
        made_here = {name for node in part.nodes for name in node.outputs}
        known = {*part.inputs, *part.constants, *made_here}
        assert known.issuperset(name for node in part.nodes for name in node.operands if name is not None)
        assert known.issuperset(part.outputs)
    assert OPENED in {node.operator for node in parts[1].nodes}


def test_constants_have_a_name_of_their_own_in_each_part() -> None:
    body = "c = Constant <value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> () w = Mul(x, c) i = NonZero(w)"
    body += " t = Transpose(i) u = GatherND(w, t) total = ReduceSum <keepdims = 0> (u) y = Mul(c, total)"
    model = parser.parse_model(f"{HEAD} g (float[3, 4] x) => (y) {{ {body} }}")
    parts = parts_of(import_model(model, load_rules(), counts=True))
    names = [name for part in parts for name in part.graph.constants]
    assert len(names) == len(set(names))
    x = fed(5)["x"]
    c = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(sm.optimize(model).run({"x": x})["y"], c * (x * c).sum(dtype=np.float64), rtol=1e-5)


def test_what_cannot_follow_counts_says_so() -> None:
    with pytest.raises(
        PlanError, match="no plan with dtype 'float16' for a model whose operators have to know extents"
    ):
        sm.optimize(made("a mean"), dtype="float16")


def test_what_counts_the_same_has_one_extent_and_nothing_else_has() -> None:
    twice = import_model(made("one mask, asked twice"), load_rules(), counts=True)
    assert len(twice.counted) == 1
    body = (
        MODELS["a mean"] + " other = Less(x, zero) j = NonZero(other) u = Transpose(j) w = GatherND(x, u) z = Add(v, w)"
    )
    with pytest.raises(GraphError, match="do not broadcast"):
        sm.optimize(parser.parse_model(f"{HEAD} g (float[3, 4] x) => (y, z) {{ {body} }}"))


def test_attributes_of_a_key_are_compared_whole() -> None:
    known = Opened()
    values = [np.arange(5000), np.arange(5000)]
    values[1][2500] = -1  # in the middle, which the text of an array leaves out
    for place, value in enumerate(values):
        known.counts_alike(Node(f"n{place}", "Count", ("x",), {"values": value}, (f"y{place}",)), [f"count{place}"])
    assert known.alike == {"count0": "count0", "count1": "count1"}


def test_names_of_the_model_are_no_names_of_what_is_counted() -> None:
    body = "i = NonZero(x) s = ReduceSum <keepdims = 0> (i) f = Cast <to = 1> (s) y = Mul(z, f)"
    model = parser.parse_model(f"{HEAD} g (float[3, 4] x, float[N] z) => (y) {{ {body} }}")
    (counted,) = import_model(model, load_rules(), {"N": 2}, counts=True).counted
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = counted.dimension.name
    model.graph.node[1].name = f"i:{OPENED}"
    plan = sm.optimize(model, dims={counted.dimension.name: (1, 5)})
    for count, length in ((5, 3), (0, 5), (12, 1)):
        x, z = np.abs(fed(count)["x"]) * (fed(count)["x"] > 0), np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(plan.run({"x": x, "z": z})["y"], z * np.sum(np.nonzero(x)))


CHOSEN = (
    "bool[n] c, float[4] x",
    "y = If(c) <then_branch = yes () => (float[8] a) { a = Concat <axis = 0> (x, x) }, "
    "else_branch = no () => (float[4] b) { b = Neg(x) }>",
)
ENDED_BY_DATA = (
    "bool[9] c, float[n] x",
    "z, y = Loop (, , x) <body = step (int64 i, bool g, float[n] s) => (bool h, float[n] t, float[n] e) { "
    "h = Gather(c, i) t = Neg(s) e = my.own.Sine(x) }>",
)


@pytest.mark.parametrize(
    ("model", "cause"), [(CHOSEN, r"Reshape .*depends on the extent"), (ENDED_BY_DATA, r"my\.own::Sine")]
)
def test_what_could_not_be_imported_has_no_extents(model: tuple[str, str], cause: str) -> None:
    inputs, body = model
    head = HEAD.replace('["": 17]', '["": 17, "my.own": 1]')
    made = parser.parse_model(f"{head} g ({inputs}) => (y) {{ {body} }}")
    with pytest.raises(GraphError, match=cause):
        import_model(made, load_rules(), {"n": (1, 3)}, counts=True)
