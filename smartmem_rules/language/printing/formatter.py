"""Lays out rule texts: indentation, spaces and tables.

Line breaks and comments stay where the author put them, and so do columns that line up with a neighbouring line.  Only
space changes, so a formatted text has the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

INDENT = 4
_TOKEN = re.compile(
    r'(?P<comment>\#.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<onnx>[A-Za-z_][\w.\-]*::\w+)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)'
    r"|(?P<word>[A-Za-z_]\w*)|(?P<symbol><=>|=>|->|\.\.\.|\.\.|\*\*|//|<=|>=|==|!=|::|.)"
)
_ENTRY_TOKEN = re.compile(r'(?P<comment>\#.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<symbol>[{};])|(?P<word>[^\s{};"#]+)')
_ITEMS = frozenset(ITEM_WORDS)
_BLOCKS = frozenset(BLOCK_WORDS)
_RULES = frozenset(["rewrite", "eliminate", "index"])
_CLAUSES = frozenset(
    ["onnx", "internal", "commutative", "override", "require", "let", "class", "mapping", "view", "scan"]
)
_RULE_CLAUSES = frozenset(["let", "where", "relaxes", "explores", "tags", "unsound", "=>", "<=>"])
_KEYWORDS = frozenset(
    ["if", "then", "else", "and", "or", "not", "in", "for", "require", "where", "let", "view", "scan"]
)
_BINARY = frozenset(
    ["=", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "**", "=>", "<=>", "->", "|"]
)
_BEFORE_WORDS = _BINARY | {",", "(", "[", "in", "after", "tags", "relaxes", "where"}
"""Behind these no item begins, whatever the word."""
_PREFIX = frozenset(["-", "*", "~", "@"])
_OPEN, _CLOSE = frozenset("(["), frozenset(")]")


@dataclass(frozen=True)
class _Token:
    text: str
    column: int
    kind: str


@dataclass
class _State:
    """What is open at the beginning of a line."""

    braces: list[str] = field(default_factory=list)
    brackets: list[str] = field(default_factory=list)
    item: str = ""
    """The word that the current item begins with; empty between items."""
    lines_of_item: int = 0
    last: str = ""
    """The last token before the line."""

    @property
    def inside(self) -> str:
        return self.braces[-1] if self.braces else ""

    @property
    def base(self) -> int:
        return INDENT * len(self.braces)


_MOST_PASSES = 8
"""Passes until nothing moves any more; two are usual."""


def format_text(text: str) -> str:
    """The text laid out; a text that does not parse should not be given."""
    made = _formatted(text)
    for _ in range(_MOST_PASSES):
        # gaps that line up are kept: a line that moved may have been what others lined up with
        again = _formatted(made)
        if again == made:
            break
        made = again
    return made


def _formatted(text: str) -> str:
    source = [line.rstrip().expandtabs(INDENT) for line in text.replace("\r\n", "\n").split("\n")]
    lines = _Formatter(source).run()
    return "\n".join(_without_blank_runs(lines)) + "\n" if any(lines) else ""


def _without_blank_runs(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


class _Formatter:
    def __init__(self, source: list[str]) -> None:
        self.source = source
        self.state = _State()
        self.tokens: list[list[_Token]] = []

    def run(self) -> list[str]:
        result: list[str] = []
        begins: list[tuple[int, bool]] = []
        table: list[int] = []
        self._tokenize()
        for number, tokens in enumerate(self.tokens):
            if not tokens:
                result.append("")
                continue
            indent = self._indent(tokens, self.source[number])
            in_table = self.state.inside == "table" and tokens[0].text != "}"
            result.append(" " * indent + self._spaced(number, tokens, indent))
            begins.append((number, in_table))
            if in_table:
                table.append(number)
            self._advance(tokens)
            if table and self.state.inside != "table":
                self._align(table, result)
                table = []
        return result

    def _tokenize(self) -> None:
        state = _State()
        for line in self.source:
            pattern = _ENTRY_TOKEN if state.inside in ("table", "block") else _TOKEN
            tokens = _split(line, pattern)
            if pattern is _TOKEN:
                opening = _block_begins(tokens, state)
                if opening is not None:
                    tokens = tokens[: opening + 1] + _split(line, _ENTRY_TOKEN, tokens[opening].column + 1)
            self.tokens.append(tokens)
            self.state = state
            self._advance(tokens)
        self.state = _State()

    # --- what is open ---

    def _advance(self, tokens: Sequence[_Token]) -> None:
        state = self.state
        if any(token.kind != "comment" for token in tokens):
            state.lines_of_item += 1
        for place, token in enumerate(tokens):
            if token.kind == "comment":
                continue
            following = tokens[place + 1] if place + 1 < len(tokens) else None
            is_item = token.text != "for" or place == 0
            if token.kind == "word" and is_item and self._begins_item(token, following):
                state.item, state.lines_of_item = token.text, 1
            if token.text == "{" and token.kind == "symbol":
                state.braces.append(_brace_of(state.item))
                if state.braces[-1] == "family":
                    state.item = ""
            elif token.text == "}" and token.kind == "symbol" and state.braces:
                state.braces.pop()
                state.item = ""
            elif token.text in _OPEN:
                state.brackets.append(token.text)
            elif token.text in _CLOSE and state.brackets:
                state.brackets.pop()
            state.last = token.text

    def _begins_item(self, token: _Token, following: _Token | None) -> bool:
        if token.text == "let" and self.state.item in _RULES and following is not None and following.text[0].islower():
            return False
        free = not self.state.brackets and self.state.inside in ("", "family")
        starts = token.text in _ITEMS or token.text in _BLOCKS
        return free and starts and self.state.last not in _BEFORE_WORDS and not self._is_name()

    def _is_name(self) -> bool:
        """Whether the word behind the last one is the name of an item."""
        heads = _ITEMS | _BLOCKS
        return self.state.last in heads and self.state.item in heads and self.state.lines_of_item <= 1

    # --- indentation ---

    def _indent(self, tokens: Sequence[_Token], line: str) -> int:
        state, first = self.state, tokens[0]
        author = len(line) - len(line.lstrip())
        base = state.base
        if first.kind == "comment":
            if state.brackets:
                return max(author, base + INDENT)
            return base if state.inside not in ("", "family") or author <= base or not state.item else base + INDENT
        if state.brackets:
            return max(author, base + INDENT) if author > base else base + 2 * INDENT
        if first.text == "}":
            return max(base - INDENT, 0)
        if state.inside in ("table", "block"):
            return base
        if state.inside == "operator":
            clause = first.text in _CLAUSES or (len(tokens) > 1 and first.kind == "word" and tokens[1].text == "[")
            continued = state.last in _BINARY | _KEYWORDS | {","} or not clause
            return max(author, base + INDENT) if continued else base
        if self._begins_item(first, tokens[1] if len(tokens) > 1 else None):
            return base
        if state.item in _RULES and (first.text in _RULE_CLAUSES or state.lines_of_item == 1):
            return base + INDENT
        return max(author, base + INDENT)

    # --- spaces ---

    def _spaced(self, number: int, tokens: Sequence[_Token], indent: int) -> str:
        text = ""
        brackets = list(self.state.brackets)
        entry = self.state.inside in ("table", "block")
        before = self.state.last
        for place, token in enumerate(tokens):
            if place:
                previous = tokens[place - 1]
                entry = entry or (previous.text == "{" and self._opens_block(tokens[:place]))
                if token.kind == "comment":
                    text += " " * max(1, token.column - indent - len(text))
                elif self._lines_up(number, previous, token):
                    text += " " * (token.column - previous.column - len(previous.text))
                elif entry:
                    text += "" if token.text == ";" and previous.text not in "{}" else " "
                else:
                    text += _space(before, previous, token, brackets, tokens, place)
                before = previous.text
            if not entry and token.kind == "symbol":
                if token.text in _OPEN:
                    brackets.append(token.text)
                elif token.text in _CLOSE and brackets:
                    brackets.pop()
            text += token.text
        return text

    def _opens_block(self, tokens: Sequence[_Token]) -> bool:
        words = [token.text for token in tokens if token.kind == "word"]
        return (
            bool(words)
            and any(word in _BLOCKS for word in words)
            and not any(w in _RULES | {"operator"} for w in words)
        )

    def _lines_up(self, number: int, previous: _Token, token: _Token) -> bool:
        """Whether a wide gap puts the token under or over the same one on a neighbouring line."""
        if token.column - previous.column - len(previous.text) < 2:
            return False
        for step in (-1, 1, -2, 2):
            other = number + step
            if 0 <= other < len(self.tokens):
                near = next((t for t in self.tokens[other] if t.column == token.column), None)
                if near is not None and (near.text == token.text or near.kind == token.kind != "symbol"):
                    return True
        return False

    def _align(self, table: Sequence[int], result: list[str]) -> None:
        """Put the cells of a table under their column names."""
        rows = {}
        for number in table:
            cells = [token.text for token in self.tokens[number] if token.kind != "comment"]
            if cells:
                rows[number] = cells
        if not rows:
            return
        head = min(rows)
        rows[head] = ["", *rows[head]]
        width = max(map(len, rows.values()))
        if width != min(map(len, rows.values())):
            for number in rows:
                result[number] = " " * INDENT + self.source[number].strip()
            return
        widths = [max(len(row[place]) for row in rows.values()) for place in range(width)]
        widths[0] += 1
        for number, row in rows.items():
            cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
            comment = next((token.text for token in self.tokens[number] if token.kind == "comment"), "")
            result[number] = (" " * INDENT + "   ".join([*cells, comment])).rstrip()


def _split(line: str, pattern: re.Pattern[str], begin: int = 0) -> list[_Token]:
    found = []
    for match in pattern.finditer(line, begin):
        if match[0].strip():
            found.append(_Token(match[0].rstrip(), match.start(), match.lastgroup or "symbol"))
    return found


def _block_begins(tokens: Sequence[_Token], state: _State) -> int | None:
    """The place of the brace behind which a line goes on in the words of a block."""
    item = state.item
    for place, token in enumerate(tokens):
        if (
            token.kind == "word"
            and token.text in _ITEMS | _BLOCKS
            and not state.brackets
            and state.inside in ("", "family")
        ):
            item = token.text if place == 0 or tokens[place - 1].text in "{};" else item
        if token.text == "{" and token.kind == "symbol" and _brace_of(item) in ("table", "block"):
            return place
    return None


def _brace_of(item: str) -> str:
    if item == "for":
        return "family"
    return "table" if item == "table" else "block" if item in _BLOCKS else "operator"


def _space(
    before: str, previous: _Token, token: _Token, brackets: Sequence[str], line: Sequence[_Token], place: int
) -> str:
    """The space between two neighbouring tokens of an expression, signature or pattern."""
    a, b = previous.text, token.text
    if a in _OPEN or b in _CLOSE or b in (",", "?", "...") or a in ("~", "@", "."):
        return ""
    if b == ";":
        # `13..;` reads as one word
        return " " if any(near.kind == "onnx" for near in line[max(place - 4, 0) : place]) else ""
    if a in ("..", "...") or b == "..":
        return " " if (a == "..." and b not in (":",)) else ""
    if a in (",", ";"):
        return " "
    if b == ".":
        return ""
    if a == ":" or b == ":":
        slicing = bool(brackets) and brackets[-1] == "["
        return "" if slicing or b == ":" else " "
    if _is_type_bracket(line, place) or (place > 1 and _is_type_bracket(line, place - 1) and a == "<"):
        return ""
    if b == "(" and place > 1 and a == ">" and line[0].text == "operator" and line[2].text == "<":
        return ""
    if a in _PREFIX and (_is_prefix(before) or _hugs(line, place)):
        return ""
    if a in _BINARY or b in _BINARY or a in _KEYWORDS or b in _KEYWORDS:
        return " "
    if b == "(":
        if a == ")" and _closes_alternatives(line, place - 1):
            return ""
        return "" if previous.kind == "word" or a == ">" else " "
    if b == "[":
        return "" if previous.kind == "word" or a in _CLOSE else " "
    return " "


def _closes_alternatives(line: Sequence[_Token], place: int) -> bool:
    """Whether the bracket closes `(Relu | Abs`, behind which the operands stand."""
    for token in reversed(line[:place]):
        if token.kind != "word" and token.text != "|":
            return token.text == "(" and any(near.text == "|" for near in line[:place] if near.column > token.column)
    return False


def _is_prefix(before: str) -> bool:
    """Whether a sign behind this token stands before its operand and not between two."""
    return before in _BINARY | _KEYWORDS | _OPEN | {",", ";", ":", "~", "{", "", "@"}


def _hugs(line: Sequence[_Token], place: int) -> bool:
    """Whether the author put the sign behind a bracket to the operand: `sum(k < K) -x[k]`."""
    sign, operand = line[place - 1], line[place]
    if place < 2 or line[place - 2].text != ")":
        return False
    gap = sign.column - line[place - 2].column - 1
    return gap > 0 and operand.column == sign.column + 1


def _is_type_bracket(line: Sequence[_Token], place: int) -> bool:
    """Whether this is `<` or `>` around the dtype variables of an operator."""
    if line[place].text not in ("<", ">") or line[0].text != "operator":
        return False
    names = [token.text for token in line[:place]]
    return "(" not in names if line[place].text == ">" else place == 2
