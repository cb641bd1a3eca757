"""The published schemas: of each command with --json, and held against what the commands print.

Every `--json` that any test asks for is held against its schema (`tests.json_outputs`); here stands what shows that
this says something, and outputs that no other test asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import onnx
import pytest
from click.testing import CliRunner

from smartmem_rules.cli import _COMMANDS, main
from smartmem_rules.fuzzing.campaigns.hunt import Finding, Hunted
from smartmem_rules.fuzzing.equal.proofs import Step
from smartmem_rules.schema.published import DRAFT, OUTPUTS, all_schemas, schema_of
from tests import json_outputs
from tests.cli import onnx_files
from tests.schema.validating import errors

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    "run": "cli/test_commands.py",
    "generate": "cli/models/test_generate.py",
    "quantize": "cli/models/test_quantize_command.py",
    "show": "cli/models/test_show.py",
    "diff": "cli/models/test_show.py",
    "report": "cli/models/test_report.py",
    "simulate": "cli/models/test_simulate.py",
    "certify": "cli/models/test_certify_command.py",
    "zoo": "cli/models/test_zoo_command.py",
    "docs": "cli/test_commands.py",
    "doctor": "doctor/test_examination.py",
    "tune": "tuning/test_tuning.py",
}
"""The tests that ask for outputs of the other commands."""
HERE = (
    "optimize", "explain", "bench", "simplify", "export", "calibrate", "devices", "config", "check", "verify", "fuzz",
    "discover",
)  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def printed(command: str, *arguments: object, code: int = 0) -> Any:
    """What a command prints; it is as its schema says, and names nothing else."""
    result = CliRunner().invoke(main, [command, *map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    json_outputs.refuse_others(command, result.stdout)
    return json.loads(result.stdout)


def test_every_command_with_json_has_a_schema_and_a_test() -> None:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in _COMMANDS}
    with_json = {
        name
        for name, command in found.items()
        if command is not None and any("--json" in one.opts for one in command.params)
    }
    assert with_json == set(OUTPUTS) == {*HERE, *ELSEWHERE}
    for command, path in ELSEWHERE.items():
        text = (TESTS / path).read_text()
        assert f'"{command}"' in text, command
        assert '"--json"' in text, command


def test_each_form_of_an_optimize_report(model: Path, tmp_path: Path) -> None:
    files = ("--certificate", tmp_path / "c.json", "--dump", tmp_path / "dumped")
    data = printed("optimize", model, *files, "--rule-stats", "--explain-left", "--fail-on", "kernels>99")
    assert {"certificate", "dumped", "rules", "left", "failed_on"} <= set(data)
    for level in ("none", "dnnfusion"):
        assert printed("optimize", model, "--level", level)["level"] == level


def test_each_form_of_an_explanation(model: Path) -> None:
    assert "outcome" in printed("explain", model, "/transpose")
    assert "answer" in printed("explain", model, "/relu", "/softmax")
    (rule, *_) = printed("optimize", model, "--no-check", "--rule-stats")["rules"]
    assert printed("explain", model, "--rule", rule["rule"])["rule"] == rule["rule"]


def test_measurements(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "cache"))
    data = printed("bench", model, "--runs", 1, "--warmup", 0, "--profile", "--csv")
    assert {"roof", "csv"} <= set(data)
    assert all(row["profile"] for row in data["results"])
    monkeypatch.setenv("SMARTMEM_CALIBRATION", str(tmp_path / "calibrations"))
    assert printed("calibrate", "--seconds", 0.1)["tiles"]
    assert printed("calibrate", "--forget")["forgotten"] is True


def test_what_is_written(model: Path, tmp_path: Path) -> None:
    assert printed("simplify", model, tmp_path / "same.onnx")["changed"] is False
    twice = [onnx.helper.make_node("Relu", ["x"], ["a"]), onnx.helper.make_node("Relu", ["a"], ["y"])]
    onnx_files.chain(tmp_path / "twice.onnx", nodes=twice)
    assert printed("simplify", tmp_path / "twice.onnx", tmp_path / "simple.onnx")["check"] is not None
    assert printed("export", model, "-o", tmp_path / "bundle")["model"] == "chain"


def test_this_computer() -> None:
    assert printed("devices")["devices"]
    assert printed("config")["variables"]


def test_rules(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.smr"
    wrong.write_text("rewrite mine in algebra\n    Abs(Relu(x)) => Rleu(x)\n")
    assert printed("check", wrong, code=2)["runs"][0]["results"]
    data = printed("verify", "--rule", "add_zero", "--trials", 20, "--jobs", 1, "--mutants", "--save", tmp_path / "s")
    assert {"mutants", "saved"} <= set(data)
    assert "terms" in printed("discover", "--operators", "Neg,Relu", "--size", 2, "--budget", "2s")


def test_findings_of_fuzz(model: Path, tmp_path: Path) -> None:
    data = printed("fuzz", model, "--only", "double_relu", "--forms", 1, "--keep", tmp_path / "kept")
    step = Step(rule="double_relu", equation="", verdict="proved", relaxes=("order",))
    finding = Finding(
        system="onnxruntime", version="1", kind="wrong", operators=("Relu",), kept="a", detail="b", equal="c",
        proof=(step,), request={"file": "d"},
    )  # fmt: skip
    found = Hunted(models=1, judged=1, findings=[finding]).data() | {"rules": data["rules"]}
    assert found["findings"] == [asdict(finding)]
    json_outputs.refuse_others("fuzz", json.dumps(found))


@pytest.mark.parametrize("command", [None, "optimize", "explain"])
def test_the_command_prints_the_schemas(command: str | None) -> None:
    result = CliRunner().invoke(main, ["schema", *([] if command is None else [command])])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data == (all_schemas() if command is None else schema_of(command))
    assert data["$schema"] == DRAFT
    assert set(references(data)) == {f"#/$defs/{name}" for name in data["$defs"]}


def references(schema: Any) -> Iterator[str]:
    """All records that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for one in schema.values():
            yield from references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from references(one)


def test_a_command_without_a_schema() -> None:
    result = CliRunner().invoke(main, ["schema", "optimise"])
    assert result.exit_code == 2
    assert "did you mean" in result.output
    assert "optimize" in result.output


def test_published_schemas_admit_keys_of_later_versions(model: Path) -> None:
    data = printed("optimize", model, "--no-check") | {"of a later version": 1}
    assert list(errors(data, schema_of("optimize"), schema_of("optimize"))) == []
    closed = schema_of("optimize", closed=True)
    assert list(errors(data, closed, closed))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kernels",), "3"),
        (("kernels",), True),
        (("from_cache",), None),
        (("seconds", "emit"), "fast"),
        (("layout_operators",), {"before": 1}),
        (("operator_types",), [1]),
        (("layouts",), {"status": "unheard of"}),
        (("check",), {"passed": True}),
        (("dimensions",), {"n": [1]}),
        (("dimensions",), {"n": [1, 2, 3]}),
    ],
)
def test_what_is_wrong_is_seen(model: Path, path: tuple[str, ...], value: Any) -> None:
    data = printed("optimize", model, "--no-check")
    holder = data
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    schema = schema_of("optimize")
    assert list(errors(data, schema, schema))
    with pytest.raises(AssertionError, match="not as its schema says"):
        json_outputs.refuse_others("optimize", json.dumps(data))
