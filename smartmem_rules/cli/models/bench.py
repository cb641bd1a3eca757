"""`smartmem bench`."""

from __future__ import annotations

import csv
import functools
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import (
    answer_no,
    console,
    fail,
    json_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    remark,
    reports_errors,
)

if TYPE_CHECKING:
    from smartmem_rules.api import OptimizedPlan
    from smartmem_rules.runtime.benchmarks import Contender
    from smartmem_rules.runtime.reference import ComparedOutputs
    from smartmem_rules.schema.runs import BenchLabel, BenchReport, BenchRow, PeerCheck, SkippedPeer

_COLUMNS = (
    "model", "level", "peer", "device", "kernels", "median_ms", "min_ms", "max_ms", "quartile_1_ms", "quartile_3_ms",
    "runs", "max_relative_error",
)  # fmt: skip


@click.command("bench")
@click.argument("models", metavar="MODEL|PLAN ...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--level",
    "--levels",
    "levels",
    multiple=True,
    shell_complete=choices.offered(choices.levels_or_all, separated=True),
    help="Levels, separated by commas, or `all`.",
)
@optimize_options
@click.option("--runs", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--warmup", default=2, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--against",
    "peers",
    multiple=True,
    metavar="SYSTEM,...",
    shell_complete=choices.offered(choices.peers, separated=True),
    help="Other systems, in the same run.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Of other systems on the CPU; by default the cores.")
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with a reference's first.")
@click.option("--profile", is_flag=True, help="Also where the time goes, kernel by kernel.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV only; with --json it is the text under `csv`.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the latencies: .png or .html.")
@json_option
@reports_errors
def command(
    models: tuple[Path, ...],
    levels: tuple[str, ...],
    runs: int,
    warmup: int,
    peers: tuple[str, ...],
    threads: int | None,
    no_check: bool,
    profile: bool,
    as_csv: bool,
    plot: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Measure models at one or several levels and beside other systems; all that is compared takes turns.

    Outputs are compared with a reference's before anything is measured. Systems that are not installed are left out
    with a message.
    """
    from smartmem_rules.benchmarking.plots import SUFFIXES  # start-up time
    from smartmem_rules.rulebase.base import load_rules  # start-up time

    if plot is not None and plot.suffix not in SUFFIXES:
        fail(f"{plot}: a plot's name ends in {' or '.join(SUFFIXES)}")
    how["disable"] = names(how["disable"])
    wanted = names(levels) or ["smartmem"]
    wanted = list(load_rules(how["rules"]).levels) if wanted == ["all"] else wanted
    against = _known(names(peers))
    cores = threads or len(os.sched_getaffinity(0))
    data: BenchReport = {"results": [], "skipped": []}
    for model in models:
        with _contenders(model, wanted, against, cores, not no_check, how, data["skipped"]) as (labels, made, plans):
            from smartmem_rules.runtime.benchmarks import interleaved  # start-up time

            with progress_display() as progress:
                progress("measure", 0, 1)
                measured = interleaved(made, runs, warmup)
            rows = [cast("BenchRow", {**label, **row}) for label, row in zip(labels, measured, strict=True)]
            if profile:
                _add_profiles(rows, plans, data)
        data["results"] += rows
    _give(data, as_json, as_csv, plot)
    differ = [
        f"{row['model']}, {row['level']}: outputs differ, largest relative error {check['max_relative_error']}"
        for row in data["results"]
        if (check := row["check"]) and check["passed"] is False
    ]
    if differ:
        answer_no(*differ)


def _known(peers: Sequence[str]) -> list[str]:
    from smartmem_rules.benchmarking.peer_systems import SYSTEMS  # start-up time
    from smartmem_rules.language.fixes import did_you_mean  # start-up time

    for peer in peers:
        if peer not in SYSTEMS:
            near = did_you_mean(peer, SYSTEMS)
            fail(f"there is no system {peer!r} to compare with; {near or 'there are ' + ', '.join(SYSTEMS)}")
    return list(dict.fromkeys(peers))


_Made = tuple[list["BenchLabel"], list["Contender"], list["OptimizedPlan"]]


@contextmanager
def _contenders(
    model: Path,
    levels: Sequence[str],
    peers: Sequence[str],
    threads: int,
    check: bool,
    how: dict[str, Any],
    skipped: list[SkippedPeer],
) -> Iterator[_Made]:
    """The plans and systems, checked and ready to be measured, with their labels; processes end after it."""
    from smartmem_rules.api import load, optimize  # start-up time
    from smartmem_rules.benchmarking.peers import Peer, PeerError  # start-up time
    from smartmem_rules.runtime.benchmarks import Contender  # start-up time
    from smartmem_rules.runtime.feeds import compare, worst  # start-up time
    from smartmem_rules.runtime.plan_file import is_plan_file  # start-up time

    # start-up time
    from smartmem_rules.runtime.reference import NoReferenceError, Reference, complete_file, open_reference

    if is_plan_file(model):
        if peers:
            raise click.UsageError(f"{model} is a plan; other systems need the model")
        plans, reference = [load(model, how["device"])], None
    else:
        with progress_display() as progress:
            plans = [optimize(model, level=level, progress=progress, **how) for level in levels]
        reference = _reference(model, open_reference, NoReferenceError) if check else None
    feeds = plans[0].random_feeds()
    wanted = None if not isinstance(reference, Reference) else reference.run(feeds)
    labels: list[BenchLabel] = []
    made = []
    for plan in plans:
        executor = plan.prepare()
        checked = _check(plan, reference, wanted, feeds)
        labels.append({"model": plan.plan.model, "level": plan.plan.level, "peer": None, "check": checked})
        run = functools.partial(executor.run, feeds)
        made.append(Contender(name=plan.plan.level, run=run, kernels=len(plan.kernels), device=executor.device.name))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smartmem-bench-")))
        path = complete_file(model, folder) if peers else ""
        for name in peers:
            try:
                peer = Peer(name, path, feeds, threads, plans[0].prepare().device.name)
            except PeerError as error:
                skipped.append({"model": plans[0].plan.model, "peer": name, "reason": str(error)})
                remark(f"smartmem: left out: {error}")
                continue
            stack.callback(peer.close)
            error_of = None
            if wanted is not None:
                error_of = worst([compare(peer.outputs[key], wanted[key]) for key in wanted if key in peer.outputs])[0]
            found: PeerCheck | None = None if error_of is None else {"max_relative_error": error_of, "passed": None}
            labels.append({"model": plans[0].plan.model, "level": None, "peer": name, "check": found})
            made.append(Contender(name=name, run=peer.run, kernels=peer.kernels, device=peer.device, timed=True))
        yield labels, made, plans


def _reference(model: Path, opening: Any, missing: type[Exception]) -> Any:
    try:
        return opening(model)
    except missing as error:
        remark(f"smartmem: not checked: {error}")
        return None


def _check(plan: OptimizedPlan, reference: Any, wanted: Any, feeds: Any) -> ComparedOutputs | None:
    from smartmem_rules.runtime.reference import TOLERANCES, check_outputs  # start-up time

    if wanted is None:
        return None
    tolerance = TOLERANCES[plan.plan.dtype]
    return check_outputs(plan.run(feeds), wanted, reference.name, tolerance, 0).data()


def _add_profiles(rows: list[BenchRow], plans: Sequence[OptimizedPlan], data: BenchReport) -> None:
    from smartmem_rules.explanation.profile import kernel_profile  # start-up time
    from smartmem_rules.runtime.roof import roof_of  # start-up time

    for row, plan in zip(rows, plans, strict=False):
        executor = plan.prepare()
        roof = roof_of(executor.device)
        data["roof"] = {"device": executor.device.name, "gflops": roof.gflops, "gbytes": roof.gbytes}
        row["profile"] = kernel_profile(executor, roof, plan.random_feeds())


def _give(data: BenchReport, as_json: bool, as_csv: bool, plot: Path | None) -> None:
    text = _csv(data["results"]) if as_csv else ""
    if as_json:
        print_json({**data, "csv": text} if as_csv else data)
    elif as_csv:
        click.echo(text, nl=False)
    else:
        from smartmem_rules.cli.tables import print_benchmark, print_profile  # start-up time

        print_benchmark(console(), data["results"])
        for row in data["results"]:
            if "profile" in row:
                print_profile(console(), row, data["roof"])
    if plot is not None:
        from smartmem_rules.benchmarking.plots import plot as draw  # start-up time

        draw(data["results"], plot)


def _csv(rows: Sequence[BenchRow]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        error = None if row["check"] is None else row["check"]["max_relative_error"]
        cells: dict[str, object] = {**row, "max_relative_error": error}
        writer.writerow(["" if cells[c] is None else cells[c] for c in _COLUMNS])
    return stream.getvalue()
