"""Rule texts as tokens, with their columns: what the formatter moves."""

from __future__ import annotations

import re

from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS
from smartmem_rules.records import dataclass

EXPRESSION = re.compile(
    r'(?P<comment>\#.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<onnx>[A-Za-z_][\w.\-]*::\w+)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)'
    r"|(?P<word>[A-Za-z_]\w*)|(?P<symbol><=>|=>|->|\.\.\.|\.\.|\*\*|//|<=|>=|==|!=|::|.)"
)
"""Tokens of everything but the entries of blocks and tables."""
ENTRY = re.compile(r'(?P<comment>\#.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<symbol>[{};])|(?P<word>[^\s{};"#]+)')
"""Tokens of the entries of blocks and tables."""

ITEMS = frozenset(ITEM_WORDS)
BLOCKS = frozenset(BLOCK_WORDS)
RULES = frozenset(["rewrite", "eliminate", "index", "derive", "keep"])
CLAUSES = frozenset(
    [
        "onnx",
        "internal",
        "commutative",
        "override",
        "require",
        "let",
        "class",
        "mapping",
        "reference",
        "cost",
        "view",
        "scan",
    ]
)
"""The words that clauses of an operator begin with, besides equations."""
RULE_CLAUSES = frozenset(["where", "relaxes", "explores", "defers", "tags", "cites", "unsound"])
ARROWS = frozenset(["=>", "<=>"])
KEYWORDS = frozenset(["if", "then", "else", "and", "or", "not", "in", "for", "require", "where", "let", "view", "scan"])
COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])
BINARY = COMPARISONS | ARROWS | frozenset(["=", "+", "-", "*", "/", "//", "%", "**", "->", "|"])
OPEN, CLOSE = frozenset("(["), frozenset(")]")


@dataclass(frozen=True)
class Token:
    """A word, number, string, symbol or comment of a line; `kind` is the name of its group in the patterns above.

    The `let` of a rule is of the kind `clause`, which a constant of the file is not.
    """

    text: str
    column: int
    kind: str


def split(line: str, pattern: re.Pattern[str], begin: int = 0) -> list[Token]:
    """The tokens of a line from the column `begin` on."""
    tokens = []
    for match in pattern.finditer(line, begin):
        if match[0].strip():
            tokens.append(Token(match[0].rstrip(), match.start(), match.lastgroup or "symbol"))
    return tokens


def is_prefix(before: str) -> bool:
    """Whether a sign behind this token stands before its operand and not between two."""
    return before in BINARY | KEYWORDS | OPEN | {",", ";", ":", "~", "{", "", "@"}
