"""A tutorial as a script: its files, its commands, and its text as comments.

The scripts of `examples/tutorials` are made of the pages, so that both say the same; `pytest tests/docs
--update-golden` writes them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, blocks, tokens
from tests.docs.running import steps

TUTORIALS = tuple(sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.stem != "README"))
_HEAD = """#!/usr/bin/env bash
# Made of docs/tutorials/{name}.md, which says more; run it in an empty folder.
set -euo pipefail
"""


def script_of(page: Path) -> Path:
    """Where the script of a tutorial lies."""
    return ROOT / "examples" / "tutorials" / f"{page.stem}.sh"


def script(page: Path) -> str:
    """The steps of a tutorial as a script for bash; a command that is shown with its output is announced."""
    code = {block.line: block for block in blocks(page)}
    parts = [_HEAD.format(name=page.stem)]
    for token in tokens(page):
        if token.type == "inline" and token.level < 4:
            parts.append("\n" + "".join(f"# {line}\n" for line in token.content.splitlines()))
        elif token.type == "fence" and token.map is not None:
            block = code[token.map[0] + 1]
            if "file" in block.notes:
                parts.append(f"cat > {block.notes['file']} <<'END'\n{block.text}END\n")
            elif block.is_run:
                parts.append("".join(_commands(block.language, block.text)))
    return "".join(parts)


def write(page: Path) -> None:
    """Write the script of a tutorial."""
    path = script_of(page)
    path.parent.mkdir(exist_ok=True)
    path.write_text(script(page), "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _commands(language: str, text: str) -> Iterator[str]:
    if language == "sh":
        yield text
        return
    for step in steps(text):
        yield f"echo; echo {_quoted(step.command)}\n{step.command}\n"


def _quoted(command: str) -> str:
    return "'$ " + command.replace("'", "'\\''") + "'"
