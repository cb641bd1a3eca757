"""Words and signs of a text with their places."""

from __future__ import annotations

import re

from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import OPERATOR_CLAUSES, RULE_CLAUSES

_PIECE = re.compile(
    r'"(?:[^"\\\n]|\\.)*"?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_]\w*'
    r"|<=>|==|!=|<=|>=|=>|->|\*\*|//|\.\.\.|::|\S"
)
_RULE = re.compile(r"(rewrite|eliminate|index|derive|keep)\b")


def pieces(text: str, begin: int = 0) -> list[re.Match[str]]:
    """The words, numbers, texts and signs from a place on."""
    return list(_PIECE.finditer(text, begin))


def in_body(stop: Stop) -> bool:
    """Whether the place lies between the braces of an operator."""
    return re.match(r"operator\b[^{]*\{", stop.before) is not None


def in_rule(stop: Stop) -> bool:
    """Whether the place lies in a rule."""
    return _RULE.match(stop.before) is not None


def clauses_here(stop: Stop) -> tuple[str, ...]:
    """The words that begin a clause of the item that a place lies in; none outside of operators and rules."""
    return OPERATOR_CLAUSES if in_body(stop) else RULE_CLAUSES if in_rule(stop) else ()


def ends_value(piece: str) -> bool:
    """Whether a piece can be the last one of a value."""
    return piece[:1].isalnum() or piece[:1] in ("_", '"') or piece in (")", "]")


def closing(text: str, begin: int) -> int:
    """Where the bracket closes that opens at a place: behind its closing one; -1 where it does not."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at + 1
    return -1


def opening(text: str, end: int) -> int:
    """Where the bracket opens that closes before a place; -1 where it does not."""
    depth = 0
    for at in range(end - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth == 0:
            return at
    return -1
