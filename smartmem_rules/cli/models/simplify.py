"""`smartmem simplify`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import answer_no, json_option, names, print_json, reports_errors, rules_option, say


@click.command("simplify")
@click.argument("source", metavar="IN.onnx", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT.onnx", type=click.Path(path_type=Path, dir_okay=False))
@rules_option
@click.option(
    "--disable",
    multiple=True,
    metavar="RULE",
    shell_complete=choices.offered(choices.switchable, separated=True),
    help="Leave out a rule, a family or tag:WORD; repeatable.",
)
@click.option("--keep", multiple=True, metavar="NODE", help="The name of a node that stays as it is; repeatable.")
@click.option(
    "--domains",
    multiple=True,
    metavar="DOMAIN",
    shell_complete=choices.offered(choices.domains),
    help="Operators that rules may use besides ONNX's own: com.microsoft for fused forms; repeatable.",
)
@click.option("--opset", type=click.IntRange(min=7), help="Bring the model to this version of ONNX's operators first.")
@click.option(
    "--fold-limit",
    type=click.IntRange(min=0),
    default=1 << 20,
    show_default=True,
    metavar="BYTES",
    help="The largest constant that is computed beforehand, if it is larger than what it is computed from.",
)
@click.option("--exact", is_flag=True, help="Only rules that keep every bit of every result.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write what each rule removed here, as JSON."
)
@json_option
@reports_errors
def command(
    source: Path,
    target: Path,
    rules: tuple[Path, ...],
    disable: tuple[str, ...],
    keep: tuple[str, ...],
    domains: tuple[str, ...],
    opset: int | None,
    fold_limit: int,
    exact: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Write the model IN.onnx with fewer nodes as OUT.onnx, by verified rules only.

    The result is compared with the input by ONNX Runtime on random inputs before it is written. Where nothing better is
    found the input is written as it is. Exit code 1 if what was found differs from the input; then, too, the input is
    written.
    """
    from smartmem_rules.collector import leave_to_the_system  # start-up time
    from smartmem_rules.simplification.options import Options  # start-up time
    from smartmem_rules.simplification.report import text_of  # start-up time
    from smartmem_rules.simplification.simplify import simplify_file  # start-up time
    from smartmem_rules.whole_files import write_whole  # start-up time

    options = Options(
        rules=rules,
        disable=names(disable),
        keep=keep,
        domains=names(domains),
        opset=opset,
        fold_limit=fold_limit,
        exact=exact,
    )
    leave_to_the_system()
    found = simplify_file(source, target, options)
    if report is not None:
        write_whole(report, (json.dumps(found.data(), indent=2) + "\n").encode())
    if as_json:
        print_json(found.data())
    else:
        say(text_of(found), end="")
    if found.differed:
        answer_no(found.reason)
