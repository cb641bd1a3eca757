"""`smartmem report`: its data, held against its schema by `tests.json_outputs`, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from smartmem_rules.resources import rules_path
from tests.checking import models
from tests.checking.models import drawn
from tests.cli import onnx_files
from tests.plan.open_models import attention
from tests.report.pages import held


def smartmem(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def reported(*arguments: object) -> Any:
    """The data of a report."""
    result = smartmem("report", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "attention.onnx"
    onnx.save(drawn(models.attention, 0)[0], str(path))
    return path


@pytest.fixture(scope="module")
def data(model: Path) -> Any:
    return reported(model, "--device", "pocl", "--to-level", "none", "--levels", "none,smartmem", "--check")


def test_every_node_leads_to_its_launches_and_back(data: Any, model: Path) -> None:
    for plan in (data["plan"], data["against"]["plan"]):
        file = [node.output[0] for node in onnx.load(str(model)).graph.node]
        assert [node["outputs"][0] for node in plan["nodes"]] == file
        for node in plan["nodes"]:
            own = [launch["number"] for launch in plan["launches"] if node["node"] in launch["origin"]]
            assert node["launches"] == own
            assert set(node["rules"]) <= set(plan["rules"])
            assert all(node["node"] in plan["rules"][rule]["nodes"] for rule in node["rules"])
            assert (node["kind"] == "computed") == bool(own)


def test_launches_have_programs_times_and_tensors(data: Any) -> None:
    plan = data["plan"]
    assert plan["measured"]["runs"] > 0
    assert [launch["number"] for launch in plan["launches"]] == list(range(len(plan["launches"])))
    for launch in plan["launches"]:
        assert "__kernel" in plan["programs"][launch["program"]]
        assert launch["modelled_us"] > 0
        assert launch["measured"]["ms"] > 0
        assert {*launch["reads"], *launch["writes"]} <= set(plan["tensors"])
    assert sum(launch["measured"]["share"] for launch in plan["launches"]) == pytest.approx(1)
    assert plan["figures"]["check"]["passed"] is True


def test_intermediates_lie_in_their_slots_while_they_count(data: Any) -> None:
    for plan in (data["plan"], data["against"]["plan"]):
        kept = {name: tensor for name, tensor in plan["tensors"].items() if tensor["role"] == "intermediate"}
        assert kept
        for name, tensor in kept.items():
            users = [one["number"] for one in plan["launches"] if name in (*one["reads"], *one["writes"])]
            assert (tensor["first"], tensor["last"]) == (min(users), max(users))
            assert tensor["offset"] + tensor["bytes"] <= plan["slots"][tensor["slot"]]["bytes"]


def test_rules_have_verdicts_equations_and_places(data: Any) -> None:
    fired = [rule for rule in data["plan"]["rules"].values() if rule.get("fired") and "file" in rule]
    assert fired
    assert all(rule["verdict"] and rule["equation"] and rule["line"] for rule in fired)


def test_files_of_built_in_rules_are_named_alike_on_every_computer(data: Any) -> None:
    files = {one["file"] for one in places_in(data)}
    assert "rules/algebra.smr" in files
    assert all(name.startswith("rules/") and name.endswith(".smr") for name in files)
    assert str(rules_path()) not in json.dumps(data)


def places_in(data: Any) -> Iterator[Mapping[str, Any]]:
    """The places in rule files, wherever they stand in JSON."""
    if isinstance(data, dict):
        if "file" in data and "line" in data:
            yield data
        data = list(data.values())
    for one in data if isinstance(data, list) else ():
        yield from places_in(one)


def test_levels_and_the_second_plan_are_those_asked_for(data: Any) -> None:
    assert [level["level"] for level in data["levels"]] == ["none", "smartmem"]
    none, smartmem_level = data["levels"]
    assert none["kernels"] == len(data["against"]["plan"]["launches"])
    assert smartmem_level["kernels"] == len(data["plan"]["launches"]) < none["kernels"]
    assert smartmem_level["measured_ms"] == data["plan"]["measured"]["median_ms"]
    assert none["measured_ms"] is None
    differing = {stage["stage"] for stage in data["against"]["stages"] if not stage["same"]}
    assert "fuse" in differing
    assert "import" not in differing


def test_a_saved_plan_needs_no_model(model: Path, tmp_path: Path) -> None:
    plan, page = tmp_path / "a.plan", tmp_path / "report.html"
    assert smartmem("optimize", model, "--device", "pocl", "--no-check", "-o", plan).exit_code == 0
    refused = smartmem("report", plan, "--to-level", "none", "--json")
    assert refused.exit_code == 2
    assert "which is made already" in refused.stderr
    assert reported(plan, "--device", "pocl", "--no-measure")["plan"]["figures"]["kernels"] > 0
    data = reported(plan, "-o", page, "--no-measure")
    assert data.pop("page") == str(page)
    assert data["levels"] == []
    assert data["plan"]["measured"] is None
    assert all(node["outputs"] == [] for node in data["plan"]["nodes"])
    text = page.read_text("utf-8")
    assert held(text) == data
    assert held(text, "drawings")[0]["model"] is None
    assert held(text, "drawings")[0]["launches"]["vertices"]


def test_open_extents_count_at_most(tmp_path: Path) -> None:
    onnx.save(attention(), str(tmp_path / "open.onnx"))
    dims = ("--dims", "batch=2,sequence=1..20")
    data = reported(tmp_path / "open.onnx", *dims, "--no-levels", "-o", tmp_path / "report.html")
    assert data["plan"]["figures"]["dimensions"] == {"sequence": [1, 20]}
    result = smartmem("show", tmp_path / "open.onnx", *dims, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)["launches"]
    assert [one["operations"] for one in shown] == [one["operations"] for one in data["plan"]["launches"]]
    assert all(isinstance(one["operations"], int) for one in shown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-levels"], "say where the page goes: -o report.html"),
        (["--json", "--level", "smartmen"], "did you mean `smartmem`?"),
        (["--json", "--levels", "none,smartmen"], "there is no level 'smartmen'"),
        (["--json", "--to-level", "smartmen"], "there is no level 'smartmen'"),
        (["--json", "--against", "nowhere.onnx"], "nowhere.onnx"),
    ],
)
def test_what_cannot_be_reported_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = smartmem("report", onnx_files.chain(tmp_path / "chain.onnx"), *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
