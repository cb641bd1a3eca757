"""The text form of a saturation and of the choice of the cheapest form."""

from __future__ import annotations

from smartmem_rules.egraph.model import Saturation
from smartmem_rules.statistics import Extraction


def saturation_text(saturation: Saturation) -> str:
    """The size of the e-graph, and how often each rule matched and fired."""
    lines = [
        f"{len(saturation.classes)} classes, {saturation.enode_count} e-nodes, {saturation.iterations} iterations, "
        f"{f'stopped by {saturation.stopped}' if saturation.stopped else 'saturated'}"
    ]
    for ran in saturation.phases:
        ended = f"stopped by {ran.stopped}" if ran.stopped else "saturated"
        rounds = f"{ran.rounds} round{'' if ran.rounds == 1 else 's'}"
        lines.append(f"phase {ran.phase}: {rounds}, {ran.enodes} rows, {ended}")
    tried = (one for one in saturation.statistics.values() if one.tried)
    for one in sorted(tried, key=lambda one: one.rule):
        lines.append(f"{one.rule}: matched {one.tried}, fired {one.fired}, {one.enodes} e-nodes")
    return "\n".join(lines) + "\n"


def report_text(report: Extraction) -> str:
    """One line about the extraction: its modelled time, and the gap to the proven bound."""
    return f"{report.status}, {report.cost / 1000:.3f} us, gap {report.gap:.3g}\n"
