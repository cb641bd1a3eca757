"""Damaged inputs in a process of their own, which may hang, be killed, or run out of memory."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from tests.damage.watching import too_long

Case = tuple[str, int]
"""A kind of damage and a number."""
_ADDRESS_SPACE = 12 << 30
"""Of which the compiler of OpenCL C and the thread pools take a few gigabytes that they never touch."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        outcome: `accepted`, `refused`, `bug`, `hang` or `signal`.
        text: the message, the traceback, or the signal.
        seconds: processor time.
        megabytes: by how much the case raised the peak of the memory in use.
    """

    kind: str
    number: int
    outcome: str
    text: str
    seconds: float
    megabytes: float

    @property
    def bad(self) -> bool:
        """Whether this is to be mended."""
        return self.outcome not in ("accepted", "refused")


def outcomes(cases: Sequence[Case], seconds: float, few: bool = False) -> Iterator[Outcome]:
    """The outcomes in order; a new process takes over where one hung or died.

    Args:
        seconds: of the processor, after which a case counts as hanging.
        few: draw from the models only that are quick to make.
    """
    rest = list(cases)
    processes = get_context("spawn")
    while rest:
        receiver, sender = processes.Pipe(duplex=False)
        child = processes.Process(target=_work, args=(sender, rest, few), daemon=True)
        child.start()
        sender.close()
        allowed = seconds + 120  # the first case waits for the imports and the corpus
        while rest:
            hangs = too_long(receiver, child.pid or 0, allowed)
            allowed = seconds
            try:
                outcome = None if hangs else receiver.recv()
            except EOFError:
                outcome = None
            if outcome is None:
                child.kill() if hangs else None
                child.join(10)
                kind, number = rest.pop(0)
                how = hangs or _signal(child.exitcode)
                yield Outcome(kind, number, "hang" if hangs else "signal", how, seconds, 0.0)
                break
            rest.pop(0)
            yield outcome
        child.join(5)


def _signal(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _work(sender: Connection, cases: Sequence[Case], few: bool) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from tests.damage.cases import judge

    with tempfile.TemporaryDirectory(prefix="damage-") as folder:
        for kind, number in cases:
            before = _reset_peak()
            start = time.process_time()
            verdict = judge(kind, number, Path(folder), few)
            used = time.process_time() - start
            sender.send(Outcome(kind, number, verdict.outcome, verdict.text, used, _peak() - before))


def _reset_peak() -> float:
    """Begin to measure the peak anew; megabytes in use now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _status(key: str) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0
