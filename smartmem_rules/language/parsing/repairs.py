"""One sign more, or another one, with which a text follows the grammar: tried where no known slip explains it."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language.fixes import Edit, Fix, applied, edit
from smartmem_rules.language.parsing import lalr
from smartmem_rules.language.parsing.builder import Builder
from smartmem_rules.language.parsing.stops import Stop

_SIGNS = (",", ";", ":", "=", "->", "=>", ")", "]", "}", "in", "{")
"""Signs that stand between parts; operators are left out, as any of them could be meant."""
_LONGEST = 20_000
"""Characters of an item that is tried: each try parses all of it."""


def repaired(text: str, stop: Stop) -> Fix | None:
    """The only sign that can be inserted before the place, or else stand in place of what is there."""
    if len(text) > _LONGEST:
        return None
    for tries in (_insertions(stop), _replacements(stop)):
        found = [fix for fix in tries if _parses(applied(text, fix.edits))]
        if len(found) == 1:
            return found[0]
    return None


def _insertions(stop: Stop) -> Iterator[Fix]:
    for sign in _SIGNS:
        if sign in stop.signs:
            shown = f"before `{stop.found}`" if stop.found != "the end of the text" else "at the end"
            blank = " " if sign in ("->", "=>", "=", "in", "{") else ""
            yield edit(f"`{sign}` is missing {shown}", Edit(stop.behind_text(), blank + sign))


def _replacements(stop: Stop) -> Iterator[Fix]:
    length = len(stop.found)
    if stop.line[stop.span.column - 1 :][:length] == stop.found:
        for sign in _SIGNS:
            if sign in stop.signs:
                yield edit(f"write `{sign}`", Edit(stop.here(length), sign))
        if stop.line[stop.span.column - 1 + length :][:1] in _SIGNS:
            yield edit("leave it out", Edit(stop.here(length), ""))


def _parses(text: str) -> bool:
    builder = Builder()
    builder.begin(text, "")
    try:
        lalr.parse(text, builder)
    except lalr.Refused:
        return False
    return not builder.problems
