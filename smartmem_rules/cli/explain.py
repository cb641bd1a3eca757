"""`smartmem explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    console,
    json_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
)


@click.command("explain")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.argument("node")
@click.option("--level", default="smartmem", show_default=True, help="Which steps are taken; of a model, not a plan.")
@optimize_options
@json_option
@reports_errors
def command(model: Path, node: str, level: str, as_json: bool, **how: Any) -> None:
    """Say which kernel the ONNX NODE ended in, and which rules brought it there."""
    from smartmem_rules.api import explain_model

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        data = explain_model(model, node, level=level, progress=progress, **how)
    if as_json:
        print_json(data)
        return
    screen = console()
    screen.print(f"{data['operator']} {data['node']}: {data['outcome']}".strip(), markup=False)
    for kernel in data["kernels"]:
        screen.print(f"\n{kernel['name']} ({kernel['form']}), {kernel['bytes_moved']} bytes moved", markup=False)
        for other in kernel["with"]:
            screen.print(f"  with {other}", markup=False)
    if data["rules"]:
        screen.print(f"\nthrough the rules: {', '.join(data['rules'])}", markup=False)
    for miss in data["near_misses"]:
        screen.print(f"did not fire: {miss['rule']}: {miss['reason']}", markup=False)
