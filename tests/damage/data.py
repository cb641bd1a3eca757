"""Damage to bytes and texts: flips, cuts, splices, repeats, and numbers at the ends of their ranges."""

from __future__ import annotations

import random

_NUMBERS = (b"0", b"-1", b"9223372036854775807", b"-9223372036854775808", b"99999999999999999999999", b"1e999", b"NaN")
_TEXTS = (
    "",
    "\0",
    "*/",
    "\"'`",
    "\\",
    "\n",
    "}",
    "{",
    "(" * 2000,
    "[" * 2000,
    "-" * 3000,
    "a" * 20_000,
    "\ud800",
    "é",
    "🦀",
)
_WORDS = (
    "rewrite",
    "where",
    "operator",
    "=>",
    "sum",
    "for",
    "let",
    "view",
    "table",
    "import",
    "~",
    "*",
    "@",
    "<",
    "..",
    "//",
)


def damaged_bytes(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """Damaged data; `other` is where splices come from."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5, 30))):
        _damage(changed, other, draw)
    return bytes(changed)


def _damage(data: bytearray, other: bytes, draw: random.Random) -> None:
    at = draw.randrange(len(data) + 1)
    length = draw.choice((1, 2, 4, 8, 64, 1000))
    match draw.randrange(9):
        case 0 if data:
            data[min(at, len(data) - 1)] ^= 1 << draw.randrange(8)
        case 1 if data:
            data[min(at, len(data) - 1)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        case 2:
            del data[at:]
        case 3:
            del data[at : at + length]
        case 4:
            data[at:at] = data[at : at + length]
        case 5:
            start = draw.randrange(len(other) + 1)
            data[at : at + draw.choice((0, length))] = other[start : start + length]
        case 6:
            data[at : at + length] = bytes(draw.randrange(256) for _ in range(length))
        case 7:
            data[at : at + length] = bytes(length)
        case _:
            data[at:at] = draw.choice(_NUMBERS)


def damaged_text(text: str, other: str, draw: random.Random) -> str:
    """A damaged text: tokens are lost, repeated, exchanged, or replaced by others."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(len(lines)) if lines else 0
        match draw.randrange(8):
            case 0 if lines:
                del lines[place]
            case 1 if lines:
                lines.insert(draw.randrange(len(lines)), lines[place])
            case 2 if lines:
                own = other.splitlines(keepends=True) or [""]
                lines[place] = draw.choice(own)
            case 3:
                return "".join(lines)[: draw.randrange(len(text) + 1)]
            case _ if lines:
                lines[place] = _damaged_line(lines[place], draw)
            case _:
                lines.append(draw.choice(_TEXTS))
    return "".join(lines)


def _damaged_line(line: str, draw: random.Random) -> str:
    words = line.split(" ")
    at = draw.randrange(len(words))
    match draw.randrange(7):
        case 0:
            del words[at]
        case 1:
            words[at] = draw.choice(words)
        case 2:
            words[at] = draw.choice(_WORDS)
        case 3:
            words[at] += draw.choice(_TEXTS)
        case 4:
            words[at] = draw.choice(_NUMBERS).decode()
        case 5:
            place = draw.randrange(len(line) + 1)
            return line[:place] + draw.choice(_TEXTS) + line[place:]
        case _:
            place = draw.randrange(len(line) + 1)
            return line[:place] + line[place + 1 :]
    return " ".join(words)


def extreme_text(draw: random.Random) -> str:
    """A name that somebody may find hard to write down."""
    return draw.choice(_TEXTS)
