"""`smartmem certify`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    answer_no,
    dims_option,
    json_option,
    print_json,
    reports_errors,
    rules_option,
    say,
)

_SHOWN = 20


@click.command("certify")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("certificate", type=click.Path(path_type=Path, dir_okay=False))
@rules_option
@dims_option
@json_option
@reports_errors
def command(model: Path, certificate: Path, as_json: bool, **how: Any) -> None:
    """Replay the CERTIFICATE of a plan of MODEL, without the optimizer.

    Every step is done again with the rule base, and every kernel compared with the definitions. Exit code 1 if
    something in it does not hold; what it says itself not to certify is listed.
    """
    from smartmem_rules.api import certify  # start-up time
    from smartmem_rules.certificate.terms import Refused  # start-up time

    try:
        data = certify(model, certificate, **how).data() | {"refused": None}
    except Refused as reason:
        data = {"refused": str(reason)}
    if as_json:
        print_json(data)
    elif data["refused"] is not None:
        say(f"refused: {data['refused']}")
    else:
        _show(data)
    if data["refused"] is not None:
        answer_no(f"refused: {data['refused']}")


def _show(data: dict[str, Any]) -> None:
    steps, rules = data["steps"], data["rules"]
    held = "1 step holds" if steps == 1 else f"{steps} steps hold"
    say(f"{held}, by {len(rules)} rule{'' if len(rules) == 1 else 's'}: {', '.join(rules) or 'none'}")
    say(f"{data['certified']} of {data['nodes']} nodes of the plan are certified")
    say(f"{data['certified_kernels']} of {data['kernels']} kernels are certified")
    for reason, count in Counter(one["reason"] for one in data["uncertified"]).most_common(_SHOWN):
        say(f"not certified, {count} nodes and kernels: {reason}")
