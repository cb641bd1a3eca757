"""The documents and their fenced blocks, with what a comment above a block says of how it is run.

A block of `sh`, `console` or `python` is run, in the order of the page. Comments above it, which no reader sees:

    <!-- file: NAME -->          the block is the content of this file
    <!-- first: CODE -->         run before the block, in its language
    <!-- instead: WHY: CODE -->  run in its place, because of WHY: it takes hours, or another machine
    <!-- not run: WHY -->
    <!-- run: long, needs torch -->   only with --all; skipped where `torch` is missing
    <!-- this page: long -->          the same of all blocks that follow
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / folder / "README.md" for folder in ("android", "editors/vscode", "rules")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
RUNNABLE = ("sh", "console", "python")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_NOTE = re.compile(r"\s*(file|first|instead|not run|run|this page):\s*(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: `line` is that of its fence; `notes` by their words."""

    page: Path
    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_run(self) -> bool:
        return "file" in self.notes or (self.language in RUNNABLE and "not run" not in self.notes)

    @property
    def is_long(self) -> bool:
        return "long" in self._conditions

    @property
    def needs(self) -> tuple[str, ...]:
        """Programs and modules without which the block cannot run."""
        return tuple(word.removeprefix("needs ") for word in self._conditions if word.startswith("needs "))

    @property
    def code(self) -> str:
        """What is run: the block with what comes first, or what is run in its place."""
        if "instead" in self.notes:
            return self.notes["instead"].partition(":")[2].strip() + "\n"
        return f"{self.notes['first'].strip()}\n{self.text}" if "first" in self.notes else self.text

    @property
    def _conditions(self) -> list[str]:
        said = (self.notes.get(key, "") for key in ("run", "this page"))
        return [word.strip() for one in said for word in one.split(",")]


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    """The page as Markdown."""
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8")))


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    kept: dict[str, str] = {}
    notes: dict[str, str] = {}
    for token in tokens(page):
        if token.type == "html_block":
            found = (_NOTE.fullmatch(comment) for comment in _COMMENT.findall(token.content))
            notes |= {match[1]: match[2].strip() for match in found if match}
            kept |= {key: value for key, value in notes.items() if key == "this page"}
        elif token.type == "fence":
            assert token.map is not None
            language = token.info.split(" ")[0]
            yield Block(page=page, line=token.map[0] + 1, language=language, text=token.content, notes=notes | kept)
            notes = {}
        elif notes and token.type != "paragraph_close":
            notes = {}
