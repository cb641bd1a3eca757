"""Lays out rule texts: indentation, spaces, tables, and the lines of what does not fit into the width.

Line breaks and comments stay where the author put them where the lines fit, and so do columns that line up with a
neighbouring line.  Only space changes, and a comment behind the name of an item stays on the line of the name, to
which it belongs: a formatted text has the same tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language.printing.breaking import Piece, statements
from smartmem_rules.language.printing.layout import render
from smartmem_rules.language.printing.scanning import State, tokenized
from smartmem_rules.language.printing.spacing import gaps
from smartmem_rules.language.printing.tokens import ARROWS, RULES, Token

INDENT = 4
WIDTH = 120
"""Columns of a line."""
_MOST_PASSES = 8
"""Passes until nothing moves any more; two are usual."""


def format_text(text: str, width: int = WIDTH) -> str:
    """The text laid out in lines of at most `width` columns; a text that does not parse should not be given.

    Only what cannot break needs more columns: a comment, a string, a row of a table.
    """
    made = _formatted(text, width)
    for _ in range(_MOST_PASSES):
        # gaps that line up are kept: a line that moved may have been what others lined up with
        again = _formatted(made, width)
        if again == made:
            break
        made = again
    return made


def _formatted(text: str, width: int) -> str:
    source = [line.rstrip().expandtabs(INDENT) for line in text.replace("\r\n", "\n").split("\n")]
    lines = _within_width(_Formatter(source, width).run(), width)
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
    """Sets indentation, spaces and tables; lines stay lines."""

    def __init__(self, source: list[str], width: int) -> None:
        self.source = source
        self.width = width
        self.state = State()
        self.tokens = tokenized(source)

    def run(self) -> list[str]:
        result: list[str] = []
        table: list[int] = []
        for number, tokens in enumerate(self.tokens):
            if not tokens:
                result.append("")
                continue
            indent = self._indent(tokens, self.source[number])
            result.append(" " * indent + self._spaced(number, tokens, indent))
            if self.state.inside == "table" and tokens[0].text != "}":
                table.append(number)
            self.state.advance(tokens)
            if table and self.state.inside != "table":
                self._align(table, result)
                table = []
        return result

    def _indent(self, tokens: Sequence[Token], line: str) -> int:
        state, first = self.state, tokens[0]
        author = len(line) - len(line.lstrip())
        base = INDENT * len(state.braces)
        if first.kind == "comment":
            if state.brackets:
                return max(author, base + INDENT)
            return base if state.inside not in ("", "family") or author <= base or not state.item else base + INDENT
        if state.brackets:
            return max(author, base + INDENT) if author > base else base + 2 * INDENT
        if first.text == "}":
            return max(base - INDENT, 0)
        if state.inside == "table" or (state.inside == "block" and state.begins_statement(tokens)):
            return base
        if state.inside == "operator":
            return base if state.begins_clause(tokens) else max(author, base + INDENT)
        if state.begins_item(first):
            return base
        if state.begins_rule_clause(first) or (state.item in RULES and first.text in ARROWS):
            return base + INDENT
        return max(author, base + INDENT)

    def _spaced(self, number: int, tokens: Sequence[Token], indent: int) -> str:
        text = ""
        for place, (token, gap) in enumerate(zip(tokens, gaps(tokens, self.state), strict=True)):
            if place and token.kind == "comment":
                text += " " * max(1, token.column - indent - len(text))
            elif place and self._lines_up(number, tokens[place - 1], token):
                text += " " * (token.column - tokens[place - 1].column - len(tokens[place - 1].text))
            else:
                text += gap
            text += token.text
        return text

    def _lines_up(self, number: int, previous: Token, token: Token) -> bool:
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
        room = (self.width - INDENT - sum(widths)) // len(widths)
        gap = "  " if room == 2 else "   "
        for number, row in rows.items():
            cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
            comment = next((token.text for token in self.tokens[number] if token.kind == "comment"), "")
            result[number] = (" " * INDENT + gap.join([*cells, comment])).rstrip()


# --- lines that are too long -------------------------------------------------------------------------


def _within_width(lines: list[str], width: int) -> list[str]:
    """The lines with each statement laid out anew whose code does not fit into the width."""
    tokens = tokenized(lines)
    result: list[str] = []
    for begin, end, state in _statement_lines(tokens):
        part = range(begin, end)
        if state is None or state.inside == "table" or all(_code_width(tokens[number]) <= width for number in part):
            result += lines[begin:end]
        else:
            indent = len(lines[begin]) - len(lines[begin].lstrip())
            result += _laid_out([tokens[number] for number in part if tokens[number]], state, indent, width)
    return result


def _statement_lines(tokens: Sequence[Sequence[Token]]) -> Iterator[tuple[int, int, State | None]]:
    """The first line of each statement, the line behind it, and what is open there; None for lines without code.

    Comments and blank lines between two statements are none of them.
    """
    state = State()
    begin, end = 0, 0
    opened: State | None = None
    for number, line in enumerate(tokens):
        if not line or line[0].kind == "comment":
            continue
        if end == 0 or state.begins_statement(line):
            yield begin, end, opened
            yield end, number, None
            begin, opened = number, replace(state, braces=list(state.braces), brackets=list(state.brackets))
        state.advance(line)
        end = number + 1
    yield begin, end, opened
    yield end, len(tokens), None


def _code_width(tokens: Sequence[Token]) -> int:
    return max((token.column + len(token.text) for token in tokens if token.kind != "comment"), default=0)


def _laid_out(lines: Sequence[Sequence[Token]], state: State, indent: int, width: int) -> list[str]:
    """The lines of statements within the width; `state` is what is open before them."""
    result: list[str] = []
    place = state.inside
    rule = 0
    for statement in statements(_pieces(lines, state), place):
        if statement.closes:
            place, indent = "", max(indent - INDENT, 0)
        result += render(statement.document(place), width, indent + rule)
        if statement.opens:
            place, indent = statement.opens, indent + INDENT
        elif statement.names_rule and place in ("", "family"):
            rule = INDENT
    return result


def _pieces(lines: Sequence[Sequence[Token]], state: State) -> list[Piece]:
    """The tokens of lines with the spaces that they have on one line."""
    code: list[Token] = []
    above: dict[int, list[str]] = {}
    behind: dict[int, list[str]] = {}
    name_line = 0
    for line in lines:
        shift = code[-1].column + len(code[-1].text) + 1 - line[0].column if code else 0
        if len(code) < 2:
            name_line = len(code) + sum(token.kind != "comment" for token in line) - 1
        for place, token in enumerate(line):
            if token.kind != "comment":
                code.append(replace(token, column=token.column + shift))
            elif place:
                behind.setdefault(len(code) - 1, []).append(token.text)
            else:
                above.setdefault(len(code), []).append(token.text)
    spaces = gaps(code, state)
    pieces = [Piece(token.text, token.kind, gap) for token, gap in zip(code, spaces, strict=True)]
    if name_line in behind and state.inside in ("", "family"):
        # the comment on the line with the name of an item belongs to the item: it stays on that line
        head = statements(pieces, state.inside)[0].head
        if 0 < head <= name_line:
            behind.setdefault(head - 1, []).extend(behind.pop(name_line))
    return [
        replace(piece, above=tuple(above.get(number, ())), behind=tuple(behind.get(number, ())))
        for number, piece in enumerate(pieces)
    ]
