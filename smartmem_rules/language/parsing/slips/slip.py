"""What an author means by what stops a parse, and the place where it went wrong."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, Fix, advice, edit
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Slip:
    """How to mend a text that stops the parse.

    Attributes:
        fix: what to write.
        span: where it went wrong, if that is not where the parser stops.
        message: what is wrong, if that is more than that something cannot stand there.
    """

    fix: Fix
    span: Span | None = None
    message: str = ""


def told(text: str) -> Slip:
    """A slip that leaves a choice to the author."""
    return Slip(advice(text))


def written(stop: Stop, text: str, begin: int, end: int, new: str, message: str = "") -> Slip:
    """A slip at a piece of the item's text, with what stands there instead."""
    span = stop.between(begin, end)
    return Slip(edit(text, Edit(span, new)), span, message)


def all_of(stop: Stop, text: str, pattern: str, new: str, begin: int, end: int | None = None) -> Fix:
    """What to do, by writing something else for all matches of a pattern in a piece of the item's text."""
    whole = stop.whole
    found = re.compile(pattern).finditer(whole, begin, len(whole) if end is None else end)
    changes = [Edit(stop.between(*one.span()), one.expand(new)) for one in found]
    return edit(text, *changes) if changes else advice(text)


def line_end(stop: Stop) -> int:
    """Where the line of the place ends in the item's text, without blanks."""
    begin = len(stop.text)
    end = stop.whole.find("\n", begin)
    return begin + len(stop.whole[begin : len(stop.whole) if end < 0 else end].rstrip())
