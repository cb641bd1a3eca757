"""`smartmem report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import (
    console,
    json_option,
    level_of_model_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
)
from smartmem_rules.cli.second_plan import asked_of_second, second_plan_options


@click.command("report")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The HTML file to write.")
@level_of_model_option
@optimize_options
@click.option(
    "--levels",
    multiple=True,
    shell_complete=choices.offered(choices.levels_or_all, separated=True),
    default=("all",),
    show_default=True,
    help="Levels to compare, separated by commas; of a model, not a plan.",
)
@click.option("--no-levels", is_flag=True, help="Compare no levels: only one plan is made.")
@click.option("--against", metavar="MODEL|PLAN", type=click.Path(path_type=Path), help="A second plan to compare with.")
@second_plan_options
@click.option("--no-measure", is_flag=True, help="Take no times: kernels are not built.")
@click.option("--measure-levels", is_flag=True, help="Measure the compared levels too; their kernels are built.")
@click.option("--check", is_flag=True, help="Compare the outputs with a reference's.")
@json_option
@reports_errors
def command(
    model: Path,
    output: Path | None,
    level: str,
    levels: tuple[str, ...],
    no_levels: bool,
    against: Path | None,
    no_measure: bool,
    measure_levels: bool,
    check: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Write one HTML page that explains a plan: every ONNX node's way to its kernel, launches, memory, rules, levels.

    It needs no server and loads nothing. Launches are measured where the plan's device is here.
    """
    from smartmem_rules.report.writing import refuse_unwritable, write_report  # start-up time
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.views.reports import Asked, report_data  # start-up time

    if output is None and not as_json:
        raise click.UsageError("say where the page goes: -o report.html")
    if output is not None:
        refuse_unwritable(output)
    how["disable"] = names(how["disable"])
    asked, other = asked_of_second(how | {"level": level})
    wanted = names(levels)
    wanted = list(load_rules(asked["rules"]).levels) if wanted == ["all"] else wanted
    second = None if against is None and other == asked else Asked(source=against or model, options=other)
    if second is not None and second.is_plan and against is None:
        raise click.UsageError(f"{model} is a plan, which is made already: give the model, or --against another plan")
    with progress_display() as progress:
        data = report_data(
            Asked(source=model, options=asked),
            [] if no_levels else wanted,
            second,
            measures=not no_measure,
            measures_levels=measure_levels,
            checks=check,
            progress=progress,
        )
    if output is not None:
        write_report(data, output)
        data["page"] = str(output)
    if as_json:
        print_json(data)
        return
    figures = data["plan"]["figures"]
    size = output.stat().st_size / 2**20 if output is not None else 0.0
    console().print(
        f"{figures['model']}: {figures['operators']} operators, {figures['kernels']} kernels; "
        f"the report is {output} ({size:.1f} MiB), open it in a browser",
        markup=False,
    )
