"""Signs of mathematics: powers, products, roots, sums and bars."""

from __future__ import annotations

import re

from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop

_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SIGNS = {
    "·": "*", "⋅": "*", "×": "*", "∗": "*", "÷": "/", "Σ": "sum", "∑": "sum", "Π": "prod", "∏": "prod",
    "∞": "inf", "∧": "and", "∨": "or", "¬": "not ", "π": "3.141592653589793",
}  # fmt: skip
_OPERAND = r"[A-Za-z_]\w*(?:\[[^\[\]]*\]|\([^()]*\))?|\d+(?:\.\d+)?|\([^()]*\)"
_GLUED = re.compile(r"(?<![\w.])(?!0[xXbB])(\d+(?:\.\d+)?)(?![eE](?:[+-]?\d|\b))(?=[A-Za-z_(])")


def signs(stop: Stop) -> Slip | None:
    """What to write for a sign of mathematics."""
    place, rest = len(stop.text), stop.rest
    power = re.match(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", rest)
    if power is not None:
        new = f"** {power[0].translate(_POWERS)}"
        return written(stop, f"write `{new}`", place, place + power.end(), f" {new}")
    if rest[:1] in _SIGNS:
        new = _SIGNS[rest[0]]
        return written(stop, f"write `{new.strip()}`", place, place + 1, new)
    root = re.match(rf"√\s*({_OPERAND})", rest)
    if root is not None:
        new = f"sqrt({root[1].strip('()') if root[1][0] == '(' else root[1]})"
        return written(stop, f"write `{new}`", place, place + root.end(), new)
    bars = re.match(r"\|([^|\n]+)\|", rest)
    if stop.found == "|" and bars is not None and re.search(r"[=+*/(,-]\s*$", stop.text):
        return written(stop, f"write `abs({bars[1]})`", place, place + bars.end(), f"abs({bars[1]})")
    return _products(stop)


def _products(stop: Stop) -> Slip | None:
    """`2x`, which reads as a number and the beginning of another equation."""
    if re.match(r"(operator|function|predicate|let)\b", stop.before) is None:
        return None
    begin = max(stop.text.rfind("\n", 0, max(stop.text.rfind("\n"), 0)), 0)
    match = _GLUED.search(stop.whole, begin)
    if match is None or match.start() > len(stop.text):
        return None
    said = f"a product has its sign: write `{match[1]} * ...`"
    return written(stop, said, *match.span(1), f"{match[1]} * ", f"nothing joins `{match[1]}` and what follows it")
