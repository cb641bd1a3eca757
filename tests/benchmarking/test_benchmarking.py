"""Other systems in their own processes, the roof, profiles of kernels, plots, CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from smartmem_rules.benchmarking.peers import Peer, PeerError, missing
from smartmem_rules.benchmarking.plots import PlotError, plot
from smartmem_rules.cli import main
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.roof import Roof, measure_roof
from tests.cli import onnx_files

ROWS: list[dict[str, Any]] = [
    {"model": "a", "level": "smartmem", "peer": None, "median_ms": 2.0, "min_ms": 1.0, "max_ms": 3.0},
    {"model": "a", "level": None, "peer": "other", "median_ms": 4.0, "min_ms": 3.5, "max_ms": 9.0},
    {"model": "b", "level": "smartmem", "peer": None, "median_ms": 1.0, "min_ms": 1.0, "max_ms": 1.0},
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def bench(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["bench", *map(str, arguments)])


@pytest.mark.parametrize("system", ["onnxruntime", "openvino"])
def test_a_system_in_its_own_process(model: Path, system: str) -> None:
    if missing(system):
        pytest.skip(f"{system} is not installed")
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    peer = Peer(system, str(model), {"x": x}, 1, "")
    try:
        assert peer.outputs["y"].shape == (5, 6)
        np.testing.assert_allclose(peer.outputs["y"].sum(1), 1.0, rtol=1e-5)
        assert 0 < peer.run() < 1e4
    finally:
        peer.close()


def test_a_model_that_a_system_does_not_take(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(PeerError, match="onnxruntime does not run this model"):
        Peer("onnxruntime", str(path), {}, 1, "")


def test_missing_systems_are_left_out_with_a_message(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartmem_rules.benchmarking.peers.missing", lambda name: f"{name} needs something")
    result = bench(model, "--runs", 2, "--against", "openvino", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert [row["level"] for row in data["results"]] == ["smartmem"]
    assert data["skipped"] == [{"model": "chain", "peer": "openvino", "reason": "openvino needs something"}]
    assert "left out" in result.stderr


def test_unknown_systems_are_bad_input(model: Path) -> None:
    result = bench(model, "--against", "onnxruntim")
    assert result.exit_code == 2
    assert "did you mean `onnxruntime`" in result.stderr


def test_all_levels_csv_and_profile(model: Path, tmp_path: Path) -> None:
    result = bench(model, "--levels", "all", "--runs", 2, "--profile", "--csv", "--json", "--plot", tmp_path / "a.html")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    levels = ["none", "dnnfusion", "eliminate", "layout", "smartmem"]
    assert [row["level"] for row in data["results"]] == levels
    rows = list(csv.DictReader(io.StringIO(data["csv"])))
    assert [row["level"] for row in rows] == levels
    assert float(rows[0]["median_ms"]) == data["results"][0]["median_ms"]
    for row in data["results"]:
        assert row["check"]["passed"] is True
        assert row["min_ms"] <= row["quartile_1_ms"] <= row["median_ms"] <= row["quartile_3_ms"] <= row["max_ms"]
        assert len(row["profile"]) == row["kernels"]
        assert sum(one["share"] for one in row["profile"]) == pytest.approx(1.0)
        for one in row["profile"]:
            assert one["gflops"] >= 0
            assert one["gbytes_per_s"] > 0
    assert data["roof"]["gflops"] > 1
    assert (tmp_path / "a.html").stat().st_size > 1000


def test_csv_alone(model: Path) -> None:
    result = bench(model, "--runs", 1, "--csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["model"], row["level"], row["peer"]) == ("chain", "smartmem", "")
    assert float(row["max_relative_error"]) < 1e-5


def test_a_wrong_result_is_an_answer_of_no(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("smartmem_rules.runtime.reference", fromlist=["x"]).TOLERANCES, "float32", -1.0)
    assert bench(model, "--runs", 1).exit_code == 1


def test_the_roof_of_this_device() -> None:
    roof = measure_roof(choose())
    assert roof.gflops > 1
    assert roof.gbytes > 0.5


def test_a_kernels_share_of_the_roof() -> None:
    roof = Roof(gflops=100.0, gbytes=10.0)
    assert roof.share(1e8, 0, 2.0) == pytest.approx(0.5)
    assert roof.share(1e6, 1e7, 2.0) == pytest.approx(0.5)


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_plots(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib" if suffix == ".png" else "plotly")
    path = tmp_path / f"a{suffix}"
    plot(ROWS, path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG") if suffix == ".png" else b"smartmem" in data


def test_plots_of_other_kinds_are_refused_before_anything_is_measured(model: Path, tmp_path: Path) -> None:
    with pytest.raises(PlotError, match="ends in"):
        plot(ROWS, tmp_path / "a.svg")
    assert bench(model, "--plot", tmp_path / "a.svg").exit_code == 2
