"""`smartmem doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    answer_no,
    console,
    json_option,
    level_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
)


@click.command("doctor")
@click.argument("model", type=click.Path(path_type=Path))
@level_option
@optimize_options
@click.option("--seed", default=0, show_default=True, help="Of the model's random inputs.")
@click.option("--every-launch", is_flag=True, help="Look at each launch also where the model's outputs are right.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("doctor"),
    show_default=True,
    help="Write programs that show wrong kernels to this folder.",
)
@json_option
@reports_errors
def command(model: Path, level: str, seed: int, every_launch: bool, output: Path, as_json: bool, **how: Any) -> None:
    """Find out which kernels of MODEL the device computes wrongly.

    Each different kernel answers questions whose answers are known; then the whole model is compared with a reference,
    and where it is wrong, each launch with what its inputs give. For each wrong kernel a program is written that shows
    the difference on its own, one C file and one .cl. Exit code 1 if something is wrong.
    """
    from smartmem_rules.doctor.examination import examine  # start-up time

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        found = examine(model, output, seed, every_launch, progress, level=level, **how)
    if as_json:
        print_json(found.data())
    else:
        for line in _lines(found):
            console().print(line, markup=False)
    if not found.healthy:
        answer_no(*_lines(found))


def _lines(found: Any) -> list[str]:
    """What was found, for people."""
    lines = [str(found.report), f"{found.report.asked} kernels asked in {found.report.seconds:.2f} s"]
    if found.report.unasked:
        lines.append(f"{found.report.unasked} launches have no known answers")
    if found.check is None:
        lines.append(f"the whole model was not compared: {found.no_check}")
    else:
        states = {True: "right", False: "wrong", None: "undecided"}
        error = found.check.max_relative_error
        lines.append(
            f"the whole model is {states[found.check.passed]} (relative error {error}, {found.check.reference})"
        )
    if found.walk is not None:
        step = found.walk.step
        lines.append(f"{found.walk.looked_at} launches compared one by one")
        if step is not None:
            lines += [f"the first wrong one is {step.number}, {step.kernel}:", *map(str, step.differences)]
        elif found.check is not None and found.check.passed is False:
            lines.append("none of them is wrong: the plan itself is, please report it")
    lines += [f"see {path}" for path in found.files]
    lines += [f"no program: {reason}" for reason in found.unwritten]
    return lines
