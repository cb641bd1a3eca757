"""What `make test` leaves out of the sampled tests: the same cases each time, and nothing with `--all`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TEXT = """
import pytest

pytestmark = pytest.mark.sampled(4)


@pytest.mark.parametrize("case", range(100))
def test_of_many_cases(case):
    pass


def test_of_one_case():
    pass


@pytest.mark.exhaustive
def test_for_minutes():
    pass
"""


def collected(file: Path, *options: str) -> set[str]:
    """The names of the tests that run."""
    conftest = Path(__file__).parent / "conftest.py"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    ran = subprocess.run(
        [*command, f"--rootdir={file.parent}", "-c", "/dev/null", *options, str(file)],
        capture_output=True, text=True, cwd=conftest.parents[1], env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    return set(re.findall(r"::(\S+)$", ran.stdout, re.M))


def test_the_sample_is_fixed_and_all_of_it_can_be_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "test_many.py"
    file.write_text(TEXT)
    sample, again, whole = collected(file), collected(file), collected(file, "--all")
    assert sample == again
    assert whole == {*(f"test_of_many_cases[{n}]" for n in range(100)), "test_of_one_case", "test_for_minutes"}
    assert sample < whole
    assert "test_of_one_case" in sample
    assert "test_for_minutes" not in sample
    assert 10 <= len(sample) <= 45
    name = next(name for name in whole - sample if "[" in name)
    assert collected(Path(f"{file}::{name}")) == {name}
