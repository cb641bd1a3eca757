"""`smartmem export`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import (
    console,
    json_option,
    level_of_model_option,
    names,
    options_for_any_device,
    print_json,
    progress_display,
    reports_errors,
    self_test_option,
)


@click.command("export")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Write the bundle to this folder.")
@click.option("--single-file", is_flag=True, help="Put the plan into the program, which needs no other file then.")
@click.option("--binaries", is_flag=True, help="Add the programs as this device's driver compiles them.")
@level_of_model_option
@click.option(
    "--device",
    "devices",
    shell_complete=choices.offered(choices.devices),
    multiple=True,
    default=("auto",),
    show_default=True,
    help="As of optimize; repeatable: a plan for each, and the program takes the one that is for its device.",
)
@options_for_any_device
@self_test_option
@json_option
@reports_errors
def command(
    model: Path,
    output: Path,
    single_file: bool,
    binaries: bool,
    level: str,
    devices: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Write a program in C that runs MODEL without Python: plan, library, main.c, CMakeLists.txt, README.md."""
    from smartmem_rules.api import load, optimize  # start-up time
    from smartmem_rules.bundle import BundleError, write_bundle  # start-up time
    from smartmem_rules.optimized import OptimizedPlan  # start-up time
    from smartmem_rules.runtime.plan_file import is_plan_file, load_plan  # start-up time

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        if not is_plan_file(model):
            optimized = partial(optimize, model, level=level, progress=progress, **how)
            plans = [optimized(device=device) for device in devices]
        elif len(devices) > 1:
            raise BundleError(f"{model} is a plan, made for one device; give the model to export it for several")
        elif binaries:
            plans = [load(model)]  # with the device that compiles them
        else:
            plans = [OptimizedPlan(load_plan(model), None)]
        bundle = write_bundle(plans, output, single_file, binaries)
    if as_json:
        targets = [one.plan.device for one in plans]
        print_json({**asdict(bundle), "folder": str(bundle.folder), "model": plans[0].plan.model, "targets": targets})
        return
    console().print(f"{plans[0].plan.model} is in {bundle.folder}: {', '.join(bundle.files)}", markup=False)
    console().print(f"cmake -S {bundle.folder} -B {bundle.folder}/build", markup=False)
    console().print(f"cmake --build {bundle.folder}/build", markup=False)
    if len(plans) > 1:
        size = f"{bundle.plan_bytes / 2**20:.1f} MiB"
        console().print(f"{len(plans)} plans, each with the weights for itself: {size} in all", markup=False)
    if bundle.compiler is None:
        console().print("this computer has no C compiler: build the bundle on one that has", markup=False)
