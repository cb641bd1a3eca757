"""`smartmem optimize --rule-stats`: what each rule did, and which of them the plan is due to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper, save

from tests.cli.test_commands import smartmem

OWN = """rewrite own_square in algebra   # x * x * x * x = (x * x) * (x * x)
    Mul(Mul(Mul(x, x), x), x) => Mul(Mul(x, x), Mul(x, x))
    relaxes reassociation
    explores

rewrite own_never in algebra   # tan(sinh(x)) is left as it is
    Tan(Sinh(x)) => Neg(Tan(Neg(Sinh(x))))
    explores
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
        helper.make_node("Mul", ["b", "b"], ["c"]),
        helper.make_node("Mul", ["c", "b"], ["d"]),
        helper.make_node("Mul", ["d", "b"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "powers", ends[:1], ends[1:])
    path = tmp_path / "powers.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def statistics(*arguments: object) -> dict[str, dict[str, Any]]:
    result = smartmem("optimize", *arguments, "--rule-stats", "--json")
    assert result.exit_code == 0, result.output
    return {one["rule"]: one for one in json.loads(result.stdout)["rules"]}


def test_rules_say_on_how_much_of_the_plan_they_lie(model: Path) -> None:
    rules = statistics(model)
    used = {name: one["in_plan"] for name, one in rules.items() if one["in_plan"]}
    assert used
    assert all(rules[name]["fired"] >= 1 for name in used)
    assert any(one["fired"] and not one["in_plan"] for one in rules.values())
    shown = smartmem("optimize", model, "--rule-stats")
    assert "in the plan" in shown.stdout


def test_statistics_can_be_of_ones_own_rules(model: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.smr"
    own.write_text(OWN)
    assert statistics(model, "--rules", own).keys() > {"own_square"}
    rules = statistics(model, "--rules", own, "--own-rules")
    assert rules.keys() <= {"own_square", "own_never"}
    assert rules["own_square"]["fired"] >= 1


def test_own_rules_are_those_of_files(model: Path) -> None:
    result = smartmem("optimize", model, "--rule-stats", "--own-rules")
    assert result.exit_code == 2
    assert "--rules FILE" in result.stderr
