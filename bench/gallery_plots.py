"""Plots as SVG for a page: their colours are those of the page's style, their texts stay texts."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

Values = Mapping[str, Mapping[str, float]]
"""The value of each series for each model."""
_MARKERS = "oDs^vP*X"
_STYLE = {"ink": "#000001", "soft": "#000002", "line": "#000003", "line-strong": "#000004"}
"""Colours of the style that stand for themselves until the plot is written: matplotlib knows no variables."""
_SERIES = {f"form-{number}": f"#0000{16 + number:02x}" for number in range(8)}
_ROW = 0.27
_WIDTH = 8.6
_LARGEST, _SMALLER = 90.0, 0.76
"""Marks that lie on one another get smaller, so that each is seen."""
_FEW_DECADES, _SOME_DECADES = 0.75, 1.6
"""Up to these a scale has numbers at equal distances, and at more multiples of powers of ten."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What a plot shows.

    Attributes:
        title: for readers that cannot see it.
        axis: what the values are.
        line_at: a value that others are compared with.
        series: by name, in the order of the legend.
    """

    title: str
    axis: str
    series: Values
    line_at: float | None = None

    @property
    def models(self) -> list[str]:
        """The models, those of the greatest values first."""
        greatest: dict[str, float] = {}
        for values in self.series.values():
            for model, value in values.items():
                greatest[model] = max(value, greatest.get(model, 0.0))
        return sorted(greatest, key=lambda model: (-greatest[model], model))


def svg_of(plot: Plot, name: str) -> str:
    """A row for each model, a mark in it for each series, from left to right on a logarithmic scale.

    Args:
        name: of the figure, another one for each on a page: what is defined in it is named after it.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        models = plot.models
        figure = Figure(figsize=(_WIDTH, 1.25 + _ROW * len(models)), layout="constrained")
        axes = figure.subplots()
        _draw(axes, plot, models)
        stream = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
    return _for_page(stream.getvalue(), plot.title, name)


def _draw(axes: Axes, plot: Plot, models: Sequence[str]) -> None:
    rows = {model: row for row, model in enumerate(models)}
    marks = zip(plot.series.items(), _MARKERS, _SERIES.values(), strict=False)
    for place, ((name, values), marker, colour) in enumerate(marks):
        there = sorted((rows[model], value) for model, value in values.items())
        axes.scatter(
            [value for _, value in there], [row for row, _ in there], s=_LARGEST * _SMALLER**place, marker=marker,
            color=colour, label=name, linewidths=0, zorder=3 + place,
        )  # fmt: skip
    for row, model in enumerate(models):
        found = [values[model] for values in plot.series.values() if model in values]
        axes.hlines(row, min(found), max(found), color=_STYLE["line-strong"], linewidth=0.8, zorder=2)
    if plot.line_at is not None:
        axes.axvline(plot.line_at, color=_STYLE["soft"], linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    axes.set_yticks(range(len(models)), models)
    axes.set_ylim(len(models) - 0.4, -0.6)
    _scale(axes, [value for values in plot.series.values() for value in values.values()])
    axes.set_xlabel(plot.axis, color=_STYLE["soft"])
    axes.grid(axis="x", color=_STYLE["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_STYLE["soft"], labelcolor=_STYLE["ink"], length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.figure.legend(loc="outside upper left", ncols=len(plot.series), frameon=False, labelcolor=_STYLE["ink"])


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic scale with numbers, more of them where there are few decades."""
    axes.set_xscale("log")
    decades = math.log10(max(values) / min(values))
    subs = (1, 2, 3, 5, 7) if decades < _SOME_DECADES else (1, 2, 5)
    even = MaxNLocator(8, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_locator(even if decades < _FEW_DECADES else LogLocator(subs=subs, numticks=40))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _for_page(svg: str, title: str, name: str) -> str:
    """The element alone, as wide as its place, with a title, and the colours of the style."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))  # all others are the same in each figure
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in referred else "", svg)
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img" '
    text = f'{head}aria-labelledby="{name}-title"><title id="{name}-title">{title}</title>{rest}'
    for colour, sentinel in (_STYLE | _SERIES).items():
        text = text.replace(sentinel, f"var(--{colour})")
    return text.strip()
