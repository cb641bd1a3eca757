"""How to mend what a message is about: edits that an editor can make, or advice that leaves a choice to the author."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Literal

from smartmem_rules.language.expressions import Span
from smartmem_rules.records import dataclass

FixKind = Literal["edit", "advice"]


@dataclass(frozen=True, slots=True)
class Edit:
    """The text of a place becomes another one; an empty place is where text is inserted.

    `old` is the text that must stand there, where that is not certain: in a family another word may stand for it.
    """

    span: Span
    text: str
    old: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """What to do, in words; `edits` do it together where only one thing can be meant."""

    kind: FixKind
    text: str
    edits: tuple[Edit, ...] = ()

    def __str__(self) -> str:
        return self.text


def advice(text: str) -> Fix:
    """What to do where the author has a choice to make, so that no edit can be offered."""
    return Fix("advice", text)


def edit(text: str, *edits: Edit) -> Fix:
    """What to do, with the edits that do it."""
    assert edits
    return Fix("edit", text, edits)


def replacement(text: str, span: Span, new: str) -> Fix:
    """What to do, by putting other text in one place."""
    return edit(text, Edit(span, new))


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to `word`, None when none is near."""
    known = sorted(set(candidates))
    near = [one for one in known if one.lower() == word.lower()]
    near = near or [
        one for one in get_close_matches(word, known, n=5, cutoff=0.66) if not _says_something_else(word, one)
    ]
    return near[0] if near else None


def _says_something_else(word: str, candidate: str) -> bool:
    """Whether names of several words differ in words that are not like each other: `a_into_row`, `a_into_tile`."""
    parts, others = word.lower().split("_"), candidate.lower().split("_")
    if len(parts) != len(others) or len(parts) < 2 or parts == others:
        return False
    apart = [(one, other) for one, other in zip(parts, others, strict=True) if one != other]
    return len(apart) < len(parts) and any(SequenceMatcher(None, *pair).ratio() < 0.5 for pair in apart)


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to `word` as a question, or None when none is near."""
    near = nearest(word, candidates)
    return f"did you mean `{near}`?" if near is not None else None


def spelling(word: str, candidates: Iterable[str], span: Span, form: str = "{}") -> Fix | None:
    """The candidate nearest to `word` in place of it; `form` is what stands in the place, `{}` the word."""
    near = nearest(word, candidates)
    if near is None:
        return None
    return edit(f"did you mean `{near}`?", Edit(span, form.format(near), form.format(word)))


def any_of(words: Iterable[str], most: int = 12) -> str:
    """Some words in order, as a message lists them; of many only the first are shown."""
    known = sorted(set(words))
    return ", ".join([*known[:most], "..."] if len(known) > most else known)


def inserted(text: str, span: Span, new: str) -> Fix:
    """What to do, by inserting text behind a place."""
    return replacement(text, behind(span), new)


def left_out(text: str, places: Sequence[Span], number: int) -> Fix:
    """What to do, by removing one of several parts that stand between commas; the only one is left to the author."""
    place = places[number]
    if number + 1 < len(places):
        following = places[number + 1]
        return replacement(text, place._replace(end_line=following.line, end_column=following.column), "")
    if number:
        earlier = places[number - 1]
        return replacement(text, place._replace(line=earlier.end_line, column=earlier.end_column), "")
    return advice(text)


def before(span: Span) -> Span:
    """The empty place before a span."""
    return span._replace(end_line=span.line, end_column=span.column)


def behind(span: Span) -> Span:
    """The empty place behind a span."""
    return span._replace(line=span.end_line, column=span.end_column)


def stands(one: Edit, lines: Sequence[str]) -> bool:
    """Whether the text that an edit is about stands at its place in the lines of a text."""
    if not one.old:
        return True
    line = lines[one.span.line - 1] if one.span.line <= len(lines) else ""
    return line[one.span.column - 1 :].startswith(one.old) and one.span.line == one.span.end_line


def applied(text: str, edits: Iterable[Edit]) -> str:
    """A text with edits made; they may not overlap."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def place(line: int, column: int) -> int:
        return min(starts[line - 1] + column - 1, len(text))

    for one in sorted(edits, key=lambda one: (one.span.line, one.span.column), reverse=True):
        begin, end = place(one.span.line, one.span.column), place(one.span.end_line, one.span.end_column)
        text = text[:begin] + one.text + text[end:]
    return text
