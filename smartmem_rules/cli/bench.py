"""`smartmem bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli.common import (
    console,
    json_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
)
from smartmem_rules.cli.tables import print_benchmark

if TYPE_CHECKING:
    from smartmem_rules.api import OptimizedPlan
    from smartmem_rules.runtime.benchmarks import Contender

PEERS = ("onnxruntime",)


@click.command("bench")
@click.argument("models", metavar="MODEL|PLAN ...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--level", "levels", multiple=True, help="Repeatable, or separated by commas; default smartmem.")
@optimize_options
@click.option("--runs", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--warmup", default=2, show_default=True, type=click.IntRange(min=0))
@click.option("--against", "peers", multiple=True, type=click.Choice(PEERS), help="Another system, in the same run.")
@json_option
@reports_errors
def command(
    models: tuple[Path, ...],
    levels: tuple[str, ...],
    runs: int,
    warmup: int,
    peers: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Measure models at one or several levels; the runs of all that is compared take turns."""
    from smartmem_rules.runtime.benchmarks import interleaved

    how["disable"] = names(how["disable"])
    results: list[dict[str, Any]] = []
    for model in models:
        contenders = _contenders(model, names(levels) or ["smartmem"], peers, how)
        with progress_display() as progress:
            progress("measure", 0, 1)
            measured = interleaved([contender for _, contender in contenders], runs, warmup)
        results += [{**label, **row} for (label, _), row in zip(contenders, measured, strict=True)]
    if as_json:
        print_json({"results": results})
    else:
        print_benchmark(console(), results)


def _contenders(
    model: Path, levels: list[str], peers: tuple[str, ...], how: dict[str, Any]
) -> list[tuple[dict[str, Any], Contender]]:
    from smartmem_rules.api import load, optimize
    from smartmem_rules.runtime.plan_file import is_plan_file

    if is_plan_file(model):
        if peers:
            raise click.UsageError(f"{model} is a plan; other systems need the model")
        plans = [load(model, how["device"])]
    else:
        with progress_display() as progress:
            plans = [optimize(model, level=level, progress=progress, **how) for level in levels]
    made = [_of_plan(plan) for plan in plans]
    return made + [_of_peer(model, peer, plans[0]) for peer in peers]


def _of_plan(plan: OptimizedPlan) -> tuple[dict[str, Any], Contender]:
    from smartmem_rules.runtime.benchmarks import Contender

    executor = plan.prepare()
    feeds = plan.random_feeds()
    label = {"model": plan.plan.model, "level": plan.plan.level, "peer": None}
    return label, Contender(plan.plan.level, lambda: executor.run(feeds), len(plan.kernels), executor.device.name)


def _of_peer(model: Path, peer: str, plan: OptimizedPlan) -> tuple[dict[str, Any], Contender]:
    from smartmem_rules.runtime.benchmarks import Contender
    from smartmem_rules.runtime.reference import open_reference

    reference = open_reference(model, (peer,))
    feeds = plan.random_feeds()
    label = {"model": plan.plan.model, "level": None, "peer": peer}
    return label, Contender(peer, lambda: reference.run(feeds), None, "CPU")
