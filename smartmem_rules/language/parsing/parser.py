"""Rule files and texts to syntax trees; what was parsed before comes from the cache."""

from __future__ import annotations

from pathlib import Path

from smartmem_rules.language import cache as kept
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import advice
from smartmem_rules.language.parsing.source import read_source
from smartmem_rules.language.patterns import DEEPEST
from smartmem_rules.language.syntax import Module, Syntax, parts_of


def parse_file(path: str | Path) -> Module:
    """The syntax tree of a file.

    Raises LanguageError with all syntax errors, or when the file cannot be read.
    """
    file = str(path)
    text = read_source(path).text
    key = kept.digest_of(file, text)
    known = kept.read_pickle(key)
    if isinstance(known, Module):
        return known
    module = parse_text(text, file)
    kept.write_pickle(key, module)
    return module


def parse_text(text: str, file: str = "<text>") -> Module:
    """The syntax tree of a text; `file` is the name that spans and messages give.

    Raises LanguageError with all syntax errors.
    """
    # the grammar's tables take longer to load than most files to come from the cache
    from smartmem_rules.language.parsing import lalr  # start-up time
    from smartmem_rules.language.parsing.builder import Builder  # start-up time

    builder = Builder()
    builder.begin(text, file)
    try:
        module: Module = lalr.parse(text, builder)
        problems = builder.problems
    except lalr.Refused:
        from smartmem_rules.language.parsing import lark_parser  # start-up time

        module, problems = lark_parser.parse(text, file)
    if not problems:
        problems = _too_deep(module)
    if problems:
        raise LanguageError(problems, {file: text})
    return module


def _too_deep(module: Module) -> list[Diagnostic]:
    """A message where expressions are nested so deep that no one could follow them; what reads trees recurs."""
    stack: list[tuple[object, int]] = [(item, 0) for item in module.items]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Syntax):
            if depth > DEEPEST:
                message = f"this is nested more than {DEEPEST} deep"
                fix = advice("name a part with `let` or a function")
                return [Diagnostic(Code.TOO_DEEP, "error", message, node.span, fix=fix)]
            for name in parts_of(node):
                part = getattr(node, name)
                if isinstance(part, Syntax | tuple):
                    stack.append((part, depth + 1))
        elif isinstance(node, tuple):
            stack.extend((part, depth) for part in node if isinstance(part, Syntax | tuple))
    return []
