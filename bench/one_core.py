"""Ours beside ONNX Runtime and OpenVINO on one core: `python bench/one_core.py mobilenetv2 resnet50`, names or paths.

Each system has one thread in a process of its own; they take turns, and what counts is the time of the processor, which
other work on the machine disturbs less than the clock. `--avx2` makes the machine one with AVX2: ours by
SMARTMEM_PROCESSOR, OpenVINO by ONEDNN_MAX_CPU_ISA. ONNX Runtime has no such variable; `--onnxruntime FOLDER` imports
another build of it from there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import markdown
from networks import path

from smartmem_rules.benchmarking.peer_systems import SYSTEMS
from smartmem_rules.graph.zoo import save_materialized

RUNS = 2
"""Of a system in each turn, behind one that does not count."""


def main() -> int:
    """Measure each model, then print; as a child, serve one system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--onnxruntime", default="", help="a folder that holds the package onnxruntime")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
        return 0
    rows = [row(name, arguments) for name in arguments.models]
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, medians of {RUNS * arguments.turns} runs\n")
    print(markdown("model | ours, ms | ONNX Runtime | OpenVINO | ONNX Runtime / ours | the better / ours", rows))
    return 0


def row(name: str, arguments: argparse.Namespace) -> list[str]:
    """The medians of a model."""
    model = path(name) if path(name).exists() else Path(name)
    with tempfile.TemporaryDirectory(prefix="smartmem-one-core-") as folder:
        complete, feeds = Path(folder) / "model.onnx", Path(folder) / "feeds.npz"
        save_materialized(model, complete)
        own = {"SMARTMEM_PROCESSOR": "x86-64-v3"} if arguments.avx2 else {}
        theirs = {"ONEDNN_MAX_CPU_ISA": "AVX2"} if arguments.avx2 else {}
        runtime = {"PYTHONPATH": arguments.onnxruntime + os.pathsep + os.environ.get("PYTHONPATH", "")}
        # ours comes first: it writes the inputs
        systems = [
            Served("ours", complete, feeds, own),
            Served("onnxruntime", complete, feeds, runtime if arguments.onnxruntime else {}),
            Served("openvino", complete, feeds, theirs),
        ]
        for _ in range(arguments.turns):
            for system in systems:
                system.turn()
    ours, runtime_ms, vino = (system.close() for system in systems)
    ratios = (runtime_ms / ours, min(runtime_ms, vino) / ours)
    return [name, *(f"{ms:.1f}" for ms in (ours, runtime_ms, vino)), *(f"{ratio:.2f}" for ratio in ratios)]


class Served:
    """A system in a process of its own, with one thread."""

    def __init__(self, system: str, model: Path, feeds: Path, environment: dict[str, str]) -> None:
        self.found: list[float] = []
        command = [sys.executable, __file__, "-", "--serve", system, str(model), str(feeds)]
        threads = {"POCL_MAX_PTHREAD_COUNT": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, **environment},
        )
        self.answer()

    def answer(self) -> list[float]:
        """What it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended")
        said: list[float] = json.loads(line)
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


def serve(system: str, model: str, feeds: str) -> None:
    """Answer each line with the milliseconds of some runs."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a system prints must not come between the answers
    run = ours(model, feeds) if system == "ours" else peer(system, model, feeds)
    for _ in range(3):
        run()
    answers.write("[]\n")
    for _ in sys.stdin:
        run()
        spent = []
        for _ in range(RUNS):
            begin = time.process_time()
            run()
            spent.append((time.process_time() - begin) * 1e3)
        answers.write(json.dumps(spent) + "\n")


def ours(model: str, feeds: str) -> Callable[[], object]:
    """Our plan's inference; its inputs go to the file."""
    import smartmem_rules

    plan = smartmem_rules.optimize(model)
    drawn: dict[str, Any] = plan.random_feeds()
    np.savez(feeds, **drawn)
    executor = plan.prepare()
    return lambda: executor.run(drawn)


def peer(system: str, model: str, feeds: str) -> Callable[[], object]:
    """Another system's inference on the inputs of the file."""
    with np.load(feeds) as archive:
        drawn = {name: archive[name] for name in archive.files}
    opened = SYSTEMS[system][0](model, 1, "")
    return lambda: opened.run(drawn)


if __name__ == "__main__":
    sys.exit(main())
