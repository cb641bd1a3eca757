"""`smartmem discover`."""

from __future__ import annotations

from pathlib import Path

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import fail, json_option, names, print_json, progress_display, reports_errors, say
from smartmem_rules.cli.rules.verify import _seconds


@click.command("discover")
@click.option(
    "--operators",
    required=True,
    multiple=True,
    metavar="NAME,...",
    shell_complete=choices.offered(choices.operators, separated=True),
    help="What terms are made of; repeatable.",
)
@click.option("--size", default=3, show_default=True, type=click.IntRange(1, 6), help="Operators on one side, at most.")
@click.option(
    "--rules", multiple=True, type=click.Path(exists=True, path_type=Path), help="One more rule file; repeatable."
)
@click.option(
    "--disable",
    multiple=True,
    metavar="RULE",
    shell_complete=choices.offered(choices.switchable, separated=True),
    help="Take a rule away first; repeatable, or separated by commas.",
)
@click.option(
    "--budget", default="120s", show_default=True, callback=_seconds, help="Time after which what is found is printed."
)
@click.option(
    "--each",
    type=click.IntRange(1, 6),
    metavar="N",
    help="Search every N of the operators by themselves.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes for --each; by default one for each core.")
@click.option("--scheduler", metavar="ADDRESS", help="With --each: spread the searches over a Dask cluster.")
@click.option("--seed", default=1, show_default=True, help="Of all random choices.")
@json_option
@reports_errors
def command(
    operators: tuple[str, ...],
    size: int,
    rules: tuple[Path, ...],
    disable: tuple[str, ...],
    budget: float,
    each: int | None,
    jobs: int | None,
    scheduler: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find rewrites that do not follow from the rules there are, verify them, and print them as rules."""
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.verification.discovery.discover import discover  # start-up time
    from smartmem_rules.verification.discovery.searches import Search, discover_each, sets_of  # start-up time

    if each is None and (jobs is not None or scheduler is not None):
        fail("--jobs and --scheduler spread the searches of --each: say how many operators each search is over")
    with progress_display() as progress:
        try:
            if each is None:
                base = load_rules(rules, names(disable))
                found = discover(base, names(operators), size, seed, budget, lambda a, b: progress("discover", a, b))
            else:
                sets = sets_of(names(operators), each)
                searches = [
                    Search(
                        operators=chosen,
                        size=size,
                        seed=seed,
                        seconds=budget / len(sets),
                        files=tuple(map(str, rules)),
                        disabled=tuple(names(disable)),
                    )
                    for chosen in sets
                ]
                found = discover_each(searches, jobs, scheduler, lambda a, b: progress("discover", a, b))
        except (ValueError, OSError) as error:
            fail(str(error))
            return
    summary = {
        "terms": found.terms,
        "pairs": found.pairs,
        "derivable": found.derivable,
        "refuted": found.refuted,
        "reorderings": found.reorderings,
        "seconds": round(found.seconds, 2),
    }
    if as_json:
        print_json({"rules": [{"name": r.name, "text": r.text, "proved": r.is_proved} for r in found.rules], **summary})
        return
    for rule in found.rules:
        click.echo(f"# {'proved' if rule.is_proved else 'tested'}\n{rule.text}")
    say("# " + ", ".join(f"{value} {key}" for key, value in summary.items()))
