"""`smartmem optimize --explain-left` and `--fail-on`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import helper, numpy_helper

from smartmem_rules.cli import main
from tests.cli import onnx_files


def optimize(model: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["optimize", str(model), "--no-check", *arguments])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def test_what_only_moves_data_is_left_at_a_level_that_keeps_it(model: Path) -> None:
    left = json.loads(optimize(model, "--level", "none", "--explain-left", "--json").stdout)["left"]
    moving = [one for one in left if one["moves_only"]]
    assert [one["operator"] for one in moving] == ["Transpose"]
    assert moving[0]["kernels"]
    shown = optimize(model, "--level", "none", "--explain-left").stdout
    assert f"Transpose {moving[0]['node']} in {moving[0]['kernels'][0]}, which only moves data" in shown


def test_a_rule_that_nearly_fired_is_named_with_its_guard(tmp_path: Path) -> None:
    def constant(name: str, value: float) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value, np.float32)))

    nodes = [
        *(constant("c", 0.6), constant("one", 1.0), constant("half", 0.5)),  # 0.7071 would make it a Gelu
        helper.make_node("Mul", ["x", "c"], ["scaled"], name="/scaled"),
        helper.make_node("Erf", ["scaled"], ["erf"], name="/erf"),
        helper.make_node("Add", ["erf", "one"], ["sum"], name="/sum"),
        helper.make_node("Mul", ["x", "sum"], ["product"], name="/product"),
        helper.make_node("Mul", ["product", "half"], ["y"], name="/half"),
    ]
    model = onnx_files.chain(tmp_path / "nearly.onnx", nodes=nodes)
    left = json.loads(optimize(model, "--explain-left", "--json").stdout)["left"]
    misses = [miss for one in left for miss in one["near_misses"] if miss["rule"] == "gelu"]
    assert misses
    assert "near(value(c)" in misses[0]["reason"]
    assert "gelu: near(value(c)" in optimize(model, "--explain-left").stdout


def test_a_condition_that_holds_is_exit_code_1(model: Path) -> None:
    result = optimize(model, "--fail-on", "operators>3", "--fail-on", "layout_operators.after > 0", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed_on"] == ["operators is 4"]
    assert result.stderr == "smartmem: --fail-on: operators is 4\n"


def test_conditions_that_do_not_hold_are_exit_code_0(model: Path) -> None:
    result = optimize(model, "--fail-on", "operators>4", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["failed_on"] == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("kernel>3", "the report has no figure 'kernel'; did you mean `kernels`?"),
        ("nonsense>3", "the report has no figure 'nonsense'; it has operators, kernels"),
        ("level>3", "no figure 'level'"),
        ("kernels", "is not of the form NAME>NUMBER"),
        ("kernels>many", "is not of the form NAME>NUMBER"),
        ("kernels>1e", "is not of the form NAME>NUMBER"),
    ],
)
def test_bad_conditions_are_exit_code_2(model: Path, condition: str, said: str) -> None:
    result = optimize(model, "--fail-on", condition)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "holds"), [("a>1", True), ("a>=2", True), ("a<2", False), ("a<=2", True), ("a==2", True), ("a!=2", False)]
)
def test_all_comparisons(text: str, holds: bool) -> None:
    from smartmem_rules.cli.conditions import fail_on_option  # the parser is the option's callback

    command = fail_on_option(lambda fail_on: None)
    (option,) = command.__click_params__
    (condition,) = option.callback(None, option, [text])
    assert (condition.holds({"a": 2}) is not None) is holds
