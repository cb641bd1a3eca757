"""The extension for Visual Studio Code: its files are sound and know the words of the language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smartmem_rules.language.printing.builtin_docs import KEYWORDS
from smartmem_rules.language.vocabulary import BLOCK_WORDS, DTYPES, ITEM_WORDS
from smartmem_rules.resources import rules_path

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"


def data(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"))


def patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The rules of the grammar that match within a line, in their order."""
    grammar = data("syntaxes/smr.tmLanguage.json")
    found = []
    for include in grammar["patterns"]:
        one = grammar["repository"][include["include"][1:]]
        for rule in one.get("patterns", [one]) if "match" not in one and "begin" not in one else [one]:
            name = rule.get("name", "item")
            found.append((name, re.compile(rule.get("match", r'"(?:[^"\\]|\\.)*"?'))))
    return found


def scope_of(line: str, column: int) -> str:
    """The scope of what stands at a column of a line."""
    place = 0
    while place < len(line):
        matches = [
            (match.start(), number, name, match)
            for number, (name, pattern) in enumerate(patterns())
            if (match := pattern.search(line, place))
        ]
        if not matches:
            return ""
        _, _, name, match = min(matches, key=lambda one: one[:2])
        if match.start() <= column < match.end():
            return name
        place = max(match.end(), place + 1)
    return ""


def test_the_manifest_names_files_that_exist() -> None:
    manifest = data("package.json")
    language, grammar = manifest["contributes"]["languages"][0], manifest["contributes"]["grammars"][0]
    for file in (manifest["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / file).is_file()
    assert grammar["scopeName"] == data("syntaxes/smr.tmLanguage.json")["scopeName"]


@pytest.mark.parametrize("word", [*ITEM_WORDS, *BLOCK_WORDS, *KEYWORDS])
def test_the_grammar_knows_every_keyword(word: str) -> None:
    assert scope_of(f"{word} x", 0) in ("item", "keyword.control.smr", "keyword.operator.word.smr")


def test_the_grammar_knows_the_dtypes_and_signs() -> None:
    assert all(
        scope_of(f"x: {dtype}[]", 4) == "storage.type.smr" for dtype in ("float32", "int64", "uint8") if dtype in DTYPES
    )
    assert scope_of("    Add(x, 0) => x", 4) == "entity.name.type.operator.smr"
    assert scope_of("    Add(x, 0) => x", 14) == "keyword.operator.smr"
    assert scope_of("let A = 1   # note", 12) == "comment.line.number-sign.smr"


def test_every_shipped_line_is_covered() -> None:
    for path in rules_path().rglob("*.smr"):
        for line in path.read_text("utf-8").splitlines():
            for match in re.finditer(r"[A-Za-z_]\w*", line):
                assert scope_of(line, match.start()), (path, line, match[0])
            break
