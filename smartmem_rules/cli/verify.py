"""`smartmem verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartmem_rules.cli.common import ANSWER_IS_NO, console, json_option, print_json, progress_display, reports_errors

if TYPE_CHECKING:
    from smartmem_rules.verification.mutation.mutants import MutantReport
    from smartmem_rules.verification.results import Verification

DEFAULT_SECONDS = 60.0


def _seconds(context: click.Context, option: click.Parameter, value: str) -> float:
    del context, option
    try:
        seconds = float(value.removesuffix("s"))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise click.BadParameter(f"{value!r} is no time, such as 60s")
    return seconds


@click.command("verify")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rule", metavar="NAME", help="Only the rule of this name.")
@click.option("--prove", is_flag=True, help="Also prove for all values, where z3 can.")
@click.option("--budget", default="60s", show_default=True, callback=_seconds, help="Time for one rule.")
@click.option("--seed", default=1, show_default=True, help="Of all random choices.")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(20), help="Comparisons for each rule.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each core.")
@click.option("--mutants", is_flag=True, help="Measure the verifier: plant errors in the rules and see which it finds.")
@click.option(
    "--save", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep counterexamples as tests."
)
@json_option
@reports_errors
def command(
    files: tuple[Path, ...],
    rule: str | None,
    prove: bool,
    budget: float,
    seed: int,
    trials: int,
    jobs: int | None,
    mutants: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Verify the rules of FILES, or all built-in rules: test, prove, or show where they are wrong.

    Exit codes: 0 no rule is wrong, 1 some rule is wrong or vacuous, 2 bad input.
    """
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.rulebase.reads import count_reads  # start-up time
    from smartmem_rules.verification.mutation.mutants import measure  # start-up time
    from smartmem_rules.verification.run import verify  # start-up time
    from smartmem_rules.verification.save import save as save_counterexample  # start-up time

    with progress_display() as progress:
        found = verify(
            files, rule, prove, budget, seed, trials, jobs, lambda done, total: progress("verify", done, total)
        )
        measured = None
        if mutants:
            measured = measure(files, rule, seed, jobs, lambda done, total: progress("mutants", done, total))
    saved = [path for report in found.rules if save is not None and (path := save_counterexample(report, save, files))]
    reads = count_reads(load_rules(files), files)
    if as_json:
        data = found.data() | {"reads": {"proved": reads.proved, "total": reads.total}}
        if measured is not None:
            data["mutants"] = measured.data()
        if save is not None:
            data["saved"] = [str(path) for path in saved]
        print_json(data)
    else:
        _show(found)
        if reads.total:
            click.echo(f"  {reads}")
        if measured is not None:
            _show_mutants(measured)
        for path in saved:
            click.echo(f"saved {path}")
    if not found.sound:
        sys.exit(ANSWER_IS_NO)


def _show(found: Verification) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("rule", "verdict", "trials", "satisfied", "method"):
        table.add_column(column, justify="right" if column in ("trials", "satisfied") else "left")
    for report in found.rules:
        share = "" if report.satisfied is None else f"{report.satisfied:.0%}"
        note = report.method if report.reason is None else f"{report.method} ({report.reason})"
        table.add_row(report.name, report.verdict, str(report.trials), share, note)
    console().print(table)
    for report in found.rules:
        if report.counterexample is not None:
            click.echo("\n" + "\n".join(report.counterexample.lines))
            if report.counterexample.snippet:
                click.echo("\n  to see it again:\n")
                click.echo("\n".join(f"    {line}" for line in report.counterexample.snippet.splitlines()))
    counted = ", ".join(f"{count} {verdict}" for verdict, count in found.counts().items() if count)
    click.echo(
        f"\n{len(found.rules)} rules: {counted}; {found.least_trials} or more satisfied trials each; seed {found.seed}"
    )
    for kind, verdicts in found.by_kind().items():
        click.echo(f"  {kind}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")
    click.echo(f"  {found.processor_seconds:.1f} s of processor time, {found.seconds:.1f} s in all")


def _show_mutants(measured: MutantReport) -> None:
    for survivor in measured.survivors:
        click.echo(f"survived: {survivor.rule}: {survivor.change} ({survivor.reason})")
    share = measured.caught / measured.total if measured.total else 1.0
    click.echo(f"{measured.total} mutants, {measured.caught} caught ({share:.1%}), {len(measured.survivors)} survived")
    click.echo(
        f"{measured.equivalent} more are true rules, {measured.discarded} never apply where they would be wrong:"
    )
    for fate in measured.fates:
        if fate.outcome in ("equivalent", "discarded"):
            click.echo(f"  {fate.outcome}: {fate.rule}: {fate.change} ({fate.reason})")
    for kind, (caught, total) in measured.by_kind().items():
        click.echo(f"  {kind}: {caught} of {total} caught")
