"""What is wrong with a text that does not follow the grammar, by lark: where, and what could have stood there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from threading import Lock
from typing import Any, cast

from lark import UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternStr

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError, moved
from smartmem_rules.language.fixes import advice, inserted, spelling
from smartmem_rules.language.parsing import lalr
from smartmem_rules.language.parsing.brackets import unclosed
from smartmem_rules.language.parsing.builder import Builder
from smartmem_rules.language.parsing.expectation import in_words, wants_expression
from smartmem_rules.language.parsing.forms import form
from smartmem_rules.language.parsing.grammar import builder_of_lark, grammar, resolving
from smartmem_rules.language.parsing.headings import upper_case_let
from smartmem_rules.language.parsing.hints import hint, rangeless
from smartmem_rules.language.parsing.repairs import KEYWORDS, farther, piece_before, repaired
from smartmem_rules.language.parsing.slips.finding import late_slip, slip
from smartmem_rules.language.parsing.stops import LONGEST, Stop
from smartmem_rules.language.syntax import Module, Span
from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_ITEM = re.compile(rf"^(?=(?:{'|'.join((*ITEM_WORDS, *BLOCK_WORDS))})\b)", re.MULTILINE)
_OWN_NAMES = {"\ufeff": "a byte order mark"}
_WORD = re.compile(r"[A-Za-z_]\w*")

# The builder that lark calls holds the state of one parse.
_PARSING = Lock()


def parse(text: str, file: str) -> tuple[Module, list[Diagnostic]]:
    """The syntax tree of a text, with what the builder finds wrong.

    Raises LanguageError with all syntax errors.
    """
    try:
        return _by_lark(text, file)
    except UnexpectedInput as error:
        raise LanguageError(_all_errors(text, file, error), {file: text}) from None


def _by_lark(text: str, file: str) -> tuple[Module, list[Diagnostic]]:
    lark, builder = grammar(), builder_of_lark()
    with _PARSING:
        builder.begin(text, file)
        resolving().text = text
        tree = cast("object", lark.parse(text))
        assert isinstance(tree, Module)
        return tree, builder.problems


def _problems_of(chunk: str, file: str) -> list[Diagnostic]:
    builder = Builder()
    builder.begin(chunk, file)
    try:
        lalr.parse(chunk, builder)
    except lalr.Refused:
        try:
            return _by_lark(chunk, file)[1]
        except UnexpectedInput as error:
            return [_diagnostic(chunk, file, error)]
    return builder.problems


def _all_errors(text: str, file: str, first: UnexpectedInput) -> list[Diagnostic]:
    """One diagnostic for each top-level item that cannot be parsed, with what the others contradict."""
    found: list[Diagnostic] = []
    for line, chunk in _chunks(text):
        found += [moved(problem, line) for problem in _problems_of(chunk, file)]
    return found or [_diagnostic(text, file, first)]


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The top-level items, each with the number of lines above it."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    bounds = sorted({0, *starts, len(text)})
    line = 0
    for begin, end in pairwise(bounds):
        yield line, text[begin:end]
        line += text.count("\n", begin, end)


def _diagnostic(text: str, file: str, error: UnexpectedInput) -> Diagnostic:
    span = _error_span(text, file, error)
    if isinstance(error, UnexpectedCharacters) and error.char == '"':
        end = span._replace(end_column=len(text.split("\n")[span.line - 1].rstrip()) + 1)
        closed = inserted('close it with `"` on its line', end, '"')
        if not farther(text, closed.edits):
            closed = advice(closed.text)  # it stands elsewhere on the line
        return Diagnostic(Code.SYNTAX, "error", "this string is not closed on its line", span, fix=closed)
    accepted = _accepted(text)
    expected = in_words(accepted, grammar().terminals)
    note = f"expected {expected}" if expected else None
    found = _found(error)
    lines = text.split("\n")
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    before = "\n".join([*lines[: span.line - 1], line[: span.column - 1]])
    signs = _signs(accepted)
    stop = Stop(found.strip("`"), accepted, signs, line, before, span, text[len(before) :])
    code = stop.without_comments()
    by_hand = stop.by_hand()
    meant = slip(code) if by_hand else None
    if meant is not None:
        elsewhere = meant.span is not None and meant.span != span
        shown = f"`{_piece(lines, meant.span)}`" if meant.span is not None and elsewhere else found
        message = meant.message or f"{shown} cannot stand here"
        place = meant.span or span
        return Diagnostic(Code.SYNTAX, "error", message, place, note=None if elsewhere else note, fix=meant.fix)
    fix = hint(stop) if by_hand else None
    if fix is not None and fix.edits and len(text) <= LONGEST and not farther(text, fix.edits):
        fix = None
    if fix is None and _WORD.fullmatch(found.strip("`")) and found.strip("`") not in KEYWORDS:
        fix = spelling(found.strip("`"), filter(str.isalpha, signs), span)
    late = late_slip(code) if fix is None else None
    fix = fix or (late.fix if late is not None else None) or repaired(text, stop) or form(stop)
    if stop.begins_line() and fix.kind == "advice" and wants_expression(accepted) and code.text.strip():
        last = piece_before(replace(code, line=code.text.rstrip().rpartition("\n")[2], span=code.behind_text()))
        message = f"a value is missing behind `{last}`"
        return Diagnostic(Code.SYNTAX, "error", message, stop.behind_text(), fix=fix)
    begin = rangeless(stop)
    if begin is not None:
        return Diagnostic(Code.SYNTAX, "error", "this reduction has no range", begin, fix=fix)
    named = upper_case_let(stop)
    if named is not None:
        message = "the name of a rule's value begins with an upper-case letter"
        return Diagnostic(Code.SYNTAX, "error", message, named, fix=fix)
    begun = unclosed(stop)
    message = f"`{begun}` is not closed" if begun is not None else f"{found} cannot stand here"
    return Diagnostic(Code.SYNTAX, "error", message, span, note=note, fix=fix)


def _piece(lines: Sequence[str], span: Span) -> str:
    """The text of a place, to the end of its line."""
    line = lines[span.line - 1]
    return line[span.column - 1 : span.end_column - 1 if span.end_line == span.line else len(line)].strip()


def _signs(accepted: Collection[str]) -> frozenset[str]:
    """The words and signs among terminals, as they are written."""
    terminals = grammar().terminals
    return frozenset(t.pattern.value for t in terminals if t.name in accepted and isinstance(t.pattern, PatternStr))


def _found(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return "the end of the line" if error.token.type == "_ROW_END" else f"`{error.token}`"
    return _character(error.char) if isinstance(error, UnexpectedCharacters) else "the end of the text"


def _character(char: str) -> str:
    """A character as it is, or by its number and name where it shows nothing."""
    if char.isprintable():
        return f"the character `{char}`"
    name = unicodedata.name(char, "a control character").lower()
    return f"the character U+{ord(char):04X} ({_OWN_NAMES.get(char, name)})"


def _error_span(text: str, file: str, error: UnexpectedInput) -> Span:
    token = error.token if isinstance(error, UnexpectedToken) else None
    if token is not None and token.type == "$END":
        body = text.rstrip()
        line = body.count("\n") + 1
        column = len(body) - body.rfind("\n")
        return Span(file, line, column, line, column + 1)
    line, column = max(error.line, 1), max(error.column, 1)
    width = len(str(token).split("\n", 1)[0]) if token is not None else 1
    return Span(file, line, column, line, column + max(width, 1))


def _accepted(text: str) -> frozenset[str]:
    """The terminals that could have stood where the parse of `text` fails."""
    resolving().text = text
    # A refused token leaves the parser in the middle of its reductions; only the state before it tells all.
    whole: Any = grammar().parse_interactive(text)  # lark leaves its methods without types
    taken = 0
    try:
        for token in whole.lexer_thread.lex(whole.parser_state):
            whole.feed_token(token)
            taken += 1
    except UnexpectedInput:
        pass
    settled: Any = grammar().parse_interactive(text)
    for token in islice(settled.lexer_thread.lex(settled.parser_state), taken):
        settled.feed_token(token)
    return frozenset(settled.accepts())
