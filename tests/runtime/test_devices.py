"""How the threads of a CPU's driver are placed."""

import os

import pytest

from smartmem_rules.runtime.devices import keep_threads_apart

EVERY = set(range(os.cpu_count() or 1))


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The cores that the process may use, as the only element."""
    allowed = [EVERY]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: allowed[0], raising=False)
    monkeypatch.setenv("POCL_AFFINITY", "0")  # so that it is taken back after the test
    monkeypatch.delenv("POCL_AFFINITY")
    return allowed


def test_threads_stay_on_their_cores(cores: list[set[int]]) -> None:
    keep_threads_apart()
    assert os.environ["POCL_AFFINITY"] == "1"


def test_the_users_setting_stays(cores: list[set[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCL_AFFINITY", "0")
    keep_threads_apart()
    assert os.environ["POCL_AFFINITY"] == "0"


def test_a_process_that_may_not_use_all_cores_is_left_alone(cores: list[set[int]]) -> None:
    cores[0] = EVERY | {len(EVERY)}
    keep_threads_apart()
    assert "POCL_AFFINITY" not in os.environ
