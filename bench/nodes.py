"""Each launch of a plan, its roof, and other systems on the same nodes: `python bench/nodes.py mobilenetv2`.

The nodes for which a launch stands are cut out of the model, and ONNX Runtime and OpenVINO run what was cut out, with
all that they do to a model. They take turns with our launch, which runs alone as well; the medians are without what a
call of nothing takes. Equal pieces of the model are timed once and share a row. Rows are sorted by what is lost: ours
minus the better of the others. The last row is the whole model in each system, from arrays to arrays.

`--disable one_after_another` (any `fuse` block) makes smaller launches, with rows of fewer nodes. `--one-core` counts
the processor's time of one thread each, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_tables import markdown
from node_models import Nodes, NoPiece, Piece, pieces_of
from node_times import PEERS, OurLaunches, Times, Timing, calls, in_run, load, measured, processor_name
from served import NAMES, medians, model_file

import smartmem_rules
from smartmem_rules.graph.zoo import materialized_model
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.runtime.feeds import Array
from smartmem_rules.runtime.roof import Roof, measure_roof, roof_of
from smartmem_rules.tensor.ranges import largest

HEADER = "launches | nodes | of the roof | in the run, ms | alone, ms | ONNX Runtime | OpenVINO | lost, ms"


@dataclass(frozen=True, kw_only=True)
class Row:
    """Launches whose nodes make equal models.

    Attributes:
        operators: of the nodes, with their numbers.
        in_run: milliseconds of all these launches in a run of the plan, on the device's clock.
        roof_share: the least time by the roof over the time alone.
        reason: why there is no model of the nodes; empty where there is one.
    """

    launches: Mapping[int, Launch]
    operators: str
    times: Times
    in_run: float
    roof_share: float
    reason: str

    @property
    def ours(self) -> float:
        """Milliseconds of all the launches, each alone."""
        return sum(self.times.ours.values())

    @property
    def peers(self) -> dict[str, float]:
        """Milliseconds of the systems that run the model, as often as there are launches."""
        each = {name: time for name, time in self.times.peers.items() if not isinstance(time, str)}
        return {name: time * len(self.launches) for name, time in each.items()}

    @property
    def lost(self) -> float | None:
        """Milliseconds by which the better of the others takes less; negative where ours take less."""
        return self.ours - min(self.peers.values()) if self.peers else None

    @property
    def reasons(self) -> list[str]:
        """Why figures are missing."""
        said = [reason for reason in self.times.peers.values() if isinstance(reason, str)]
        return [self.reason, *said] if self.reason else said

    def cells(self) -> list[str]:
        """The row of the table."""
        first = next(iter(self.launches.values())).name
        name = first if len(self.launches) == 1 else f"{first} and {len(self.launches) - 1} more"
        peers = [f"{self.peers[system]:.3f}" if system in self.peers else "-" for system in PEERS]
        lost = "-" if self.lost is None else f"{self.lost:+.3f}"
        own = [f"{self.roof_share:.0%}", f"{self.in_run:.3f}", f"{self.ours:.3f}"]
        return [name, self.operators, *own, *peers, lost]

    def data(self) -> dict[str, object]:
        """The row for `--json`; milliseconds are those of one launch, in the order of `launches`."""
        return {
            "launches": [launch.name for launch in self.launches.values()],
            "nodes": [list(launch.origin) for launch in self.launches.values()],
            "operators": self.operators,
            "ours_ms": list(self.times.ours.values()),
            "in_run_ms": self.in_run,
            "peers_ms": dict(self.times.peers),
            "lost_ms": self.lost,
            "roof_share": self.roof_share,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """All rows of a plan.

    Attributes:
        conditions: where and how the times were taken.
        called: milliseconds of a call of nothing by system, which the times of the rows are without.
        whole: milliseconds of the model by system, from arrays to arrays.
    """

    model: str
    conditions: Sequence[str]
    rows: Sequence[Row]
    called: Mapping[str, float]
    whole: Mapping[str, float]

    def __str__(self) -> str:
        lines = [row.cells() for row in self.rows]
        table = markdown(HEADER, [*lines, self._sums(), self._whole()])
        calls = ", ".join(f"{name} {1e3 * ms:.0f}" for name, ms in self.called.items())
        reasons = [f"{row.cells()[0]}: {reason}" for row in self.rows for reason in row.reasons]
        return "\n".join([*self.conditions, f"a call of nothing, us: {calls}", "", table, "", *reasons]).rstrip()

    def _sums(self) -> list[str]:
        """The sums of the rows in which no figure is missing."""
        rows = [row for row in self.rows if len(row.peers) == len(PEERS)]
        sums = [sum(row.in_run for row in rows), sum(row.ours for row in rows)]
        sums += [sum(row.peers[system] for row in rows) for system in PEERS]
        lost = sum(row.lost or 0.0 for row in rows)
        named = "sum" if len(rows) == len(self.rows) else f"sum of {len(rows)} rows"
        return [named, "", "", *(f"{ms:.3f}" for ms in sums), f"{lost:+.3f}"]

    def _whole(self) -> list[str]:
        ours, *peers = (self.whole[name] for name in NAMES)
        times = (f"{ms:.3f}" for ms in (ours, *peers))
        return ["the whole model", "", "", "", *times, f"{ours - min(peers):+.3f}"]

    def data(self) -> dict[str, object]:
        """The table for `--json`."""
        return {
            "model": self.model,
            "conditions": list(self.conditions),
            "call_ms": dict(self.called),
            "rows": [row.data() for row in self.rows],
            "whole_ms": dict(self.whole),
        }


def main() -> int:
    """Measure, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a name or a path")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--one-core", action="store_true", help="one thread each, and the processor's time")
    parser.add_argument("--disable", nargs="*", default=[], help="rules or fuse blocks to plan without")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.one_core:
        os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
    threads = 1 if arguments.one_core else len(os.sched_getaffinity(0))
    path, before = model_file(arguments.model), load()
    with tempfile.TemporaryDirectory(prefix="smartmem-nodes-") as folder:
        timing = Timing(threads=threads, turns=arguments.turns, folder=Path(folder))
        rows, called = found_rows(path, arguments.disable, timing)
    environment = {"POCL_MAX_PTHREAD_COUNT": str(threads), "OMP_NUM_THREADS": str(threads)}
    environments = dict.fromkeys(NAMES, environment)
    table = Table(
        model=arguments.model,
        conditions=(
            f"{processor_name()}, {before}, afterwards {load()}",
            "the processor's time of one thread each" if threads == 1 else f"by the clock, {threads} threads each",
            f"medians of {arguments.turns} turns or more runs",
        ),
        rows=sorted(rows, key=lambda row: -math.inf if row.lost is None else row.lost, reverse=True),
        called=called,
        whole=dict(zip(NAMES, medians(path, threads, arguments.turns, environments), strict=True)),
    )
    print(json.dumps(table.data()) if arguments.json else table)
    return 0


