"""In CI a missing package of the extras `test` and `verify` is an error; elsewhere, and of other extras, it is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.required_packages import required

MODULE = """
import sys
import pytest
sys.modules["{package}"] = None
{at_import}
def test_it():
    {in_test}
"""
ROOT = Path(__file__).parents[1]


@pytest.mark.covering
@pytest.mark.parametrize("where", ["at_import", "in_test"])
@pytest.mark.parametrize(("package", "ci", "failed"), [("z3", "1", True), ("z3", "", False), ("optuna", "1", False)])
def test_a_missing_package(tmp_path: Path, package: str, ci: str, failed: bool, where: str) -> None:
    skip = {"at_import": "", "in_test": "pass", where: f"pytest.importorskip('{package}')"}
    (tmp_path / "test_one.py").write_text(MODULE.format(package=package, **skip))
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-p", "tests.required_packages"]
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    # pytest's code 2 is for modules that cannot be collected, 5 for no test at all
    assert done.returncode == ((2 if where == "at_import" else 1) if failed else (5 if where == "at_import" else 0))
    said = f"CI may not skip this: {package} is missing" in done.stdout
    assert said == failed, done.stdout


def test_modules_that_tests_ask_for_are_known_by_their_names() -> None:
    assert {"z3", "onnxruntime", "pyopencl", "hypothesis", "sarif_pydantic"} <= required()
