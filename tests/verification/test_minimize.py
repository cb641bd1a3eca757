"""Rules that follow from others are found, with the rules from which they follow."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from click.testing import CliRunner
from onnx import helper

from smartmem_rules.cli import main
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.minimize import fewest, follows, instances_of, minimize, only

RULES = """
rewrite triple_relu in algebra    # relu(relu(relu(x))) = relu(x)
    Relu(Relu(Relu(x))) => Relu(x)

rewrite minus_of_sum in algebra   # -(x - y) = y - x
    Neg(Sub(x, y)) => Sub(y, x)
    relaxes signed_zero
"""


def written(folder: Path) -> Path:
    path = folder / "mine.smr"
    path.write_text(RULES)
    return path


def test_a_rule_that_follows_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    found = minimize(load_rules([written(tmp_path)]), ["triple_relu", "minus_of_sum"])
    (redundant,) = found.redundant
    assert (redundant.rule, redundant.sources) == ("triple_relu", ("double_relu",))
    assert redundant.instances > 1
    assert found.kept == ["minus_of_sum"]


def test_constants_of_a_rule_are_constants_where_it_is_derived() -> None:
    """x / 1 = x follows from x / c = x * (1/c) and x * 1 = x, because 1 is known."""
    base = load_rules()
    rule = next(rule for rule in base.rewrites if rule.name == "divide_by_one")
    floats = [case for case in instances_of(rule, base, 1) if case.left.type.dtype == "float32"]
    assert floats
    for case in floats:
        assert follows(case, only(base, ["divide_by_constant", "multiply_by_one"]))
        assert not follows(case, only(base, ["divide_by_constant"]))


def test_fewest_leaves_out_all_that_is_not_needed() -> None:
    names = [str(number) for number in range(20)]
    assert fewest(names, lambda some: {"3", "11"} <= set(some)) == ["3", "11"]


def test_the_command_measures_on_models(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"t{k}"], [f"t{k + 1}"]) for k in range(3)]
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("t0", "t3")]
    model = helper.make_model(helper.make_graph(nodes, "relus", ends[:1], ends[1:]), ir_version=10)
    onnx.save(model, str(tmp_path / "relus.onnx"))
    arguments = ["verify", str(written(tmp_path)), "--minimize", "--on", str(tmp_path / "relus.onnx"), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    (redundant,) = data["redundant"]
    assert redundant["cost"]["fired"] >= 1
    assert redundant["cost"]["form_with"] == redundant["cost"]["form_without"]
    assert data["together"]["without_it"] > 0
