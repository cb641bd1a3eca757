"""Models with data files, and what is left behind when something goes wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from smartmem_rules.cli import main
from smartmem_rules.graph.model import GraphError
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.simplify import simplify_file, simplify_model
from tests.simplification.models import drawn, kinds, model, run
from tests.simplification.test_simplify import node


def with_data(folder: Path, useful: bool = True) -> Path:
    """A model whose weights lie in a data file."""
    folder.mkdir()
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("Relu" if useful else "Neg", "b", "y")]
    given = model(nodes, {"x": [4, 64]}, ["y"], {"w": drawn([64, 64])})
    path = folder / "in.onnx"
    onnx.save(given, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_data_files_are_copied_to_one_beside_the_result(tmp_path: Path) -> None:
    source = with_data(tmp_path / "from")
    target = tmp_path / "out.onnx"
    assert simplify_file(source, target, Options()).changed
    assert names(tmp_path) == ["from", "out.onnx", "out.onnx.data"]
    feeds = {"x": drawn([4, 64], 1)}
    np.testing.assert_array_equal(run(str(target), feeds)[0], run(str(source), feeds)[0])
    made = onnx.load(target, load_external_data=False)
    assert kinds(made) == ["MatMul", "Relu"]
    assert {e.key: e.value for e in made.graph.initializer[0].external_data}["location"] == "out.onnx.data"


def test_a_model_may_take_its_own_place(tmp_path: Path) -> None:
    source = with_data(tmp_path / "from")
    feeds = {"x": drawn([4, 64], 1)}
    expected = run(str(source), feeds)[0]
    assert simplify_file(source, source, Options()).changed
    np.testing.assert_array_equal(run(str(source), feeds)[0], expected)


def test_an_unchanged_model_takes_its_data_along(tmp_path: Path) -> None:
    source = with_data(tmp_path / "from", useful=False)
    (tmp_path / "to").mkdir()
    assert not simplify_file(source, tmp_path / "to" / "out.onnx", Options()).changed
    assert names(tmp_path / "to") == ["out.onnx", "weights.bin"]
    assert (tmp_path / "to" / "weights.bin").read_bytes() == (source.parent / "weights.bin").read_bytes()


def test_a_path_gives_a_model_with_its_data(tmp_path: Path) -> None:
    made, _ = simplify_model(with_data(tmp_path / "from"), Options())
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(made.graph.initializer[0]), drawn([64, 64]))


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    source = with_data(tmp_path / "from")
    data = source.parent / "weights.bin"
    data.write_bytes(data.read_bytes()[:100])
    target = tmp_path / "out.onnx"
    target.write_bytes(b"before")
    with pytest.raises(GraphError, match="ends before its data do"):
        simplify_file(source, target, Options())
    assert target.read_bytes() == b"before"
    assert names(tmp_path) == ["from", "out.onnx"]


def test_the_command_reports_and_refuses(tmp_path: Path) -> None:
    source, target, report = with_data(tmp_path / "from"), tmp_path / "out.onnx", tmp_path / "report.json"
    done = CliRunner().invoke(main, ["simplify", str(source), str(target), "--report", str(report)])
    assert done.exit_code == 0, done.output
    assert "1 nodes by double_relu" in done.output
    assert '"verdict": "proved' in report.read_text()
    refused = CliRunner().invoke(main, ["simplify", str(source), str(tmp_path / "b.onnx"), "--disable", "double_rleu"])
    assert refused.exit_code == 2
    assert "did you mean `double_relu`" in refused.output
    missing = CliRunner().invoke(main, ["simplify", str(source), str(tmp_path / "no" / "b.onnx")])
    assert missing.exit_code == 2
    assert "cannot be written" in missing.output
    assert names(tmp_path) == ["from", "out.onnx", "out.onnx.data", "report.json"]
