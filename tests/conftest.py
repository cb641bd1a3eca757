"""Options shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

from tests.in_memory import keep_temporary_files_in_memory
from tests.json_outputs import hold_against_schemas
from tests.quickly_compiled import choose, compile_quickly, compiles_as_users
from tests.repeating import repetitions, without_repetitions
from tests.required_packages import pytest_make_collect_report, pytest_runtest_makereport
from tests.thoroughly_verified import is_verified_thoroughly, verify
from tests.with_all import ask_for_all

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

if sys.dont_write_bytecode:
    # Bytecode that may not lie beside the sources lies in `build/`: each process of a test would compile all again.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
keep_temporary_files_in_memory()
verify(thoroughly=True)
os.environ["SMARTMEM_PLANS"] = "off"  # every plan that a test makes is made anew
os.environ["SMARTMEM_CALIBRATION"] = "off"  # as the rules say, whatever this computer's figures are
settings.register_profile("untimed", deadline=None)  # a busy machine fails no test
settings.load_profile("untimed")
os.environ["SMARTMEM_TRACEBACK"] = "raise"  # bugs behind a command show themselves
hold_against_schemas()
GARBAGE = 20_000
"""New objects after which the garbage collector looks for those that nothing needs."""
FULL = 50
"""Collections of newer objects before one of all: what tests share, a million objects, is looked at less often."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the snapshots instead of comparing with them")
    parser.addoption("--all", action="store_true", help="run all cases of the tests that run a sample of them")
    parser.addoption("--all-node-tests", action="store_true", help="run all of ONNX's node tests on the device")
    parser.addoption("--fresh-seeds", action="store_true", help="draw other random models on every run")
    parser.addoption("--examples", type=int, default=0, help="random models for each mode")


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers, and compile in little time what need not be optimized."""
    config.addinivalue_line("markers", "sampled(share): one case in `share` runs, one at least; all with --all")
    config.addinivalue_line("markers", "covering: few cases, which have every value of each parameter; all with --all")
    config.addinivalue_line("markers", "exhaustive: takes minutes; runs with --all, or when it is asked for by name")
    config.addinivalue_line("markers", "optimized: its programs for processors are compiled as users' are")
    if config.getoption("--all"):
        ask_for_all()
    else:
        compile_quickly()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say how the plans of the test are checked, and how its programs are compiled, before its fixtures make any."""
    choose(compiles_as_users(item))
    verify(item.config.getoption("--all") or is_verified_thoroughly(item))


def pytest_collection(session: pytest.Session) -> None:
    """What collecting makes stays to the end: the garbage collector need not look for any of it."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """From here on the garbage collector looks at what tests make, and waits until that is worth its time."""
    gc.freeze()
    gc.set_threshold(GARBAGE, 10, FULL)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the sample; tests that are asked for by name always run."""
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    sample = without_repetitions(_sample(items), items, repetitions())
    left_out = [item for item in items if item not in sample]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in sample]


def _sample(items: list[pytest.Item]) -> set[pytest.Item]:
    """What runs without `--all`, the same cases always."""
    taken: set[pytest.Item] = set()
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("exhaustive") is not None:
            continue
        if _marker(item) is None:
            taken.add(item)
        else:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in functions.values():
        cases.sort(key=_number)
        marker = _marker(cases[0])
        assert marker is not None
        taken.update(_covering(cases) if marker.name == "covering" else _one_in(int(marker.args[0]), cases))
    return taken


def _marker(item: pytest.Item) -> pytest.Mark | None:
    """How few cases of its function run, by the marker that is closest to it; without parameters it is the only one."""
    if not hasattr(item, "callspec"):
        return None
    return next((marker for marker in item.iter_markers() if marker.name in ("sampled", "covering")), None)


def _number(item: pytest.Item) -> int:
    """Where a case stands among those of its function that chance takes: always at the same place."""
    return zlib.crc32(item.nodeid.encode())


def _one_in(share: int, cases: list[pytest.Item]) -> list[pytest.Item]:
    """One case in `share`; where chance takes none, the first."""
    return [case for case in cases if _number(case) % share == 0] or cases[:1]


def _covering(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Few cases that have every value of each parameter: one after the other that which has most of what is missing."""
    values = {case: set(enumerate(case.callspec._idlist)) for case in cases}  # type: ignore[attr-defined]
    missing = set().union(*values.values())
    found: list[pytest.Item] = []
    while missing:
        best = max(cases, key=lambda case: len(values[case] & missing))
        found.append(best)
        missing -= values[best]
    return found


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether snapshots are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def all_cases(request: pytest.FixtureRequest) -> bool:
    """Whether tests repeat what depends on chance as often as the figures in docs/ say."""
    return bool(request.config.getoption("--all"))


@pytest.fixture
def fresh_seeds(request: pytest.FixtureRequest) -> bool:
    """Whether random tests draw anew on every run."""
    return bool(request.config.getoption("--fresh-seeds"))


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    """How many random models are drawn, 0 for the test's own number."""
    return int(request.config.getoption("--examples"))
