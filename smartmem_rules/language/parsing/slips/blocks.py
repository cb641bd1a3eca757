"""Blocks, tables and families as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, edit
from smartmem_rules.language.parsing.slips.slip import Slip, all_of, line_end, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_BLOCK = re.compile(rf"(?:{'|'.join(BLOCK_WORDS)})\b[^{{]*\{{")


def blocks(stop: Stop) -> Slip | None:
    """What to write in blocks and tables, and round the items of a family."""
    if _BLOCK.match(stop.before):
        return _values(stop)
    if re.match(r"table\b", stop.before):
        return _table(stop)
    return _family(stop) if re.match(r"for\b", stop.before) else None


def _values(stop: Stop) -> Slip | None:
    """`rulesets { a b }` and `rulesets [a, b];`."""
    place = len(stop.text)
    inner = re.match(r"(?:\{([^{}]*)\}|\[([^\[\]]*)\]|\(([^()]*)\))(?:[ \t]*;)?", stop.rest)
    key = re.search(r"[;{\n]\s*(\w+)\s*$", stop.text)
    if inner is None or key is None or stop.found not in ("{", "[", "("):
        return None
    values = " ".join(re.split(r"[\s,;]+", (inner[1] or inner[2] or inner[3] or "").strip(" ;,\n")))
    said = f"values stand beside each other without brackets: `{key[1]} {values};`"
    return Slip(edit(said, Edit(stop.between(place, place + inner.end()), f"{values};")))


def _table(stop: Stop) -> Slip | None:
    place = len(stop.text)
    if stop.found == "{" and re.fullmatch(r"table\s+\w+\s*", stop.before):
        said = "a table names what its rows and its columns are: `(first, second)`"
        return Slip(edit(said, Edit(stop.behind_text(), "(first, second)")))
    if stop.found == "|" and "{" in stop.text:
        return Slip(all_of(stop, "cells stand apart by blanks, without `|`", r"\|", " ", place))
    return None


def _family(stop: Stop) -> Slip | None:
    """`for Op in [Relu, Exp]:` and `for (Op in Relu, Exp) {`."""
    place = len(stop.text)
    begin = place - len(stop.before)
    head = re.compile(r"for\s+(\w+(?:\s*,\s*\w+)*)\s+in\s+[\[(]?([^\[\](){}:\n]+?)[\])]?\s*:").match(stop.whole, begin)
    if head is not None and head.end() >= place:
        new = f"for {head[1]} in {head[2]} {{"
        end = len(stop.whole.rstrip())
        said = f"the items of a family stand in braces: `{new} ... }}`"
        whole = (Edit(stop.between(*head.span()), new), Edit(stop.between(end, end), "\n}"))
        return Slip(edit(said, *whole), stop.between(begin, line_end(stop)))
    inner = re.match(r"\(([^()\n]*\bin\b[^()\n]*)\)", stop.rest)
    if inner is not None:
        return written(stop, f"write `for {inner[1]}`, without parentheses", place, place + inner.end(), inner[1])
    return None
