"""Options shared by all tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the snapshots instead of comparing with them")
    parser.addoption("--all-node-tests", action="store_true", help="run all of ONNX's node tests on the device")
    parser.addoption("--fresh-seeds", action="store_true", help="draw other random models on every run")
    parser.addoption("--examples", type=int, default=0, help="random models for each mode")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether snapshots are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def fresh_seeds(request: pytest.FixtureRequest) -> bool:
    """Whether random tests draw anew on every run."""
    return bool(request.config.getoption("--fresh-seeds"))


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    """How many random models are drawn, 0 for the test's own number."""
    return int(request.config.getoption("--examples"))
