"""What `make test` leaves out of the sampled tests: the same cases each time, and nothing with `--all`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

TEXT = """
import pytest

pytestmark = pytest.mark.sampled(4)


@pytest.mark.parametrize("case", range(100))
def test_of_many_cases(case):
    pass


def test_of_one_case():
    pass


@pytest.mark.sampled(1000)
@pytest.mark.parametrize("case", [0, 1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_of_few_cases(case):
    pass


@pytest.mark.covering
@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize("second", [*"abc", pytest.param("d", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("third,fourth", [(0, 1), (1, 0)])
def test_of_every_value(first, second, third, fourth):
    pass


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", range(2))
def test_of_long_cases(case):
    pass


@pytest.mark.exhaustive
def test_for_minutes():
    pass
"""


COLLECT = """
import json, sys, pytest

for arguments in json.loads(sys.argv[1]):
    print("next")
    pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", *arguments])
"""


def collected(folder: Path, *calls: Sequence[str]) -> list[set[str]]:
    """The names of the tests that each call of pytest would run; one process makes all calls, to start only once."""
    arguments = [[f"--rootdir={folder}", "-c", "/dev/null", *call] for call in calls]
    ran = subprocess.run(
        [sys.executable, "-c", COLLECT, json.dumps(arguments)],
        capture_output=True, text=True, cwd=Path(__file__).parents[1], env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    return [set(re.findall(r"::(\S+)$", part, re.M)) for part in ran.stdout.split("next\n")[1:]]


def test_the_sample_is_fixed_and_all_of_it_can_be_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "test_many.py"
    file.write_text(TEXT)
    names = sorted(f"test_of_many_cases[{n}]" for n in range(100))
    few = {f"test_of_few_cases[{n}]" for n in range(3)}
    long = {"test_for_minutes", "test_of_long_cases[0]", "test_of_long_cases[1]"}
    products = product(["0-1", "1-0"], "abcd", range(5))
    every = {f"test_of_every_value[{pair}-{letter}-{number}]" for pair, letter, number in products}
    everything = {*names, *few, *long, *every, "test_of_one_case"}
    calls = [[str(file)], [str(file)], ["--all", str(file)], *([f"{file}::{name}"] for name in names[:8])]
    sample, again, whole, *alone = collected(tmp_path, *calls)
    assert sample == again
    assert whole == everything
    assert sample < whole
    assert "test_of_one_case" in sample
    assert not sample & long
    assert 10 <= len(sample - every) <= 45
    assert len(sample & every) == 5, "as many as the parameter with the most values has"
    covered = [re.split(r"[\[\]-]", name)[1:5] for name in sample & every]
    values = [sorted(set(found)) for found in zip(*covered, strict=True)]
    assert values == [["0", "1"], ["0", "1"], [*"abc"], [*"01234"]]
    assert len(sample & few) == 1, "a function of which chance takes no case keeps one that is not long"
    assert "test_of_few_cases[2]" not in sample
    assert not sample >= set(names[:8])
    assert alone == [{name} for name in names[:8]]
