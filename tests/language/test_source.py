"""How rule files are read: UTF-8 with or without a mark; other encodings and invisible characters are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.fixes import applied
from smartmem_rules.language.parsing.parser import parse_file, parse_text
from smartmem_rules.language.parsing.source import Source, read_source

TEXT = "let HALF = 0.5   # café\nlet TWO = 2\n"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "marked.smr"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert read_source(path) == Source(TEXT, marked=True)
    assert parse_file(path).text == TEXT
    path.write_bytes(TEXT.encode())
    assert read_source(path) == Source(TEXT, marked=False)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        *(("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("utf-16-be", "UTF-16")),
        *(("utf-32", "UTF-32"), ("utf-32-le", "UTF-32"), ("utf-32-be", "UTF-32")),
    ],
)
def test_other_encodings_are_named(tmp_path: Path, encoding: str, name: str) -> None:
    path = tmp_path / "other.smr"
    path.write_bytes(TEXT.encode(encoding))
    with pytest.raises(LanguageError, match=f"it is {name} text"):
        parse_file(path)


def test_a_byte_that_is_no_text_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "latin.smr"
    path.write_bytes(b"let A = 1\n# caf\xe9\n")
    with pytest.raises(LanguageError, match="byte 0xe9 is not UTF-8 text") as caught:
        parse_file(path)
    (one,) = caught.value.diagnostics
    assert (one.span.line, one.span.column) == (2, 6)


@pytest.mark.parametrize(
    ("character", "name"),
    [("\ufeff", "a byte order mark"), ("\u00a0", "no-break space"), ("\0", "a control character")],
)
def test_characters_that_show_nothing_are_named(character: str, name: str) -> None:
    text = f"let{character} A = 1\n"
    with pytest.raises(LanguageError) as caught:
        parse_text(text)
    (one,) = caught.value.diagnostics
    assert name in one.message
    assert one.fix is not None
    assert parse_text(applied(text, one.fix.edits)).items == parse_text("let A = 1\n").items


@pytest.mark.parametrize(
    ("typeset", "plain"),
    [("A ≤ 2", "A <= 2"), ("A × 2", "A * 2"), ("A − 2", "A - 2"), ("A ≠ 2", "A != 2"), ("（A)", "(A)")],
)
def test_signs_of_typeset_formulas_have_their_plain_forms(typeset: str, plain: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse_text(f"function f(A) = {typeset}\n")
    (one,) = caught.value.diagnostics
    assert one.fix is not None
    assert applied(f"function f(A) = {typeset}\n", one.fix.edits) == f"function f(A) = {plain}\n"
