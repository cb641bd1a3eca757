"""Each variable of the environment stands in one table, and on one page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from smartmem_rules.environment import VARIABLES, unknown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "configuration.md"


def test_the_page_has_the_list() -> None:
    page = " ".join(PAGE.read_text("utf-8").split())
    items = (f"- `{one.name}`: {one.meaning}. Where it is not set: {one.default}." for one in VARIABLES)
    assert " ".join(items) in page


def test_the_package_reads_no_other_variable() -> None:
    known = {one.name for one in VARIABLES}
    found = {
        name
        for path in (ROOT / "smartmem_rules").rglob("*.py")
        for name in re.findall(r'"(SMARTMEM_[A-Z_]+)"', path.read_text("utf-8"))
    }
    native = (ROOT / "runtime").rglob("*.c")
    found |= {name for path in native for name in re.findall(r'getenv\("(SMARTMEM_\w+)"\)', path.read_text("utf-8"))}
    assert found == known


def test_misspelt_variables_are_found() -> None:
    assert unknown({"SMARTMEM_CASHE": "x", "SMARTMEM_CACHE": "y", "HOME": "z"}) == ["SMARTMEM_CASHE"]
