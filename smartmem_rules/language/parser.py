"""Rule files and texts to syntax trees; what was parsed before comes from the cache."""

from __future__ import annotations

from pathlib import Path

from smartmem_rules.language import cache
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.syntax import Module, Span


def parse_file(path: str | Path) -> Module:
    """The syntax tree of a file.

    Raises LanguageError with all syntax errors, or when the file cannot be read.
    """
    file = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        message = f"cannot read this file: {reason}"
        raise LanguageError([Diagnostic(Code.UNREADABLE, "error", message, Span(file, 1, 1, 1, 1))], {}) from error
    key = cache.digest_of(file, text)
    known = cache.read_pickle(key)
    if isinstance(known, Module):
        return known
    module = parse_text(text, file)
    cache.write_pickle(key, module)
    return module


def parse_text(text: str, file: str = "<text>") -> Module:
    """The syntax tree of a text; `file` is the name that spans and messages give.

    Raises LanguageError with all syntax errors.
    """
    # the grammar takes longer to load than most files to come from the cache
    from smartmem_rules.language.lark_parser import parse

    return parse(text, file)
