"""The wheel works in an environment of its own, without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 20 << 20
"""A package index takes 100 MB; this keeps the models that come with the project small."""
DATA = (
    "smartmem_rules/py.typed",
    "smartmem_rules/grammar/smr.lark",
    "smartmem_rules/rules/levels.smr",
    "smartmem_rules/codegen/ordered.cl",
    "smartmem_rules/native/c/src/opencl.c",
)


def run(*command: object, folder: Path) -> str:
    """What a command prints, in a folder without the checkout and with no variable that leads to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SMARTMEM_"))}
    environment["SMARTMEM_CACHE"] = str(folder / "cache")
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def tools(folder: Path) -> Path:
    """The programs of a new, empty environment."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sources as `python -m build` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    programs = tools(folder / "builder")
    run(programs / "python", "-m", "pip", "install", "--quiet", "build", folder=folder)
    run(programs / "python", "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT, folder=folder)
    (found,) = (folder / "dist").glob("*.whl")
    return found


@pytest.mark.exhaustive
def test_the_wheel_is_small_and_has_the_data(wheel: Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
    assert [name for name in DATA if name not in names] == []
    assert "License-Expression: Apache-2.0" in text
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "bench/")) for name in names)


@pytest.mark.exhaustive
def test_an_empty_environment_runs_it(wheel: Path, tmp_path: Path) -> None:
    programs = tools(tmp_path / "user")
    run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[reference]", folder=tmp_path)
    assert run(programs / "smartmem", "--version", folder=tmp_path).startswith("smartmem, version ")
    rules = json.loads(run(programs / "smartmem", "config", "--json", folder=tmp_path))["places"]["rules"]
    assert Path(rules).is_relative_to(tmp_path)
    run(programs / "smartmem", "check", rules, folder=tmp_path)
    run(programs / "smartmem", "zoo", "mobilenetv2", "-o", tmp_path, folder=tmp_path)
    made = [*tmp_path.glob("*.onnx")]
    data = json.loads(run(programs / "smartmem", "optimize", made[0], "--json", folder=tmp_path))
    assert data["check"]["passed"] is True
    groups = "from importlib.metadata import entry_points as e; print([*e(group='torch_dynamo_backends')][0].name)"
    assert run(programs / "python", "-c", groups, folder=tmp_path).strip() == "smartmem"
