"""The page of a report is one file that loads nothing, is written whole, and takes no name for markup."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import smartmem_rules as sm
from smartmem_rules.cli import main
from smartmem_rules.report.writing import ReportFileError, page_of, refuse_unwritable, write_report
from tests.cli import onnx_files
from tests.cli.models.test_report import reported
from tests.report import hostile
from tests.report.pages import Elements, held

MOST_BYTES = 160_000
"""Of the page of a model with four nodes; most of it is the page's own style and script."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    model = onnx_files.chain(tmp_path_factory.mktemp("report") / "chain.onnx")
    return reported(model, "--no-measure", "--no-levels")


def test_the_page_holds_the_documented_data(data: Any) -> None:
    assert held(page_of(data)) == data


def test_the_page_loads_nothing(data: Any) -> None:
    page = page_of(data)
    assert len(page) < MOST_BYTES
    elements = Elements(page)
    addresses = [value for _, given in elements.found for key, value in given.items() if key in ("src", "href")]
    assert all((value or "").startswith("#") for value in addresses)
    assert elements.count("link") == 0
    assert "@import" not in page
    assert not re.search(r"url\(", page)


def test_only_the_style_and_the_script_of_the_page_may_run(data: Any) -> None:
    page = page_of(data)
    policy = next(given["content"] or "" for _, given in Elements(page).found if "http-equiv" in given)
    assert policy.startswith("default-src 'none'")
    for tag, name in (("style", "style"), ("script", "script")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_names_of_a_model_are_no_markup(tmp_path: Path) -> None:
    plain = Elements(page_of(reported(onnx_files.chain(tmp_path / "chain.onnx"), "--no-measure", "--no-levels")))
    data = reported(hostile.model(tmp_path / "hostile.onnx"), "--no-measure", "--no-levels")
    page = page_of(data)
    elements = Elements(page)
    for tag in ("script", "img", "style", "div"):
        assert elements.count(tag) == plain.count(tag), tag
    assert hostile.ENDS_SCRIPT not in page
    names = {node["node"] for node in held(page)["plan"]["nodes"]}
    assert {hostile.ENDS_SCRIPT, hostile.QUOTES, hostile.LONG, hostile.OTHER} <= names


def test_a_plan_writes_its_own_page(tmp_path: Path) -> None:
    plan = sm.optimize(onnx_files.chain(tmp_path / "chain.onnx"))
    plan.report(tmp_path / "report.html", measures=False)
    found = held((tmp_path / "report.html").read_text("utf-8"))
    assert [launch["name"] for launch in found["plan"]["launches"]] == [launch.name for launch in plan.plan.launches]
    assert [node["node"] for node in found["plan"]["nodes"]] == ["/relu", "/matmul", "/transpose", "/softmax"]
    assert found["plan"]["measured"] is None


def test_a_page_that_cannot_be_written_leaves_what_was_there(data: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")
    broken = {**data, "plan": {**data["plan"], "programs": [float("nan")]}}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_report(broken, target)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]
    write_report(data, target)
    assert held(target.read_text("utf-8")) == data
    with pytest.raises(ReportFileError, match=r"nowhere.*cannot be written"):
        write_report(data, tmp_path / "nowhere" / "report.html")


def test_a_folder_that_is_not_there_is_told_before_anything_is_planned(tmp_path: Path) -> None:
    with pytest.raises(ReportFileError, match="there is no folder"):
        refuse_unwritable(tmp_path / "nowhere" / "report.html")
    model = tmp_path / "no_model.onnx"
    result = CliRunner().invoke(main, ["report", str(model), "-o", str(tmp_path / "nowhere" / "report.html")])
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    assert result.stderr.count("\n") == 1
