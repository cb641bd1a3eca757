"""What `optimize` takes the first and the second time: seconds without the OpenCL compiler, and memory.

`python bench/optimize_times.py swin_tiny vit_base stack96` optimizes each model for `pocl` in processes of its own: the
first one with an empty store of plans, the second one finds the plan there. `stackN` is the stack of N blocks of
`growth.py`, other names are those of the models that come with the project, or paths. Printed are seconds by the clock
without the stage `build`, those of the processor for the whole process, and the peak of memory. Programs of kernels
and checked rules are kept in the user's cache, as for every user but a new one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
from growth import stack
from markdown_tables import markdown
from networks import path

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "stack"


def measured(model: str) -> dict[str, Any]:
    """Optimize a model in this process, which did nothing before."""
    import smartmem_rules

    plan = smartmem_rules.optimize(model, device="pocl")
    seconds = plan.report_data()["seconds"]
    used = time.process_time()
    return {
        "from_cache": plan.report_data()["from_cache"],
        "seconds": seconds["total"] - seconds["build"],
        "build": seconds["build"],
        "processor": used,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def apart(model: Path, plans: str) -> dict[str, Any]:
    """The figures of a process of its own."""
    environment = {**os.environ, "SMARTMEM_PLANS": plans, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the package anew
    command = [sys.executable, __file__, "--one", str(model)]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    one: dict[str, Any] = json.loads(ran.stdout)
    return one


def row(name: str, model: Path, runs: int) -> list[str]:
    """The medians of a model."""
    first, second = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="smartmem-plans-") as plans:
            first.append(apart(model, plans))
            second.append(apart(model, plans))
    if any(one["from_cache"] for one in first) or not all(one["from_cache"] for one in second):
        raise SystemExit(f"{name}: the plan was found the first time, or made the second time")
    cells = [name]
    for ones in (first, second):
        cells += [f"{statistics.median(one[key] for one in ones):.2f}" for key in ("seconds", "processor")]
        cells.append(f"{statistics.median(one['peak'] for one in ones):.0f}")
    return cells


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["swin_tiny", "vit_base", "stack96"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one)))
        return 0
    rows = []
    with tempfile.TemporaryDirectory(prefix="smartmem-models-") as made:
        for name in arguments.names:
            model = path(name)
            if name.startswith(PREFIX) and not model.exists():
                model = Path(made) / f"{name}.onnx"
                onnx.save(stack(int(name.removeprefix(PREFIX))), model)
            elif not model.exists():
                model = Path(name)
            rows.append(row(name, model, arguments.runs))
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {arguments.runs}\n")
    print(markdown("model | first, s | of CPU | peak, MiB | again, s | of CPU | peak, MiB", rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
