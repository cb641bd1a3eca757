"""Rule text to syntax tree, by the grammar in `grammar/smr.lark`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from lark import Lark, Token, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from smartmem_rules.language.builder import Builder
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.expectation import COMPARISONS, in_words
from smartmem_rules.language.syntax import Module, Span, Syntax
from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS
from smartmem_rules.resources import grammar_path

DEEPEST = 100
"""Levels of a tree, from its item down."""

_ITEM = re.compile(rf"^(?=(?:{'|'.join((*ITEM_WORDS, *BLOCK_WORDS))})\b)", re.MULTILINE)
_CLAUSES = ("where", "relaxes", "explores", "tags", "unsound", "after")
_IN_OPERATORS = frozenset({"FOR", "LET"})
_OUTSIDE_OF_BRACES = frozenset(word.upper() for word in (*ITEM_WORDS, *BLOCK_WORDS, *_CLAUSES)) - _IN_OPERATORS
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")

# The builder is part of the parser and holds the state of one parse.
_PARSING = Lock()


def parse(text: str, file: str) -> Module:
    """The syntax tree of a text; raises LanguageError with all syntax errors."""
    with _PARSING:
        try:
            module, problems = _parse(text, file)
        except UnexpectedInput as error:
            raise LanguageError(_all_errors(text, file, error), {file: text}) from None
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
        if isinstance(node, tuple):
            stack.extend((part, depth) for part in node)
        elif isinstance(node, Syntax):
            if depth > DEEPEST:
                message = f"this is nested more than {DEEPEST} deep"
                return [
                    Diagnostic(Code.TOO_DEEP, "error", message, node.span, fix="name a part with `let` or a function")
                ]
            stack.extend(
                (getattr(node, name), depth + 1) for name in type(node).__dataclass_fields__ if name != "places"
            )
    return []


def _parse(text: str, file: str) -> tuple[Module, list[Diagnostic]]:
    lark, builder = _parser()
    builder.begin(text, file)
    tree = lark.parse(text)
    assert isinstance(tree, Module)
    return tree, builder.problems


def _all_errors(text: str, file: str, first: UnexpectedInput) -> list[Diagnostic]:
    """One diagnostic for each top-level item that cannot be parsed, with what the others contradict."""
    found: list[Diagnostic] = []
    for chunk in _chunks(text):
        try:
            found += _parse(chunk, file)[1]
        except UnexpectedInput as error:
            found.append(_diagnostic(chunk, file, error))
    return found or [_diagnostic(text, file, first)]


def _chunks(text: str) -> Iterator[str]:
    """The top-level items, each after as many empty lines as put it on its place in the text."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    bounds = sorted({0, *starts, len(text)})
    for begin, end in pairwise(bounds):
        yield "\n" * text.count("\n", 0, begin) + text[begin:end]


def _diagnostic(text: str, file: str, error: UnexpectedInput) -> Diagnostic:
    span = _error_span(text, file, error)
    if isinstance(error, UnexpectedCharacters) and error.char == '"':
        return Diagnostic(Code.SYNTAX, "error", "this string is not closed on its line", span)
    expected = _expected(text)
    note = f"expected {expected}" if expected else None
    found = _found(error)
    fix = "write `a < b and b < c`: comparisons do not chain" if found.strip("`") in COMPARISONS else None
    return Diagnostic(Code.SYNTAX, "error", f"{found} cannot stand here", span, note=note, fix=fix)


def _found(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return "the end of the line" if error.token.type == "_ROW_END" else f"`{error.token}`"
    return f"the character `{error.char}`" if isinstance(error, UnexpectedCharacters) else "the end of the text"


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


def _expected(text: str) -> str:
    """What could have stood where the parse of `text` fails, in plain words."""
    lark, _ = _parser()
    interactive: Any = lark.parse_interactive(text)  # lark leaves its methods without types
    # A refused token leaves the parser in the middle of its reductions; only the state before it tells all.
    settled = interactive.copy(deepcopy_values=False)
    try:
        for token in interactive.lexer_thread.lex(interactive.parser_state):
            interactive.feed_token(token)
            settled = interactive.copy(deepcopy_values=False)
    except UnexpectedInput:
        pass
    return in_words(settled.accepts(), lark.terminals)


class _WordResolver(PostLex):
    """Decides what the lexer cannot know of a word without its surroundings.

    An `else` belongs to the nearest `then` at the same bracket depth that has none yet; without one it gives
    the default of a read.  A word that begins an item is a name inside of braces, where no item can begin.
    """

    always_accept = ("ELSE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        open_conditionals = [0]
        family_begins, family_braces = False, 0
        for token in stream:
            if len(open_conditionals) == 1 and token.type == "FOR":
                family_begins = True
            elif len(open_conditionals) == 1 and token == "{" and family_begins:
                family_begins, family_braces = False, family_braces + 1
            elif len(open_conditionals) == 1 and token == "}" and family_braces:
                family_braces -= 1
            elif token in _OPENING:
                open_conditionals.append(0)
            elif token in _CLOSING and len(open_conditionals) > 1:
                open_conditionals.pop()
            elif token.type in _OUTSIDE_OF_BRACES and len(open_conditionals) > 1:
                token = Token.new_borrow_pos("NAME", token.value, token)
            elif token.type == "THEN":
                open_conditionals[-1] += 1
            elif token.type == "ELSE":
                if open_conditionals[-1]:
                    open_conditionals[-1] -= 1
                else:
                    token = Token.new_borrow_pos("DEFAULT_ELSE", token.value, token)
            yield token


@cache
def _parser() -> tuple[Lark, Builder]:
    builder = Builder()
    lark = Lark(
        grammar_path().read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        propagate_positions=False,
        keep_all_tokens=True,
        maybe_placeholders=False,
        postlex=_WordResolver(),
        transformer=builder,
    )
    return lark, builder
