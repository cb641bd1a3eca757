"""The options of commands that compare a plan with a second one: what is different the second time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import names

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.planned import PlanOptions

F = TypeVar("F", bound=Callable[..., Any])


def second_plan_options(function: F) -> F:
    """`--to-level` and the others."""
    options = [
        click.option("--to-level", shell_complete=choices.offered(choices.levels), help="The level of the second one."),
        click.option(
            "--to-dtype",
            type=click.Choice(["float32", "float16", "bfloat16"]),
            help="The element type of the second one.",
        ),
        click.option(
            "--to-device", shell_complete=choices.offered(choices.devices), help="The device of the second one."
        ),
        click.option(
            "--to-memory", type=click.Choice(["auto", "image", "buffer"]), help="The memory of the second one."
        ),
        click.option(
            "--to-rules", multiple=True, type=click.Path(path_type=Path), help="One more rule file of the second."
        ),
        click.option(
            "--to-disable",
            multiple=True,
            metavar="RULE",
            shell_complete=choices.offered(choices.switchable, separated=True),
            help="One more rule that the second one leaves out.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def asked_of_second(how: dict[str, Any]) -> tuple[PlanOptions, PlanOptions]:
    """The options of the first plan and those of the second; they are equal where nothing is different."""
    to = {key.removeprefix("to_"): value for key, value in how.items() if key.startswith("to_")}
    first = {key: value for key, value in how.items() if not key.startswith("to_")}
    second = {**first, **{key: value for key, value in to.items() if value and key not in ("rules", "disable")}}
    second["rules"] = (*first["rules"], *to["rules"])
    second["disable"] = [*first["disable"], *names(to["disable"])]
    return cast("PlanOptions", first), cast("PlanOptions", second)
