"""Which tests have their plans checked element by element."""

from __future__ import annotations

import os

import pytest

from smartmem_rules.environment import VERIFY
from tests.test_quickly_compiled import item
from tests.thoroughly_verified import SHARE, is_verified_thoroughly, verify


def test_one_test_in_some_of_plans_is_thorough_and_all_of_invariants() -> None:
    names = [f"test_{number}" for number in range(1000)]
    count = sum(is_verified_thoroughly(item("plan/test_some.py", name)) for name in names)
    assert 0.8 < SHARE * count / len(names) < 1.2
    assert all(is_verified_thoroughly(item("invariants/test_some.py", name)) for name in names)


@pytest.mark.parametrize("thoroughly", [True, False])
def test_the_environment_says_it(thoroughly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY.name, "full")
    verify(thoroughly)
    assert (os.environ.get(VERIFY.name) == "full") == thoroughly
    assert (VERIFY.value() == "full") == thoroughly
