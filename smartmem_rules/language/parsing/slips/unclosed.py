"""A parenthesis or bracket that is not closed, told at the place where it opens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import OPERATOR_CLAUSES, RULE_CLAUSES

_CLOSES = {"(": ")", "[": "]", "{": "}"}
_CLAUSES = "|".join(dict.fromkeys((*OPERATOR_CLAUSES, *RULE_CLAUSES)))
_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[()\[\]{}]')


def unclosed(stop: Stop) -> Slip | None:
    """What stops in another bracket, or where a clause or an item begins, while a parenthesis is open."""
    opened = [(match[0], match.start()) for match in _open(stop.text)]
    if not opened or opened[-1][0] == "{":
        return None
    bracket, begin = opened[-1]
    ends = stop.found in ("}", "the end of the text", "=>", "<=>", "where") or (
        stop.begins_line() and re.match(rf"\w+\s*\[[^\]=]*\]\s*=|(?:{_CLAUSES})\b", stop.rest) is not None
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
    places = _fitting(stop, begin, last) if bracket == "[" else []
    if len(places) == 1:
        here = places[0]
        said = f"write `{closing}` behind `{stop.text[stop.text.rfind(chr(10), 0, here) + 1 : here].split()[-1]}`"
        return Slip(edit(said, Edit(stop.between(here, here), closing)), span, message)
    end = f"behind `{stop.text[:last].split()[-1]}`" if "\n" in stop.text[begin:last] else "at the end of this line"
    return Slip(advice(f"write `{closing}` behind the part that it begins, at the latest {end}"), span, message)


def _fitting(stop: Stop, begin: int, end: int) -> list[int]:
    """Where a bracket can close so that every read of the line has the indices that the signature gives it."""
    shapes = {
        one[1]: _axes(one[2].split(","))
        for one in re.finditer(r"(\w+)\s*:\s*\w+\s*\[([^\]]*)\]", stop.before.partition("{")[0])
    }
    first = stop.text.rfind("\n", 0, begin) + 1
    line = stop.text[first:end]
    if "\n" in line:
        return []
    ends = (one.end() for one in re.finditer(r"[\w\])](?=\s*(?:[-+*/%,\]]|$))", line))
    return [first + at for at in ends if at > begin - first and _reads_fit(f"{line[:at]}]{line[at:]}", shapes)]


def _reads_fit(line: str, shapes: Mapping[str, tuple[int, int]]) -> bool:
    """Whether all brackets of a line close, and each read of a tensor that has a shape gives as many indices."""
    opened: list[tuple[str, int]] = []
    for place, sign in enumerate(line):
        if sign in _CLOSES:
            opened.append((sign, place))
        elif sign in _CLOSES.values():
            if not opened or _CLOSES[opened[-1][0]] != sign:
                return False
            _, begin = opened.pop()
            read = re.search(r"(\w+)$", line[:begin])
            shape = shapes.get(read[1]) if sign == "]" and read is not None else None
            if shape is not None and _axes(_split(line[begin + 1 : place])) != shape:
                return False
    return not opened


def _axes(items: Sequence[str]) -> tuple[int, int]:
    """How many single axes some indices or extents stand for, and how many lists of axes."""
    lists = sum(item.strip().startswith("*") for item in items)
    return sum(bool(item.strip()) for item in items) - lists, lists


def _split(text: str) -> list[str]:
    """The parts of a text between the commas that stand in no bracket."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in _CLOSES) - (sign in _CLOSES.values())
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _open(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for match in _PIECE.finditer(text):
        if match[0] in _CLOSES:
            found.append(match)
        elif found and match[0] == _CLOSES[found[-1][0]]:
            found.pop()
    return found
