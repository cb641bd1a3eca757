"""`smartmem config`."""

from __future__ import annotations

import os
from typing import Any

import click
from rich.markup import escape

from smartmem_rules import __version__
from smartmem_rules.cli.common import console, json_option, print_json, remark, reports_errors
from smartmem_rules.cli.tables import table
from smartmem_rules.environment import VARIABLES, unknown


@click.command("config")
@json_option
@reports_errors
def command(as_json: bool) -> None:
    """List the variables of the environment that this program reads, and where it keeps what can be made again."""
    found = _found()
    if as_json:
        print_json(found)
        return
    shown = table("Variables", "name", "value", "default", "meaning")
    for column in shown.columns:
        column.justify, column.no_wrap = "left", column.header == "name"
    for one in found["variables"]:
        value = "-" if one["value"] is None else one["value"]
        shown.add_row(one["name"], escape(value), escape(one["default"]), escape(one["meaning"]))
    console().print(shown)
    places = table("Places", "what", "where")
    places.columns[1].justify = "left"
    for name, place in found["places"].items():
        places.add_row(name, escape(place or "nothing is kept"))
    console().print(places)
    for name in found["unknown"]:
        remark(f"{name} is set, but nothing reads it")


def _found() -> dict[str, Any]:
    from smartmem_rules.kept_plans.store import PlanStore  # start-up time
    from smartmem_rules.resources import cache_folder, rules_path  # start-up time
    from smartmem_rules.tuning.database import Tunings  # start-up time

    places = {"cache": cache_folder(), "plans": PlanStore.of_user().folder, "tunings": Tunings.of_user().path}
    return {
        "version": __version__,
        "variables": [
            {"name": one.name, "value": one.value(), "default": one.default, "meaning": one.meaning}
            for one in VARIABLES
        ],
        "places": {name: None if place is None else str(place) for name, place in places.items()}
        | {"rules": str(rules_path())},
        "unknown": unknown(os.environ),
    }
