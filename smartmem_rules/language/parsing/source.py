"""The text of a rule file: UTF-8, with or without a byte order mark; any other encoding is named."""

from __future__ import annotations

import codecs
from pathlib import Path

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import advice
from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_LOOKED_AT = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, without the byte order mark that `marked` tells of."""

    text: str
    marked: bool


def read_source(path: str | Path) -> Source:
    """The text of a file.

    Raises LanguageError when the file cannot be read or is not UTF-8 text.
    """
    file = str(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(file, error.strerror or "the system does not give it") from error
    encoding = _other_encoding(content)
    if encoding is not None:
        raise _unreadable(file, f"it is {encoding} text", "save it as UTF-8")
    marked = content.startswith(codecs.BOM_UTF8)
    try:
        return Source(content.removeprefix(codecs.BOM_UTF8).decode("utf-8"), marked)
    except UnicodeDecodeError as error:
        before = content[: error.start].removeprefix(codecs.BOM_UTF8).decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = f"byte 0x{content[error.start]:02x} is not UTF-8 text"
        raise _unreadable(file, reason, "save it as UTF-8", Span(file, line, column, line, column + 1)) from error


def _other_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32 by their marks, or by the zero bytes that they put beside the letters of English."""
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    start = content[:_LOOKED_AT]
    zeros = [start[offset::4].count(0) for offset in range(4)]
    if len(start) < 8 or sum(zeros) * 3 < len(start):
        return None
    return "UTF-32" if sorted(zeros)[1] * 6 > len(start) else "UTF-16"


def _unreadable(
    file: str, reason: str, fix: str = "give the path of a file that exists and may be read", place: Span | None = None
) -> LanguageError:
    message = f"cannot read this file: {reason}"
    span = place or Span(file, 1, 1, 1, 1)
    return LanguageError([Diagnostic(Code.UNREADABLE, "error", message, span, fix=advice(fix))], {})
