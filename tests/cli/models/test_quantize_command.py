"""`smartmem quantize`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.test_commands import smartmem
from tests.plan.models import normal
from tests.quantization.models import perceptron, saved


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "model.onnx", perceptron())


def test_errors_are_printed_for_each_product_and_each_output(model: Path, tmp_path: Path) -> None:
    result = smartmem(
        "quantize", model, "--weights", "int4", "--block", 32, "--dim", "rows=3", "-o", tmp_path / "q.onnx"
    )
    assert result.exit_code == 0, result.output
    for text in ("first", "second", "96 x 72", "small stays as it is", "relative error", "random inputs (seed 0): x"):
        assert text in result.stdout
    onnx.checker.check_model(str(tmp_path / "q.onnx"))


def test_json(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", normal(4, 96))
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--dim", "rows=4")
    result = smartmem("quantize", model, "--format", "qdq", "--block", 0, *given, "--json", "-o", tmp_path / "q.onnx")
    data = json.loads(result.stdout)
    assert [layer["node"] for layer in data["layers"]] == ["first", "second"]
    assert (data["form"], data["block"], data["random_inputs"]) == ("qdq", 0, [])
    assert 0 < data["outputs"][0]["relative"] < 0.5
    result = smartmem("quantize", model, "--no-check", "--json", "-o", tmp_path / "q.onnx")
    assert json.loads(result.stdout)["outputs"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weights", "int5"), "int5"),
        (("--block", "40"), "powers of two"),
        (("--exclude", "frist"), "did you mean `first`?"),
        (("--least", "100000"), "no product that could be quantized"),
        (("--input", "x=nowhere.npy"), "nowhere.npy"),
        ((), "rows"),
    ],
)
def test_bad_input_writes_nothing(model: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    before = sorted(os.listdir(tmp_path))
    result = smartmem("quantize", model, *options, "--json", "-o", tmp_path / "q.onnx")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_folder_that_does_not_exist(model: Path, tmp_path: Path) -> None:
    result = smartmem("quantize", model, "--no-check", "-o", tmp_path / "nowhere" / "q.onnx")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr
