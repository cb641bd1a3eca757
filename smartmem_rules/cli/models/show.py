"""`smartmem show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli.common import (
    console,
    json_option,
    level_of_model_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
    say,
)
from smartmem_rules.cli.tables import table

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import KernelShown, LaunchShown


@click.command("show")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.argument("kernel", required=False)
@level_of_model_option
@optimize_options
@json_option
@reports_errors
def command(model: Path, kernel: str | None, level: str, as_json: bool, **how: Any) -> None:
    """List the launches of a plan, or print one KERNEL: a name, or a launch's number.

    Of a kernel: equations, layouts, schedule with the figures that chose it, and OpenCL C.
    """
    from smartmem_rules.explanation.inspected import kernel_data, launches_data  # start-up time
    from smartmem_rules.views.stage_texts import inspect_model  # start-up time

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        found = inspect_model(model, progress, level=level, **how)
    if kernel is None:
        launches = launches_data(found.plan)
        if as_json:
            print_json({"model": found.plan.model, "launches": launches})
        else:
            _print_launches(found.plan.model, launches)
        return
    data = kernel_data(found, kernel)
    if as_json:
        print_json(data)
    else:
        _print_kernel(data)


def _print_launches(model: str, launches: list[LaunchShown]) -> None:
    made = table(f"Launches of {model}", "", "kernel", "form", "kernels", "work-items", "bytes", "operations", "writes")
    for one in launches:
        numbers = (str(len(one["kernels"])), " x ".join(one["global_size"]), str(one["bytes_moved"]))
        made.add_row(
            str(one["number"]), one["name"], one["form"], *numbers, str(one["operations"]), ", ".join(one["writes"])
        )
    console().print(made)


def _print_kernel(data: KernelShown) -> None:
    say(data["text"])
    say(f"launch {data['launch']}: {data['launched_as']}\n")
    for name, one in data["schedule"].items():
        say(f"schedule of {name}: {one['sizes'] or 'no sizes to choose'}")
        for line in one["figures"]:
            say(f"    {line}")
    for name, layout in data["layouts"].items():
        say(f"layout of {name}: {layout['layout']}")
        for line in layout["candidates"]:
            say(line)
    say(f"\n{data['source']}")
