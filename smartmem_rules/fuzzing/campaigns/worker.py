"""A process that judges cases, and its other end: a case that ends the process or never ends is a result, too.

`python -m smartmem_rules.fuzzing.campaigns.worker` reads one request a line, JSON data, and answers each with two
lines: the first one as soon as it has the case.  A model is computed by ONNX Runtime while it is drawn; what ends the
process or hangs before the first line is not ours.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from smartmem_rules.environment import PLANS
from smartmem_rules.fuzzing.case import Case
from smartmem_rules.fuzzing.judge import CRASH, ERROR, HANG, NO_REFERENCE, Verdict
from smartmem_rules.fuzzing.requests import Extras, Request

SECONDS = 120.0
"""How long a case may take; small ones take one or two seconds."""
_FATAL = "Fatal Python error"
"""How Python begins when a signal ends it."""
_LIFETIME = 150
"""Cases after which a process is replaced, so that one's leaks are not another's failure."""


class Worker:
    """A process that judges one case at a time; a new one is started where it has ended."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.process: subprocess.Popen[bytes] | None = None
        self.answered = 0
        self.unread = b""
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the worker is

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self.errors.close()

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def judge_case(self, case: Case) -> Verdict:
        """What becomes of a case."""
        with tempfile.TemporaryDirectory(prefix="smartmem-fuzz-") as folder:
            return self.ask({"file": str(case.save(Path(folder)))})[0]

    def ask(self, request: Request) -> tuple[Verdict, Extras]:
        """The verdict, and the answer with what else it says (`operators`, `mode`)."""
        if self.process is None or self.answered >= _LIFETIME:
            self._start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        self.unread = b""
        has_case = self._line(process.stdout)
        line = self._line(process.stdout) if has_case else has_case
        if line is None:
            self.stop()
            return Verdict(HANG if has_case else NO_REFERENCE, f"no answer within {self.seconds:.0f} s"), {}
        if not line:
            code = process.wait()
            self.process = None
            by_signal = CRASH if has_case else NO_REFERENCE
            return Verdict(by_signal if code < 0 else CRASH, f"{_ending(code)}\n{self._last_errors()}"), {}
        self.answered += 1
        answer = json.loads(line)
        verdict = Verdict(**answer.pop("verdict"))
        if verdict.kind == ERROR:  # a device may be of no use to a process any more in which a kernel went wrong
            self.stop()
        return verdict, answer

    def _start(self) -> None:
        self.stop()
        self.answered = 0
        self.errors.seek(0)
        self.errors.truncate()
        self.process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, PLANS.name: "off"},  # no model comes twice
        )

    def _line(self, stream: IO[bytes]) -> bytes | None:
        """The next line; empty where the process has ended, None where it says nothing in time."""
        while b"\n" not in self.unread:
            ready, _, _ = select.select([stream], [], [], self.seconds)
            if not ready:
                return None
            # the stream's own buffer would take both lines of a quick answer, and `select` does not see them there
            part = os.read(stream.fileno(), 1 << 16)
            if not part:
                return b""
            self.unread += part
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def _last_errors(self) -> str:
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        fatal = text.find(_FATAL)  # the frames that were running come first, and what follows is long
        return text[-1500:] if fatal < 0 else text[fatal : fatal + 3000]


def _ending(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"


def main() -> None:
    """Answer requests until there are no more."""
    from smartmem_rules.fuzzing.campaigns.answers import answer  # start-up time

    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print is no answer

    def write(data: Any) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    for line in sys.stdin:
        write(answer(json.loads(line), made=lambda: write("the case is made")))


if __name__ == "__main__":
    main()
