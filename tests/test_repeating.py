"""Which cases wait for `--all` because they repeat others, and that the list of them is about tests that are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.repeating import FILE, repetitions, without_repetitions

FIRST, SECOND, THIRD, OTHER = (*(f"tests/test_a.py::test_a[{n}]" for n in range(3)), "tests/test_a.py::test_b")


class Case:
    """What is asked of a test."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def left(named: Iterable[str], sample: Iterable[str] = (FIRST, SECOND, OTHER)) -> list[str]:
    """The names of the tests that run, of four in a file."""
    items: dict[str, Any] = {name: Case(name) for name in (FIRST, SECOND, THIRD, OTHER)}
    found = without_repetitions([items[name] for name in sample], items.values(), frozenset(named))
    return sorted(item.nodeid for item in found)


def test_what_is_named_does_not_run() -> None:
    assert left([]) == [FIRST, SECOND, OTHER]
    assert left([SECOND]) == [FIRST, OTHER]
    assert left([SECOND, "tests/test_of_another_folder.py::test_a"]) == [FIRST, OTHER]
    # the third case is not in the sample
    assert left([THIRD, SECOND]) == [FIRST, OTHER]


def test_a_name_that_no_test_has_is_an_error() -> None:
    with pytest.raises(pytest.UsageError, match=r"there is no test tests/test_a.py::test_a\[3\]; write its new name"):
        left(["tests/test_a.py::test_a[3]"])


def test_each_function_of_the_sample_keeps_a_case() -> None:
    with pytest.raises(pytest.UsageError, match=r"no case of tests/test_a.py::test_a would run"):
        left([FIRST, SECOND])
    with pytest.raises(pytest.UsageError, match=r"no case of tests/test_a.py::test_a would run"):
        left([FIRST], [FIRST, OTHER])
    assert left([FIRST], [OTHER]) == [OTHER]


def test_the_list_is_sorted_and_names_each_test_once() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("# ")]
    assert lines == sorted(set(lines))
    assert repetitions() == set(lines)
