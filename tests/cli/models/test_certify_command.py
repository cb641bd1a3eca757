"""`smartmem optimize --certificate` and `smartmem certify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import onnx_files
from tests.cli.test_commands import data_of, smartmem


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model and the certificate of its plan."""
    folder = tmp_path_factory.mktemp("certify")
    model, certificate = onnx_files.chain(folder / "chain.onnx"), folder / "chain.json"
    data = data_of("optimize", model, "--no-check", "--certificate", certificate)
    assert data["certificate"] == str(certificate)
    return model, certificate


def test_a_certificate_is_replayed(files: tuple[Path, Path]) -> None:
    data = data_of("certify", *files)
    assert data["refused"] is None
    assert data["rules"] == ["transpose"]
    assert (data["nodes"], data["certified"]) == (4, 4)
    assert data["kernels"] == data["certified_kernels"] > 0
    assert data["uncertified"] == []
    shown = smartmem("certify", *files)
    assert shown.exit_code == 0
    assert "1 step holds, by 1 rule: transpose" in shown.output
    assert "4 of 4 nodes of the plan are certified" in shown.output


def test_a_refused_certificate_gives_exit_code_1(files: tuple[Path, Path], tmp_path: Path) -> None:
    model, certificate = files
    data = json.loads(certificate.read_text())
    data["steps"][0]["eliminate"] = "reshape"
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    shown = smartmem("certify", model, bad)
    assert shown.exit_code == 1
    assert shown.output.startswith("refused: step 0 (reshape): reshape is about Reshape, not Transpose")
    assert json.loads(smartmem("certify", model, bad, "--json").stdout)["refused"].startswith("step 0 (reshape)")


def test_bad_files_give_one_message(files: tuple[Path, Path], tmp_path: Path) -> None:
    model, certificate = files
    for wrong, message in (
        (tmp_path / "none.json", "No such file"),
        (model, "this is no certificate, or it is damaged"),
        (tmp_path / "list.json", "`smartmem optimize MODEL --certificate FILE` writes one"),
    ):
        (tmp_path / "list.json").write_text("[]")
        shown = smartmem("certify", model, wrong)
        assert shown.exit_code == 2
        assert message in shown.output
        assert len(shown.output.splitlines()) == 1
    assert smartmem("certify", tmp_path / "none.onnx", certificate).exit_code == 2
    unwritable = smartmem("optimize", model, "--no-check", "--certificate", tmp_path / "no" / "folder.json")
    assert unwritable.exit_code == 2
    assert "the certificate cannot be written" in unwritable.output


def test_a_certificate_is_of_fixed_extents(tmp_path: Path) -> None:
    model = onnx_files.chain(tmp_path / "open.onnx", rows="rows")
    shown = smartmem("optimize", model, "--no-check", "--dim", "rows=2..9", "--certificate", tmp_path / "open.json")
    assert shown.exit_code == 2
    assert "give one extent: --dim rows=N" in shown.output
    assert not (tmp_path / "open.json").exists()
