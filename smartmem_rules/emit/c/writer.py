"""Collects the lines of a kernel's body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Lines of C with indentation; blocks nest through `block`."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head + " {")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @property
    def length(self) -> int:
        return len(self._lines)

    def text(self) -> str:
        return "\n".join(self._lines)
