"""`smartmem explain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli import choices
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

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import (
        Miss,
        MissAtNode,
        NodeExplanation,
        PairExplanation,
        RuleExplanation,
        WrittenTensor,
    )

_NODES = 4
SHOWN = 6
"""Candidates of a tensor that are listed, the cheapest first."""


@click.command("explain")
@click.argument("model", metavar="MODEL|PLAN", type=click.Path(path_type=Path))
@click.argument("node", required=False)
@click.argument("other", metavar="[NODE]", required=False)
@click.option(
    "--rule",
    metavar="NAME",
    shell_complete=choices.offered(choices.rules),
    help="Say where this rule fired and where it nearly did, instead of a NODE.",
)
@level_of_model_option
@optimize_options
@json_option
@reports_errors
def command(
    model: Path, node: str | None, other: str | None, rule: str | None, level: str, as_json: bool, **how: Any
) -> None:
    """Say which kernel the ONNX NODE ended in, and which rules brought it there; or where a rule fired.

    With two NODEs: why these are not one kernel, by the fusion rule that came nearest and the figure that failed.
    """
    from smartmem_rules.api import explain_model, explain_pair, explain_rule_on  # start-up time

    if (node is None) == (rule is None):
        raise click.UsageError("give a NODE or --rule NAME")
    how["disable"] = names(how["disable"])
    show: Callable[[], None]
    data: RuleExplanation | PairExplanation | NodeExplanation
    with progress_display() as progress:
        if rule is not None:
            data = of_rule = explain_rule_on(model, rule, level=level, progress=progress, **how)
            show = partial(_show_rule, of_rule)
        elif node is not None and other is not None:
            try:
                data = of_pair = explain_pair(model, node, other, level=level, progress=progress, **how)
            except ValueError as error:
                raise click.UsageError(str(error)) from error
            show = partial(_show_pair, of_pair)
        else:
            data = of_node = explain_model(model, node or "", level=level, progress=progress, **how)
            show = partial(_show_node, of_node)
    if as_json:
        print_json(data)
    else:
        show()


def _show_node(data: NodeExplanation) -> None:
    screen = console()
    screen.print(f"{data['operator']} {data['node']}: {data['outcome']}".strip(), markup=False)
    for kernel in data["kernels"]:
        screen.print(f"\n{kernel['name']} ({kernel['form']}), {kernel['bytes_moved']} bytes moved", markup=False)
        for other in kernel["with"]:
            screen.print(f"  with {other}", markup=False)
        for tensor in kernel["writes"]:
            _show_layout(tensor)
    if data["rules"]:
        screen.print("\nthrough the rules", markup=False)
    for rule in data["rules"]:
        screen.print(f"  {_placed(rule, data['rule_places'].get(rule, {}))}", markup=False)
    for place, miss in enumerate(data["near_misses"]):
        screen.print(
            f"\nnearest rule that did not apply: {_placed(miss['rule'], miss)}"
            if not place
            else f"did not apply: {_placed(miss['rule'], miss)}",
            markup=False,
        )
        _show_refusal(miss, "  the guard that failed: ")


def _show_pair(data: PairExplanation) -> None:
    for one, kernels in zip(data["nodes"], data["kernels"], strict=True):
        say(f"{one['operator']} {one['node']}: {', '.join(kernels) or 'no kernel'}".strip())
    say(data["answer"])
    for refusal in data["refusals"]:
        place = f"   ({refusal['file']}:{refusal['line']})" if "file" in refusal else ""
        figures = "" if refusal["figure"] is None else f": {refusal['figure']:.6g}, it admits {refusal['limit']:.6g}"
        say(f"  {refusal['rule']}{place}")
        say(f"    {_some(refusal['writer'])} -> {_some(refusal['reader'])}")
        say(f"    {refusal['reason']}{figures}")


def _some(nodes: Sequence[str]) -> str:
    """A few of the nodes of a kernel."""
    more = f" and {len(nodes) - _NODES} more" if len(nodes) > _NODES else ""
    return f"{', '.join(nodes[:_NODES])}{more}"


def _show_layout(tensor: WrittenTensor) -> None:
    """A tensor's layout, and what the others would have cost beside those of its neighbours."""
    screen = console()
    second = f", and as {tensor['copy']} for other readers" if tensor.get("copy") else ""
    screen.print(f"  writes {tensor['tensor']} as {tensor['layout']}{second}", markup=False)
    if len(tensor.get("candidates", ())) < 2:
        return
    reduced = f" along {', '.join(tensor['reduced'])}" if tensor["reduced"] else ""
    screen.print(f"    its readers reduce it{reduced or ' along none of its axes'}; modelled times", markup=False)
    possible = [(one["microseconds"], one["layout"]) for one in tensor["candidates"] if one["microseconds"] is not None]
    for microseconds, layout in sorted(possible, key=lambda one: one[0])[:SHOWN]:
        screen.print(f"    {microseconds:10.1f} us  {layout}", markup=False)


def _show_rule(data: RuleExplanation) -> None:
    screen = console()
    screen.print(_placed(data["rule"], data), markup=False)
    if data.get("cites"):
        screen.print(f"from {data['cites']}", markup=False)
    screen.print(
        f"matched {data['tried']} times, fired {data['fired']} times, {data['milliseconds']:.1f} ms, "
        f"{data['enodes']} e-nodes",
        markup=False,
    )
    for site in data["nodes"]:
        screen.print(f"fired at {site['operator']} {site['node']}", markup=False)
    for miss in data["near_misses"]:
        _show_refusal(miss, f"not at {miss['operator']} {miss['node']}: ")


def _show_refusal(miss: Miss | MissAtNode, begin: str) -> None:
    """What failed, where it stands, and the values that it saw."""
    screen = console()
    guard = miss.get("guard")
    screen.print(f"{begin}{miss['reason']}{f'   ({_range(guard)})' if guard else ''}", markup=False)
    for name, value in miss.get("values", {}).items():
        screen.print(f"    {name} is {value}", markup=False)


def _placed(rule: str, place: Mapping[str, Any]) -> str:
    """A rule with its equation and its place in the rule files."""
    equation = f"   # {place['equation']}" if place.get("equation") else ""
    return f"{rule}{equation}" + (f"   ({_range(place)})" if "file" in place else "")


def _range(place: Mapping[str, Any]) -> str:
    """`file:line:column-column`, or `file:line:column-line:column` over several lines; the end is inclusive."""
    last = place["end_column"] - 1
    end = f"{last}" if place["end_line"] == place["line"] else f"{place['end_line']}:{last}"
    return f"{place['file']}:{place['line']}:{place['column']}-{end}"
