"""The page of the gallery: every stored number is on it, it loads nothing, and its plots are well-formed."""

from __future__ import annotations

import importlib
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra `plot`")
BENCH = Path(__file__).parents[2] / "bench"
SVG = "{http://www.w3.org/2000/svg}"
PLANNED = [
    [[model, level, "pocl", "auto"], {"kernels": kernels, "operators": 100, "memory": {"reused": kernels * 1000}}]
    for model, counts in {"one": (100, 40, 7), "two": (50, 30, 9)}.items()
    for level, kernels in zip(("none", "dnnfusion", "smartmem"), counts, strict=True)
]
MEASURED = {
    "results": [
        {"model": "one", "level": level, "peer": peer, "median_ms": ms, "min_ms": 1.0, "max_ms": 99.0, "runs": 5}
        for level, peer, ms in (("none", None, 8.25), ("smartmem", None, 2.5), (None, "onnxruntime", 5.0))
    ]
}
SIMPLIFIED = {
    "one": {
        "input": {"nodes": 200, "bytes": 10, "milliseconds": 4.0, "to_input": 1.0, "path": "/a/place"},
        "smartmem": {"nodes": 50, "bytes": 10, "milliseconds": 2.0, "to_input": 0.5, "seconds": 1.5, "kilobytes": 7},
        "onnxsim": {"nodes": 20, "bytes": 10, "seconds": 0.5, "kilobytes": 7, "wrong": "the output differs"},
    }
}


class Page(HTMLParser):
    """The names of the elements of a page, the addresses in it, and what stands in its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._in_cell = tag in ("td", "th")
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells.append(data)


def raw(folder: Path) -> list[Path]:
    """Results of each kind, as the commands write them."""
    lines = folder / "figures.jsonl"
    lines.write_text("".join(f"{json.dumps(line)}\n" for line in PLANNED))
    others: dict[str, Any] = {"bench.json": MEASURED, "simplify.json": SIMPLIFIED}
    for name, data in others.items():
        (folder / name).write_text(json.dumps(data))
    return [lines, *(folder / name for name in others)]


@pytest.fixture(scope="module")
def gallery() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(BENCH))
        yield importlib.import_module("gallery")


def run(gallery: ModuleType, *arguments: object) -> int:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["gallery.py", *map(str, arguments)])
        return int(gallery.main())


@pytest.fixture(scope="module")
def folder(gallery: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `results.json` and `page.html` are."""
    made = tmp_path_factory.mktemp("gallery")
    options = ["--results", made / "results.json", "-o", made / "page.html", "--note", "on a <busy> machine"]
    assert run(gallery, *options, "--add", *raw(made)) == 0
    return made


def test_the_page_shows_all_results_and_loads_nothing(folder: Path) -> None:
    text = (folder / "page.html").read_text("utf-8")
    read = Page(text)
    assert {"100", "40", "7", "0.10", "8.25", "2.50", "2.00", "0.250", "0.500", "1.50"} <= set(read.cells)
    assert "0.100" not in read.cells  # a wrong result is none
    assert "Wrong results: 1." in text
    assert "on a &lt;busy&gt; machine" in text
    assert all(address.startswith("#") for address in read.addresses)
    assert {address[1:] for address in read.addresses} <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert not {"script", "img", "link", "iframe", "object"} & set(read.elements)
    assert "default-src 'none'" in text


def test_plots_are_well_formed_and_take_the_colours_of_the_page(folder: Path) -> None:
    text = (folder / "page.html").read_text("utf-8")
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawn) == 7
    for plot in map(ElementTree.fromstring, drawn):
        assert plot.findtext(f"{SVG}title")
        assert "one" in "".join(plot.itertext())
    colours = set(re.findall(r"var\(--([\w-]+)\)", "".join(drawn)))
    assert {"ink", "form-0"} <= colours <= set(re.findall(r"--([\w-]+):", text))
    assert not re.findall(r"#0000[01]\d", "".join(drawn))


def test_a_plot_is_the_same_each_time(gallery: ModuleType) -> None:
    plot = gallery.Plot(title="a plot", axis="ms", series={"one": {"a": 1.0, "b": 20.0}})
    assert gallery.svg_of(plot, "here") == gallery.svg_of(plot, "here")
    assert not set(re.findall(r' id="([^"]*)"', gallery.svg_of(plot, "here"))) & set(
        re.findall(r' id="([^"]*)"', gallery.svg_of(plot, "there"))
    )


def test_results_are_kept_and_replaced(gallery: ModuleType, folder: Path, tmp_path: Path) -> None:
    before = gallery.load(folder / "results.json")
    assert "/a/place" not in (folder / "results.json").read_text("utf-8")
    changed = json.loads(json.dumps(MEASURED))
    changed["results"][1]["median_ms"] = 3.75
    (tmp_path / "bench.json").write_text(json.dumps(changed))
    before.with_file(tmp_path / "bench.json", "again").save(tmp_path / "results.json")
    after = gallery.load(tmp_path / "results.json")
    assert (after.planned, after.simplified) == (before.planned, before.simplified)
    assert [one.median_ms for one in after.measured] == [8.25, 5.0, 3.75]
    assert after.origins["measured"].note == "again"
    assert after.origins["planned"] == before.origins["planned"]


def test_no_results_give_no_page(gallery: ModuleType, tmp_path: Path) -> None:
    assert run(gallery, "--results", tmp_path / "none.json", "-o", tmp_path / "page.html") == 2
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"one": 1}', '{"results": [{"level": "none"}]}'])
def test_other_files_are_refused(
    gallery: ModuleType, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other, stored = tmp_path / "other.json", tmp_path / "results.json"
    other.write_text(content)
    assert run(gallery, "--results", stored, "-o", tmp_path / "page.html", "--add", other) == 2
    assert "other.json: these are no results of" in capsys.readouterr().err
    assert not stored.exists()


def test_the_stored_results_give_a_page(gallery: ModuleType, tmp_path: Path) -> None:
    assert run(gallery, "-o", tmp_path / "page.html") == 0
    assert (tmp_path / "page.html").stat().st_size < 1 << 20
