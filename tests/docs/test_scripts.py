"""The scripts of the tutorials are those of the pages, and run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.running import run_shell, skip_where_missing
from tests.docs.scripts import TUTORIALS, script, script_of, write

NEEDS = {"pytorch_to_c": ("torch", "cmake", "cc")}


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_scripts_are_those_of_the_pages(page: Path, update_golden: bool) -> None:
    if update_golden:
        write(page)
    assert script_of(page).read_text("utf-8") == script(page), "pytest tests/docs --update-golden writes it"
    assert os.access(script_of(page), os.X_OK)


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_scripts_run(page: Path, tmp_path: Path) -> None:
    skip_where_missing(NEEDS.get(page.stem, ()))
    run_shell(str(script_of(page)), tmp_path, str(script_of(page).relative_to(ROOT)))
