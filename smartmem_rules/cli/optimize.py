"""`smartmem optimize`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    ANSWER_IS_NO,
    console,
    debug_option,
    json_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
)
from smartmem_rules.cli.tables import print_optimize, print_rules


@click.command("optimize")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--level", default="smartmem", show_default=True, help="Which steps are taken.")
@optimize_options
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with a reference's.")
@click.option("--seed", default=0, show_default=True, help="Of the random inputs of the check.")
@debug_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Save the plan here.")
@click.option("--rule-stats", is_flag=True, help="Show what each rule did.")
@json_option
@reports_errors
def command(
    model: Path,
    level: str,
    no_check: bool,
    seed: int,
    debug: bool,
    output: Path | None,
    rule_stats: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Make a plan of MODEL, compare its outputs with ONNX Runtime's, and say what became of its operators."""
    from smartmem_rules.api import optimize

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        plan = optimize(model, level=level, progress=progress, debug=debug, **how)
        if not no_check and plan.device is not None:
            progress("check", 0, 1)
            plan.check_or_reason(seed=seed)
            progress("check", 1, 1)
    data = plan.report_data()
    check = data["check"]
    if output is not None:
        plan.save(output)
    if rule_stats:
        data["rules"] = plan.plan.statistics.get("rules", [])
    if as_json:
        print_json(data)
    else:
        print_optimize(console(), data)
        if rule_stats:
            print_rules(console(), data["rules"])
        if output is not None:
            console().print(f"saved as {output}", markup=False)
    if check is not None and check["passed"] is False:
        sys.exit(ANSWER_IS_NO)
