"""An input hangs by the time of the processor that it takes, not by what else a machine has to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from tests.damage.watching import too_long

LIMIT = 1.0


def computes_without_end(sender: Connection) -> None:
    del sender
    while True:
        pass


def waits_without_end(sender: Connection) -> None:
    del sender
    time.sleep(600)


def computes_little_for_long(sender: Connection) -> None:
    """A fifth of the limit, spread over twice the limit by the clock: so is a process beside many others."""
    for _ in range(10):
        end = time.process_time() + LIMIT / 50
        while time.process_time() < end:
            pass
        time.sleep(LIMIT / 5)
    sender.send("answer")


def ends_without_answer(sender: Connection) -> None:
    sender.close()


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (computes_without_end, "no answer in 1 s of the processor"),
        (waits_without_end, "no answer, and nothing computed in 1 s"),
        (computes_little_for_long, ""),
        (ends_without_answer, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_counts_as_hanging(does: Callable[[Connection], None], why: str) -> None:
    processes = get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    child = processes.Process(target=does, args=(sender,), daemon=True)
    child.start()
    sender.close()
    assert child.pid is not None
    try:
        assert too_long(receiver, child.pid, LIMIT) == why
    finally:
        child.kill()
        child.join(10)
        receiver.close()
