"""The page of a report in Chromium; skipped where there is none, or no selenium and axe-core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import onnx
import pytest

from smartmem_rules.report.writing import write_report
from tests.checking import models
from tests.checking.models import drawn
from tests.cli import onnx_files
from tests.cli.models.test_report import reported, smartmem
from tests.report import hostile
from tests.report.browser import Browser, browser, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

VIEWS = (
    "#/overview", "#/graph", "#/graph/launch/0", "#/nodes", "#/nodes/view", "#/launches", "#/launch/0", "#/memory",
    "#/rules", "#/left", "#/levels", "#/compare", "#/2/launches", "#/tensor/x0", "#/rule/nowhere", "#/nowhere",
)  # fmt: skip
PHONE = 390


def written(model: Path, *arguments: str) -> Path:
    """The page of a model's report."""
    page = model.with_suffix(".html")
    result = smartmem("report", model, "-o", page, "--device", "pocl", *arguments)
    assert result.exit_code == 0, result.output
    return page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tmp_path_factory.mktemp("browser") / "attention.onnx"
    onnx.save(drawn(models.attention, 0)[0], str(model))
    return written(model, "--to-level", "none", "--levels", "none,smartmem")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def shown(window: Browser, page: Path) -> Browser:
    window.look()
    window.open(page)
    return window


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (PHONE, "dark")])
def test_every_view_is_accessible_and_fits(window: Browser, page: Path, width: int, scheme: str) -> None:
    window.look(width, 844, scheme)
    window.open(page)
    for view in VIEWS:
        window.go(view)
        assert not window.violations(), view
        assert window.script("return document.documentElement.scrollWidth") <= width, view
        assert window.script("return document.querySelectorAll('h1').length") == 1, view
    assert not window.messages()


def test_colours_follow_the_system_and_the_button(shown: Browser) -> None:
    def ground() -> str:
        return str(shown.script("return getComputedStyle(document.body).backgroundColor"))

    light = ground()
    shown.look(scheme="dark")
    dark = ground()
    assert light != dark
    shown.click("#theme")
    assert (shown.text("#theme"), ground()) == ("Theme: light", light)
    shown.click("#theme")
    shown.look(scheme="light")
    assert (shown.text("#theme"), ground()) == ("Theme: dark", dark)


def test_a_click_on_a_node_shows_its_way_and_its_kernel(shown: Browser) -> None:
    shown.go("#/graph")
    shown.until(lambda: shown.texts(".pane:first-child .box.computed"), "no node was drawn")
    shown.click(".pane:first-child .box.computed")
    assert shown.text(".details .kicker") == "ONNX node"
    assert shown.texts(".pane:last-of-type .box.launch.chosen")
    assert "computed by 1 kernel" in shown.text(".details .way")
    address = shown.script("return location.hash")
    assert address.startswith("#/graph/node/")
    chosen = shown.text(".details h2")
    shown.driver.refresh()
    shown.until(lambda: shown.text(".details h2") == chosen, "the address does not name what was chosen")
    shown.click(".pane:last-of-type .box.launch")
    assert shown.text(".details .kicker").startswith("Kernel 0 of")
    assert shown.texts(".pane:first-child .box.related")
    shown.click(".details .button")
    assert "__kernel" in shown.text(".code[aria-label^='OpenCL C']")


def test_keys_go_along_the_wires(shown: Browser) -> None:
    shown.go("#/graph")
    shown.until(lambda: shown.texts(".pane:first-child .box"), "no node was drawn")
    shown.script("document.querySelector('.pane:first-child .pane-graph').focus()")
    shown.type("\ue011")  # Home
    first = shown.text(".box.chosen")
    shown.type("\ue015")  # down
    assert shown.text(".pane:first-child .box.chosen") != first
    shown.until(lambda: shown.text("#said"), "nothing is said of it")
    shown.type("\ue013")  # up
    assert shown.text(".pane:first-child .box.chosen") == first
    wide = shown.script("return document.querySelector('.pane:first-child svg').getBoundingClientRect().height")
    shown.type("+")
    assert shown.script("return document.querySelector('.pane:first-child svg').getBoundingClientRect().height") > wide


