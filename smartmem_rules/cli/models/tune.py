"""`smartmem tune`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli.common import (
    console,
    json_option,
    level_option,
    names,
    optimize_options,
    print_json,
    reports_errors,
)
from smartmem_rules.cli.verbosity import is_quiet

if TYPE_CHECKING:
    from smartmem_rules.tuning.workers import Workers

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _budget(context: click.Context, option: click.Parameter, value: str) -> float:
    del context, option
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])?", value)
    if not found or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is no time such as 30s, 5m or 1h")
    return float(found[1]) * _UNITS[found[2] or "s"]


@click.command("tune")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--budget", default="5m", show_default=True, callback=_budget, help="Time for the search: 30s, 5m, 1h.")
@level_option
@optimize_options
@click.option("--seed", default=0, show_default=True, help="Of the evolution and of the operands.")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers measure, such as tcp://host:8786.")
@click.option("--export", "exported", type=click.Path(path_type=Path, dir_okay=False), help="Also write the results.")
@json_option
@reports_errors
def command(
    model: Path,
    budget: float,
    level: str,
    seed: int,
    scheduler: str | None,
    exported: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Find the fastest sizes of MODEL's kernels by measuring them on the device.

    What is found is used by every later `optimize` on this device. Ctrl-C ends the search and keeps what it found;
    another call goes on where the last one ended.
    """
    from smartmem_rules.pipeline import Request, make_planning  # start-up time
    from smartmem_rules.runtime.devices import DeviceError  # start-up time
    from smartmem_rules.tuning.database import Tunings, export  # start-up time
    from smartmem_rules.tuning.tuner import Tuner  # start-up time

    request = Request(
        model, how["rules"], how["device"], level, how["dtype"], how["memory"], names(how["disable"]), how["dims"],
        limits=how["limits"],
    )  # fmt: skip
    planning, target = make_planning(request)
    if target.device is None:
        raise DeviceError(f"there is no OpenCL device here to measure kernels for {target.name}")
    database = Tunings.of_user()
    with _workers(scheduler) as workers, _display(as_json or is_quiet()) as progress:
        tuner = Tuner(planning, target.device, database, workers, budget, seed, progress)
        report = tuner.run()
    if exported is not None:
        found = [one.tuned for one in report.targets if one.tuned is not None]
        # the cost model's own sizes are not pinned: a better model may choose others
        export(tuner.place, [one for one in found if one.best_ms < one.default_ms], exported)
    data = {
        "model": model.stem,
        "device": target.device.name,
        "driver": target.device.driver,
        "level": level,
        "dtype": how["dtype"],
        "budget": budget,
        "seed": seed,
        "database": None if database.path is None else str(database.path),
        **report.data(),
    }
    if as_json:
        print_json(data)
    else:
        _print(data)


@contextmanager
def _workers(scheduler: str | None) -> Iterator[Workers]:
    from smartmem_rules.tuning.workers import DaskWorkers, LocalWorker  # start-up time

    if scheduler is None:
        yield LocalWorker()
        return
    workers = DaskWorkers(scheduler)
    try:
        yield workers
    finally:
        workers.close()


@contextmanager
def _display(quiet: bool) -> Iterator[Callable[[float, float, str], None]]:
    """A bar that shows the best latency so far; nothing where stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda used, best, label: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("tuning"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[best]}  {task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=1.0, best="")

        def show(used: float, best: float, label: str) -> None:
            bars.update(task, completed=used, description=label, best=f"best {best:.2f} ms")

        yield show


def _print(data: Mapping[str, Any]) -> None:
    from smartmem_rules.cli.tables import number, table  # start-up time

    made = table(
        f"{data['model']} on {data['device']}", "kernel", "of them", "share", "tried", "default ms", "best ms", "choice"
    )
    for one in data["kernels"]:
        sizes = " ".join(f"{key} {value}" for key, value in one["choice"].items())
        made.add_row(
            one["label"],
            str(one["count"]),
            f"{one['share']:.1%}",
            f"{one['trials']}/{one['choices']}",
            number(one["default_ms"], ".3f"),
            number(one["best_ms"], ".3f"),
            "as by default" if one["choice"] == one["default"] else sizes,
        )
    screen = console()
    screen.print(made)
    if data["interrupted"]:
        screen.print("interrupted; what was found is kept, and the next call goes on from here")
    else:
        screen.print(f"whole model: {number(data['before_ms'])} ms before, {number(data['after_ms'])} ms after")
    mean = data["cost_model"]["mean_ratio"]
    if mean is not None:
        largest = data["cost_model"]["largest_ratio"]
        screen.print(f"the cost model's sizes take {mean:.2f} times as long on average, {largest:.2f} times at most")
    for failure in data["failures"]:
        screen.print(f"not usable: {failure}", markup=False)
