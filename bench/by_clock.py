"""Ours beside ONNX Runtime and OpenVINO by the clock: `python bench/by_clock.py vit_base bert_base`, names or paths.

Each system is a process of its own with a thread for each core, and they take turns. `--busy` keeps another process
busy on each core, as on a machine with other work. What other processes took of the cores beside that stands above the
table: on a quiet machine it is next to nothing. `--avx2` and `--onnxruntime` are those of `one_core.py`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from markdown_tables import markdown
from served import HEADER, RUNS, add_processor, mean_row, medians, model_file, processor, row

SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--busy", action="store_true", help="with another busy process on each core")
    add_processor(parser)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    begin, before, found = time.perf_counter(), seconds_of_all(), []
    with busy(cores if arguments.busy else []):
        for name in arguments.models:
            found.append(medians(model_file(name), len(cores), arguments.turns, processor(arguments)))
    spent = (seconds_of_all() - before - seconds_of_own()) / (time.perf_counter() - begin)
    rows = [row(name, times) for name, times in zip(arguments.models, found, strict=True)]
    beside = "a busy process on each" if arguments.busy else "nothing else"
    runs = f"medians of {RUNS * arguments.turns} runs or more"
    print(f"{len(cores)} cores with {beside}, {runs}; others took {spent:.2f} cores\n")
    print(markdown(HEADER, [*rows, mean_row(found)]))
    return 0


@contextmanager
def busy(cores: list[int]) -> Iterator[None]:
    """A process on each of some cores that computes all the time."""
    processes = [subprocess.Popen([sys.executable, "-c", SPIN, str(core)]) for core in cores]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def seconds_of_all() -> float:
    """For which the cores have worked since the machine began."""
    with open("/proc/stat") as lines:
        user, nice, system, _idle, _wait, *interrupts = map(int, lines.readline().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def seconds_of_own() -> float:
    """Of the processor, by this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
