"""`smartmem run`."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    console,
    debug_option,
    inputs_option,
    json_option,
    level_of_model_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    read_inputs,
    reports_errors,
)


@click.command("run")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@level_of_model_option
@optimize_options
@inputs_option
@click.option("--seed", default=0, show_default=True, help="Of the inputs that are not given.")
@debug_option
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Write each output as DIR/NAME.npy.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write when each launch ran, for https://ui.perfetto.dev; a model's plan is made anew.",
)
@json_option
@reports_errors
def command(
    model: Path,
    level: str,
    inputs: dict[str, Path],
    seed: int,
    debug: bool,
    output: Path | None,
    trace: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Run a model, or a plan that `optimize -o` saved; inputs that are not given are random."""
    from smartmem_rules.api import load, optimize  # start-up time
    from smartmem_rules.runtime.plan_file import is_plan_file  # start-up time

    given = read_inputs(inputs)
    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        plan = (
            load(model, how["device"], debug)
            if is_plan_file(model)
            else optimize(model, level=level, progress=progress, debug=debug, anew=trace is not None, **how)
        )
        plan.prepare(lambda done, total: progress("build", done, total))
    # of a model the dimensions were those of the plan, of a plan they say at which extents it runs
    extents = {name: value for name, value in how["dims"].items() if name in plan.dimensions or is_plan_file(model)}
    feeds = plan.random_feeds(seed, {n: v for n, v in extents.items() if not isinstance(v, tuple)}, given)
    start = time.perf_counter()
    outputs = plan.run(feeds, trace)
    milliseconds = (time.perf_counter() - start) * 1e3
    files = _write(outputs, output) if output is not None else {}
    data: dict[str, Any] = {
        "model": plan.plan.model,
        "device": plan.prepare().device.name,
        "level": plan.plan.level,
        "dtype": plan.plan.dtype,
        "kernels": len(plan.kernels),
        "milliseconds": milliseconds,
        "seed": seed,
        "random_inputs": [name for name in plan.plan.inputs if name not in given],
        "outputs": {name: {**_summary(array), "file": files.get(name)} for name, array in outputs.items()},
    }
    if trace is not None:
        data["trace"] = str(trace)
    if as_json:
        print_json(data)
        return
    from smartmem_rules.cli.tables import number, table  # start-up time

    made = table(f"{data['model']} on {data['device']}", "output", "type", "min", "mean", "max", "file")
    for name, one in data["outputs"].items():
        kind = f"{one['dtype']}{one['shape']}"
        made.add_row(name, kind, *(number(one[key], ".5g") for key in ("min", "mean", "max")), one["file"] or "-")
    console().print(made)
    if data["random_inputs"]:
        console().print(f"random inputs (seed {seed}): {', '.join(data['random_inputs'])}", markup=False)
    if trace is not None:
        console().print(f"trace in {trace}; open it in https://ui.perfetto.dev", markup=False)


def _summary(array: Any) -> dict[str, Any]:
    import numpy as np

    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    numbers = {"min": finite.min(), "mean": finite.mean(), "max": finite.max()} if finite.size else {}
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        **{key: float(numbers[key]) if key in numbers else None for key in ("min", "mean", "max")},
        "not_finite": int(array.size - finite.size),
    }


def _write(outputs: dict[str, Any], folder: Path) -> dict[str, str]:
    """One file for each output; a name's characters that file names should not have become `_`."""
    import numpy as np

    from smartmem_rules.runtime.executor import RunError  # start-up time
    from smartmem_rules.whole_files import whole_file  # start-up time

    files: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in outputs.items():
            stem = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "output"
            target = folder / f"{stem}.npy"
            if str(target) in files.values():
                target = folder / f"{stem}_{len(files)}.npy"
            with whole_file(target) as file:
                np.save(file, array)
            files[name] = str(target)
    except OSError as error:
        raise RunError(f"{folder}: the outputs cannot be written ({error.strerror or error})") from error
    return files
