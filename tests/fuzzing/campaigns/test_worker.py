"""A process that ends or hangs is a result, and its fault is told from that of what draws the case."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from smartmem_rules.fuzzing.campaigns.worker import Worker
from smartmem_rules.fuzzing.judge import CRASH, HANG, NO_REFERENCE

MADE = "print('\"the case is made\"', flush=True);"


class _Ending(Worker):
    def __init__(self, code: str) -> None:
        super().__init__(seconds=1.0)
        self.code = code

    def _start(self) -> None:
        command = [sys.executable, "-c", f"import os, time; input(); {self.code}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("os.abort()", NO_REFERENCE),
        ("time.sleep(60)", NO_REFERENCE),
        ("1 / 0", CRASH),
        (MADE + "os.abort()", CRASH),
        (MADE + "time.sleep(60)", HANG),
        (MADE + "1 / 0", CRASH),
    ],
)
def test_what_ends_the_process_before_there_is_a_case_is_not_ours(code: str, verdict: str) -> None:
    with _Ending(code) as worker:
        assert worker.ask({})[0].kind == verdict


def test_two_lines_that_come_at_once_are_an_answer() -> None:
    answer = json.dumps({"verdict": {"kind": "refused"}})
    lines = f'"the case is made"\n{answer}\n'.encode()
    with _Ending(f"os.write(1, {lines!r}); time.sleep(60)") as worker:
        assert worker.ask({})[0].kind == "refused"
