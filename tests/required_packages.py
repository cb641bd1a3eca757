"""With `$CI` set, no test is skipped because a package is missing that CI installs.

`pytest.importorskip` lets whoever lacks an extra run the other tests. In CI it would hide whole suites.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

EXTRAS = ("test", "verify")
"""The extras that CI installs."""
MODULES = {"markdown-it-py": "markdown_it", "z3-solver": "z3"}
"""The modules of packages that are named otherwise."""
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


@cache
def required() -> frozenset[str]:
    """The modules of the packages that the project and `EXTRAS` ask for."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    names = {re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0].lower() for line in asked}
    return frozenset(MODULES.get(name, name.replace("-", "_")) for name in names)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A test module that is skipped."""
    report = yield
    message = _missing(report)
    if message:
        report.outcome, report.longrepr = "failed", message
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped."""
    report = yield
    message = _missing(report)
    if message:
        report.outcome, report.longrepr = "failed", message
    return report


def _missing(report: pytest.CollectReport | pytest.TestReport) -> str:
    """What is wrong with a skip in CI; empty where nothing is."""
    if not os.environ.get("CI") or report.outcome != "skipped" or not isinstance(report.longrepr, tuple):
        return ""
    found = re.search(r"could not import '(\w+)", report.longrepr[2])
    if found is None or found[1] not in required():
        return ""
    return f"CI may not skip this: {found[1]} is missing; install smartmem-rules[{','.join(EXTRAS)}]"
