"""Models in each type of floats on one GPU, in turns: times, errors, and how long their kernels took to build.

`python bench/gpu_models.py` prints a row for each of the paper's networks, or for those that are named: medians in
milliseconds from host to host, the largest error relative to ONNX Runtime's largest output in single precision, and
seconds of the stage `build`. These are of a cold build where `SMARTMEM_CACHE` names an empty folder and the
driver keeps nothing (`CUDA_CACHE_DISABLE=1`). Each model runs in a process of its own, for at most `--seconds`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
from markdown_tables import markdown
from networks import PAPER, path

from smartmem_rules import optimize
from smartmem_rules.runtime.benchmarks import Contender, interleaved
from smartmem_rules.runtime.reference import NoReferenceError, open_reference

DTYPES = ("float32", "float16", "bfloat16")


def main() -> int:
    """Measure and print; 1 if a model fails or halves are slower than single precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(PAPER), help="names of examples/models")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each model")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.models[0], arguments.device, arguments.dtypes, arguments.runs)))
        return 0
    rows, right = [], True
    for name in arguments.models:
        how = ["--device", arguments.device, "--runs", str(arguments.runs), "--dtypes", *arguments.dtypes]
        found = apart(name, how, arguments.seconds)
        row, fine = cells(name, found, arguments.dtypes)
        rows.append(row)
        right &= fine
        print(" | ".join(row), flush=True)
    header = ["model", "kernels", *arguments.dtypes, *(f"error {d}" for d in arguments.dtypes)]
    print(markdown(" | ".join([*header, *(f"build {d} s" for d in arguments.dtypes), "float32 / float16"]), rows))
    return int(not right)


def apart(name: str, how: list[str], seconds: float) -> dict[str, Any]:
    """What a process of its own finds out about a model, or the error."""
    command = [sys.executable, __file__, "--one", name, *how]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {seconds:g} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"exit code {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measured(name: str, device: str, dtypes: list[str], runs: int) -> dict[str, Any]:
    """Times, errors and seconds by the type of floats."""
    plans = {dtype: optimize(path(name), device=device, dtype=dtype) for dtype in dtypes}
    feeds = plans[dtypes[0]].random_feeds()
    contenders = [
        Contender(name=dtype, run=partial(plan.run, feeds), kernels=len(plan.kernels), device=device)
        for dtype, plan in plans.items()
    ]
    rows = interleaved(contenders, runs)
    times = {dtype: row["median_ms"] for dtype, row in zip(dtypes, rows, strict=True)}
    try:
        wanted = open_reference(path(name)).run(feeds)
        errors = {dtype: error(plan.run(feeds), wanted) for dtype, plan in plans.items()}
    except NoReferenceError:
        errors = {}
    seconds = {dtype: plan.plan.statistics.seconds.get("build", 0.0) for dtype, plan in plans.items()}
    return {"times": times, "errors": errors, "seconds": seconds, "kernels": [len(p.kernels) for p in plans.values()]}


def error(outputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The largest difference relative to the largest value, of all outputs."""
    found = 0.0
    for name, values in wanted.items():
        scale = float(np.abs(values.astype(np.float64)).max(initial=0.0)) or 1.0
        found = max(found, float(np.abs(outputs[name].astype(np.float64) - values).max(initial=0.0)) / scale)
    return found


def cells(name: str, found: dict[str, Any], dtypes: list[str]) -> tuple[list[str], bool]:
    """A row, and whether no type is slower than single precision."""
    if "error" in found:
        return [name, found["error"], *[""] * (3 * len(dtypes) + 1)], False
    times, errors, seconds = found["times"], found["errors"], found["seconds"]
    ratio = times["float32"] / times["float16"] if {"float32", "float16"} <= times.keys() else 0.0
    return [
        name,
        " / ".join(map(str, found["kernels"])),
        *(f"{times[d]:.2f}" for d in dtypes),
        *(f"{errors[d]:.1e}" if d in errors else "-" for d in dtypes),
        *(f"{seconds[d]:.1f}" for d in dtypes),
        f"{ratio:.2f}x" if ratio else "-",
    ], not ratio or ratio >= 1


if __name__ == "__main__":
    sys.exit(main())
