"""The space between neighbouring tokens of a rule text."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.language.printing.scanning import State
from smartmem_rules.language.printing.tokens import BINARY, BLOCKS, CLOSE, KEYWORDS, OPEN, RULES, Token, is_prefix

_PREFIX = frozenset(["-", "*", "~", "@"])


def gaps(tokens: Sequence[Token], state: State) -> list[str]:
    """The space before each token of a line; `state` is what is open where the line begins."""
    found = [""]
    brackets = list(state.brackets)
    entry = state.inside in ("table", "block")
    before = state.last
    for place, token in enumerate(tokens):
        if place:
            previous = tokens[place - 1]
            entry = entry or (previous.text == "{" and _opens_block(tokens[:place]))
            if entry:
                found.append("" if token.text == ";" and previous.text not in "{}" else " ")
            else:
                found.append(_gap(before, previous, token, brackets, tokens, place))
            before = previous.text
        if not entry and token.kind == "symbol":
            if token.text in OPEN:
                brackets.append(token.text)
            elif token.text in CLOSE and brackets:
                brackets.pop()
    return found[: len(tokens)]


def _opens_block(tokens: Sequence[Token]) -> bool:
    words = {token.text for token in tokens if token.kind == "word"}
    return bool(words & BLOCKS) and not words & (RULES | {"operator"})


def _gap(before: str, previous: Token, token: Token, brackets: Sequence[str], line: Sequence[Token], place: int) -> str:
    """The space between two neighbouring tokens of an expression, signature or pattern."""
    a, b = previous.text, token.text
    if a in OPEN or b in CLOSE or b in (",", "?", "...") or a in ("~", "@", "."):
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
    if a in _PREFIX and (is_prefix(before) or _hugs(line, place)):
        return ""
    if a in BINARY or b in BINARY or a in KEYWORDS or b in KEYWORDS:
        return " "
    if b == "(":
        if a == ")" and _closes_alternatives(line, place - 1):
            return ""
        return "" if previous.kind == "word" or a == ">" else " "
    if b == "[":
        return "" if previous.kind == "word" or a in CLOSE else " "
    return " "


def _closes_alternatives(line: Sequence[Token], place: int) -> bool:
    """Whether the bracket closes `(Relu | Abs`, behind which the operands stand."""
    for token in reversed(line[:place]):
        if token.kind != "word" and token.text != "|":
            return token.text == "(" and any(near.text == "|" for near in line[:place] if near.column > token.column)
    return False


def _hugs(line: Sequence[Token], place: int) -> bool:
    """Whether the author put the sign behind a bracket to the operand: `sum(k < K) -x[k]`."""
    sign, operand = line[place - 1], line[place]
    if place < 2 or line[place - 2].text != ")":
        return False
    gap = sign.column - line[place - 2].column - 1
    return gap > 0 and operand.column == sign.column + 1


def _is_type_bracket(line: Sequence[Token], place: int) -> bool:
    """Whether this is `<` or `>` around the dtype variables of an operator."""
    if line[place].text not in ("<", ">") or line[0].text != "operator":
        return False
    names = [token.text for token in line[:place]]
    return "(" not in names if line[place].text == ">" else place == 2
