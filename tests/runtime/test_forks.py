"""Fork after use: a child gets an error that says what to do, and the parent's plan goes on working."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules import load
from smartmem_rules.runtime.devices import choose, devices
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.plan_file import save_plan
from tests.plan.models import normal
from tests.runtime.plans import make_plan

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SECONDS = 20


def said_by_child(act: Callable[[], object], log: Path) -> str:
    """What `act` raises in a fork of this process; the fork is ended where it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            act()
            log.write_text("nothing")
        except BaseException as error:  # the child must not go on with the tests
            log.write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child hangs"
    return log.read_text()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "tiny.plan"
    save_plan(make_plan(), path)
    plan = load(path)
    feeds = {"x": normal(6, 10)}
    expected = plan.run(feeds)["y"]
    acts: list[Callable[[], object]] = [
        lambda: plan.run(feeds),
        lambda: plan.prepare(),
        lambda: load(path),
        devices,
        lambda: Executor(plan.plan, choose()),
    ]
    for number, act in enumerate(acts):
        said = said_by_child(act, tmp_path / f"log{number}")
        assert "is a fork of process" in said, said
        assert "spawn" in said
    np.testing.assert_array_equal(plan.run(feeds)["y"], expected)


def test_a_fork_before_the_first_use_opens_the_device_itself(tmp_path: Path) -> None:
    path = tmp_path / "tiny.plan"
    save_plan(make_plan(), path)
    code = (
        "import os, sys, numpy as np, smartmem_rules as sm\n"
        "child = os.fork()\n"
        "y = sm.load(sys.argv[1]).run({'x': np.ones((6, 10), np.float32)})['y']\n"
        "assert y[0, 0] == 2 and y[5, 9] == 2 * (1 + 59 / 8)\n"
        "assert child == 0 or os.waitpid(child, 0)[1] == 0\n"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code, str(path)]) == 0
