"""Commands in the documents have the options that they are called with, also where they take too long to be run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from smartmem_rules.cli import main
from tests.docs.pages import PAGES, ROOT, blocks, tokens

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
CONTINUED = re.compile(r"\\\n\s*")
ENDS = {"&&", "||", "|", ">", "2>&1", ";", "#"}
OPTION = re.compile(r"--?[a-z][\w-]*")


def command_lines(page: Path) -> Iterator[tuple[str, str]]:
    """What begins with `smartmem` or `python bench/` in blocks of commands and in code within text, with its place."""
    for block in blocks(page):
        if block.language in ("sh", "console"):
            for line in CONTINUED.sub(" ", block.text).splitlines():
                yield from ((block.place, part.strip()) for part in re.split(r"&&|\|\|", line.removeprefix("$ ")))
    for token in tokens(page):
        for child in token.children or ():
            if child.type == "code_inline":
                assert token.map is not None
                yield f"{page.relative_to(ROOT)}:{token.map[0] + 1}", child.content


def options(words: list[str]) -> list[str]:
    """The options of a command line, up to where another command begins."""
    end = next((place for place, word in enumerate(words) if word in ENDS or word.startswith("#")), len(words))
    return [word.partition("=")[0] for word in words[:end] if OPTION.fullmatch(word.partition("=")[0])]


@cache
def options_of(command: str) -> frozenset[str]:
    """What a command of `smartmem` takes."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    names = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return frozenset(names | {"-h", "--help", "-vv"})


@cache
def text_of(script: str) -> str:
    """A script with the modules beside it, in which its options stand."""
    return "".join(path.read_text("utf-8") for path in (ROOT / script).parent.glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_take_their_options(page: Path) -> None:
    for place, line in command_lines(page):
        words = QUOTED.sub("VALUE", line).replace("|", " | ").split()
        words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)]
        if words[:1] == ["smartmem"] and len(words) > 1 and words[1] in main.list_commands(click.Context(main)):
            unknown = set(options(words[2:])) - options_of(words[1])
            assert not unknown, f"{place}: `smartmem {words[1]}` takes no {', '.join(unknown)}"
        elif words[:1] == ["python"] and len(words) > 1 and words[1].startswith("bench/"):
            assert (ROOT / words[1]).exists(), f"{place}: there is no {words[1]}"
            for option in options(words[2:]):
                known = option == "--help" or f'"{option}"' in text_of(words[1])
                assert known, f"{place}: {words[1]} takes no {option}"
