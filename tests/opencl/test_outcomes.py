"""The table and the exit code of `python -m tests.opencl`."""

from __future__ import annotations

import pytest

from tests.opencl.outcomes import Outcome, exit_code, table

PASSES = Outcome("one", driver="1.0", passed=7, skipped=2)
FAILS = Outcome("two", driver="2.0", passed=6, failed=["test_a"])
MISSING = Outcome("three", missing="only root may enter it")
NOTHING = Outcome("four", driver="4.0")


def test_each_implementation_has_a_line_with_its_numbers() -> None:
    lines = table([PASSES, FAILS, MISSING, NOTHING]).splitlines()
    assert lines[2:6] == [
        "| one | 1.0 | 7 | 0 | 2 | passes |",
        "| two | 2.0 | 6 | 1 | 0 | 1 fail |",
        "| three | - | - | - | - | not run: only root may enter it |",
        "| four | 4.0 | 0 | 0 | 0 | nothing ran |",
    ]
    assert lines[-1] == "The suite passes on 1 of 4."


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [([PASSES], 0), ([PASSES, MISSING], 0), ([PASSES, FAILS], 1), ([PASSES, NOTHING], 1), ([MISSING], 1), ([], 1)],
)
def test_the_exit_code_is_0_where_all_that_were_run_pass(outcomes: list[Outcome], code: int) -> None:
    assert exit_code(outcomes) == code
