"""One plan for a range of extents, checked and timed at several: `python bench/dynamic.py [MODEL ...] [--json]`.

For each model the table gives the kernels of the plan, and at each extent the largest error against ONNX Runtime and
the milliseconds of both (medians of interleaved runs).  Exit code 1 if an error exceeds the tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from smartmem_rules import OptimizedPlan, optimize
from smartmem_rules.resources import models_path
from smartmem_rules.runtime.benchmarks import Contender, interleaved
from smartmem_rules.runtime.reference import ONNXRUNTIME, TOLERANCES, Reference, check_outputs, open_reference

RUNS = 3


@dataclass(frozen=True)
class Case:
    """The dimensions of a plan and the extents of the open one at which it is checked."""

    dims: dict[str, int | tuple[int, int]]
    dimension: str
    extents: tuple[int, ...]


SEQUENCE = Case({"batch": 1, "sequence": (1, 512)}, "sequence", (1, 13, 64, 200, 512))
CASES = {
    "bert_base": SEQUENCE,
    "pythia_70m": SEQUENCE,
    "whisper_tiny_encoder": Case({"batch": (1, 8)}, "batch", (1, 2, 3, 5, 8)),
}


def main() -> int:
    """Print the table, or the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--runs", type=int, default=RUNS, help="timed runs of each system at each extent")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.models or CASES:
        rows += measured(name, CASES[name], arguments.runs, show=not arguments.json)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0 if all(row["passed"] for row in rows) else 1


def measured(name: str, case: Case, runs: int, show: bool) -> list[dict[str, Any]]:
    """A row for each extent."""
    path = models_path() / "dynamic" / f"{name}.onnx"
    plan = optimize(path, dims=case.dims)
    reference = open_reference(path, (ONNXRUNTIME,))
    low, high = plan.dimensions[case.dimension]
    if show:
        seconds = plan.plan.statistics.seconds["total"]
        print(f"{name}: {case.dimension} {low}..{high}, {len(plan.kernels)} kernels, planned in {seconds:.1f} s")
        print(f"{case.dimension:>12} {'error':>10} {'plan ms':>10} {'onnxruntime ms':>15}")
    rows = []
    for extent in case.extents:
        row = {"model": name, "kernels": len(plan.kernels), case.dimension: extent}
        row |= _compared(plan, reference, {case.dimension: extent}, runs)
        rows.append(row)
        if show:
            print(
                f"{extent:>12} {row['error']:>10.1e} {row['plan_ms']:>10.1f} {row['onnxruntime_ms']:>15.1f}", flush=True
            )
    return rows


def _compared(plan: OptimizedPlan, reference: Reference, extents: dict[str, int], runs: int) -> dict[str, Any]:
    feeds = plan.random_feeds(0, extents)
    tolerance = TOLERANCES[plan.plan.dtype]
    check = check_outputs(plan.run(feeds), reference.run(feeds), reference.name, tolerance, 0)
    contenders = [
        Contender(name="plan", run=lambda: plan.run(feeds), kernels=len(plan.kernels), device=""),
        Contender(name=reference.name, run=lambda: reference.run(feeds), kernels=None, device=""),
    ]
    own, other = interleaved(contenders, runs, warmup=1)
    return {
        "error": check.max_relative_error,
        "passed": check.passed,
        "plan_ms": own["median_ms"],
        "onnxruntime_ms": other["median_ms"],
    }


if __name__ == "__main__":
    sys.exit(main())
