"""`smartmem optimize`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from smartmem_rules.cli.common import (
    answer_no,
    console,
    debug_option,
    json_option,
    level_option,
    names,
    optimize_options,
    print_json,
    progress_display,
    reports_errors,
    self_test_option,
)
from smartmem_rules.cli.conditions import Condition, fail_on_option
from smartmem_rules.cli.left import print_left
from smartmem_rules.cli.tables import check_line, print_optimize, print_rules
from smartmem_rules.stages import STAGES
from smartmem_rules.statistics import RewriteStatistics

if TYPE_CHECKING:
    from smartmem_rules.explanation.documents import OptimizeReport, RuleOfPlan


@click.command("optimize")
@click.argument("model", type=click.Path(path_type=Path))
@level_option
@optimize_options
@self_test_option
@click.option("--no-check", is_flag=True, help="Do not compare the outputs with a reference's.")
@click.option("--seed", default=0, show_default=True, help="Of the random inputs of the check.")
@debug_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Save the plan here.")
@click.option(
    "--certificate",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every step from MODEL to the kernels here, for `smartmem certify`.",
)
@click.option("--dump", type=click.Path(path_type=Path, file_okay=False), help="Write the text of each stage to DIR.")
@click.option(
    "--dump-after", multiple=True, type=click.Choice(STAGES), help="With --dump: only of this stage; repeatable."
)
@click.option("--explain-left", is_flag=True, help="Show what no rule took, and the rules that nearly did.")
@fail_on_option
@click.option("--rule-stats", is_flag=True, help="Show what each rule did.")
@click.option("--own-rules", is_flag=True, help="With --rule-stats: only the rules of the files of --rules.")
@json_option
@reports_errors
def command(
    model: Path,
    level: str,
    no_check: bool,
    seed: int,
    debug: bool,
    output: Path | None,
    certificate: Path | None,
    dump: Path | None,
    dump_after: tuple[str, ...],
    explain_left: bool,
    fail_on: list[Condition],
    rule_stats: bool,
    own_rules: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Make a plan of MODEL, compare its outputs with ONNX Runtime's, and say what became of its operators."""
    from smartmem_rules.api import optimize  # start-up time

    if own_rules and not (rule_stats and how["rules"]):
        raise click.UsageError("--own-rules limits --rule-stats to the rules of --rules FILE: give both")

    if dump_after and dump is None:
        raise click.UsageError("--dump-after needs --dump DIR")
    how["disable"] = names(how["disable"])
    stages: dict[str, str] = {}
    show = None if dump is None else stages.__setitem__
    with progress_display() as progress:
        plan = optimize(model, level=level, progress=progress, debug=debug, show=show, certificate=certificate, **how)
        if not no_check and plan.device is not None:
            progress("check", 0, 1)
            plan.check_or_reason(seed=seed)
            progress("check", 1, 1)
    data = plan.report_data()
    check = data["check"]
    if output is not None:
        plan.save(output)
    if certificate is not None:
        data["certificate"] = str(certificate)
    if dump is not None:
        from smartmem_rules.explanation.inspected import Inspected  # start-up time
        from smartmem_rules.views.stage_texts import write_stages  # start-up time

        data["dumped"] = list(map(str, write_stages(Inspected(plan.plan, stages), dump, dump_after)))
    if rule_stats:
        data["rules"] = _rule_statistics(plan.plan.statistics.rewriting, set(how["rules"]) if own_rules else None)
    if explain_left:
        from smartmem_rules.explanation.report import left  # start-up time

        data["left"] = left(plan.plan)
    broken = _broken(fail_on, data)
    if as_json:
        print_json(data)
    else:
        print_optimize(console(), data)
        if rule_stats:
            print_rules(console(), data["rules"])
        if explain_left:
            print_left(console(), data["left"])
        _say_where(data, output, dump, how["rules"])
    if check is not None and check["passed"] is False:
        answer_no(check_line(check))
    if broken:
        answer_no()


def _broken(conditions: Sequence[Condition], data: OptimizeReport) -> list[str]:
    """The conditions of --fail-on that hold, which are said and become a part of the report."""
    broken = [held for condition in conditions if (held := condition.holds(data)) is not None]
    if conditions:
        data["failed_on"] = broken
    for held in broken:
        click.echo(f"smartmem: --fail-on: {held}", err=True)
    return broken


def _say_where(data: OptimizeReport, output: Path | None, dump: Path | None, rules: Sequence[str]) -> None:
    """Where lies what was asked for besides the plan."""
    if output is not None:
        console().print(f"saved as {output}", markup=False)
    if "certificate" in data:
        console().print(f"certificate in {data['certificate']}", markup=False)
    if dump is not None:
        console().print(f"{len(data['dumped'])} files in {dump}", markup=False)
    for said in _overridden(rules):
        console().print(said, markup=False)


def _rule_statistics(rewriting: RewriteStatistics, files: set[str] | None) -> list[RuleOfPlan]:
    """What each rule did, and on the way to how many nodes of the plan it lies; those of some files only."""
    used = Counter(rule for rules in rewriting.rules_of_node.values() for rule in set(rules))
    rules: dict[str, RuleOfPlan] = {
        one.rule: cast("RuleOfPlan", {**asdict(one), "in_plan": used[one.rule]}) for one in rewriting.rules
    }
    if files is None:
        return list(rules.values())
    meant = {Path(file).resolve() for file in files}
    places = rewriting.rule_places
    return [data for rule, data in rules.items() if rule in places and Path(places[rule].range.file).resolve() in meant]


def _overridden(files: Sequence[str]) -> Iterator[str]:
    """The built-in operators whose place definitions of the user's files take."""
    if not files:
        return
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.rulebase.checks.operators.identities import overridden  # start-up time

    for operator in overridden(load_rules(files).operators):
        yield f"{operator.span}: {operator.name} takes the place of the built-in operator"
