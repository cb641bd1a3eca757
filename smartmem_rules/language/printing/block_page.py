"""The page of all keys of blocks, docs/block_keys.md, made from the records that blocks become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from smartmem_rules.language.blocks.fuse import PASSES
from smartmem_rules.language.blocks.keys import Key, keys_of
from smartmem_rules.language.blocks.schedule import CLASSES, CONTRACTIONS
from smartmem_rules.language.schema import SUBJECTS, record_type
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_WIDTH = 118
_HEAD = """# Keys of blocks

What the blocks of a rule file may say ([language.md](language.md#tables-and-blocks)): `key value ...;`, with blanks
between the values. A key without a default is required. The page is made from the records of
`smartmem_rules/language/blocks` by `pytest tests/language/test_block_page.py --update-golden`.
"""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for kind in BLOCK_WORDS:
        shared = keys_of(record_type(kind))
        if kind not in SUBJECTS:
            parts.append(_section(f"`{kind} NAME {{ ... }}`", shared))
            continue
        parts.append(_section(f"`{kind} NAME for ... {{ ... }}`: what all have", shared))
        for name, one in CLASSES.items() if kind == "schedule" else PASSES.items():
            parts.append(_section(f"`{kind} NAME for {name}`", _more(keys_of(one), shared), 3))
        if kind == "schedule":
            for name, template in CONTRACTIONS.items():
                title = f"`{kind} NAME for contraction`, `template {name}`"
                parts.append(_section(title, _more(keys_of(template), shared), 3))
    return "\n".join(parts)


def _more(keys: Sequence[Key], shared: Sequence[Key]) -> list[Key]:
    return [key for key in keys if key not in shared]


def _section(title: str, keys: Sequence[Key], depth: int = 2) -> str:
    lines = [f"{'#' * depth} {title}", ""]
    for key in keys:
        lines += wrap(_item(key), _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join([*lines, ""] if keys else [*lines, "No keys of its own.", ""])


def _item(key: Key) -> str:
    notes = ", ".join(_notes(key))
    choices = f": {', '.join(f'`{one}`' for one in key.choices)}" if key.choices and key.kind != "clause" else ""
    return f"`{key.name}` ({notes}): {key.meaning}{choices}"


def _notes(key: Key) -> Iterator[str]:
    yield _values(key)
    if key.repeats:
        yield "any number of times"
    yield "required" if key.required else f"default {key.default or 'none'}"


def _values(key: Key) -> str:
    """How many values of which kind."""
    words = {"word": "word", "number": "whole number" if key.whole else "number", "text": 'text in `"quotes"`'}
    one = words.get(
        key.kind, {"space": "word, then numbers", "clause": "words", "phase": "names, then limits"}.get(key.kind, "")
    )
    if key.kind not in words or (key.least, key.most) == (1, 1):
        return one
    if key.most is None:
        return f"{one}, {key.least} or more"
    return f"{one}, {key.least}" if key.least == key.most else f"{one}, {key.least} to {key.most}"
