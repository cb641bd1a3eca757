"""Numbers as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop

_POWER = r"([eE][+-]?\d+)?"
_NUMBER = re.compile(
    r"(?P<hex>0[xX][0-9a-fA-F]+)|(?P<binary>0[bB][01]+)|(?P<grouped>\d+(_\d+)+(\.\d+)?)"
    rf"|(?P<number>(\d+\.\d*|\.\d+|\d+){_POWER})(_?[fF](16|32|64)|[uU]?[lL]{{1,2}}|[fFuU])"
    rf"|(?P<fraction>(\d+\.\d*|\.\d+){_POWER})[dDhHjm]"
    r"|(?P<bare>\.\d+|\d+\.)(?P<power>[eE][+-]?\d+)?"
)
"""Suffixes say a number's type in other languages; `d`, `h`, `j` and `m` behind a whole number are names."""
_DECIMAL_COMMA = re.compile(r"let\s+\w+\s*=\s*-?(\d+,\d+)\s*$", re.MULTILINE)


def numbers(stop: Stop) -> Slip | None:
    """A number in the place, or that the place lies in, that is written otherwise here."""
    place, whole = len(stop.text), stop.whole
    comma = _DECIMAL_COMMA.search(whole)
    if stop.found == "," and comma is not None and comma.start(1) < place < comma.end(1):
        return written(stop, f"write `{(new := comma[1].replace(',', '.'))}`", *comma.span(1), new)
    line = whole.rfind("\n", 0, len(stop.text.rstrip())) + 1
    for match in _NUMBER.finditer(whole, line):
        begin, end = match.span()
        before, after = whole[begin - 1 : begin], whole[end : end + 1]
        if begin > place:
            return None
        # the letters of a number read as the name of another equation, so that the parser stops behind them
        apart = end < place and (match["bare"] is not None or whole[end:place].strip() != "")
        if apart or before.isalnum() or before in ("_", ".") or after.isalnum() or after in ("_", "."):
            continue
        new = _number(match)
        return written(stop, f"write `{new}`", begin, end, new, f"the number `{match[0]}` is not written so here")
    return None


def _number(match: re.Match[str]) -> str:
    text = match[0]
    if match["hex"] or match["binary"]:
        return str(int(text, 0))
    if match["grouped"]:
        return text.replace("_", "")
    return _with_digits(match["number"] or match["fraction"] or text)


def _with_digits(number: str) -> str:
    """With a digit on both sides of the point."""
    mantissa, power = re.match(r"([\d.]+)(.*)", number).groups()  # type: ignore[union-attr]
    if "." in mantissa:
        whole, _, fraction = mantissa.partition(".")
        mantissa = f"{whole or '0'}.{fraction or '0'}"
    return mantissa + power
