"""`smartmem verify --minimize`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from smartmem_rules.cli.common import console, print_json, progress_display
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.verification.minimize import Cost, Minimal, Subject, minimize

LEVEL, DEVICE = "smartmem", "pocl"
"""Whose rulesets and costs are measured with."""


def show_minimal(files: Sequence[Path], models: Sequence[str], seed: int, as_json: bool) -> None:
    """Print a minimal rule base; of files, only their rules may go.

    Raises:
        GraphError: a model cannot be imported.
    """
    base = load_rules(files)
    own = {path.resolve() for path in files}
    chosen = [rule.name for rule in base.rewrites if Path(rule.span.file).resolve() in own] if files else None
    with progress_display() as progress:
        subjects = [_subject(name, base) for name in models]
        found = minimize(base, chosen, subjects, seed, lambda done, total: progress("minimize", done, total))
    if as_json:
        print_json(found.data() | {"models": [subject.name for subject in subjects]})
    else:
        _show(found)


def _subject(name: str, base: RuleBase) -> Subject:
    from smartmem_rules.graph.importer import import_model  # start-up time
    from smartmem_rules.resources import models_path  # start-up time

    shipped = models_path() / f"{name}.onnx"
    graph = import_model(shipped if shipped.exists() else Path(name), base)
    return Subject(name, graph, tuple(base.levels[LEVEL].rulesets), DEVICE)


def _show(found: Minimal) -> None:
    from rich.table import Table

    click.echo(f"{len(found.kept)} rewrites that do not follow from each other:")
    for name in found.kept:
        click.echo(f"  {name}{'  (no instance found)' if name in found.unseen else ''}")
    table = Table(box=None, pad_edge=False)
    columns = ("redundant", "follows from", "instances", "matches", "e-nodes", "seconds", "without", "form")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for one in found.redundant:
        cells = _cells(found.costs.get(one.rule))
        table.add_row(one.rule, ", ".join(one.sources) or "the engine", str(one.instances), *cells)
    if "" in found.costs:
        table.add_row("all of them", "", "", *_cells(found.costs[""]))
    click.echo(f"\n{len(found.redundant)} that follow from these:")
    console().print(table)


def _cells(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["", "", "", "", ""]
    change = cost.form_without / cost.form_with - 1 if cost.form_with else 0.0
    form = "same" if abs(change) < 1e-9 else f"{change:+.1%}"
    return [str(cost.tried), str(cost.enodes), f"{cost.with_it:.2f}", f"{cost.without_it:.2f}", form]
