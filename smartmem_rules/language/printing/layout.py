"""Documents that choose their own line breaks (Wadler, "A prettier printer", 2003, with the fill of Prettier).

A document says where a line may break and what belongs together; `render` breaks as little as the width asks for.
Comments take no width: they cannot be broken, and code is not broken because of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Text:
    """Letters without a line break."""

    text: str


@dataclass(frozen=True)
class Line:
    """A place where the line may break; `flat` stands there if it does not."""

    flat: str = " "


@dataclass(frozen=True)
class Comment:
    """A comment: the line ends behind it.  With `alone` it also begins a line."""

    text: str
    alone: bool = False


@dataclass(frozen=True)
class Concat:
    """Documents one behind the other."""

    parts: tuple[Document, ...]


@dataclass(frozen=True)
class Nest:
    """Lines that begin inside are indented by more columns than those around."""

    columns: int
    inner: Document


@dataclass(frozen=True)
class Align:
    """Lines that begin inside are indented to the column where the document begins, unless that is far to the right."""

    inner: Document


@dataclass(frozen=True)
class Group:
    """All lines of the group break, or none does."""

    inner: Document


@dataclass(frozen=True)
class Fill:
    """Items with a `Line` between each two, each of which breaks only if the next item does not fit."""

    items: tuple[Document, ...]


@dataclass(frozen=True)
class _FillRest:
    """The items of a `Fill` behind the first ones, with the line before each; `broken` if the last one has lines."""

    items: tuple[Document, ...]
    broken: bool


_FARTHEST = 16
"""Columns by which `Align` indents at most."""
_NEAR = 4
"""Columns by which it indents where the document begins farther to the right."""

Document = Text | Line | Comment | Concat | Nest | Align | Group | Fill | _FillRest


@dataclass(frozen=True)
class _Task:
    """A document that is still to be written; `flat` if its lines do not break."""

    indent: int
    flat: bool
    document: Document


def render(document: Document, width: int, indent: int) -> list[str]:
    """The lines of a document, each at most `width` columns where the document lets it.

    `indent` is the column where the first line begins and to which the others return.
    """
    writer = _Writer(indent)
    tasks = [_Task(indent, False, document)]
    while tasks:
        task = tasks.pop()
        room = width - writer.column
        match task.document:
            case Text(text=text):
                writer.write(text)
            case Comment(text=text, alone=alone):
                writer.comment(text, alone, task.indent)
            case Line(flat=space):
                if task.flat:
                    writer.write(space)
                else:
                    writer.end_line(task.indent)
            case Concat(parts=parts):
                tasks += [_Task(task.indent, task.flat, part) for part in reversed(parts)]
            case Nest(columns=columns, inner=inner):
                tasks.append(_Task(task.indent + columns, task.flat, inner))
            case Align(inner=inner):
                column = writer.column if writer.column - task.indent <= _FARTHEST else task.indent + _NEAR
                tasks.append(_Task(column, task.flat, inner))
            case Group(inner=inner):
                tasks.append(_Task(task.indent, task.flat or _fits(room, inner, tasks), inner))
            case Fill(items=items):
                tasks += _filled(task, items, room, tasks)
            case _FillRest(items=items, broken=broken):
                rest = [_Task(task.indent, task.flat, _FillRest(items[1:], False))] if items[1:] else []
                stays = task.flat or (not broken and _fits(room, Concat((Line(), items[0])), [*tasks, *rest]))
                tasks += [_Task(task.indent, task.flat, Fill(items)), _Task(task.indent, stays, Line())]
    return writer.finished()


def _filled(task: _Task, items: tuple[Document, ...], room: int, following: Sequence[_Task]) -> list[_Task]:
    """The tasks of a fill, last one first."""
    if len(items) < 2:
        return [_Task(task.indent, task.flat, Group(item)) for item in items]
    rest = _Task(task.indent, task.flat, _FillRest(items[1:], False))
    fits = task.flat or _fits(room, items[0], [*following, rest])
    rest = _Task(task.indent, task.flat, _FillRest(items[1:], not fits))
    return [rest, _Task(task.indent, fits, items[0])]


def _fits(room: int, document: Document, rest: Sequence[_Task]) -> bool:
    """Whether the document on one line, and what follows up to the first line that may break, needs no more room."""
    tasks = [_Task(0, True, document)]
    following = len(rest)
    while room >= 0:
        if not tasks:
            if not following:
                return True
            following -= 1
            tasks.append(rest[following])
            continue
        task = tasks.pop()
        match task.document:
            case Text(text=text):
                room -= len(text)
            case Comment():
                return not task.flat
            case Line(flat=flat):
                if not task.flat:
                    return True
                room -= len(flat)
            case Concat(parts=parts):
                tasks += [_Task(0, task.flat, part) for part in reversed(parts)]
            case Nest(inner=inner) | Align(inner=inner) | Group(inner=inner):
                tasks.append(_Task(0, task.flat, inner))
            case Fill(items=items) | _FillRest(items=items):
                tasks += [_Task(0, task.flat, part) for part in reversed(_spaced(task.document, items))]
    return False


def _spaced(fill: Document, items: tuple[Document, ...]) -> list[Document]:
    parts = [part for item in items for part in (Line(), item)]
    return parts if isinstance(fill, _FillRest) else parts[1:]


class _Writer:
    """Lines as they are written."""

    def __init__(self, indent: int) -> None:
        self._lines: list[str] = []
        self._line = " " * indent

    @property
    def column(self) -> int:
        return len(self._line)

    def write(self, text: str) -> None:
        self._line += text if self._line.strip() else text.lstrip()

    def end_line(self, indent: int) -> None:
        """Begin a line, unless nothing stands on this one."""
        if self._line.strip():
            self._lines.append(self._line.rstrip())
        self._line = " " * indent

    def comment(self, text: str, alone: bool, indent: int) -> None:
        if alone:
            self.end_line(indent)
        gap = "   " if self._line.strip() else ""
        self._lines.append(self._line.rstrip() + gap + text if gap else self._line + text)
        self._line = " " * indent

    def finished(self) -> list[str]:
        return [*self._lines, self._line.rstrip()] if self._line.strip() else self._lines
