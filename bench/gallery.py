"""One page with plots of stored results: kernels, memory and latency by level and by peer, and simplified models.

    python bench/gallery.py                            # bench/results.json as build/gallery.html
    python bench/gallery.py --add FILE ... --note "while others used the machine"

The page is one file that loads nothing and has no scripts. `--add` takes results into bench/results.json, from

    python bench/figures.py kernels memory --save figures.jsonl
    smartmem bench MODEL --levels all --against onnxruntime,openvino --json > MODEL.json
    python bench/simplify.py MODEL ... --peers peers/bin/python --latency 31 --json simplified.json
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gallery_plots import Plot, svg_of
from gallery_results import LEVELS, TOOLS, Results, ResultsError, load
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

import smartmem_rules
from smartmem_rules.whole_files import write_whole

HERE = Path(__file__).resolve().parent
STORED = HERE / "results.json"
PAGE = HERE.parent / "build" / "gallery.html"
OURS = "smartmem"
NOISE = 0.05
"""What two measurements of one file differ by."""
Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A plot with all that stands around it."""

    name: str
    heading: str
    said: str
    origin: str
    plot: Plot
    form: str = "{:,.0f}"

    @property
    def svg(self) -> Markup:
        return Markup(svg_of(self.plot, self.name))

    @property
    def header(self) -> list[str]:
        return ["model", *self.plot.series]

    @property
    def rows(self) -> Iterator[list[str]]:
        """The numbers of each model; a dash where there is none."""
        for model in self.plot.models:
            values = [values.get(model) for values in self.plot.series.values()]
            yield [model, *("–" if value is None else self.form.format(value) for value in values)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=STORED, help="the stored results; %(default)s")
    parser.add_argument("--add", nargs="+", type=Path, default=[], metavar="FILE", help="take these results in")
    parser.add_argument("--note", default="", help="what else a reader of the added results has to know")
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="the page; %(default)s")
    given = parser.parse_args()
    try:
        results = load(given.results)
        for path in given.add:
            results = results.with_file(path, given.note)
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2
    if given.add:
        results.save(given.results)
    figures = list(shown(results))
    if not figures:
        print(f"{given.results} has no results; --add takes some in", file=sys.stderr)
        return 2
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(given.output, page_of(figures).encode())
    print(f"{given.output}: {len(figures)} plots")
    return 0


def page_of(figures: Iterable[Shown]) -> str:
    """The page."""
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
    colours = Path(smartmem_rules.__file__).parent / "report" / "page" / "01_colours.css"
    template = environment.get_template("gallery.html")
    return template.render(figures=list(figures), colours=Markup(colours.read_text("utf-8")))


def shown(results: Results) -> Iterator[Shown]:
    """The plots for which there are results."""
    yield from _of_plans(results)
    yield from _of_times(results)
    yield from _of_simplified(results)


def _of_plans(results: Results) -> Iterator[Shown]:
    if not results.planned:
        return
    origin = str(results.origins["planned"])
    planned = results.planned
    kernels = {
        level: {one.model: float(one.kernels) for one in planned if one.level == level} for level in LEVELS
    }  # fmt: skip
    yield Shown(
        name="kernels",
        heading="Kernels by level",
        said=_said(kernels, OURS, "none", "of the kernels of level none"),
        origin=origin,
        plot=Plot(title="Kernels of each model at each level", axis="kernels of one inference", series=kernels),
    )
    memory = {
        level: {one.model: one.bytes / 1e6 for one in planned if one.level == level and one.bytes} for level in LEVELS
    }
    yield Shown(
        name="memory",
        heading="Memory by level",
        said=_said(memory, OURS, "none", "of the memory of level none"),
        origin=origin,
        plot=Plot(title="Memory of intermediate tensors by level", axis="MB of intermediate tensors", series=memory),
        form="{:,.2f}",
    )


