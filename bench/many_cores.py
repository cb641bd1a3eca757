"""Simulated: how many cores of a processor with more cores than this one have work, by the numbers of work-items.

`python bench/many_cores.py` plans models for 2, 16 and 64 cores of the device at hand (`SMARTMEM_COMPUTE_UNITS`) and
prints launches, and the share of the cores that work: each launch counts by its scalar operations, and its work-items,
taken as equally long, by the rounds that so many cores take for them. Nothing runs; what cores wait for in memory, and
what a launch costs, is not in it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys

from markdown_tables import markdown
from networks import path

from smartmem_rules.environment import COMPUTE_UNITS
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.planned import plan_only

MODELS = ("mobilenetv2", "vit_base", "swin_tiny", "resnet50", "bert_base", "convnext_tiny")
CORES = (2, 16, 64)


def main() -> int:
    """Plan and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--cores", type=int, nargs="+", default=list(CORES))
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        row = [name]
        for cores in arguments.cores:
            os.environ[COMPUTE_UNITS.name] = str(cores)
            plan = plan_only(path(name), device="pocl")
            row += [str(len(plan.launches)), f"{share(plan, cores):.0%}"]
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    header = ["model", *(text for n in arguments.cores for text in (f"launches, {n} cores", f"cores at work, {n}"))]
    print(markdown(" | ".join(header), rows))
    return 0


def share(plan: Plan, cores: int) -> float:
    """The share of the cores that work, over all launches."""
    parts = [part for launch in plan.launches for part in enqueued(launch)]
    work = sum(operations for operations, _ in parts)
    return work / sum(operations * math.ceil(items / cores) * cores / items for operations, items in parts)


def enqueued(launch: Launch) -> list[tuple[int, int]]:
    """Scalar operations and work-items of what a launch runs at once, or of its tasks."""
    if launch.form == "ordered":
        return [part for step in launch.steps for part in enqueued(step)]
    assert launch.grid is not None
    return [(sum(kernel.operations for kernel in launch.kernels), launch.grid.items)]


if __name__ == "__main__":
    sys.exit(main())
