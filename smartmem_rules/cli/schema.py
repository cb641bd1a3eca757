"""`smartmem schema`."""

from __future__ import annotations

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import print_json, reports_errors


@click.command("schema")
@click.argument("command_name", metavar="[COMMAND]", required=False, shell_complete=choices.offered(choices.outputs))
@reports_errors
def command(command_name: str | None) -> None:
    """Print the JSON Schema (draft 2020-12) of what COMMAND prints with --json, or of all commands.

    The schemas are open: a later version may add keys, but it takes none away.
    """
    from smartmem_rules.schema.published import all_schemas, schema_of  # start-up time

    print_json(all_schemas() if command_name is None else schema_of(command_name))