def found_rows(path: Path, disable: Sequence[str], timing: Timing) -> tuple[list[Row], dict[str, float]]:
    """The rows of a model's plan, and what a call of nothing takes by system."""
    plan = smartmem_rules.optimize(str(path), disable=disable)
    executor, feeds = plan.prepare(), plan.random_feeds()
    executor.run(feeds)
    ours = OurLaunches(executor, feeds, timing.clock)
    groups = grouped(plan.plan, path, ours.numbers, feeds, timing.folder)
    roof = measure_roof(executor.device) if timing.threads == 1 else roof_of(executor.device)
    running = in_run(executor, feeds, timing.turns)
    called = calls(ours, timing)
    rows = []
    for numbers, found in groups:
        launches = {number: plan.kernels[number] for number in numbers}
        print(f"{launches[numbers[0]].name}: {len(numbers)} of {len(plan.kernels)} launches", file=sys.stderr)
        times = measured(ours, numbers, found if isinstance(found, Piece) else None, called, timing)
        rows.append(row(launches, found, times, roof, sum(running[launch.name] for launch in launches.values())))
    return rows, called


def grouped(
    plan: Plan, path: Path, numbers: Sequence[int], feeds: Mapping[str, Array], folder: Path
) -> list[tuple[list[int], Piece | NoPiece]]:
    """The numbers of launches whose nodes make equal models, with the first of these models.

    Raises:
        SystemExit: ONNX Runtime does not run the model, from whose run the inputs of the pieces are.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    first: dict[str, Piece | NoPiece] = {}
    try:
        for number, found in pieces_of(Nodes(materialized_model(path), plan), numbers, feeds, folder):
            key = found.key if isinstance(found, Piece) else str(number)
            groups[key].append(number)
            first.setdefault(key, found)
    except NoPiece as reason:
        raise SystemExit(str(reason)) from reason
    return [(launches, first[key]) for key, launches in groups.items()]


def row(launches: Mapping[int, Launch], found: Piece | NoPiece, times: Times, roof: Roof, running: float) -> Row:
    """A row of the table."""
    shares = [
        roof.share(largest(launch.operations), launch.bytes_moved, times.ours[number])
        for number, launch in launches.items()
    ]
    return Row(
        launches=launches,
        operators=found.operators if isinstance(found, Piece) else "-",
        times=times,
        in_run=running,
        roof_share=statistics.fmean(shares),
        reason=str(found) if isinstance(found, NoPiece) else "",
    )


if __name__ == "__main__":
    sys.exit(main())
