"""`smartmem docs`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from smartmem_rules.cli.common import fail, json_option, print_json, reports_errors, say


@click.command("docs")
@click.option("--rules", multiple=True, type=click.Path(path_type=Path), help="One more rule file; repeatable.")
@click.option(
    "-o",
    "--output",
    default="rules_reference",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write.",
)
@click.option(
    "--verdicts",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What `smartmem verify --json` printed, in place of what it last said on this computer.",
)
@json_option
@reports_errors
def command(rules: tuple[Path, ...], output: Path, verdicts: Path | None, as_json: bool) -> None:
    """Write the reference of all rules, operators, tables and devices as HTML pages that need no server."""
    from smartmem_rules.reference.site import write_reference  # start-up time
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.rulebase.verdicts import recorded  # start-up time

    base = load_rules(rules)
    try:
        files = write_reference(base, output, recorded(base) if verdicts is None else _verdicts(verdicts))
    except OSError as error:
        fail(f"{output}: the reference cannot be written ({error.strerror or error})")
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        say(f"wrote {len(files)} pages; begin with {files[0]}")


def _verdicts(path: Path) -> dict[str, str]:
    from smartmem_rules.rulebase.verdicts import shown  # start-up time

    try:
        data = json.loads(path.read_text("utf-8"))
        return {
            str(one["name"]): shown(one["verdict"], one.get("method", ""), one.get("trials", 0))
            for one in data["rules"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path}: this is no output of `smartmem verify --json` ({error})")
        raise AssertionError from error
