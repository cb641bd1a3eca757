"""`smartmem verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import (
    answer_no,
    console,
    json_option,
    print_json,
    progress_display,
    reports_errors,
    say,
)

if TYPE_CHECKING:
    from smartmem_rules.rulebase.base import RuleBase
    from smartmem_rules.verification.minimize import Cost, Minimal, Subject
    from smartmem_rules.verification.mutation.mutants import MutantReport
    from smartmem_rules.verification.results import Verification

LEVEL, DEVICE = "smartmem", "pocl"
"""Whose rulesets and costs are measured with."""


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
@click.option(
    "--rule",
    metavar="NAME",
    shell_complete=choices.offered(choices.rules),
    help="Only the rule, or the rules of the family, of this name.",
)
@click.option("--prove", is_flag=True, help="Also prove for all values, where z3 can.")
@click.option("--budget", default="60s", show_default=True, callback=_seconds, help="Time for one rule.")
@click.option("--seed", default=1, show_default=True, help="Of all random choices.")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(20), help="Comparisons for each rule.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each core.")
@click.option("--mutants", is_flag=True, help="Measure the verifier: plant errors in the rules and see which it finds.")
@click.option("--minimize", is_flag=True, help="Instead, find rules that follow from the others, and what they cost.")
@click.option(
    "--on",
    "models",
    multiple=True,
    metavar="MODEL",
    shell_complete=choices.offered(choices.shipped),
    help="With --minimize: a model or the name of a shipped one, in which saturation is timed; repeatable.",
)
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
    minimize: bool,
    models: tuple[str, ...],
    save: Path | None,
    as_json: bool,
) -> None:
    """Verify the rules of FILES, or all built-in rules: test, prove, or show where they are wrong.

    Exit codes: 0 no rule is wrong, 1 some rule is wrong or vacuous, 2 bad input.
    """
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.verification.mutation.mutants import measure  # start-up time
    from smartmem_rules.verification.reads import count_reads  # start-up time
    from smartmem_rules.verification.run import verify  # start-up time
    from smartmem_rules.verification.save import save as save_counterexample  # start-up time

    if minimize:
        _show_minimal_base(files, models, seed, as_json)
        return
    if models:
        raise click.UsageError("--on needs --minimize")
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
            say(f"  {reads}")
        if measured is not None:
            _show_mutants(measured)
        for path in saved:
            say(f"saved {path}")
    if not found.sound:
        answer_no(*_wrong(found))


def _wrong(found: Verification) -> Iterator[str]:
    """Why the answer is no."""
    for report in found.unsound:
        yield f"{report.name}: {report.verdict}" + (f" ({report.reason})" if report.reason else "")
        if report.counterexample is not None:
            yield "\n".join(report.counterexample.lines)


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
            say("\n" + "\n".join(report.counterexample.lines))
            if report.counterexample.snippet:
                say("\n  to see it again:\n")
                say("\n".join(f"    {line}" for line in report.counterexample.snippet.splitlines()))
    counted = ", ".join(f"{count} {verdict}" for verdict, count in found.counts().items() if count)
    say(f"\n{len(found.rules)} rules: {counted}; {found.least_trials} or more satisfied trials each; seed {found.seed}")
    for kind, verdicts in found.by_kind().items():
        say(f"  {kind}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")
    say(f"  {found.processor_seconds:.1f} s of processor time, {found.seconds:.1f} s in all")


def _show_mutants(measured: MutantReport) -> None:
    for survivor in measured.survivors:
        say(f"survived: {survivor.rule}: {survivor.change} ({survivor.reason})")
    share = measured.caught / measured.total if measured.total else 1.0
    say(f"{measured.total} mutants, {measured.caught} caught ({share:.1%}), {len(measured.survivors)} survived")
    say(f"{measured.equivalent} more are true rules, {measured.discarded} never apply where they would be wrong:")
    for fate in measured.fates:
        if fate.outcome in ("equivalent", "discarded"):
            say(f"  {fate.outcome}: {fate.rule}: {fate.change} ({fate.reason})")
    for kind, (caught, total) in measured.by_kind().items():
        say(f"  {kind}: {caught} of {total} caught")


def _show_minimal_base(files: Sequence[Path], models: Sequence[str], seed: int, as_json: bool) -> None:
    """Print a minimal rule base; of files, only their rules may go.

    Raises:
        GraphError: a model cannot be imported.
    """
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.verification.minimize import minimize  # start-up time

    base = load_rules(files)
    own = {path.resolve() for path in files}
    chosen = [rule.name for rule in base.rewrites if Path(rule.span.file).resolve() in own] if files else None
    with progress_display() as progress:
        subjects = [_subject(name, base) for name in models]
        found = minimize(base, chosen, subjects, seed, lambda done, total: progress("minimize", done, total))
    if as_json:
        print_json(found.data() | {"models": [subject.name for subject in subjects]})
    else:
        _show_minimal(found)


def _subject(name: str, base: RuleBase) -> Subject:
    from smartmem_rules.graph.importer import import_model  # start-up time
    from smartmem_rules.resources import models_path  # start-up time
    from smartmem_rules.verification.minimize import Subject  # start-up time

    shipped = models_path() / f"{name}.onnx"
    graph = import_model(shipped if shipped.exists() else Path(name), base)
    return Subject(name, graph, tuple(base.levels[LEVEL].rulesets), DEVICE)


def _show_minimal(found: Minimal) -> None:
    from rich.table import Table

    say(f"{len(found.kept)} rewrites that do not follow from each other:")
    for name in found.kept:
        say(f"  {name}{'  (no instance found)' if name in found.unseen else ''}")
    table = Table(box=None, pad_edge=False)
    columns = ("redundant", "follows from", "instances", "matches", "e-nodes", "seconds", "without", "form")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for one in found.redundant:
        cells = _cells(found.costs.get(one.rule))
        table.add_row(one.rule, ", ".join(one.sources) or "the engine", str(one.instances), *cells)
    if "" in found.costs:
        table.add_row("all of them", "", "", *_cells(found.costs[""]))
    say(f"\n{len(found.redundant)} that follow from these:")
    console().print(table)


def _cells(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["", "", "", "", ""]
    change = cost.form_without / cost.form_with - 1 if cost.form_with else 0.0
    form = "same" if abs(change) < 1e-9 else f"{change:+.1%}"
    return [str(cost.tried), str(cost.enodes), f"{cost.with_it:.2f}", f"{cost.without_it:.2f}", form]
