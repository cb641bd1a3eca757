"""Clients that load a server: `python -m examples.serving.load --clients 8 --seconds 600`.

It starts the server on a free port of this computer with the small model of this example, sends requests of one to
four images from each client, one after the other, and compares every answer. One in `--leaving` requests is given up
after a few milliseconds, its connection closed. It prints requests per second, the times that answers took, and the
server's memory by minute. Exit code 1: an answer was wrong or an error, or the memory grew after the first minute by
more than `GROWTH`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from kserve import InferInput, InferRequest, InferResponse

import smartmem_rules as sm
from examples.serving.model import MOST, build

NAME = "small"
GROWTH = 0.02
"""The share by which the largest memory of the last minutes may exceed that of the second: what allocators keep."""
TOLERANCE = 1e-5
_MIB = 1024


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request as bytes, and the answer that is right."""

    body: bytes
    headers: dict[str, str]
    answer: np.ndarray[Any, np.dtype[Any]]


@dataclass(kw_only=True)
class Measured:
    """What clients saw, and the server's memory.

    Attributes:
        seconds: each answer took.
        problems: what went wrong, and how often.
        memory: MiB after so many seconds.
    """

    seconds: list[float] = field(default_factory=list)
    left: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def by_minute(self) -> list[float]:
        """The most memory of each minute."""
        minutes: dict[int, float] = {}
        for after, size in self.memory:
            minutes[int(after // 60)] = max(minutes.get(int(after // 60), 0.0), size)
        return [minutes[minute] for minute in sorted(minutes)]

    def grew(self) -> bool:
        """Whether the memory grew after the first minute; unknown, so not, in less than three."""
        minutes = self.by_minute()
        return len(minutes) >= 3 and max(minutes[2:]) > minutes[1] * (1 + GROWTH)


def questions(plan: sm.OptimizedPlan, count: int = 32) -> list[Question]:
    """Requests for the plan's model, of one to four images, with what the plan itself answers."""
    found = []
    for seed in range(count):
        feeds = plan.random_feeds(seed, {"batch": 1 + seed % 4})
        image = InferInput("image", list(feeds["image"].shape), "FP32")
        image.set_data_from_numpy(feeds["image"], binary_data=True)
        request = InferRequest(NAME, [image], request_id=str(seed), parameters={"binary_data_output": True})
        body, length = request.to_rest()
        assert isinstance(body, bytes)
        headers = {"inference-header-content-length": str(length), "content-type": "application/octet-stream"}
        found.append(Question(body=body, headers=headers, answer=plan.run(feeds)["label"]))
    return found


async def client(url: str, asked: list[Question], until: float, leaving: int, seed: int, found: Measured) -> None:
    """Ask one question after the other until the time is over."""
    draw = random.Random(seed)
    connection = httpx.AsyncClient(base_url=url, timeout=60)
    try:
        while time.monotonic() < until:
            question = draw.choice(asked)
            if leaving and draw.randrange(leaving) == 0:
                await _leave(connection, question, draw.uniform(0, 0.02))
                found.left += 1
                await connection.aclose()
                connection = httpx.AsyncClient(base_url=url, timeout=60)
                continue
            start = time.perf_counter()
            problem = await _problem(connection, question)
            found.seconds.append(time.perf_counter() - start)
            if problem:
                found.problems[problem] += 1
    finally:
        await connection.aclose()


async def _leave(connection: httpx.AsyncClient, question: Question, after: float) -> None:
    sent = asyncio.create_task(_problem(connection, question))
    await asyncio.sleep(after)
    sent.cancel()
    await asyncio.gather(sent, return_exceptions=True)


async def _problem(connection: httpx.AsyncClient, question: Question) -> str:
    """What is wrong with the answer to a question; empty if nothing is."""
    path = f"/v2/models/{NAME}/infer"
    try:
        response = await connection.post(path, content=question.body, headers=question.headers)
    except httpx.HTTPError as error:
        return type(error).__name__
    if response.status_code != 200:
        return f"status {response.status_code}: {response.text[:200]}"
    length = int(response.headers["inference-header-content-length"])
    (output,) = InferResponse.from_bytes(response.content, length).outputs
    right = np.allclose(output.as_numpy(), question.answer, rtol=0, atol=TOLERANCE)
    return "" if right else "a wrong answer"


async def load(url: str, process: int, asked: list[Question], clients: int, seconds: float, leaving: int) -> Measured:
    """Let some clients ask for some seconds."""
    found = Measured()
    begin = time.monotonic()
    watching = asyncio.create_task(_watch(process, begin, found))
    await asyncio.gather(*(client(url, asked, begin + seconds, leaving, number, found) for number in range(clients)))
    watching.cancel()
    return found


async def _watch(process: int, begin: float, found: Measured) -> None:
    while True:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        size = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        found.memory.append((time.monotonic() - begin, size / _MIB))
        await asyncio.sleep(1)


def main() -> int:
    """Load a server of this computer and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--leaving", type=int, default=50, help="one request in so many is given up; 0: none")
    arguments = parser.parse_args()
    plan = sm.optimize(build(), dims={"batch": (1, MOST)})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.plan"
        plan.save(file)
        command = [sys.executable, "-m", "examples.serving.server", f"{NAME}={file}", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            asked = questions(plan)
            found = asyncio.run(load(url, server.pid, asked, arguments.clients, arguments.seconds, arguments.leaving))
            server.send_signal(signal.SIGINT)
            said = server.stdout.read()
    print(said, end="")
    report(found, arguments.clients, arguments.seconds)
    return int(bool(found.problems) or found.grew() or server.returncode != 0)


def report(found: Measured, clients: int, seconds: float) -> None:
    """Print the figures."""
    count = len(found.seconds)
    print(f"{clients} clients, {seconds:.0f} s: {count} answers, {count / seconds:.0f} per second; {found.left} left")
    shares = (50, 90, 99, 99.9, 100)
    times = np.percentile(found.seconds, shares) * 1e3
    print("milliseconds: " + ", ".join(f"{share} % {time_:.1f}" for share, time_ in zip(shares, times, strict=True)))
    print("MiB by minute: " + ", ".join(f"{size:.0f}" for size in found.by_minute()))
    for problem, times_ in found.problems.most_common():
        print(f"{times_} times: {problem}")
    print("the memory grew" if found.grew() else "no growth" if len(found.by_minute()) >= 3 else "too short to say")


if __name__ == "__main__":
    sys.exit(main())
