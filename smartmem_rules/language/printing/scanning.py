"""What is open at each line of a rule text: braces, brackets and the item (the formatter works on texts, not trees)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from smartmem_rules.language.printing.tokens import (
    BINARY,
    BLOCKS,
    CLAUSES,
    CLOSE,
    ENTRY,
    EXPRESSION,
    ITEMS,
    KEYWORDS,
    OPEN,
    RULE_CLAUSES,
    RULES,
    Token,
    split,
)
from smartmem_rules.records import dataclass

_BEFORE_WORDS = BINARY | {",", "(", "[", "in", "after", "tags", "relaxes", "where"}
"""Behind these no item begins, whatever the word."""


@dataclass
class State:
    """What is open at the beginning of a line."""

    braces: list[str] = field(default_factory=list)
    """What each open brace belongs to: "family", "operator", "block" or "table"."""
    brackets: list[str] = field(default_factory=list)
    item: str = ""
    """The word that the current item begins with; empty between items."""
    lines_of_item: int = 0
    last: str = ""
    """The last token before the line."""

    @property
    def inside(self) -> str:
        """What the innermost brace belongs to; empty outside of braces."""
        return self.braces[-1] if self.braces else ""

    def advance(self, tokens: Sequence[Token]) -> None:
        """Go on behind the tokens of a line."""
        if any(token.kind != "comment" for token in tokens):
            self.lines_of_item += 1
        for place, token in enumerate(tokens):
            if token.kind == "comment":
                continue
            if token.kind == "word" and (token.text != "for" or place == 0) and self.begins_item(token):
                self.item, self.lines_of_item = token.text, 1
            if token.text == "{" and token.kind == "symbol":
                self.braces.append(_owner(self.item))
                if self.inside == "family":
                    self.item = ""
            elif token.text == "}" and token.kind == "symbol" and self.braces:
                self.braces.pop()
                self.item = ""
            elif token.text in OPEN:
                self.brackets.append(token.text)
            elif token.text in CLOSE and self.brackets:
                self.brackets.pop()
            self.last = token.text

    def begins_item(self, token: Token) -> bool:
        """Whether the token begins a declaration."""
        free = not self.brackets and self.inside in ("", "family")
        starts = token.kind != "clause" and (token.text in ITEMS or token.text in BLOCKS)
        return free and starts and self.last not in _BEFORE_WORDS and not self._is_name()

    def _is_name(self) -> bool:
        """Whether the word behind the last one is the name of an item."""
        heads = ITEMS | BLOCKS
        return self.last in heads and self.item in heads and self.lines_of_item <= 1

    def begins_clause(self, tokens: Sequence[Token]) -> bool:
        """Whether a line inside of an operator begins a clause and does not continue one."""
        return (tokens[0].text in CLAUSES or _is_equation(tokens)) and self.last not in BINARY | KEYWORDS | {","}

    def begins_rule_clause(self, token: Token) -> bool:
        """Whether a line with this first token begins the equation or a clause of a rule."""
        is_clause = token.text in RULE_CLAUSES or token.kind == "clause"
        return self.item in RULES and (is_clause or self.lines_of_item == 1)

    def begins_statement(self, tokens: Sequence[Token]) -> bool:
        """Whether a line begins what is laid out by itself: an item, a clause, an entry or a row."""
        first = tokens[0]
        if self.brackets:
            return False
        if first.text == "}" or self.last in ("", "{", "}"):
            return True
        if self.inside == "table":
            return True
        if self.inside == "block":
            return self.last == ";"
        if self.inside == "operator":
            return self.begins_clause(tokens)
        return self.begins_item(first) or self.begins_rule_clause(first)


def _is_equation(tokens: Sequence[Token]) -> bool:
    """Whether a line begins with `y[...] =`, as far as it shows that."""
    if tokens[0].kind != "word" or [token.text for token in tokens[1:2]] != ["["]:
        return False
    depth = 0
    for token in tokens[1:]:
        if depth == 0 and token.text != "[":
            return token.text == "=" or token.kind == "comment"
        depth += (token.text in OPEN) - (token.text in CLOSE)
    return True


def tokenized(lines: Sequence[str]) -> list[list[Token]]:
    """The tokens of each line; entries of blocks and tables have their own words."""
    state = State()
    result = []
    for line in lines:
        if state.inside in ("table", "block"):
            tokens = split(line, ENTRY)
        else:
            tokens = split(line, EXPRESSION)
            opening = _block_begins(tokens, state)
            if opening is not None:
                tokens = tokens[: opening + 1] + split(line, ENTRY, tokens[opening].column + 1)
            tokens = _with_names(tokens, state)
        result.append(tokens)
        state.advance(tokens)
    return result


def _with_names(tokens: list[Token], state: State) -> list[Token]:
    """The tokens of a line, each `let` of a rule as the clause that it is: what it names begins in lower case."""
    in_rule = state.item in RULES or (bool(tokens) and tokens[0].text in RULES)
    if not tokens or not in_rule or state.brackets or state.inside not in ("", "family"):
        return tokens
    named = [token.text[0].islower() or token.text[0] == "_" for token in tokens[1:]] + [False]
    return [
        replace(token, kind="clause") if token.text == "let" and is_name else token
        for token, is_name in zip(tokens, named, strict=True)
    ]


def _block_begins(tokens: Sequence[Token], state: State) -> int | None:
    """The place of the brace behind which a line goes on in the words of a block."""
    item = state.item
    free = not state.brackets and state.inside in ("", "family")
    for place, token in enumerate(tokens):
        if free and token.kind == "word" and token.text in ITEMS | BLOCKS:
            item = token.text if place == 0 or tokens[place - 1].text in "{};" else item
        if token.text == "{" and token.kind == "symbol" and _owner(item) in ("table", "block"):
            return place
    return None


def _owner(item: str) -> str:
    if item == "for":
        return "family"
    return "table" if item == "table" else "block" if item in BLOCKS else "operator"
