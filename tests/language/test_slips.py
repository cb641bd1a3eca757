"""Slips that stop the parser: what the first message says mends the text as its author meant it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import applied
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.parsing.repairs import farther
from smartmem_rules.resources import rules_path

HERE = Path(__file__).parent
PIECE = re.compile(r"\w+|\S")


def cases(file: str) -> list[tuple[str, str, str]]:
    """The name of each slip, the text with it, and what becomes of it."""
    found = []
    for part in re.split(r"(?m)^=== ", (HERE / file).read_text("utf-8"))[1:]:
        name, _, rest = part.partition("\n")
        before, _, after = rest.partition("\n---\n")
        found.append((name, before + "\n", after))
    return found


def first(text: str) -> Diagnostic:
    with pytest.raises(LanguageError) as caught:
        parse_text(text)
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("name", "text", "mended"), cases("slips.txt"), ids=lambda value: str(value)[:30].split("\n")[0]
)
def test_the_edit_writes_what_is_meant(name: str, text: str, mended: str) -> None:
    message = first(text)
    assert message.fix.edits, f"{name}: {message.fix}"
    assert applied(text, message.fix.edits).rstrip() == mended.rstrip()
    parse_text(mended)


@pytest.mark.parametrize(
    ("name", "text", "said"), cases("slips_advised.txt"), ids=lambda value: str(value)[:30].split("\n")[0]
)
def test_the_advice_names_the_place_and_the_form(name: str, text: str, said: str) -> None:
    message = first(text)
    place, _, form = said.rstrip().partition(" ")
    assert f"{message.span.line}:{message.span.column}" == place, name
    assert form in message.fix.text, name


def spoilt(text: str, source: random.Random) -> str:
    """A text with one piece of it gone, twice there, another one, or exchanged with the next."""
    pieces = list(PIECE.finditer(text))
    at = source.randrange(len(pieces) - 1)
    one, other = pieces[at], pieces[at + 1]
    begin, end = one.span()
    kind = source.randrange(5)
    if kind == 0:
        return text[:begin] + text[end:]
    if kind == 1:
        return f"{text[:end]} {one[0]}{text[end:]}"
    if kind == 2:
        sign = source.choice([*"()[]{},;:=<>+-*/%@?!&|~.$", "->", "=>", "==", "//", "where", "if", "for", "in", "let"])
        return f"{text[:begin]}{sign}{text[end:]}"
    if kind == 3:
        return f"{text[:begin]}{other[0]}{text[end : other.start()]}{one[0]}{text[other.end() :]}"
    return f"{text[:begin]}{one[0][0] * 2}{text[end:]}"


@pytest.mark.parametrize("seed", range(40))
def test_edits_of_spoilt_items_bring_the_parser_farther(seed: int) -> None:
    source = random.Random(seed)
    files = sorted(rules_path().rglob("*.smr"))
    items = re.split(r"(?m)^(?=(?:rewrite|operator|level|fuse|function)\b)", source.choice(files).read_text("utf-8"))
    text = spoilt(source.choice([item for item in items if len(item) > 20]), source)
    try:
        parse_text(text)
    except LanguageError as error:
        for message in error.diagnostics:
            assert message.fix.text
            assert 1 <= message.span.line <= text.count("\n") + 1
            if len(error.diagnostics) == 1 and message.fix.edits:
                assert farther(text, message.fix.edits), f"{message.fix} of {text}"
