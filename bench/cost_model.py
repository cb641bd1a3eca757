"""docs/cost_model.md: what the cost model says of each launch, beside what the launch takes on this computer.

`python bench/cost_model.py --write docs/cost_model.md` plans and runs the models (`NAME ...` some) with the figures of
`smartmem calibrate`, if there are such, else with those of the rules; `--rules` leaves them out. A launch's time is the
shortest of `--runs`, because other processes only ever add.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markdown_tables import markdown, replace_table
from networks import path

from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.model_statistics import input_bounds
from smartmem_rules.plan.scheduling import schedule
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.feeds import random_feeds

MODELS = ("mobilenetv2", "resnet50", "swin_tiny", "efficientnet_b0", "convnext_tiny", "regnetx_032", "yolov8n", "mmoe")


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A launch: its name and form, and the microseconds that it should take and takes."""

    name: str
    form: str
    predicted: float
    measured: float


def main() -> int:
    """Measure, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--rules", action="store_true", help="without what `smartmem calibrate` found")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--launches", action="store_true", help="print each launch, too")
    arguments = parser.parse_args()
    if arguments.rules:
        os.environ["SMARTMEM_CALIBRATION"] = "off"
    rows, everything = [], []
    for name in arguments.models:
        found = launched(name, arguments.runs)
        everything += found
        rows.append(summary(name, found))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
        for one in found if arguments.launches else ():
            print(f"  {one.predicted:9.1f} {one.measured:9.1f}  {one.form}  {one.name[:80]}")
    rows.append(summary("all", everything))
    table = markdown("model | launches | rank correlation | typical factor | sum measured / modelled", rows)
    load = f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores."
    if arguments.write:
        replace_table(arguments.write, "rules" if arguments.rules else "calibrated", f"{table}\n\n{load}")
    else:
        print(f"{table}\n\n{load}")
    return 0


def launched(name: str, runs: int) -> list[Launched]:
    """The launches of a model's plan."""
    planning, target = make_planning(Request(path(name), (), "auto", "smartmem", "float32", "auto", (), {}))
    if target.device is None:
        raise SystemExit("there is no OpenCL device here")
    plan = finish(planning)
    executor = Executor(plan, target.device)
    feeds = random_feeds(executor.input_types, bounds=input_bounds(planning.graph))
    times = np.array([[ms for _, ms in executor.profile(feeds)] for _ in range(runs)]).min(axis=0)
    predicted = schedule(planning).modelled.microseconds()
    enqueued = [one.launch for one in plan.enqueues if all(one.source.global_size)]
    return [
        Launched(name=launch.name, form=launch.form, predicted=predicted[launch.name], measured=1e3 * float(ms))
        for launch, ms in zip(enqueued, times, strict=True)
    ]


def summary(name: str, found: Sequence[Launched]) -> list[str]:
    """A row: Spearman's correlation, and the factor that half of the launches stay within after scaling."""
    predicted, measured = (np.array([getattr(one, kind) for one in found]) for kind in ("predicted", "measured"))
    logs = np.log(measured / predicted)
    factor = math.exp(float(np.median(np.abs(logs - np.median(logs)))))
    ratio = f"{measured.sum() / predicted.sum():.2f}"
    return [name, str(len(found)), f"{rank_correlation(predicted, measured):.3f}", f"{factor:.2f}", ratio]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's, 1 where there is one launch only; equal values share their ranks."""
    if len(a) < 2:
        return 1.0
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse])


if __name__ == "__main__":
    sys.exit(main())
