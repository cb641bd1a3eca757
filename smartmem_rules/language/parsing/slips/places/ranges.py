"""Ranges of reductions and of local tensors, lists of values, opsets and names as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import advice
from smartmem_rules.language.parsing.slips.places.pieces import in_body
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, written
from smartmem_rules.language.parsing.stops import Stop


def brackets_of_reads(stop: Stop) -> Slip | None:
    """`m[n : N]`, `m[n in N]`, `m[0 <= n < N]` and `m{n < N}` on the left side of an equation."""
    if not in_body(stop):
        return None
    place = len(stop.text)
    line = stop.text.rfind("\n") + 1
    head = re.compile(r"\s*(?:(?:view|scan)\s+)?(\w+)_?([\[{])([^\[\]{}\n]*)[\]}]\s*=(?!=)").match(stop.whole, line)
    if head is None or not head.start(2) <= place <= head.end():
        return None
    inner = head[3]
    one = (
        r"\s*(?:\d+\s*<=?\s*)?(\*?[a-z_]\w*)\s*(?:<=|<|\bin\b|=|:|\bof\b|\bover\b)\s*"
        r"(?:range\(\s*(?:0\s*,\s*)?([\w.]+)\s*\)|0?\s*\.\.+\s*(\w+)|([A-Z]\w*))\s*"
    )
    parts = [re.fullmatch(one, part) for part in inner.split(",")]
    if not all(parts):
        return None
    new = ", ".join(f"{part[1]} < {part[2] or part[3] or part[4]}" for part in parts if part is not None)
    if head[2] == "[" and new == inner.strip():
        return None
    said = f"an index of a local tensor says its extent: write `{head[1].rstrip('_')}[{new}]`"
    begin = head.start(1) + len(head[1].rstrip("_"))
    return written(stop, said, begin, head.start(3) + len(inner) + 1, f"[{new}]")


def foreign_sums(stop: Stop) -> Slip | None:
    """`sum{k < K} x[k]`, `sum over k` and conditions in a range."""
    if not (in_body(stop) or re.match(r"(function|predicate)\b", stop.before)):
        return None
    place = len(stop.text)
    begin = stop.text.rfind("\n") + 1
    words = r"\b(sum|max|min|prod|mean|any|all)"
    braces = re.compile(words + r"\s*\{\s*(\*?\w+\s*<\s*[^{}\n]+?)\s*\}").search(stop.whole, begin)
    if braces is not None and braces.start() <= place <= braces.end():
        new = f"{braces[1]}({braces[2]})"
        message = "the range of a reduction stands in parentheses"
        return written(stop, f"write `{new}`", *braces.span(), new, message)
    over = re.compile(words + r"\s+(?:over|for)\s+(\w+)(?:\s*(?:<|in)\s*(\w+))?").search(stop.whole, begin)
    if over is not None and over.start() <= place <= over.end() + 1:
        new = f"{over[1]}({over[2]} < {over[3] or over[2].upper()})"
        message = "the range of a reduction stands in parentheses"
        return written(stop, f"write `{new}`", *over.span(), new, message)
    condition = re.compile(
        words + r"\s*\(\s*(\*?\w+\s*<\s*[\w.]+)\s*(,|and|if|where|when|\||&&)\s*([^()\n]*)\)"
    ).search(stop.whole, begin)
    if condition is not None and condition.start() <= place <= condition.end():
        if re.fullmatch(r"\s*\*?\w+\s*(<|\bin\b)\s*\w+\s*", condition[4]) and condition[3] == ",":
            return None
        test = condition[4].strip()
        if not re.search(r"[<>=]", test):
            return None
        new = f"{condition[1]}({condition[2]}) (if {test} then VALUE else 0)"
        said = f"a condition stands in what is reduced: write `{new}`"
        where = stop.between(condition.start(3), condition.end(4))
        return Slip(advice(said), where, "the range of a reduction has no condition")
    return None


def tuples(stop: Stop) -> Slip | None:
    """`let a, b = 1, 2`, and a second value of a `let`."""
    place = len(stop.text)
    one = re.compile(r"let\s+\(?\s*(\w+)\s*,\s*(\w+)\s*\)?\s*=").search(stop.whole, stop.text.rfind("\n") + 1)
    if one is not None and one.start() <= place <= one.end():
        said = f"each name has its own `let`: `let {one[1]} = ...`, `let {one[2]} = ...`"
        return Slip(advice(said), stop.between(one.start(), one.end()), "a `let` names one value")
    second = re.match(r",\s*(\w+)\s*=(?!=)", stop.rest)
    if second is not None and re.search(r"\blet\s+\w+\s*=[^\n]*\Z", stop.text):
        return written(stop, f"each name has its own `let`: write `let {second[1]} = ...`", place,
                       place + len(second[0]), f"\n    let {second[1]} =")  # fmt: skip
    called = re.search(r"\blet\s+(\w+)\s*\Z", stop.text)
    brackets = re.match(r"\[[^\[\]\n]*\]\s*=(?!=)", stop.rest)
    if called is not None and brackets is not None and in_body(stop):
        begin = called.start()
        message = "an equation begins with its tensor, not with `let`"
        return written(stop, "leave `let` out", begin, called.start(1), "", message)
    return None


def opsets(stop: Stop) -> Slip | None:
    """`onnx a::B version 1 ;`, `[1, 3]` and `(1..3)`."""
    if not in_body(stop) or re.search(r"\bonnx\s+\S+::\w+\s*(?:\d+\s*\.\.)?\s*\Z", stop.text) is None:
        return None
    place = len(stop.text)
    end = stop.whole.find(";", place)
    last = min(end if end >= 0 else line_end(stop), line_end(stop))
    numbers = re.findall(r"\d+", stop.whole[place:last])
    text = stop.whole[place:last].strip()
    if not text or len(numbers) not in (1, 2) or re.fullmatch(r"\d+", text):
        return None
    begun = re.search(r"(\d+)\s*\.\.\s*\Z", stop.text)
    if begun is not None:
        new, shown = f"{numbers[-1]} ", f"{begun[1]}..{numbers[-1]}"
        return written(stop, f"write `{shown}`", place, last, new)
    only_end = re.match(r"(\.\.|<=?|until|to)\s*\d", text)
    new = f"1..{numbers[0]}" if only_end else f"{numbers[0]}..{numbers[1] if len(numbers) > 1 else ''}"
    blank = "" if stop.text[-1:].isspace() else " "
    return written(stop, f"opsets stand as `{new}`: write it", place, last, f"{blank}{new} ")


def hyphens(stop: Stop) -> Slip | None:
    """`tags my-tag` and `relaxes signed-zero`."""
    begun = re.search(r"(?:\b(?:relaxes|tags|after|ruleset|in|cites)\b[^\n]*?|,\s*)(\b[A-Za-z_]\w*)\Z", stop.text)
    rest = re.match(r"(?:-\w+)+", stop.rest)
    if begun is None or rest is None or re.search(r"\b(relaxes|tags|after)\b[^\n]*\Z", stop.text) is None:
        return None
    new = (begun[1] + rest[0]).replace("-", "_")
    return written(
        stop, "a name is one word: letters, digits and `_`", begun.start(1), len(stop.text) + rest.end(), new
    )
