"""Systems that run a model in processes of their own and take turns: ours, ONNX Runtime, OpenVINO.

`one_core.py` gives each one thread and counts the processor's time, `by_clock.py` gives them all cores and a clock.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from networks import path

from smartmem_rules.benchmarking.peer_systems import SYSTEMS
from smartmem_rules.graph.zoo import save_materialized

RUNS, LEAST = 2, 200.0
"""The fewest runs of a system in each turn, and their milliseconds together: behind a pause, a processor takes tens of
milliseconds to be as fast as it is in a row of runs. One run before them does not count."""
NAMES = ("ours", "onnxruntime", "openvino")
HEADER = "model | ours, ms | ONNX Runtime | OpenVINO | ONNX Runtime / ours | the better / ours"
PAUSE = 0.05
"""Seconds before a turn: ONNX Runtime's threads spin for a while after a run."""


def medians(model: Path, threads: int, turns: int, environments: Mapping[str, Mapping[str, str]]) -> list[float]:
    """The medians of the systems of `NAMES` on a model, in milliseconds.

    Args:
        environments: variables by the system's name.
    """
    with tempfile.TemporaryDirectory(prefix="smartmem-turns-") as folder:
        complete, feeds = Path(folder) / "model.onnx", Path(folder) / "feeds.npz"
        save_materialized(model, complete)
        # ours comes first: it writes the inputs
        systems = [Served(name, complete, feeds, threads, environments.get(name, {})) for name in NAMES]
        for _ in range(turns):
            for system in systems:
                system.turn()
    return [system.close() for system in systems]


def add_processor(parser: argparse.ArgumentParser) -> None:
    """The options of what processor the systems see."""
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")
    parser.add_argument("--onnxruntime", default="", help="a folder that holds another build of the package")


def processor(arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The variables of each system for the options of `add_processor`."""
    environments: dict[str, dict[str, str]] = {name: {} for name in NAMES}
    if arguments.avx2:
        environments["ours"]["SMARTMEM_PROCESSOR"] = "x86-64-v3"
        environments["openvino"]["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    if arguments.onnxruntime:
        packages = arguments.onnxruntime + os.pathsep + os.environ.get("PYTHONPATH", "")
        environments["onnxruntime"]["PYTHONPATH"] = packages
    return environments


def row(name: str, times: list[float]) -> list[str]:
    """A line of the table."""
    ours, *others = times
    return [name, *(f"{ms:.1f}" for ms in times), *(f"{ratio:.2f}" for ratio in (others[0] / ours, min(others) / ours))]


def mean_row(found: list[list[float]]) -> list[str]:
    """The table's last line: geometric means of the ratios."""
    ratios = [[others[0] / ours, min(others) / ours] for ours, *others in found]
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
    return ["geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means)]


def model_file(name: str) -> Path:
    """A model by its name or its path."""
    return path(name) if path(name).exists() else Path(name)


class Refused(SystemExit):
    """A system does not run a model; the message says which, and why."""


class Served:
    """A system in a process of its own.

    Args:
        threads: that it may use; more than one are timed by the clock, one by the time of the processor.
        script: what the process runs: it takes the four arguments and answers as `answer_turns` does.
    """

    def __init__(
        self,
        system: str,
        model: Path,
        feeds: Path,
        threads: int,
        environment: Mapping[str, str],
        script: str = __file__,
    ) -> None:
        self.system = system
        self.found: list[float] = []
        self.process = subprocess.Popen(
            [sys.executable, script, system, str(model), str(feeds), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.answer()

    def answer(self) -> list[float]:
        """What it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended")
        said: list[float] | str = json.loads(line)
        if isinstance(said, str):
            self.process.wait()
            raise Refused(f"{self.system} does not run it: {said}")
        return said

    def turn(self) -> None:
        """Some runs."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self.found += self.answer()

    def close(self) -> float:
        """End it; the median of its runs, in milliseconds."""
        self.process.kill()
        self.process.wait()
        return statistics.median(self.found)


def serve(system: str, model: str, feeds: str, threads: int) -> None:
    """Run our plan or another system from arrays to arrays, as it is asked."""
    answer_turns(lambda: ours(model, feeds) if system == "ours" else peer(system, model, feeds, threads), threads)


def answer_turns(opened: Callable[[], Callable[[], object]], threads: int) -> None:
    """Answer each line with the milliseconds of some runs; what does not open, with the reason as a string.

    Args:
        opened: gives the function that runs a model once.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a system prints must not come between the answers
    clock = time.process_time if threads == 1 else time.perf_counter
    try:
        run = opened()
        for _ in range(3):
            run()
    except Exception as error:  # errors of other systems have no type in common
        answers.write(json.dumps(str(error).strip() or type(error).__name__) + "\n")
        return
    answers.write("[]\n")
    for _ in sys.stdin:
        time.sleep(PAUSE)
        answers.write(json.dumps(timed(run, clock)) + "\n")


def timed(run: Callable[[], object], clock: Callable[[], float]) -> list[float]:
    """The milliseconds of some runs in a row, behind one that does not count."""
    run()
    spent: list[float] = []
    while len(spent) < RUNS or sum(spent) < LEAST:
        begin = clock()
        run()
        spent.append((clock() - begin) * 1e3)
    return spent


def ours(model: str, feeds: str) -> Callable[[], object]:
    """Our plan's inference; its inputs go to the file."""
    import smartmem_rules

    plan = smartmem_rules.optimize(model)
    drawn: dict[str, Any] = plan.random_feeds()
    np.savez(feeds, **drawn)
    executor = plan.prepare()
    return lambda: executor.run(drawn)


def peer(system: str, model: str, feeds: str, threads: int) -> Callable[[], object]:
    """Another system's inference on the inputs of the file."""
    with np.load(feeds) as archive:
        drawn = {name: archive[name] for name in archive.files}
    opened = SYSTEMS[system][0](model, threads, "")
    return lambda: opened.run(drawn)


if __name__ == "__main__":
    system, model, feeds, threads = sys.argv[1:5]
    serve(system, model, feeds, int(threads))