def test_the_search_finds_nodes_kernels_and_rules(shown: Browser) -> None:
    shown.type("/")
    assert shown.script("return document.activeElement.id") == "search-field"
    shown.type("soft")
    options = shown.texts("#search-found [role=option]")
    assert options
    assert all("softmax" in option.lower() for option in options)
    assert shown.text("#search-found [aria-selected=true]") == options[0]
    shown.type("\ue015")
    assert shown.text("#search-found [aria-selected=true]") == options[1 % len(options)]
    shown.type("\ue013", "\ue007")  # up, enter
    shown.until(lambda: shown.script("return location.hash") not in ("", "#/overview"), "nothing was opened")
    shown.go("#/overview")
    shown.type("/")
    shown.type("nowhere at all")
    assert shown.texts("#search-found li") == ["Nothing has this in its name"]
    shown.type("\ue00c")  # escape
    assert shown.script("return document.querySelector('#search-found').hidden")
    assert not shown.messages()


def test_tables_are_sorted_and_filtered(shown: Browser) -> None:
    shown.go("#/2/launches")
    number = ".table tbody th .number-before"
    order = shown.texts(number)
    assert order == [str(place) for place in range(len(order))]
    shown.click("thead th:first-child .sort")
    assert shown.texts(number) == order[::-1]
    assert shown.script("return document.querySelector('thead th').ariaSort") == "descending"
    shown.click(".filter input")
    shown.type("softmax")
    assert 0 < len(shown.texts(number)) < len(order)
    assert all("Softmax" in row for row in shown.texts(".table tbody tr"))


def test_the_other_plan_is_shown_when_it_is_chosen(shown: Browser) -> None:
    shown.go("#/launches")
    own = len(shown.texts(".table tbody tr"))
    shown.script(
        "const choice = document.querySelector('#plan-choice select'); choice.value = '2';"
        "choice.dispatchEvent(new Event('change'))"
    )
    shown.until(lambda: len(shown.texts(".table tbody tr")) > own, "the other plan was not shown")
    assert shown.script("return location.hash") == "#/2/launches"
    shown.driver.back()
    shown.until(lambda: len(shown.texts(".table tbody tr")) == own, "back did not lead back")


def test_names_are_shown_as_they_are(window: Browser, tmp_path: Path) -> None:
    page = written(hostile.model(tmp_path / "hostile.onnx"), "--no-levels")
    window.look(PHONE)
    window.open(page)
    for name in (hostile.ENDS_SCRIPT, hostile.QUOTES, hostile.LONG, hostile.OTHER):
        window.go(f"#/graph/node/{quote(name, safe='')}")
        window.until(lambda name=name: name in window.texts(".details .name"), f"{name[:40]} was not shown")
        assert window.script("return document.documentElement.scrollWidth") <= PHONE
    for view in VIEWS[:-3]:
        window.go(view)
        assert window.script("return document.documentElement.scrollWidth") <= PHONE, view
    assert window.script("return document.querySelectorAll('img, script:not([id])').length") == 1
    assert "broken" not in window.driver.title
    assert not window.violations()
    assert not window.messages()


def test_only_what_is_in_view_of_a_large_graph_has_elements(window: Browser, tmp_path: Path) -> None:
    data = reported(onnx_files.chain(tmp_path / "chain.onnx"), "--no-levels", "--no-measure")
    example = data["plan"]["nodes"][0]
    data["plan"]["nodes"] = [
        {**example, "node": f"/n{place}", "inputs": [f"t{place}"], "outputs": [f"t{place + 1}"]}
        for place in range(1000)
    ]
    page = tmp_path / "large.html"
    write_report(data, page)
    window.look()
    window.open(page, "#/graph")
    window.until(lambda: window.texts(".pane:first-child .box"), "no node was drawn")
    assert len(window.texts(".pane:first-child .box")) < 80
    window.go("#/graph/node/%2Fn900")
    window.until(lambda: window.texts(".pane:first-child .box.chosen"), "the node was not brought into view")
    assert "/n900" in window.text(".pane:first-child .box.chosen")
    assert len(window.texts(".pane:first-child .box")) < 80


def test_a_saved_plan_says_that_its_model_is_not_known(window: Browser, tmp_path: Path) -> None:
    model, plan = onnx_files.chain(tmp_path / "chain.onnx"), tmp_path / "chain.plan"
    assert smartmem("optimize", model, "--device", "pocl", "--no-check", "-o", plan).exit_code == 0
    page = tmp_path / "plan.html"
    assert smartmem("report", plan, "-o", page, "--no-measure").exit_code == 0
    window.look()
    window.open(page, "#/graph/launch/0")
    window.until(lambda: window.texts(".pane:last-of-type .box.chosen"), "the kernel was not drawn")
    assert "without its model" in window.text(".pane:first-child")
    for view in ("#/overview", "#/nodes", "#/levels", "#/compare", "#/memory"):
        window.go(view)
    assert not window.messages()
