"""`smartmem diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    json_option,
    level_of_model_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
    say,
)
from smartmem_rules.cli.second_plan import asked_of_second, second_plan_options
from smartmem_rules.stages import STAGES

_SHOWN = 60
"""Lines of a stage's difference that are shown without --full."""


@click.command("diff")
@click.argument("first", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.argument("second", metavar="[MODEL|PLAN]", required=False, type=click.Path(path_type=Path))
@level_of_model_option
@optimize_options
@second_plan_options
@click.option("--stage", multiple=True, type=click.Choice(STAGES), help="Only this stage; repeatable.")
@click.option("--full", is_flag=True, help="Show all lines that differ.")
@json_option
@reports_errors
def command(
    first: Path, second: Path | None, level: str, stage: tuple[str, ...], full: bool, as_json: bool, **how: Any
) -> None:
    """Show what differs between two plans, stage by stage.

    Of two models or saved plans, or of one model at two levels, with two sets of rules, for two devices.
    """
    from smartmem_rules.explanation.inspected import stage_differences  # start-up time
    from smartmem_rules.runtime.plan_file import is_plan_file  # start-up time
    from smartmem_rules.views.stage_texts import inspect_model  # start-up time

    how["disable"] = names(how["disable"])
    asked, other = asked_of_second(how | {"level": level})
    if second is None and other == asked:
        raise click.UsageError("give a second MODEL|PLAN, or what is different the second time: --to-level, ...")
    remade = second or first
    if other != asked and is_plan_file(remade):
        raise click.UsageError(f"{remade} is a plan, which is made already: --to-level and the like are for models")
    with progress_display() as progress:
        sides = [inspect_model(first, progress, **asked), inspect_model(second or first, progress, **other)]
    found = [one for one in stage_differences(*sides) if not stage or one["stage"] in stage]
    if as_json:
        print_json({"launches": [len(side.plan.launches) for side in sides], "stages": found})
        return
    say(f"launches: {len(sides[0].plan.launches)} and {len(sides[1].plan.launches)}")
    for one in found:
        say(f"{one['stage']}: " + ("the same" if one["same"] else f"-{one['removed']} +{one['added']} lines"))
        lines = one["lines"] if full else one["lines"][:_SHOWN]
        for line in lines:
            say(f"    {line}")
        if len(lines) < len(one["lines"]):
            say(f"    ... {len(one['lines']) - len(lines)} more lines; --stage {one['stage']} --full shows all")
