"""Each command and each block of Python in the documents runs, and prints what the page shows."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.docs.running import run_blocks, skip_where_missing

COMMAND = re.compile(r"^(\$ )?(smartmem|python|pip|make|cmake|cc) ", re.M)


def groups() -> list[object]:
    """The blocks of a page that need the same things, as a test."""
    found: list[object] = []
    for page in PAGES:
        runnable = sorted((block for block in blocks(page) if block.is_run), key=condition)
        for (is_long, needs), members in groupby(runnable, condition):
            name = "-".join([str(page.relative_to(ROOT)), *needs, *(["long"] if is_long else [])])
            marks = [pytest.mark.exhaustive] if is_long else []
            found.append(pytest.param(tuple(members), needs, id=name, marks=marks))
    return found


def condition(block: Block) -> tuple[bool, tuple[str, ...]]:
    return block.is_long, block.needs


@pytest.mark.parametrize(("members", "needs"), groups())
def test_blocks_run(
    members: tuple[Block, ...], needs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_where_missing(needs)
    monkeypatch.chdir(tmp_path)
    run_blocks(members, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    for block in blocks(page):
        if block.language in ("", "text"):
            assert not COMMAND.search(block.text), f"{block.place}: a block of commands is `sh` or `console`"
        if "not run" in block.notes:
            assert len(block.notes["not run"]) > 20, f"{block.place}: say why it is not run"
