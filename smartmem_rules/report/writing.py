"""The page of a report: markup, style, script and data in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from smartmem_rules.errors import SmartmemError
from smartmem_rules.report.drawings import drawings
from smartmem_rules.whole_files import write_whole

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.report.documents import ModelReport

_PAGE = Path(__file__).parent / "page"


class ReportFileError(SmartmemError):
    """The file of a report cannot be written."""


def write_report(data: ModelReport, path: str | Path) -> None:
    """Write the page of a report, whole or not at all.

    Args:
        data: what `report` gives.

    Raises:
        ReportFileError: the file cannot be written; what was there before stays.
    """
    try:
        write_whole(path, page_of(data).encode())
    except OSError as error:
        raise ReportFileError(f"{path}: the report cannot be written ({error.strerror or error})") from error


def refuse_unwritable(path: str | Path) -> None:
    """Say before the work of planning that a report could not be written.

    Raises:
        ReportFileError: there is no such folder, or nothing may be written into it.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise ReportFileError(f"{path}: the report cannot be written (there is no folder {folder})")
    if not os.access(folder, os.W_OK):
        raise ReportFileError(f"{path}: the report cannot be written (the folder {folder} is read-only)")


def page_of(data: ModelReport) -> str:
    """The page of a report.

    It loads nothing, and its policy forbids to: only this style and this script run. The data is compressed and in
    base64, so that no name in it can end the element that holds it; the script shows names as text, never as markup.
    """
    style, script = _joined("*.css"), _joined("*.js")
    plans = [data["plan"]] if data["against"] is None else [data["plan"], data["against"]["plan"]]
    environment = Environment(loader=PackageLoader("smartmem_rules.report", "page"), autoescape=True, trim_blocks=True)
    return environment.get_template("page.html").render(
        figures=data["plan"]["figures"],
        program=data["program"],
        policy=f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        style=Markup(style),
        script=Markup(script),
        data=_packed(data),
        drawings=_packed([drawings(plan) for plan in plans]),
    )


def _packed(data: Any) -> str:
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def _joined(files: str) -> str:
    """The parts of the page of one kind, in the order of the numbers in their names."""
    return "\n".join(path.read_text("utf-8") for path in sorted(_PAGE.glob(files)))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
