"""Every bad input: one clear message on stderr, exit code 2, nothing on stdout, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli import onnx_files
from tests.cli.test_commands import smartmem


def refused(message: str, *arguments: object) -> None:
    result = smartmem(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (onnx_files.truncated, "damaged"),
        (onnx_files.no_onnx, "no ONNX model"),
        (onnx_files.empty, "no ONNX model"),
        (onnx_files.missing, "there is no such file; did you mean `there.onnx`?"),
        (onnx_files.cyclic, "cycle"),
        (onnx_files.without_data, "gone.data"),
        (onnx_files.unsupported, "Mystery"),
        (onnx_files.unsupported, "Riddle"),
        (onnx_files.symbolic, "--dim batch=N"),
    ],
)
@pytest.mark.parametrize("command", ["optimize", "run"])
def test_broken_models(tmp_path: Path, command: str, make: Callable[[Path], Path], message: str) -> None:
    model = make(tmp_path)
    before = sorted(os.listdir(tmp_path))
    output = ["-o", tmp_path / "out.plan"] if command == "optimize" else ["--output", tmp_path / "out"]
    refused(message, command, model, "--json", *output)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "smartmen"], "did you mean `smartmem`?"),
        (["--device", "pokl"], "there is no device 'pokl'; did you mean `pocl`?"),
        (["--disable", "transposs"], "did you mean `transpose`?"),
        (["--rules", "nowhere.smr"], "nowhere.smr"),
        (["--dim", "batch=2"], "no input has a dimension 'batch'"),
        (["--dim", "batch"], "NAME=NUMBER"),
        (["--dtype", "int3"], "int3"),
        (["-o", "nowhere/out.plan"], "cannot be written"),
    ],
)
def test_wrong_options(tmp_path: Path, options: list[str], message: str) -> None:
    refused(message, "optimize", onnx_files.chain(tmp_path / "chain.onnx"), "--json", *options)


def test_a_broken_rule_file(tmp_path: Path) -> None:
    rules = tmp_path / "mine.smr"
    rules.write_text("rewrite broken in algebra\n    Add(x, => x\n")
    refused("mine.smr:2:", "optimize", onnx_files.chain(tmp_path / "chain.onnx"), "--rules", rules)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("z", np.zeros((6, 8), np.float32), "no input 'z'"),
        ("x", np.zeros((8, 6), np.float32), "the model takes [6, 8]"),
        ("x", np.zeros((6, 8)), "the model takes float32"),
    ],
)
def test_wrong_inputs(tmp_path: Path, name: str, array: np.ndarray, message: str) -> None:
    model = onnx_files.chain(tmp_path / "chain.onnx")
    np.save(tmp_path / "given.npy", array)
    out = tmp_path / "out"
    refused(message, "run", model, "--input", f"{name}={tmp_path / 'given.npy'}", "--output", out, "--json")
    assert not out.exists()


@pytest.mark.parametrize(("content", "message"), [(None, "no such file"), (b"no array", "no array file of numpy")])
def test_input_files_that_hold_nothing(tmp_path: Path, content: bytes | None, message: str) -> None:
    model = onnx_files.chain(tmp_path / "chain.onnx")
    if content is not None:
        (tmp_path / "given.npy").write_bytes(content)
    refused(message, "run", model, "--input", f"x={tmp_path / 'given.npy'}")


def test_a_damaged_plan(tmp_path: Path) -> None:
    plan = tmp_path / "out.plan"
    assert smartmem("optimize", onnx_files.chain(tmp_path / "chain.onnx"), "--no-check", "-o", plan).exit_code == 0
    plan.write_bytes(plan.read_bytes()[:-100])
    refused("damaged", "run", plan)


def test_explaining_what_is_not_there(tmp_path: Path) -> None:
    refused("did you mean `/softmax`?", "explain", onnx_files.chain(tmp_path / "chain.onnx"), "/softmux")


def test_checking_what_is_not_there(tmp_path: Path) -> None:
    refused("there is no such file", "check", tmp_path / "none.smr")
    refused("holds no rule file", "check", tmp_path)


@pytest.mark.parametrize("command", [["devices"], ["optimize", "MODEL"], ["run", "MODEL"]])
def test_no_device(tmp_path: Path, command: list[str]) -> None:
    model = str(onnx_files.chain(tmp_path / "chain.onnx"))
    arguments = [model if word == "MODEL" else word for word in command]
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path / "nowhere")}
    call = [sys.executable, "-m", "smartmem_rules.cli", *arguments]
    result = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "no OpenCL device" in result.stderr
    assert "pip install pocl-binary-distribution" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bug_is_one_line_with_the_place_of_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise KeyError("an invariant\nthat was forgotten")

    monkeypatch.setattr("smartmem_rules.api.optimize", broken)
    monkeypatch.setenv("SMARTMEM_TRACEBACK", "file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = smartmem("optimize", onnx_files.chain(tmp_path / "chain.onnx"))
    assert result.exit_code == 70
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("smartmem: internal error, please report it: KeyError: 'an invariant")
    (written,) = tmp_path.glob("smartmem-*.txt")
    assert str(written) in line
    assert "in broken" in written.read_text()
