"""Brackets that are not closed, and those that close nothing: where a text went wrong long before the parser stops."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.records import dataclass

_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"?|#[^\n]*|[()\[\]{}]')
_CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Open:
    """An opening bracket, and the line of it up to there."""

    bracket: str
    line: str


def without_texts(text: str) -> str:
    """A text without what stands between quotation marks or in comments."""
    return _PIECE.sub(lambda match: match[0] if len(match[0]) == 1 else '""' if match[0][0] == '"' else "", text)


def open_brackets(text: str) -> list[Open]:
    """The brackets that are open where a text ends, from the outside."""
    found: list[Open] = []
    for match in _PIECE.finditer(text):
        piece, begin = match[0], match.start()
        if piece in _CLOSES:
            found.append(Open(piece, text[text.rfind("\n", 0, begin) + 1 : match.end()]))
        elif found and piece == _CLOSES[found[-1].bracket]:
            found.pop()
    return found


def bracket_hint(stop: Stop) -> Fix | None:
    """What to close, or what closes nothing."""
    opened = open_brackets(stop.text)
    inner = opened[-1] if opened else None
    if stop.found in _CLOSES.values():
        if inner is None or (inner.bracket == "{" and stop.found != "}"):
            return replacement(f"no bracket is open that `{stop.found}` closes: remove it", stop.here(1), "")
        if _CLOSES[inner.bracket] != stop.found and not (stop.found == "}" and inner.bracket == "{"):
            return _close(inner, stop)
        return None
    if inner is None or stop.found in ("(", "[", "{"):
        return None
    at_end = stop.found == "the end of the text"
    if at_end and inner.bracket == "{":
        fix = _closing_text(inner)
        return edit(fix, Edit(stop.behind_text(), "\n}"))
    if at_end or (stop.found in ("=>", "<=>") and inner.bracket == "("):
        return _close(inner, stop)
    return None


def unclosed(stop: Stop) -> str | None:
    """What begins with the brace that is open at the end of the text; None where none is."""
    opened = open_brackets(stop.text)
    if stop.found != "the end of the text" or not opened or opened[-1].bracket != "{":
        return None
    words = re.match(r"\s*([\w]+\s+[\w.]+|[\w]+)", opened[-1].line)
    return " ".join(words[1].split()) if words is not None else "{"


def _close(one: Open, stop: Stop) -> Fix:
    text = _closing_text(one)
    if stop.found in ("=>", "<=>"):
        return edit(text, Edit(stop.behind_text(), _CLOSES[one.bracket]))
    return advice(text)


def _closing_text(one: Open) -> str:
    words = one.line.split()
    begin = words[-1] if words[-1] != one.bracket else " ".join((*words[:2], "...", one.bracket))
    return f"close `{begin}` with `{_CLOSES[one.bracket]}`"
