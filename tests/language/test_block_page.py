"""The page of the keys of blocks says what the records of blocks say."""

from __future__ import annotations

from pathlib import Path

from smartmem_rules.language.printing.block_page import page
from smartmem_rules.language.schema import keys_of_kind
from smartmem_rules.language.vocabulary import BLOCK_WORDS

PAGE = Path(__file__).parents[2] / "docs" / "block_keys.md"


def test_the_page_is_that_of_the_records(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_every_key_is_on_the_page() -> None:
    text = page()
    assert [key.name for kind in BLOCK_WORDS for key in keys_of_kind(kind) if f"- `{key.name}` (" not in text] == []
