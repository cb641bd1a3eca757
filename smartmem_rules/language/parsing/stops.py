"""Where a parse fails: what stands there, what could, and what stands before it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from smartmem_rules.language.expressions import Span
from smartmem_rules.records import dataclass

LONGEST = 20_000
"""Characters of an item that people write: what is tried of longer ones, or searched for, would take too long."""
_UNWRITTEN = re.compile(r"\w{200}|\s{200}")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|#[^\n]*')


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a parse fails.

    Attributes:
        found: what stands there.
        accepted: the names of the terminals that could.
        signs: the words and signs that could, as they are written.
        line: the line of it.
        text: all text of the item up to there, its first line on the line that it has in the file.
        span: its place.
        rest: the text of the item from there on.
    """

    found: str
    accepted: Collection[str]
    signs: Collection[str]
    line: str
    text: str
    span: Span
    rest: str = ""

    @property
    def before(self) -> str:
        """The text of the item up to here."""
        return self.text.lstrip()

    @property
    def whole(self) -> str:
        """The text of the item; the place is at `len(self.text)`."""
        return self.text + self.rest

    def without_comments(self) -> Stop:
        """The same with blanks in place of comments."""
        code = _COMMENT.sub(lambda match: match[1] or " " * len(match[0]), self.whole)
        place = len(self.text)
        return replace(self, text=code[:place], rest=code[place:])

    def without_words(self) -> Stop:
        """The same with blanks in place of comments and of texts in quotes."""
        code = _COMMENT.sub(lambda match: " " * len(match[0]), self.whole)
        place = len(self.text)
        return replace(self, text=code[:place], rest=code[place:])

    def by_hand(self) -> bool:
        """Whether people write such an item; a search for what stands before a place squares longer words and gaps."""
        return len(self.whole) <= LONGEST and _UNWRITTEN.search(self.whole) is None

    def begins_line(self) -> bool:
        """Whether only blanks stand before the place on its line."""
        return not self.line[: self.span.column - 1].strip()

    def at_item(self) -> bool:
        """Whether an item could begin at the place, which is the first of its line."""
        return "OPERATOR" in self.accepted and self.begins_line()

    def between(self, begin: int, end: int) -> Span:
        """The span of a piece of `whole`."""
        text = self.whole
        first, last = text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1
        columns = [at - text.rfind("\n", 0, at) for at in (begin, end)]
        return self.span._replace(line=first, column=columns[0], end_line=last, end_column=columns[1])

    def behind_text(self) -> Span:
        """The empty place where the text before it ends."""
        body = self.text.rstrip()
        line, column = body.count("\n") + 1, len(body) - body.rfind("\n")
        return self.span._replace(line=line, column=column, end_line=line, end_column=column)

    def along(self, pattern: str, group: int = 0) -> Iterator[Span]:
        """The places from here to the end of the line that match, or those of a group."""
        for match in re.compile(pattern).finditer(self.line, self.span.column - 1):
            begin, end = match.span(group)
            yield self.span._replace(column=begin + 1, end_line=self.span.line, end_column=end + 1)

    def here(self, length: int) -> Span:
        """So many characters from here."""
        return self.span._replace(end_line=self.span.line, end_column=self.span.column + length)


def without_closed(text: str) -> str:
    """A text without what stands in brackets that are closed."""
    before = ""
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)
    return text
