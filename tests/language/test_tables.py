"""The kept LALR tables: those of the grammar, and driven as lark drives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing import lalr, tables
from smartmem_rules.language.parsing.builder import Builder
from smartmem_rules.language.parsing.grammar import grammar
from smartmem_rules.language.parsing.lark_parser import parse as parse_by_lark
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.syntax import Syntax
from smartmem_rules.resources import rules_path

pytestmark = pytest.mark.sampled(3)

CORPUS = Path(__file__).parent.parent / "corpus"


def test_the_kept_tables_are_those_of_the_grammar() -> None:
    kept = tables.kept_path().read_text("utf-8")
    made = tables.text_of(tables.made(grammar()))
    assert kept == made, "run `python -m smartmem_rules.language.parsing.tables`"


def test_tables_of_another_grammar_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = tables.tables()
    stale = tmp_path / "tables.json"
    stale.write_text(tables.kept_path().read_text("utf-8").replace('"digest": "', '"digest": "0'))
    monkeypatch.setattr(tables, "kept_path", lambda: stale)
    tables.tables.cache_clear()
    try:
        assert tables.tables() == right
        assert tables.tables() is not right
    finally:
        tables.tables.cache_clear()


def everything(node: object) -> Iterator[object]:
    """All that a tree consists of, places too."""
    if isinstance(node, Syntax):
        yield type(node)
        for part in fields(node):
            yield from everything(getattr(node, part.name))
    elif isinstance(node, tuple) and not hasattr(node, "_fields"):
        yield len(node)
        for part in node:
            yield from everything(part)
    else:
        yield node


@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", sorted((*CORPUS.rglob("*.smr"), *rules_path().rglob("*.smr"))), ids=lambda p: p.stem)
def test_both_drivers_give_one_tree(path: Path) -> None:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return
    try:
        by_lark = parse_by_lark(text, "file")[0]
    except LanguageError:
        with pytest.raises(LanguageError):
            parse_text(text, "file")
        builder = Builder()
        builder.begin(text, "file")
        with pytest.raises(lalr.Refused):
            lalr.parse(text, builder)
        return
    builder = Builder()
    builder.begin(text, "file")
    assert list(everything(lalr.parse(text, builder))) == list(everything(by_lark))
