"""What the parser would have accepted, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lark.lexer import PatternStr, TerminalDef

from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_WORDS = {
    "$END": "the end of the text",
    "NAME": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "STRING": 'a "string"',
    "INFINITY": "`inf`",
    "RULE_LET": "`let`",
    "REDUCE": "a reduction",
    "FIRST": "`first`",
    "DEFAULT_ELSE": "`else`",
    "ONNX_NAME": "a qualified name such as `ai.onnx::Softmax`",
    "WORD": "a word",
    "VALUE": "a number",
    "CELL": "a cell",
    "_ROW_END": "a new line",
}
# Sets of terminals that an author thinks of as one thing; one counts as present when all its members are.
_EXPRESSION = frozenset(
    {"NAME", "INT", "FLOAT", "LPAR", "LSQB", "MINUS", "STRING", "TRUE", "FALSE", "INFINITY", "REDUCE", "FIRST"}
)
_OPTIONAL_IN_EXPRESSION = frozenset({"IF", "NOT"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_OTHER_OPERATORS = COMPARISONS | {"**", "and", "or"}
_ITEMS = frozenset(ITEM_WORDS)
_IN_FAMILIES = _ITEMS - {"import", "ruleset"}
_BLOCKS = frozenset(BLOCK_WORDS)


def wants_expression(accepted: Collection[str]) -> bool:
    """Whether an expression could stand at a place where these terminals can."""
    return set(accepted) >= _EXPRESSION


def in_words(accepted: Collection[str], terminals: Collection[TerminalDef]) -> str:
    """`a name, `(` or an expression` for the names of the terminals that the parser accepts."""
    symbols = {
        terminal.name: terminal.pattern.value for terminal in terminals if isinstance(terminal.pattern, PatternStr)
    }
    left = set(accepted)
    phrases: list[str] = []
    if left >= _EXPRESSION:
        left -= _EXPRESSION | _OPTIONAL_IN_EXPRESSION
        phrases.append("an expression")
    values = {symbols.get(name, name) for name in left}
    if values >= _ARITHMETIC:
        left -= {name for name in left if symbols.get(name) in _ARITHMETIC | _OTHER_OPERATORS}
        phrases.append("an operator")
    if values >= _IN_FAMILIES:
        left -= {name for name in left if symbols.get(name) in _ITEMS | _BLOCKS}
        phrases.append("the next item (`operator`, `rewrite`, ...)")
    phrases += sorted({_WORDS.get(name) or f"`{symbols.get(name, name)}`" for name in left})
    return _enumerate(phrases)


def _enumerate(phrases: Sequence[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"
