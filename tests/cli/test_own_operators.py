"""Operators of one's own are checked: by their definition, or by the body that the model brings for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper, save

import smartmem_rules as sm
from tests.cli.test_commands import smartmem

SWISH = """operator Swish<T: float>(x: T[*S]; beta: float = 1.0) -> y: T[*S] {
    onnx my.ops::Swish;
    y[*i] = x[*i] * sigmoid(x[*i] * beta)
}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "swish.smr"
    path.write_text(SWISH)
    return path


def model(folder: Path, with_body: bool = False) -> Path:
    attributes = {} if with_body else {"beta": 2.0}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Swish", ["a"], ["b"], domain="my.ops", **attributes),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.ops", 1)]
    body = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])]
    function = helper.make_function("my.ops", "Swish", ["x"], ["y"], body, opsets[:1])
    graph = helper.make_graph(nodes, "own", ends[:1], ends[1:])
    functions = [function] if with_body else []
    path = folder / "own.onnx"
    save(helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9), path)
    return path


def checked(*arguments: object) -> dict[str, Any]:
    result = smartmem("optimize", *arguments, "--json")
    assert result.exit_code == 0, result.output
    check: dict[str, Any] = json.loads(result.stdout)["check"]
    return check


def test_an_own_operator_is_compared_with_its_definition(tmp_path: Path, rules: Path) -> None:
    check = checked(model(tmp_path), "--rules", rules)
    assert check["passed"] is True
    assert "definitions" in check["reference"]
    assert check["precision"] == "double"


def test_a_body_of_the_model_is_compared_with(tmp_path: Path, rules: Path) -> None:
    for arguments in ((), ("--rules", rules)):
        check = checked(model(tmp_path, with_body=True), *arguments)
        assert check["passed"] is True
        assert "onnxruntime" in check["reference"]


def test_a_wrong_kernel_of_an_own_operator_is_found(tmp_path: Path, rules: Path) -> None:
    plan = sm.optimize(model(tmp_path), rules=[rules])
    other = tmp_path / "other.smr"
    other.write_text(SWISH.replace("x[*i] * beta", "x[*i] * beta + 0.1"))
    assert plan.check().passed is True
    assert plan.check(rules=[other]).passed is False


def test_a_saved_plan_is_checked_with_the_files_that_are_given(tmp_path: Path, rules: Path) -> None:
    path = model(tmp_path)
    sm.optimize(path, rules=[rules]).save(tmp_path / "own.plan")
    plan = sm.load(tmp_path / "own.plan")
    assert plan.check_or_reason(path).passed is None
    assert plan.check(path, rules=[rules]).passed is True