def _of_times(results: Results) -> Iterator[Shown]:
    if not results.measured:
        return
    origin = f"{results.origins['measured']}; medians of runs that take turns"
    by_system = _by(results.measured, lambda one: one.system, lambda one: one.median_ms)
    levels = {level: by_system[level] for level in LEVELS if level in by_system}
    yield Shown(
        name="latency",
        heading="Latency by level",
        said=_said(levels, OURS, "none", "of the time of level none"),
        origin=origin,
        plot=Plot(title="Milliseconds of one inference by level", axis="ms", series=levels),
        form="{:,.2f}",
    )
    peers = {name: values for name, values in by_system.items() if name not in LEVELS}
    if peers and OURS in by_system:
        yield Shown(
            name="peers",
            heading="Latency by peer",
            said="; ".join(f"{name}: {_ratio(values, by_system[OURS])}" for name, values in peers.items())
            + " of our time, in geometric mean: beyond the dashed line a peer takes longer.",
            origin=origin,
            plot=Plot(
                title="Time of each peer over ours",
                axis="time of the peer / ours",
                series={name: _over(values, by_system[OURS]) for name, values in peers.items()},
                line_at=1.0,
            ),
            form="{:.2f}",
        )


def _of_simplified(results: Results) -> Iterator[Shown]:
    if not results.simplified:
        return
    origin = str(results.origins["simplified"])
    right = [one for one in results.simplified if one.right]
    wrong = len(results.simplified) - len(right)
    given = {one.model: one.nodes for one in right if one.tool == "input"}
    nodes = _by(right, lambda one: one.tool, lambda one: one.nodes / given[one.model] if one.model in given else None)
    if made := _of_tools(nodes):
        yield Shown(
            name="nodes",
            heading="Nodes of simplified models",
            said=f"Of a model's nodes are left, in geometric mean: {_means(made)}. Wrong results: {wrong}.",
            origin=origin,
            plot=Plot(title="Nodes that each tool leaves", axis="nodes left / nodes", series=made, line_at=1.0),
            form="{:.3f}",
        )
    if made := _of_tools(_by(right, lambda one: one.tool, lambda one: one.to_input)):
        slower = "; ".join(
            f"{tool}: {sum(ratio > 1 + NOISE for ratio in values.values())}" for tool, values in made.items()
        )
        title, axis = "ONNX Runtime's time of simplified models", "time / time as exported"
        yield Shown(
            name="runtime",
            heading="ONNX Runtime on simplified models",
            said=f"Its time over that of the model as exported, in geometric mean: {_means(made)}. "
            f"Models on which that is more than {1 + NOISE}: {slower}.",
            origin=f"{origin}; processor time of one thread, medians of the ratios in turns",
            plot=Plot(title=title, axis=axis, series=made, line_at=1.0),
            form="{:.3f}",
        )
    seconds = _of_tools(_by(right, lambda one: one.tool, lambda one: one.seconds))
    if seconds:
        yield Shown(
            name="seconds",
            heading="Time of simplifying",
            said="Ours runs the model and the result on three random inputs before it writes anything.",
            origin=origin,
            plot=Plot(title="Seconds that each tool takes", axis="seconds", series=seconds),
            form="{:.2f}",
        )


def _by(
    rows: Iterable[Row], key: Callable[[Row], str], value: Callable[[Row], float | None]
) -> dict[str, dict[str, float]]:
    """The values by series and model, without those that are missing."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        one = value(row)
        if one is not None:
            found.setdefault(key(row), {})[row.model] = float(one)  # type: ignore[attr-defined]
    return found


def _of_tools(found: Mapping[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The values of each tool under its own name, in a fixed order."""
    return {name: found[tool] for tool, name in TOOLS.items() if tool != "input" and found.get(tool)}


def _means(series: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(f"{name} {_mean(values.values()):.3f}" for name, values in series.items())


def _over(values: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    return {model: value / base[model] for model, value in values.items() if model in base}


def _ratio(values: Mapping[str, float], base: Mapping[str, float]) -> str:
    return f"{_mean(_over(values, base).values()):.2f}"


def _mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def _said(series: Mapping[str, Mapping[str, float]], one: str, other: str, what: str) -> str:
    ratios = _over(series.get(one, {}), series.get(other, {}))
    if not ratios:
        return ""
    return f"Level {one} has {_mean(ratios.values()):.2f} {what}, in geometric mean over {len(ratios)} models."


if __name__ == "__main__":
    sys.exit(main())
