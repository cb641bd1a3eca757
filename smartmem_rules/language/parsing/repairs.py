"""One small change with which a text follows the grammar: tried where no known slip explains a stop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from smartmem_rules.language.expressions import Span
from smartmem_rules.language.fixes import Edit, Fix, applied, before, edit, nearest
from smartmem_rules.language.parsing import lalr
from smartmem_rules.language.parsing.brackets import open_brackets
from smartmem_rules.language.parsing.builder import Builder
from smartmem_rules.language.parsing.stops import LONGEST, Stop
from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_SIGNS = (",", ";", ":", "=", "->", "=>", ")", "]", "}", "in", "{")
"""Signs that stand between parts; operators are left out, as any of them could be meant."""
_OPENING = ("(", "[", "<")
_WORDS = ("then", "else", "where", "for", *ITEM_WORDS)
"""Words that stand between parts or begin an item."""
_BEGUN = ("then", "else", "where", "let", "rewrite", "import", "operator", "function")
"""Words of which one may be left out: what stands there follows no other word."""
_SPELT = (*_WORDS, "in", "and", "or", "not", "if", "relaxes", "tags", "cites", "unsound", "explores", "require")
KEYWORDS = frozenset(("then", "else", "where", "for", "in", "and", "or", "not", "if"))
"""Words that are right as they stand, so that none is meant in place of them."""
_PIECE = re.compile(r'"[^"\n]*"|\w+|=>|<=>|->|==|!=|<=|>=|::|\*\*|//|\S')


def repaired(text: str, stop: Stop) -> Fix | None:
    """The first kind of change of which one alone makes the text follow the grammar.

    A sign or word is inserted before the place, the word before it is spelt otherwise, what stands there or before it
    is left out, a sign stands in place of it, or two neighbours change places.
    """
    if len(text) > LONGEST:
        return None
    kinds = (_insertions, _parted, _begun, _respelt, _left_out, _replacements, _swapped)
    for tries in (kind(stop) for kind in kinds):
        found = [fix for fix in tries if parses(applied(text, fix.edits))]
        if len(found) == 1:
            return found[0]
    return None


def _insertions(stop: Stop) -> Iterator[Fix]:
    shown = _shown(stop)
    for sign in _SIGNS:
        # a list that goes on behind the end of a line has its comma there
        if sign in stop.signs and (sign != "," or _goes_on(stop)):
            blank = " " if sign in ("->", "=>", "=", "in", "{") else ""
            yield edit(f"`{sign}` is missing {shown}", Edit(stop.behind_text(), blank + sign))


def _goes_on(stop: Stop) -> bool:
    """Whether a list may go on at the place: at the beginning of a line only in brackets, or with a guard."""
    if not stop.begins_line() or open_brackets(stop.text):
        return True
    return re.search(r"\bwhere\b", stop.before) is not None and re.match(r"\w+\s*[(\[<>=!]", stop.rest) is not None


def _begun(stop: Stop) -> Iterator[Fix]:
    """With a bracket or a word before the place that begins what stands there."""
    signature = re.match(r"operator\b[^{]*$", stop.before) is not None
    for sign in (*_OPENING, *_BEGUN):
        if sign in stop.signs and (sign != "<" or signature):
            inserted = Edit(before(stop.span), sign + " " * sign.isalpha())
            yield edit(f"`{sign}` is missing {_shown(stop)}", inserted)


def _parted(stop: Stop) -> Iterator[Fix]:
    """With a blank behind the word of the language that a longer word begins with."""
    here = _piece_at(stop)
    for word in (*_WORDS, *BLOCK_WORDS):
        if word in stop.signs and here.startswith(word) and here != word:
            place = stop.here(len(here))
            yield edit(f"write `{word} {here[len(word) :]}`", Edit(place, f"{word} {here[len(word) :]}"))


def _shown(stop: Stop) -> str:
    return f"before `{stop.found}`" if stop.found != "the end of the text" else "at the end"


def _respelt(stop: Stop) -> Iterator[Fix]:
    """With the word before the place as the word of the language that it is like."""
    word = piece_before(stop)
    if word.isalpha() and word not in _SPELT:
        near = nearest(word, _SPELT)
        if near is not None:
            yield edit(f"did you mean `{near}`?", Edit(_before(stop, word), near))


def _left_out(stop: Stop) -> Iterator[Fix]:
    """Without a sign at the place, or a word that stands there twice; else without the sign before the place."""
    here, last = _piece_at(stop), piece_before(stop)
    if here and ((here[0].isascii() and not (here[0].isalnum() or here[0] == "_")) or here == last):
        twice = "it stands there twice: " if here == last else ""
        yield edit(f"{twice}leave `{here}` out", Edit(stop.here(len(here)), ""))
    elif last and not last[0].isalnum() and last[0] not in '_"':
        yield edit(f"leave `{last}` out", Edit(_before(stop, last), ""))


def _replacements(stop: Stop) -> Iterator[Fix]:
    here = _piece_at(stop)
    if here and (not here[0].isalnum() or here in _SPELT or here == piece_before(stop)):
        for sign in (*_SIGNS, "(", "["):
            if sign in stop.signs:
                yield edit(f"write `{sign}`", Edit(stop.here(len(here)), sign))


def _swapped(stop: Stop) -> Iterator[Fix]:
    """With what stands at the place before what stands before it."""
    here, last = _piece_at(stop), piece_before(stop)
    if here and last and stop.line[stop.span.column - 2 : stop.span.column - 1].isspace():
        first = _before(stop, last)
        between = stop.line[first.end_column - 1 : stop.span.column - 1]
        place = first._replace(end_column=stop.span.column + len(here))
        yield edit(f"write `{here}` before `{last}`", Edit(place, f"{here}{between}{last}"))


def _piece_at(stop: Stop) -> str:
    """The word or sign at the place; empty at the end of the text and of a line."""
    match = _PIECE.match(stop.line, stop.span.column - 1)
    return match[0] if match is not None else ""


def piece_before(stop: Stop) -> str:
    """The word or sign before the place, on its line."""
    pieces = _PIECE.findall(stop.line[: stop.span.column - 1])
    return pieces[-1] if pieces else ""


def _before(stop: Stop, piece: str) -> Span:
    """Where the word or sign before the place stands."""
    column = stop.line.rindex(piece, 0, stop.span.column - 1) + 1
    return stop.span._replace(column=column, end_line=stop.span.line, end_column=column + len(piece))


def farther(text: str, edits: Iterable[Edit]) -> bool:
    """Whether the parser takes more of a text once edits are made: less of it is left where it stops."""
    return _left(applied(text, edits)) < _left(text)


def parses(text: str) -> bool:
    """Whether a text follows the grammar."""
    return _left(text) == 0


def _left(text: str) -> int:
    """How many characters the parser does not take; 0 where it takes all of them, and finds nothing wrong."""
    builder = Builder()
    builder.begin(text, "")
    try:
        lalr.parse(text, builder)
    except lalr.Refused as refused:
        return len(text) - refused.place + 1
    return 1 if builder.problems else 0
