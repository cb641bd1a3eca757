"""A parenthesis or bracket that is not closed, told at the place where it opens."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip
from smartmem_rules.language.parsing.stops import Stop

_CLOSES = {"(": ")", "[": "]", "{": "}"}
_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[()\[\]{}]')


def unclosed(stop: Stop) -> Slip | None:
    """What stops in another bracket, or where a clause or an item begins, while a parenthesis is open."""
    opened = [(match[0], match.start()) for match in _open(stop.text)]
    if not opened or opened[-1][0] == "{":
        return None
    bracket, begin = opened[-1]
    ends = stop.found in ("}", "the end of the text", "=>", "<=>", "where") or (
        stop.begins_line()
        and re.match(r"\w+\s*\[[^\]=]*\]\s*=|(?:view|scan|let|require|onnx)\b", stop.rest) is not None
    )
    crossed = stop.found in _CLOSES.values() and stop.found not in ("}", _CLOSES[bracket])
    if crossed:
        last = len(stop.text.rstrip())
        said = f"close it with `{_CLOSES[bracket]}` before `{stop.found}`"
        fix = edit(said, Edit(stop.between(last, last), _CLOSES[bracket]))
        return Slip(fix, stop.between(begin, begin + 1), f"this `{bracket}` is not closed")
    if not ends or (stop.found == "}" and not stop.begins_line()):
        return None
    closing = _CLOSES[bracket]
    span = stop.between(begin, begin + 1)
    message = f"this `{bracket}` is not closed"
    last = len(stop.text.rstrip())
    words = stop.text[begin : begin + 24].split("\n")[0].strip()
    if stop.found in ("=>", "<=>", "where"):
        fix = edit(f"close `{words}...` with `{closing}`", Edit(stop.between(last, last), closing))
        return Slip(fix, span, message)
    line = stop.between(last, last).line
    return Slip(
        advice(f"write `{closing}` behind the part that it begins, at the latest at the end of line {line}"),
        span,
        message,
    )


def _open(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for match in _PIECE.finditer(text):
        if match[0] in _CLOSES:
            found.append(match)
        elif found and match[0] == _CLOSES[found[-1][0]]:
            found.pop()
    return found
