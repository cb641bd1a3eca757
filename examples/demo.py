"""The whole pipeline on Swin-T: optimize at two levels, check both against ONNX Runtime, and measure them in turns."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from smartmem_rules import OptimizedPlan, optimize
from smartmem_rules.cli.common import console, progress_display
from smartmem_rules.cli.tables import (
    print_benchmark,
    print_check,
    print_operators,
    print_seconds,
    print_summary,
    table,
)
from smartmem_rules.runtime.benchmarks import Contender, interleaved

MODEL = Path(__file__).parent / "models" / "swin_tiny.onnx"
LEVELS = ("none", "smartmem")
RUNS = 5


def main() -> int:
    """Print before and after; 1 if an output differs from the reference's."""
    screen = console()
    plans: dict[str, OptimizedPlan] = {}
    for level in LEVELS:
        screen.print(Rule(f"{MODEL.name}, level {level}", align="left"))
        with progress_display() as progress:
            plans[level] = optimize(MODEL, level=level, progress=progress)
            plans[level].check_or_reason()
        data = plans[level].report_data()
        if level == LEVELS[-1]:
            print_operators(screen, data)
            print_summary(screen, data)
        print_seconds(screen, data["seconds"])
        print_check(screen, data["check"])
    screen.print(Rule("level none beside level smartmem", align="left"))
    side_by_side(screen, plans)
    latency(screen, plans)
    return int(any(plan.last_check is not None and plan.last_check.passed is False for plan in plans.values()))


def side_by_side(screen: Console, plans: dict[str, OptimizedPlan]) -> None:
    """What the levels differ in."""
    reports = {level: plan.report_data() for level, plan in plans.items()}
    made = table("Plans", "", *reports)
    made.add_row("kernels", *(str(data["kernels"]) for data in reports.values()))
    made.add_row("kernels that only move data", *(str(data["layout_operators"]["after"]) for data in reports.values()))
    made.add_row("MB moved", *(f"{data['bytes_moved'] / 1e6:.1f}" for data in reports.values()))
    made.add_row("MB of intermediates", *(f"{d['intermediate_bytes']['reused'] / 1e6:.1f}" for d in reports.values()))
    errors = [plan.last_check.max_relative_error if plan.last_check else None for plan in plans.values()]
    made.add_row("largest relative error", *("-" if error is None else f"{error:.1e}" for error in errors))
    screen.print(made)


def latency(screen: Console, plans: dict[str, OptimizedPlan]) -> None:
    """The levels' runs take turns."""
    feeds = plans[LEVELS[0]].random_feeds()
    contenders = [
        Contender(
            name=level,
            run=lambda plan=plan: plan.run(feeds),
            kernels=len(plan.kernels),
            device=plan.prepare().device.name,
        )  # type: ignore[misc]
        for level, plan in plans.items()
    ]
    measured = interleaved(contenders, RUNS, warmup=1)
    print_benchmark(
        screen,
        [
            {"model": MODEL.stem, "level": level, "peer": None, **row}
            for level, row in zip(plans, measured, strict=True)
        ],
    )
    slow, fast = (row["median_ms"] for row in measured)
    screen.print(f"{LEVELS[1]} is {slow / fast:.1f} times as fast as {LEVELS[0]}")


if __name__ == "__main__":
    sys.exit(main())
