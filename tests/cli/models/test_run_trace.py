"""`smartmem run --trace`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from tests.cli import onnx_files

SETTLED = 0.03
"""Seconds after which a file's time of change lies behind the clock for certain; before that no plan is kept."""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def test_a_plan_that_was_kept_is_made_anew(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_PLANS", str(tmp_path / "plans"))
    monkeypatch.setattr("smartmem_rules.planned.LEAST_SECONDS", 0.0)
    time.sleep(SETTLED)
    assert call("run", model).exit_code == 0
    assert list((tmp_path / "plans").iterdir())
    result = call("run", model, "--trace", tmp_path / "run.json", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["trace"] == str(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    assert {"saturate", "extract", "emit"} <= {one["name"] for one in events}
    launches = [one for one in events if one.get("cat") == "launch"]
    assert len(launches) == json.loads(result.stdout)["kernels"]
    assert all(one["args"]["modelled_us"] > 0 for one in launches)


def test_without_json_it_says_where_the_trace_is(model: Path, tmp_path: Path) -> None:
    result = call("run", model, "--trace", tmp_path / "run.json")
    assert result.exit_code == 0, result.output
    assert f"trace in {tmp_path / 'run.json'}" in result.output


def test_a_folder_that_is_not_there(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "missing" / "run.json"
    result = call("run", model, "--trace", place, "--output", tmp_path / "outputs")
    assert result.exit_code == 2
    assert result.output.strip() == (
        f"smartmem: error: {place}: the trace cannot be written (No such file or directory)"
    )
    assert list(tmp_path.iterdir()) == [model]
