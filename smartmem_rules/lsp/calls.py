"""The call that a place of a text stands in, found by its brackets: the text around a cursor seldom parses."""

from __future__ import annotations

import re

from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS
from smartmem_rules.records import dataclass

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|#[^\n]*|[A-Za-z_]\w*|[()\[\]{};,=]')
_ITEM = re.compile(rf"^(?:{'|'.join((*ITEM_WORDS, *BLOCK_WORDS))})\b", re.MULTILINE)
_DEFINING = frozenset({"operator", "function", "predicate"})
_OPENS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCall:
    """A call whose parentheses are open at a place.

    Attributes:
        name: what is called.
        operands: how many commas stand before the place in its part, operands or attributes.
        in_attributes: whether a `;` stands between the operands and the place.
        given: the attributes that were written before the place.
        attribute: the attribute whose value the place stands in.
    """

    name: str
    operands: int
    in_attributes: bool
    given: tuple[str, ...]
    attribute: str | None


@dataclass(slots=True)
class _Frame:
    close: str
    name: str
    commas: int = 0
    in_attributes: bool = False
    word: str = ""
    given: tuple[str, ...] = ()
    attribute: str | None = None

    def take(self, token: str) -> None:
        """Count what separates the arguments."""
        if token == ";":
            self.in_attributes, self.commas, self.attribute = True, 0, None
        elif token == ",":
            self.commas, self.attribute = self.commas + 1, None
        elif token == "=" and self.in_attributes and self.word and self.attribute is None:
            self.given, self.attribute = (*self.given, self.word), self.word


def open_call(text: str) -> OpenCall | None:
    """The innermost call around the end of a text, None where there is none."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    frames = _frames(text[starts[-1] :] if starts else text)
    for frame in reversed(frames):
        if frame.close == ")" and frame.name:
            return OpenCall(
                name=frame.name,
                operands=frame.commas,
                in_attributes=frame.in_attributes,
                given=frame.given,
                attribute=frame.attribute,
            )
        if frame.close == "}":
            return None
    return None


def _frames(text: str) -> list[_Frame]:
    """The brackets that are open at the end of an item's text, from the outside."""
    frames: list[_Frame] = []
    last, before = "", ""
    end = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _OPENS:
            adjacent = match.start() == end
            called = last if adjacent and last[:1].isidentifier() and before not in _DEFINING else ""
            frames.append(_Frame(_OPENS[token], called))
        elif frames and token == frames[-1].close:
            frames.pop()
        elif frames:
            frames[-1].take(token)
            frames[-1].word = token if token[0].isidentifier() else ""
        last, before, end = token, last, match.end()
    return frames
