"""Messages to the rule author: what is wrong, where, what else is involved, and how to put it right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.codes import Code
from smartmem_rules.language.fixes import Fix, advice, stands
from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass

Severity = Literal["error", "warning"]
_LONGEST_SHOWN = 240
"""Characters that are shown of a line: of a longer one the part around the place."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message; `label` stands under the caret, `secondary` points at the other party.

    Each says how to put right what it is about: a message without that leaves its reader to guess.
    """

    code: Code
    severity: Severity
    message: str
    span: Span
    label: str = ""
    secondary: tuple[Span, str] | None = None
    note: str | None = None
    fix: Fix = field(kw_only=True)


class LanguageError(SmartmemError):
    """One or more errors in rule files; its text is all messages and then `found N errors`."""

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: Mapping[str, str]) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = dict(sources)
        super().__init__(render(self.diagnostics, self.sources))


def with_certain_edits(diagnostic: Diagnostic, lines: Mapping[str, Sequence[str]]) -> Diagnostic:
    """A message whose fix is advice where the text to be edited is another one, as in the body of a family."""
    fix = diagnostic.fix
    if all(stands(one, lines.get(one.span.file, ())) for one in fix.edits):
        return diagnostic
    return replace(diagnostic, fix=advice(fix.text))


def moved(diagnostic: Diagnostic, lines: int) -> Diagnostic:
    """A message about a piece of a text that begins so many lines below the first."""

    def down(span: Span) -> Span:
        return span._replace(line=span.line + lines, end_line=span.end_line + lines)

    secondary, fix = diagnostic.secondary, diagnostic.fix
    if secondary is not None:
        secondary = (down(secondary[0]), secondary[1])
    fix = replace(fix, edits=tuple(replace(one, span=down(one.span)) for one in fix.edits))
    return replace(diagnostic, span=down(diagnostic.span), secondary=secondary, fix=fix)


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str]) -> str:
    """All messages in the order given, then a count; `sources` maps file names to their text."""
    files = {span.file for one in diagnostics for span in (one.span, *(one.secondary or ())[:1])}
    lines = {file: sources[file].split("\n") for file in files if file in sources}
    parts = [_rendered(diagnostic, lines) for diagnostic in diagnostics]
    return "\n\n".join([*parts, _count(diagnostics)])


def _rendered(diagnostic: Diagnostic, sources: Mapping[str, Sequence[str]]) -> str:
    """One message with its lines of the source; without the source only the places are given."""
    place = f"{diagnostic.span}: " if diagnostic.span.line else ""
    lines = [f"{place}{diagnostic.severity} {diagnostic.code}: {diagnostic.message}"]
    lines += _excerpt(diagnostic.span, diagnostic.label, "^", sources)
    if diagnostic.secondary is not None:
        span, label = diagnostic.secondary
        lines.append(f"{span}: {label}")
        lines += _excerpt(span, "", "-", sources)
    if diagnostic.note is not None:
        lines.append(f"  note: {diagnostic.note}")
    lines.append(f"  fix: {diagnostic.fix}")
    return "\n".join(lines)


def _excerpt(span: Span, label: str, mark: str, sources: Mapping[str, Sequence[str]]) -> list[str]:
    lines = sources.get(span.file, ())
    if not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1].rstrip("\r")
    # A span over several lines is marked to the end of its first.
    end = span.end_column if span.end_line == span.line else len(line) + 1
    width = max(1, min(end, len(line) + 1) - span.column)
    shown, column, width = _window(line, span.column, width)
    # Tabs are kept, so that the carets stand under the text however wide a tab is shown.
    indent = "".join("\t" if character == "\t" else " " for character in shown[: column - 1])
    gutter = f"{span.line:>5} | "
    return [gutter + shown, f"{'| ':>8}{indent}{mark * width} {label}".rstrip()]


def _window(line: str, column: int, width: int) -> tuple[str, int, int]:
    """What is shown of a line, all of it or the part around the marked place; the column and width of the mark."""
    if len(line) <= _LONGEST_SHOWN:
        return line, column, width
    begin = max(0, min(column - 1 - _LONGEST_SHOWN // 4, len(line) - _LONGEST_SHOWN))
    end = begin + _LONGEST_SHOWN
    before, behind = ("..." if begin else ""), ("..." if end < len(line) else "")
    column += len(before) - begin
    return before + line[begin:end] + behind, column, min(width, len(before) + _LONGEST_SHOWN + 1 - column)


def _count(diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    warnings = len(diagnostics) - errors
    text = f"found {errors} error{'' if errors == 1 else 's'}"
    return text if not warnings else f"{text} and {warnings} warning{'' if warnings == 1 else 's'}"
