"""Choices, loops and scans whose course is known at import, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from smartmem_rules.graph.failures import UnknownValuesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph, GraphError
from smartmem_rules.limits import Limits
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array

onnxruntime = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
CHOICE = """
f (float[3] x) => (float[3] y) {
    c = Constant <value: tensor = bool[1] {CONDITION}> ()
    y = If (c) <
        then_branch = a () => (float[3] p) { p = Exp (x) },
        else_branch = b () => (float[3] q) { q = Neg (x) }
    >
}"""
RUN_TIME_CHOICE = """
f (bool c, float[3] x) => (float[3] y) {
    y = If (c) <
        then_branch = a () => (float[3] p) { p = Exp (x) },
        else_branch = b () => (float[3] q) { q = Neg (x) }
    >
}"""
LOOP = """
f (float[2, 3] x) => (float[2, 3] last, float[4, 2, 3] all) {
    n = Constant <value: tensor = int64 {4}> ()
    go = Constant <value: tensor = bool {1}> ()
    last, all = Loop (n, go, x) <
        body = step (int64 i, bool g, float[2, 3] s) => (bool h, float[2, 3] t, float[2, 3] each) {
            h = Identity (g)
            k = Cast <to = 1> (i)
            e = Sin (s)
            t = Add (e, k)
            each = Mul (t, x)
        }
    >
}"""
GROWING = """
f (float[0, 3] x, float[5, 3] rows) => (float[N, 3] last, float[M] sums) {
    n = Constant <value: tensor = int64 {4}> ()
    last, sums = Loop (n, , x) <
        body = step (int64 i, bool g, float[K, 3] s) => (bool h, float[L, 3] t, float each) {
            h = Identity (g)
            at = Constant <value: tensor = int64[1] {0}> ()
            row = Gather <axis = 0> (rows, i)
            part = Unsqueeze (row, at)
            t = Concat <axis = 0> (s, part)
            each = ReduceMax <keepdims = 0> (t)
        }
    >
}"""
UNEVEN = """
f (float[2] x) => (float[N] last, float[M, N] all) {
    n = Constant <value: tensor = int64 {3}> ()
    last, all = Loop (n, , x) <
        body = step (int64 i, bool g, float[K] s) => (bool h, float[L] t, float[L] each) {
            h = Identity (g)
            t = Concat <axis = 0> (s, s)
            each = Neg (t)
        }
    >
}"""
NEVER_COUNTED = """
f (float[2] x, bool go) => (float[2] last, float[0, 1, 2] all) {
    none = Constant <value: tensor = int64 {0}> ()
    one = Constant <value: tensor = int64 {1}> ()
    on = Constant <value: tensor = bool {1}> ()
    last, all = Loop (none, on, x) <
        body = outer (int64 i, bool g, float[2] s) => (bool h, float[2] t, float[1, 2] each) {
            h = Identity (g)
            t, each = Loop (one, go, s) <
                body = inner (int64 j, bool k, float[2] u) => (bool l, float[2] v, float[2] w) {
                    l = Identity (k)
                    v = Sin (u)
                    w = Identity (v)
                }
            >
        }
    >
}"""
SCAN = """
f (float[3] s, float[4, 3] x) => (float[3] last, float[4, 3] all) {
    last, all = Scan <num_scan_inputs = 1, scan_input_directions = [1],
        body = step (float[3] a, float[3] b) => (float[3] c, float[3] d) {
            t = Mul (a, b)
            c = Add (t, b)
            d = Neg (c)
        }
    > (s, x)
}"""
WHILE = """
f (float[2] x) => (float[2] last, float[steps, 2] all) {
    n = Constant <value: tensor = int64 {LIMIT}> ()
    go = Constant <value: tensor = bool {1}> ()
    last, all = Loop (n, go, x) <
        body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t, float[2] each) {
            k = Cast <to = 1> (i)
            d = Add (s, s)
            t = Add (d, k)
            each = Neg (t)
            r = ReduceMax <keepdims = 0> (t)
            bound = Constant <value_float = 40.0> ()
            h = Less (r, bound)
        }
    >
}"""
NEVER = """
f (float[2] x) => (float[2] last, float[steps, 2] all) {
    n = Constant <value: tensor = int64 {0}> ()
    go = Constant <value: tensor = bool {1}> ()
    last, all = Loop (n, go, x) <
        body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t, float[2] each) {
            h = Identity (g)
            t = Sin (s)
            each = Neg (t)
        }
    >
}"""
BATCHED_SCAN = """
<ir_version: 3, opset_import: ["" : 8]>
f (float[2, 2] s, float[2, 3, 2] x) => (float[2, 2] last, float[2, 3, 2] all) {
    last, all = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {
            c = Add (a, b)
            d = Identity (c)
        }
    > (, s, x)
}"""
DATA_DEPENDENT = """
f (int64 n, float[2] x) => (float[2] y) {
    go = Constant <value: tensor = bool {1}> ()
    y = Loop (n, go, x) <
        body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t) {
            h = Identity (g)
            t = Sin (s)
        }
    >
}"""

CHOSEN_LOOP = """
f (bool c, int64 n, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = a () => (float[2] p) {
            p = Loop (n, , x) <
                body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t) {
                    h = Identity (g)
                    t = Sin (s)
                }
            >
        },
        else_branch = b () => (float[2] q) { q = Neg (x) }
    >
}"""

SLICED = """
f (bool go, float[5] x) => (float[5, 1] all) {
    n = Constant <value: tensor = int64 {5}> ()
    all = Loop (n, go) <
        body = step (int64 i, bool g) => (bool h, float[1] each) {
            h = Identity (g)
            one = Constant <value: tensor = int64[1] {1}> ()
            zero = Constant <value: tensor = int64[1] {0}> ()
            start = Unsqueeze (i, zero)
            end = Add (start, one)
            each = Slice (x, start, end)
        }
    >
}"""


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


def interpret(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    known = dict(graph.constants) | dict(feeds)
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    return [known[name] for name in graph.outputs]


@pytest.mark.parametrize(
    "text",
    [CHOICE.replace("CONDITION", "1"), CHOICE.replace("CONDITION", "0"), LOOP, GROWING, SCAN, RUN_TIME_CHOICE],
    ids=["then", "else", "loop", "growing", "scan", "run-time choice"],
)
def test_unfolded_bodies_give_the_same(rules: RuleBase, text: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    rng = np.random.default_rng(0)
    feeds = {
        value.name: np.asarray(True)
        if value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        else rng.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
    }
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    for actual, reference in zip(interpret(import_model(model, rules), feeds), wanted, strict=True):
        np.testing.assert_allclose(actual, reference, rtol=1e-5, atol=1e-6)


CONDITION_OF_ONE_AXIS = """
f (bool[1] c, float x) => (float y, float last, float[k] all) {
    y = If (c) < then_branch = a () => (float p) { p = Exp (x) }, else_branch = b () => (float q) { q = Neg (x) } >
    n = Constant <value: tensor = int64[1] {4}> ()
    last, all = Loop (n, c, x) <
        body = step (int64 i, bool[1] g, float s) => (bool[1] h, float t, float each) {
            t = Add (s, s)
            each = Neg (t)
            one = Constant <value: tensor = int64[1] {1}> ()
            row = Reshape (t, one)
            ten = Constant <value: tensor = float[1] {10.0}> ()
            h = Less (row, ten)
        }
    >
}"""


@pytest.mark.parametrize("taken", [False, True])
def test_a_condition_of_one_axis_gives_its_choices_no_axis(rules: RuleBase, taken: bool) -> None:
    model = onnx.parser.parse_model(HEAD + CONDITION_OF_ONE_AXIS)
    feeds = {"c": np.asarray([taken]), "x": np.asarray(3.0, np.float32)}
    graph = import_model(model, rules)
    y, last, each, count = interpret(graph, feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted_y, wanted_last, wanted_each = session.run(None, feeds)
    np.testing.assert_allclose(y, wanted_y)
    np.testing.assert_allclose(last, wanted_last)
    np.testing.assert_allclose(each[: int(count)], wanted_each)
    assert (y.shape, last.shape, each.shape[1:]) == ((), (), ())


def test_a_loop_of_unknown_length_names_what_it_needs(rules: RuleBase) -> None:
    with pytest.raises(UnknownValuesError, match="number of steps depends on 'n'") as raised:
        import_model(onnx.parser.parse_model(HEAD + DATA_DEPENDENT), rules)
    assert raised.value.tensors == {"n"}


def test_a_loop_inside_of_a_choice_names_what_it_needs_too(rules: RuleBase) -> None:
    with pytest.raises(UnknownValuesError, match="number of steps depends on 'n'") as raised:
        import_model(onnx.parser.parse_model(HEAD + CHOSEN_LOOP), rules)
    assert raised.value.tensors == {"n"}


def test_a_loop_whose_body_has_to_know_the_step_names_the_condition(rules: RuleBase) -> None:
    with pytest.raises(UnknownValuesError, match="has to know the step, and so whether 'go' holds") as raised:
        import_model(onnx.parser.parse_model(HEAD + SLICED), rules)
    assert "go" in raised.value.tensors


@pytest.mark.covering
@pytest.mark.parametrize("limit", [1, 2, 6, 64])
@pytest.mark.parametrize("start", [1.0, 7.0, 30.0, 100.0])
def test_a_loop_that_ends_by_its_data(rules: RuleBase, limit: int, start: float) -> None:
    model = onnx.parser.parse_model(HEAD + WHILE.replace("LIMIT", str(limit)))
    feeds = {"x": np.array([start, -start], np.float32)}
    graph = import_model(model, rules)
    last, steps, *count = interpret(graph, feeds)  # the first step is always taken: a loop of one has no count
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted_last, wanted_steps = session.run(None, feeds)
    np.testing.assert_allclose(last, wanted_last)
    assert graph.outputs[2:] == list(graph.sizes.get("all", {}).values())
    np.testing.assert_allclose(steps[: int(count[0])] if count else steps, wanted_steps)


@pytest.mark.parametrize(("start", "ended"), [(100.0, True), (3.0, True), (-3.0, False)])
def test_a_loop_that_takes_more_steps_than_it_is_unrolled_for_tells(rules: RuleBase, start: float, ended: bool) -> None:
    model = onnx.parser.parse_model(HEAD + WHILE.replace("LIMIT", "257"))
    graph = import_model(model, rules, limits=Limits(steps=4))
    assert graph.endings is not None
    assert [one.steps for one in graph.endings.loops] == [4]
    assert graph.outputs[-1] == graph.endings.number
    assert int(interpret(graph, {"x": np.array([start, start], np.float32)})[-1]) == (0 if ended else 1)


def test_results_of_steps_that_differ_in_shape_are_not_stacked(rules: RuleBase) -> None:
    with pytest.raises(GraphError, match=r"pieces of different shapes, \[4\] and \[8\], which cannot be stacked"):
        import_model(onnx.parser.parse_model(HEAD + UNEVEN), rules)


def test_a_loop_of_no_steps_gives_nothing(rules: RuleBase) -> None:
    x = np.array([1, 2], np.float32)
    last, steps = interpret(import_model(onnx.parser.parse_model(HEAD + NEVER), rules), {"x": x})
    np.testing.assert_array_equal(last, x)
    assert steps.shape == (0, 2)
    assert steps.dtype == np.float32


def test_a_loop_of_no_steps_around_one_that_counts_its_own_is_of_the_declared_shape(rules: RuleBase) -> None:
    graph = import_model(onnx.parser.parse_model(HEAD + NEVER_COUNTED), rules)
    last, steps = interpret(graph, {"x": np.array([1, 2], np.float32), "go": np.array(True)})
    np.testing.assert_array_equal(last, [1, 2])
    assert steps.shape == (0, 1, 2)


def test_a_loop_of_no_steps_with_an_unknown_operator_inside_is_refused(rules: RuleBase) -> None:
    text = (
        (HEAD + NEVER_COUNTED)
        .replace('["" : 17]', '["" : 17, "my.domain" : 1]')
        .replace("Sin (u)", "my.domain.Sin (u)")
    )
    with pytest.raises(GraphError, match=r"my\.domain::Sin"):
        import_model(onnx.parser.parse_model(text), rules)


def test_the_scan_of_opset_8_goes_over_a_batch(rules: RuleBase) -> None:
    generator = np.random.default_rng(0)
    s, x = generator.standard_normal((2, 2), np.float32), generator.standard_normal((2, 3, 2), np.float32)
    graph = import_model(onnx.parser.parse_model(BATCHED_SCAN), rules)
    last, steps = interpret(graph, {"s": s, "x": x})
    np.testing.assert_allclose(steps, s[:, None] + x.cumsum(1), rtol=1e-6)
    np.testing.assert_allclose(last, steps[:, -1])


def test_a_scan_says_how_many_inputs_it_scans(rules: RuleBase) -> None:
    damaged = onnx.parser.parse_model(BATCHED_SCAN)
    (scan,) = (node for node in damaged.graph.node if node.op_type == "Scan")
    (count,) = (attribute for attribute in scan.attribute if attribute.name == "num_scan_inputs")
    count.name = "another"
    with pytest.raises(GraphError, match=r"does not say how many of its inputs it scans"):
        import_model(damaged, rules)
