"""Ranges of dimensions on the command line, from the model to the plan and its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from tests.plan.open_models import attention


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A plan for ranges, and what `optimize` said of it."""
    folder = tmp_path_factory.mktemp("dims")
    onnx.save(attention(), str(folder / "a.onnx"))
    result = call("optimize", folder / "a.onnx", "--dims", "batch=2,sequence=1..20", "-o", folder / "a.plan", "--json")
    assert result.exit_code == 0, result.output
    return folder / "a.plan", json.loads(result.stdout)


def test_optimize_reports_ranges_and_checked_extents(plan: tuple[Path, dict[str, Any]]) -> None:
    data = plan[1]
    assert data["dimensions"] == {"sequence": [1, 20]}
    assert data["check"]["passed"] is True
    assert len(data["check"]["extents"]) == 5


def test_run_takes_an_extent(plan: tuple[Path, dict[str, Any]]) -> None:
    result = call("run", plan[0], "--dim", "sequence=7", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outputs"]["y"]["shape"] == [2, 7, 24]


@pytest.mark.parametrize(
    ("extent", "message"),
    [("sequence=21", "cannot be 21; the plan is made for sequence in 1..20"), ("seq=1", "no open dimension 'seq'")],
)
def test_run_refuses_other_extents(plan: tuple[Path, dict[str, Any]], extent: str, message: str) -> None:
    result = call("run", plan[0], "--dim", extent)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("text", ["sequence", "sequence=", "sequence=1..", "sequence=1...3", "sequence=a..b", "=3"])
def test_ranges_are_numbers(plan: tuple[Path, dict[str, Any]], text: str) -> None:
    result = call("run", plan[0], "--dim", text)
    assert result.exit_code == 2
    assert "NAME=LEAST..GREATEST" in result.output
