"""Where a parse fails: what stands there, what could, and what stands before it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from smartmem_rules.language.expressions import Span
from smartmem_rules.records import dataclass


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
    """

    found: str
    accepted: Collection[str]
    signs: Collection[str]
    line: str
    text: str
    span: Span

    @property
    def before(self) -> str:
        """The text of the item up to here."""
        return self.text.lstrip()

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
