"""`smartmem zoo`."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from click.testing import CliRunner

from smartmem_rules.cli import main
from smartmem_rules.graph.zoo import NETWORKS


def test_the_papers_networks_are_listed_first() -> None:
    result = CliRunner().invoke(main, ["zoo", "--json"])
    assert result.exit_code == 0, result.output
    models = json.loads(result.output)["models"]
    assert [model["name"] for model in models[: len(NETWORKS)]] == list(NETWORKS)
    assert all(model["operators"] > 0 and model["parameters"] > 0 for model in models)


def test_a_model_is_written_with_its_weights(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["zoo", "mmoe", "-o", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    onnx.checker.check_model(str(tmp_path / "new" / "mmoe.onnx"))


def test_an_unknown_name_writes_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["zoo", "mmoe", "mobilenet", "-o", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "mobilenetv2" in result.output
    assert not (tmp_path / "new").exists()
