"""`smartmem zoo`."""

from __future__ import annotations

from pathlib import Path

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import console, json_option, print_json, reports_errors
from smartmem_rules.cli.tables import table


@click.command("zoo")
@click.argument("names", nargs=-1, shell_complete=choices.offered(choices.shipped))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("."), show_default=True)
@click.option("--all", "everything", is_flag=True, help="Write all of them.")
@click.option("--stripped", is_flag=True, help="Write the recipes of the weights instead of the weights.")
@json_option
@reports_errors
def command(names: tuple[str, ...], output: Path, everything: bool, stripped: bool, as_json: bool) -> None:
    """List the models that come with the project, or write those of the given NAMES with all their weights.

    Their weights are drawn from seeds, the same on every computer.
    """
    from smartmem_rules.graph.zoo import describe_model, shipped_model, shipped_models, write_model  # start-up time

    wanted = list(shipped_models()) if everything else list(names)
    if wanted:
        paths = [shipped_model(name) for name in wanted]
        output.mkdir(parents=True, exist_ok=True)
        written = []
        for path in paths:
            written.append(write_model(path, output, stripped))
            if not as_json:
                console().print(str(written[-1]), markup=False)
        if as_json:
            print_json({"written": [str(path) for path in written]})
        return
    rows = [describe_model(path) for path in shipped_models().values()]
    if as_json:
        print_json({"models": rows})
        return
    made = table("models", "name", "network of SmartMem", "operators", "M parameters", "opset", "KiB")
    made.columns[1].justify = "left"
    for row in rows:
        made.add_row(
            row["name"], row["network"] or "", str(row["operators"]), f"{row['parameters'] / 1e6:.1f}",
            str(row["opset"]), f"{row['bytes'] / 1024:.0f}",
        )  # fmt: skip
    console().print(made)
    console().print("write them with: smartmem zoo NAME ... -o FOLDER", markup=False)
