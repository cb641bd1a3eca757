"""Models with nodes that ONNX Runtime does not run: they stay, and what is around them is simplified and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from smartmem_rules.simplification import attempts
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.report import text_of
from smartmem_rules.simplification.simplify import simplify_model
from tests.simplification.models import drawn, kinds, model
from tests.simplification.test_simplify import branch, node

FLOAT, DOUBLE, INDEX = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64


def own(inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node("Own", inputs.split(), outputs.split(), domain="my.ops", **attributes)


def given_model(
    nodes: Sequence[onnx.NodeProto],
    known: Mapping[str, tuple[int, Sequence[int]]],
    inputs: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model whose intermediate tensors `known` have declared types, as exporters write them."""
    made = model(nodes, inputs or {"x": [3, 4]}, ["y"], constants, others=("my.ops",))
    made.graph.value_info.extend(helper.make_tensor_value_info(name, *type_) for name, type_ in known.items())
    return made


def around(middle: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A node that reads `b` and gives `c` between nodes of which rules remove half."""
    before = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "t", perm=[1, 0]), node("Neg", "t", "b")]
    return [*before, middle, node("Relu", "c", "d"), node("Relu", "d", "y")]


def test_an_operator_of_another_domain_stays_and_the_rest_is_simplified() -> None:
    given = given_model(around(own("b", "c", factor=2.0)), {"c": (FLOAT, [3, 4])})
    made, report = simplify_model(given, Options())
    assert kinds(made) == ["Neg", "Own", "Relu"]
    assert made.graph.node[1] == given.graph.node[3]
    assert report.check is not None
    assert report.check.left_out == ("Own number 3",)
    assert report.check.runs == 3
    assert "ONNX Runtime does not run" in text_of(report)


def test_where_nothing_is_known_of_its_results_their_readers_stay_as_well() -> None:
    made, report = simplify_model(given_model(around(own("b", "c")), {}), Options())
    assert kinds(made) == ["Neg", "Own", "Relu", "Relu"]
    assert report.check is not None
    assert report.check.left_out == ("Own number 3", "Relu number 4", "Relu number 5")


def test_one_that_a_body_names_stays_with_all_that_the_body_reads() -> None:
    inner, other = branch([own("b", "t")], "t"), branch([node("Add", "b two", "t")], "t")
    choice = node("If", "yes", "c", then_branch=inner, else_branch=other)
    nodes = [node("Cast", "z", "yes", to=onnx.TensorProto.BOOL), node("Add", "one one", "two"), *around(choice)]
    given = given_model(nodes, {"c": (FLOAT, [3, 4])}, {"x": [3, 4], "z": []}, {"one": np.ones(4, np.float32)})
    made, _ = simplify_model(given, Options())
    assert kinds(made) == ["Cast", "Neg", "If", "Relu"]
    assert [tensor.name for tensor in made.graph.initializer] == ["two"]


def test_one_in_a_function_of_the_model_stays() -> None:
    given = given_model(around(helper.make_node("Outer", ["b"], ["c"], domain="my.ops")), {"c": (FLOAT, [3, 4])})
    body = [node("Abs", "p", "q"), own("q", "r")]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("my.ops", 1)]
    given.functions.append(helper.make_function("my.ops", "Outer", ["p"], ["r"], body, opsets))
    made, _ = simplify_model(given, Options())
    assert kinds(made) == ["Neg", "Outer", "Relu"]
    assert made.functions == given.functions


def test_one_that_nothing_needs_goes_away() -> None:
    nodes = [own("x", "a"), node("Neg", "a", "unread"), own("x", "b"), node("Identity", "b", "c"), own("c", "y")]
    made, report = simplify_model(given_model(nodes, {name: (FLOAT, [3, 4]) for name in "abc"}), Options())
    assert kinds(made) == ["Own", "Own"]
    assert list(made.graph.node[1].input) == ["b"]
    assert not report.differed


def test_results_that_are_indices_are_drawn_small_enough() -> None:
    nodes = [node("Identity", "x", "a"), own("a", "i"), node("Gather", "a i", "g", axis=0), node("Neg", "g", "y")]
    made, _ = simplify_model(given_model(nodes, {"i": (INDEX, [5])}), Options())
    assert kinds(made) == ["Own", "Gather", "Neg"]


def test_a_standard_operator_without_a_kernel_for_its_type_stays() -> None:
    """No rule may touch it, because nothing could check what the rule makes of it."""
    nodes = [
        node("Transpose", "x", "a", perm=[0, 2, 1]),
        node("Transpose", "a", "b", perm=[0, 2, 1]),
        node("Conv", "b w", "c"),
        node("Mul", "c k", "d"),
        node("Relu", "d", "e"),
        node("Relu", "e", "y"),
    ]
    constants = {"w": drawn([3, 2, 3]).astype(np.float64), "k": np.full(1, 2.0)}
    given = given_model(nodes, {}, {"x": [1, 2, 5]}, constants)
    given.graph.input[0].type.tensor_type.elem_type = DOUBLE
    del given.graph.value_info[:]
    given.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("y"))
    made, report = simplify_model(onnx.shape_inference.infer_shapes(given), Options())
    assert kinds(made) == ["Conv", "Mul", "Relu"]
    assert report.check is not None
    assert report.check.left_out == ("Conv number 2",)


def reads_another(made: onnx.ModelProto) -> None:
    next(one for one in made.graph.node if one.op_type == "Own").input[0] = "x"


def has_another_attribute(made: onnx.ModelProto) -> None:
    next(one for one in made.graph.node if one.op_type == "Own").attribute[0].f = 3.0


def is_gone(made: onnx.ModelProto) -> None:
    del made.graph.node[next(place for place, one in enumerate(made.graph.node) if one.op_type == "Own")]


def is_behind_another(made: onnx.ModelProto) -> None:
    made.graph.node[-1].op_type = "Abs"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (reads_another, "operand 0 of Own number 3, run 0"),
        (has_another_attribute, "Own number 3, which ONNX Runtime does not run, is another node"),
        (is_gone, "ONNX Runtime does not run the simplified model"),
        (is_behind_another, "the output 'y', run 0"),
    ],
)
def test_a_fault_around_it_is_found(
    fault: Callable[[onnx.ModelProto], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = attempts.simplified

    def wrong(*arguments: object) -> object:
        found = right(*arguments)  # type: ignore[arg-type]
        fault(found.model)
        return found

    monkeypatch.setattr(attempts, "simplified", wrong)
    _, report = simplify_model(given_model(around(own("b", "c", factor=2.0)), {"c": (FLOAT, [3, 4])}), Options())
    assert report.differed
    assert reason in report.reason
