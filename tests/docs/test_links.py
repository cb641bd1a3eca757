"""Links between documents lead to files and headings that are there, and each document is in the navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, tokens

LANDING = [page for page in PAGES if page.name == "README.md" and "docs" in page.parts and "errors" not in page.parts]
ENTRY = re.compile(r"^- \[[^\]]+\]\((?P<target>[^)#\s]+\.md)\)", re.M)
ELSEWHERE = ("http:", "https:", "mailto:")


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The targets of a page's links and pictures, with their lines."""
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrs.get("href") or child.attrs.get("src")
            if target:
                assert token.map is not None
                yield token.map[0] + 1, str(target)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    for before, token in pairwise(tokens(page)):
        if before.type == "heading_open":
            text = "".join(part.content for part in token.children or ())
            found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for line, target in links(page):
        if target.startswith(ELSEWHERE):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.relative_to(ROOT)}:{line}: there is no {target}"
        known = found.suffix != ".md" or page == ROOT / "README.md" or found in PAGES
        assert known, f"{page.relative_to(ROOT)}:{line}: {target} is in neither PAGES nor docs/site/conf.py"
        assert not anchor or anchor in anchors(found), f"{page.relative_to(ROOT)}:{line}: no heading for {target}"


def test_each_document_is_in_one_list_of_the_navigation() -> None:
    listed = [
        (page.parent / match["target"]).resolve()
        for page in LANDING
        for match in ENTRY.finditer(page.read_text("utf-8"))
    ]
    assert len(listed) == len(set(listed))
    pages = {page for page in PAGES if "errors" not in page.parts and page != ROOT / "README.md"}
    pages.add(ROOT / "docs" / "errors" / "README.md")
    wanted = pages - {ROOT / "docs" / "README.md"}
    assert not wanted - set(listed), "name each page in a README of docs/tutorials, howto, reference or explanation"
    assert not set(listed) - wanted
