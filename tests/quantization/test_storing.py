"""Models that exceed one file get a data file, and are what they were before."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules.quantization import storing
from smartmem_rules.quantization.options import Options
from smartmem_rules.quantization.quantize import Trial, quantize_file
from tests.plan.models import normal
from tests.quantization.models import perceptron, ran, saved


def test_large_models_get_a_data_file_and_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "ONE_FILE", 1000)
    model = perceptron()
    before = model.SerializeToString()
    storing.save(model, tmp_path / "large.onnx")
    assert model.SerializeToString() == before
    assert sorted(os.listdir(tmp_path)) == ["large.onnx", "large.onnx.data"]
    again = onnx.load(str(tmp_path / "large.onnx"))
    assert again.graph.node == model.graph.node
    for one, other in zip(again.graph.initializer, model.graph.initializer, strict=True):
        assert (one.name, one.dims, one.raw_data) == (other.name, other.dims, other.raw_data)


def test_large_models_are_quantized_as_small_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, trial = saved(tmp_path / "model.onnx", perceptron()), Trial(given={}, dims={"rows": 2})
    small = quantize_file(source, tmp_path / "small.onnx", Options(), trial)
    monkeypatch.setattr(storing, "ONE_FILE", 1000)
    large = quantize_file(source, tmp_path / "large.onnx", Options(), trial)
    assert (large.layers, large.outputs) == (small.layers, small.outputs)
    x = normal(2, 96)
    found = [ran(onnx.load(str(tmp_path / name)), x) for name in ("small.onnx", "large.onnx")]
    np.testing.assert_array_equal(*found)


def test_nothing_is_left_where_a_model_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "ONE_FILE", 1000)
    model = perceptron()
    before = model.SerializeToString()
    with pytest.raises(storing.QuantizeError, match="cannot be written"):
        storing.save(model, tmp_path / "nowhere" / "large.onnx")
    assert model.SerializeToString() == before
    assert os.listdir(tmp_path) == []
