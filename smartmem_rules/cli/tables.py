"""The tables that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import OptimizeReport, RuleOfPlan
    from smartmem_rules.runtime.reference import ComparedOutputs
    from smartmem_rules.schema.runs import BenchRow, PeerCheck, RoofOfDevice


def table(title: str, *columns: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    # a title is folded at the table's width
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", min_width=len(title) + 2)
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0, overflow="fold")
    return made


def megabytes(count: float) -> str:
    return f"{count / 1e6:.1f} MB"


def number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)


def print_optimize(screen: Console, data: OptimizeReport) -> None:
    """What `optimize` found and did."""
    ranges = escape("".join(f", {name} {low}..{high}" for name, (low, high) in data["dimensions"].items()))
    screen.print(
        f"[bold]{escape(data['model'])}[/] on {escape(data['device'])}, level {data['level']}, {data['dtype']}, "
        f"memory {data['memory']}{ranges}\n"
    )
    print_operators(screen, data)
    print_summary(screen, data)
    print_seconds(screen, data["seconds"])
    print_check(screen, data["check"])


def print_operators(screen: Console, data: OptimizeReport) -> None:
    """Operators of the model by type, and kernels by form."""
    before = table("Operators of the model", "type", "nodes")
    for name, count in sorted(data["operator_types"].items(), key=lambda item: (-item[1], item[0])):
        before.add_row(escape(name), str(count))
    screen.print(before)
    after = table("Kernels of the plan", "form", "kernels")
    for name, count in sorted(data["kernel_forms"].items(), key=lambda item: (-item[1], item[0])):
        after.add_row(name, str(count))
    screen.print(after)


def print_summary(screen: Console, data: OptimizeReport) -> None:
    """Before and after in three lines."""
    made = table("Before and after", "", "model", "plan")
    made.add_row("operators / kernels", str(data["operators"]), str(data["kernels"]))
    layout = data["layout_operators"]
    made.add_row("that only move data", str(layout["before"]), str(layout["after"]))
    made.add_row("bytes moved", megabytes(data["bytes_moved_before"]), megabytes(data["bytes_moved"]))
    memory = data["intermediate_bytes"]
    made.add_row("memory of intermediates", megabytes(memory["separate"]), megabytes(memory["reused"]))
    device = data["device_bytes"]
    made.add_row("weights", "", megabytes(device["weights"]))
    if device["cache_per_token"] is not None:
        made.add_row("cache, bytes a token", "", str(device["cache_per_token"]))
    screen.print(made)
    extraction = data["extraction"]
    gap = extraction.get("gap")
    screen.print(f"extraction: {extraction.get('status')}" + ("" if gap is None else f", gap {gap:.2%}"))


def print_seconds(screen: Console, seconds: Mapping[str, float]) -> None:
    """Seconds by stage."""
    made = table("Seconds", "stage", "s")
    for stage, value in seconds.items():
        made.add_row(stage, f"{value:.2f}")
    screen.print(made)


def print_check(screen: Console, check: ComparedOutputs | None) -> None:
    """The equivalence check in one line."""
    if check is None:
        screen.print("not checked against a reference")
    elif check["reference"] == "none":
        screen.print(f"[yellow]not checked[/]: {escape(check['reason'])}")
    else:
        color = {True: "green", False: "red", None: "yellow"}[check["passed"]]
        word, colon, rest = check_line(check).partition(":")
        screen.print(f"[{color}]{word}[/]{colon}{escape(rest)}")
        for line in (*([check["reason"]] if check["reason"] else []), *check["notes"]):
            screen.print(f"  {escape(line)}")
        if check["extents"]:
            made = table("Extents checked", "extents", "largest relative error")
            for one in check["extents"]:
                error = one["max_relative_error"]
                names = ", ".join(f"{name}={value}" for name, value in one.items() if name != "max_relative_error")
                made.add_row(escape(names), error if isinstance(error, str) else format(error, ".2e"))
            screen.print(made)


def check_line(check: ComparedOutputs) -> str:
    """What a comparison with a reference gave."""
    word = {True: "equal", False: "outputs differ", None: "undecided"}[check["passed"]]
    error = check["max_relative_error"]
    return (
        f"{word}: largest relative error {error if isinstance(error, str) else format(error, '.2e')} against "
        f"{check['reference']} in {check['precision']} ({_limit(check)}, seed {check['seed']})"
    )


def _limit(check: ComparedOutputs) -> str:
    """What the error was compared with."""
    if check["tolerance"] is not None:
        return f"tolerance {check['tolerance']:g}"
    share = check["error_to_bound"]
    part = share if isinstance(share, str) else f"{share:.2g}"
    return f"{part} of what rounding explains by {check['draws']} perturbed runs"


def print_rules(screen: Console, rules: Sequence[RuleOfPlan]) -> None:
    """What each rule did."""
    made = table("Rules", "rule", "tried", "fired", "in the plan", "ms", "e-nodes")
    for rule in rules:
        made.add_row(
            escape(rule["rule"]),
            str(rule["tried"]),
            str(rule["fired"]),
            str(rule.get("in_plan", 0)),
            f"{rule['milliseconds']:.1f}",
            str(rule["enodes"]),
        )
    screen.print(made)


def print_benchmark(screen: Console, results: Sequence[BenchRow]) -> None:
    """One row for each contender."""
    columns = ("median", "min", "quartiles", "max", "runs", "kernels", "error", "device")
    made = table("Latency, milliseconds", "model", "system", *columns)
    for row in results:
        made.add_row(
            escape(row["model"]),
            escape(row["level"] or row["peer"] or ""),
            number(row["median_ms"]),
            number(row["min_ms"]),
            f"{number(row['quartile_1_ms'])} .. {number(row['quartile_3_ms'])}",
            number(row["max_ms"]),
            str(row["runs"]),
            "-" if row["kernels"] is None else str(row["kernels"]),
            _error(row.get("check")),
            escape(row["device"]),
        )
    screen.print(made)


def _error(check: ComparedOutputs | PeerCheck | None) -> str:
    """The largest relative error against the reference, marked where it is too large."""
    if check is None or check["max_relative_error"] is None:
        return "-"
    error = check["max_relative_error"]
    text = error if isinstance(error, str) else f"{error:.1e}"
    return f"[red]{text} wrong[/]" if check["passed"] is False else text


def print_profile(screen: Console, row: BenchRow, roof: RoofOfDevice) -> None:
    """The kernels of one plan, the longest first."""
    columns = ("form", "ms", "share", "GFLOP/s", "GB/s", "of the roof")
    made = table(f"Kernels of {row['model']}, level {row['level']}", "kernel", *columns)
    for one in sorted(row["profile"], key=lambda one: -one["ms"]):
        made.add_row(
            escape(one["kernel"]),
            one["form"],
            f"{one['ms']:.3f}",
            f"{one['share']:.1%}",
            f"{one['gflops']:.1f}",
            f"{one['gbytes_per_s']:.1f}",
            f"{one['roof_share']:.0%}",
        )
    screen.print(made)
    screen.print(f"roof of {roof['device']}: {roof['gflops']:.0f} GFLOP/s, {roof['gbytes']:.0f} GB/s, as measured")
