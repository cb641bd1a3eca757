"""`smartmem fuzz`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import (
    answer_no,
    fail,
    json_option,
    names,
    print_json,
    progress_display,
    reports_errors,
    say,
)

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.fuzzing.requests import Request


@click.command("fuzz")
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--against",
    default="self",
    show_default=True,
    metavar="NAME,...",
    shell_complete=choices.offered(choices.hunted, separated=True),
    help="Who computes the models: onnxruntime, openvino, onnxsim, onnxslim, self.",
)
@click.option("--count", default=20, show_default=True, type=click.IntRange(1), help="Generated models.")
@click.option(
    "--source",
    default="side",
    show_default=True,
    type=click.Choice(["side", "small", "drawn", "cut"]),
    help="Of generated models: sides of rules, up to three operators, up to fourteen, pieces of shipped models.",
)
@click.option("--forms", default=3, show_default=True, type=click.IntRange(0, 50), help="Equal forms of each model.")
@click.option("--tested", is_flag=True, help="Also use rules that are tested, but not proved.")
@click.option(
    "--only",
    multiple=True,
    metavar="RULE",
    shell_complete=choices.offered(choices.rules, separated=True),
    help="Use only these rules; repeatable, or by commas.",
)
@click.option("--seed", default=1, show_default=True, help="The first of the seeds, one for each model.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--scheduler", metavar="ADDRESS", help="Spread over the workers of a Dask scheduler, tcp://HOST:PORT.")
@click.option(
    "--keep", default="build/hunt", show_default=True, type=click.Path(file_okay=False, path_type=Path),
    help="Where findings go.",
)  # fmt: skip
@json_option
@reports_errors
def command(
    models: tuple[Path, ...],
    against: str,
    count: int,
    source: str,
    forms: int,
    tested: bool,
    only: tuple[str, ...],
    seed: int,
    jobs: int,
    scheduler: str | None,
    keep: Path,
    as_json: bool,
) -> None:
    """Make equal forms of MODELS, or of generated ones, and report what others compute wrongly.

    Forms come from saturation with rules that `smartmem verify --prove` proves; the built-in rules come with their
    verdicts, and what has none is verified first. Exit codes: 0 nothing is wrong, 1 something is, 2 bad input.
    """
    from smartmem_rules.fuzzing.campaigns.campaign import answers_by_dask, answers_here, drawn_requests  # start-up time
    from smartmem_rules.fuzzing.campaigns.hunt import gather, requests_for  # start-up time
    from smartmem_rules.fuzzing.equal.hunting import Hunt  # start-up time
    from smartmem_rules.fuzzing.equal.rules import VERDICTS, admit  # start-up time
    from smartmem_rules.graph.loading import load_model  # start-up time
    from smartmem_rules.graph.weights import check_data_files  # start-up time

    systems = _systems(against)
    for path in models:
        model, folder = load_model(path)
        check_data_files(model.graph, folder)
    with progress_display() as progress:
        accepted = VERDICTS if tested else VERDICTS[:1]
        admitted = admit(accepted, names(only) or None, jobs, lambda done, total: progress("verify", done, total))
        wanted = Hunt(systems=systems, forms=forms, rules=admitted.names, seed=seed)
        given: list[Request] = [{"file": str(path)} for path in models]
        requests = requests_for(given or drawn_requests(source, seed, count), wanted)
        answers = answers_by_dask(requests, scheduler) if scheduler else answers_here(requests, jobs)
        hunted = gather(answers, wanted, admitted, keep, lambda one: progress("hunt", one.models, len(requests)))
    if as_json:
        print_json(hunted.data() | {"rules": dict(admitted.verdicts)})
    else:
        for finding in hunted.findings:
            say("\n".join(finding.lines()))
        found = ", ".join(f"{number} {kind}" for kind, number in hunted.kinds.items()) or "nothing wrong"
        say(
            f"{hunted.models} models, {hunted.judged} runs of forms by {', '.join(systems)}, "
            f"{len(admitted.names)} rules: {found}; {len(hunted.findings)} distinct"
        )
    if hunted.findings:
        answer_no(*("\n".join(finding.lines()) for finding in hunted.findings))


def _systems(against: str) -> tuple[str, ...]:
    from smartmem_rules.fuzzing.case import SELF  # start-up time
    from smartmem_rules.fuzzing.systems import SYSTEMS, missing  # start-up time
    from smartmem_rules.language.fixes import did_you_mean  # start-up time

    chosen = tuple(names([against]))
    for name in chosen:
        if name not in (SELF, *SYSTEMS):
            near = did_you_mean(name, [SELF, *SYSTEMS])
            fail(
                f"--against: there is no system {name!r}; they are {', '.join([*SYSTEMS, SELF])}"
                + (f"; {near}" if near else "")
            )
        absent = missing(name)
        if absent:
            fail(f"--against: {absent}")
    if not chosen:
        fail("--against names no system")
    return chosen
