"""Latencies as bars: a PNG through matplotlib, or a page through plotly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from smartmem_rules.errors import SmartmemError
from smartmem_rules.runtime.executor import Latency

SUFFIXES = (".png", ".html")


class MeasuredSystem(Latency):
    """The times of a level of our own, or of another system."""

    model: str
    level: str | None
    peer: str | None


class PlotError(SmartmemError):
    """A plot cannot be drawn; the message says what to do."""


def plot(results: Sequence[MeasuredSystem], path: Path) -> None:
    """Draw a group of bars for each model, a bar for each system, with the range of its runs.

    Raises:
        PlotError: the name ends in neither .png nor .html, a package is missing, or the file cannot be written.
    """
    if path.suffix not in SUFFIXES:
        raise PlotError(f"{path}: a plot's name ends in {' or '.join(SUFFIXES)}")
    models = list(dict.fromkeys(row["model"] for row in results))
    systems = list(dict.fromkeys(_system(row) for row in results))
    rows = {(row["model"], _system(row)): row for row in results}
    try:
        (_png if path.suffix == ".png" else _html)(models, systems, rows, path)
    except ImportError as error:
        raise PlotError(
            f"{path}: a {path.suffix[1:].upper()} needs {error.name}: pip install 'smartmem-rules[plot]'"
        ) from error
    except OSError as error:
        raise PlotError(f"{path}: the plot cannot be written ({error.strerror or error})") from error


def _system(row: MeasuredSystem) -> str:
    return str(row["level"] or row["peer"])


def _png(models: list[str], systems: list[str], rows: Mapping[tuple[str, str], MeasuredSystem], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.0, 1.2 + 0.35 * len(models) * (len(systems) + 1)), 4.0), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(systems)
    for place, system in enumerate(systems):
        there = [(i, rows[model, system]) for i, model in enumerate(models) if (model, system) in rows]
        medians = [row["median_ms"] for _, row in there]
        below = [row["median_ms"] - row["min_ms"] for _, row in there]
        above = [row["max_ms"] - row["median_ms"] for _, row in there]
        at = [i + (place - (len(systems) - 1) / 2) * width for i, _ in there]
        axes.bar(at, medians, width, yerr=[below, above], label=system, capsize=2)
    axes.set_xticks(range(len(models)), models)
    axes.set_ylabel("ms")
    axes.set_yscale("log")
    axes.legend()
    figure.savefig(path, dpi=150)


def _html(models: list[str], systems: list[str], rows: Mapping[tuple[str, str], MeasuredSystem], path: Path) -> None:
    from plotly.graph_objects import Bar, Figure

    figure = Figure()
    for system in systems:
        there = [(model, rows[model, system]) for model in models if (model, system) in rows]
        spread = {
            "type": "data",
            "symmetric": False,
            "array": [row["max_ms"] - row["median_ms"] for _, row in there],
            "arrayminus": [row["median_ms"] - row["min_ms"] for _, row in there],
        }
        medians = [row["median_ms"] for _, row in there]
        figure.add_trace(Bar(name=system, x=[model for model, _ in there], y=medians, error_y=spread))
    figure.update_layout(barmode="group", yaxis={"title": "ms", "type": "log"})
    figure.write_html(path, include_plotlyjs=True)
