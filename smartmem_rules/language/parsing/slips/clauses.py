"""Clauses and equations of operators as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, told, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import CLASSES, MAPPINGS

_CONDITIONS = (
    "where",
    "assert",
    "requires",
    "check",
    "given",
    "guard",
    "ensure",
    "ensures",
    "precondition",
    "if",
    "when",
)
_RECURRENCES = ("recurrence", "recurrent", "loop", "iterate", "fold", "accumulate", "recursive", "rec")
_DECLARATIONS = (
    "local",
    "var",
    "tensor",
    "compute",
    "set",
    "auto",
    "float",
    "double",
    "T",
    "def",
    "val",
    "mut",
    "temp",
)


def clauses(stop: Stop) -> Slip | None:
    """What to write in the body of an operator."""
    if re.match(r"operator\b[^{]*\{", stop.before) is None:
        return None
    return _word(stop) or _onnx(stop) or _kind(stop) or _requirement(stop)


def _word(stop: Stop) -> Slip | None:
    """The word at the beginning of a clause."""
    begin = stop.text.rfind("\n") + 1
    if re.match(r"\s*(if|elif|else)\b.*:$", stop.whole[begin : line_end(stop)]):
        return told("an equation chooses its value: `y[*i] = if CONDITION then VALUE else OTHER`")
    domain = re.compile(r"(?:domain|namespace)\s+\"?([\w.]+)\"?\s*;?")
    named = re.search(r"[{\n]\s*((?:domain|namespace)\s+)$", stop.text)
    if named is not None and (said := domain.match(stop.whole, named.start(1))):
        name = re.match(r"operator\s+(\w+)", stop.before)
        new = f"onnx {said[1]}::{name[1] if name else 'NAME'} ;"
        return written(stop, f"write `{new}`", named.start(1), said.end(), new)
    first = re.search(r"(?:[{\n]\s*)(\w+)\s+$", stop.text)
    if first is None:
        return None
    word, begin = first[1], first.start(1)
    if word in _CONDITIONS:
        return written(
            stop, "write `require`", begin, begin + len(word), "require", f"`{word}` is no clause of operators"
        )
    equation = re.match(r"\w+\s*\[", stop.rest)
    if equation is not None and word in _RECURRENCES:
        return written(stop, "write `scan`", begin, begin + len(word), "scan", f"`{word}` is no clause of operators")
    if equation is not None and word in _DECLARATIONS:
        message = f"an equation begins with its tensor, not with `{word}`"
        return written(stop, f"leave `{word}` out", begin, len(stop.text), "", message)
    return None


def _onnx(stop: Stop) -> Slip | None:
    """Domains and opsets of an `onnx` clause."""
    place = len(stop.text)
    unended = r"\bonnx\s+\S+::\w+(?:\s+\d+\s*\.\.\s*\d*)?\s*\n\s*$"
    if re.search(unended, stop.text) and stop.rest[:1] not in (";", ","):
        end = stop.behind_text()
        said = edit("an `onnx` clause ends with `;`", Edit(end, " ;"))
        return Slip(said, end._replace(column=end.column - 1), "the `;` of this clause is missing")
    called = re.match(r"\(\s*\"([\w.]+)\"\s*,\s*\"(\w+)\"[^()]*\)\s*;?", stop.rest)
    if called is not None and re.search(r"\bonnx\s*$", stop.text):
        new = f" {called[1]}::{called[2]} ;"
        return written(stop, f"write `onnx{new}`", len(stop.text.rstrip()), place + called.end(), new)
    if stop.found == "," and re.search(r"\bonnx\s+\S+\s*$", stop.text):
        return Slip(
            edit(
                "each operator has its own clause: `onnx a::B ; onnx a::C ;`",
                Edit(stop.between(place, place + 1), " ; onnx"),
            )
        )
    if re.search(r"\bonnx\s+$", stop.text):
        name = re.match(r"[\w.\-]+", stop.rest)
        parts = re.match(r"([\w.\-]+?)(?:::?|/|\.)(\w+)(?=\s|;|$)", stop.rest)
        if parts is not None:
            new = f"{parts[1]}::{parts[2]}"
            return written(stop, f"a domain ends with `::`: write `{new}`", place, place + parts.end(), new)
        if name is not None:
            new = f"ai.onnx::{name[0]}"
            return written(stop, f"an operator has its domain: write `{new}`", place, place + name.end(), new)
    since = re.search(r"\bonnx\s+\S+::\w+\s+(\d+)\s*$", stop.text)
    if since is not None:
        until = re.match(r"\s*(?:-|:|,|to|\.\.\.|until)\s*(\d+)", stop.rest)
        new = f"..{until[1]}" if until is not None else ".."
        length = until.end() if until is not None else len(re.match(r"[+\-:]?", stop.rest)[0])  # type: ignore[index]
        return written(stop, f"write `{since[1]}{new}`", since.end(1), place + length, new)
    least = re.match(r">=?\s*(\d+)", stop.rest)
    if least is not None and re.search(r"\bonnx\s+\S+::\w+\s*$", stop.text):
        return written(stop, f"write `{least[1]}..`", place, place + least.end(), f"{least[1]}..")
    return None


def _kind(stop: Stop) -> Slip | None:
    """`class` and `mapping`."""
    named = re.search(r"\bclass\s+(\w+)\s*$", stop.text)
    if named is not None and "." in stop.signs:
        said = f"a class is one of {', '.join(sorted(CLASSES))}; a mapping type stands in `mapping one_to_one`"
        return Slip(advice(said), stop.between(*named.span(1)), f"there is no class `{named[1]}`")
    hyphens = re.search(r"\bmapping\s+(\w+)$", stop.text)
    rest = re.match(r"(-\w+)+", stop.rest)
    if hyphens is not None and rest is not None:
        new = (hyphens[1] + rest[0]).replace("-", "_")
        if new in MAPPINGS:
            return written(stop, f"write `{new}`", hyphens.start(1), len(stop.text) + rest.end(), new)
    return None


def _reasoned(stop: Stop, begin: int, end: int, reason: str) -> Slip:
    """`require CONDITION, "why"`, as assertions of other languages say it."""
    condition = stop.text[begin:].rstrip().removesuffix(" or")
    opened = re.match(r"require\s*\(", condition)
    if opened is not None and condition.count("(") > condition.count(")"):
        condition = f"require {condition[opened.end() :].strip()}"
    else:
        end -= stop.whole[:end].endswith(")")
    new = f'{condition} or fail("{reason}")'
    said = f"the reason stands behind `or`: write `{new}`"
    return Slip(edit(said, Edit(stop.between(begin, end), new)))


def _requirement(stop: Stop) -> Slip | None:
    """`require a, b`, what ends with `;`, and the left sides of equations."""
    left = re.search(r"[{\n]\s*(?:view\s+|scan\s+)?(\w+)\[[^\[\]=]*$", stop.text)
    if (
        left is not None
        and "=" not in stop.signs
        and (stop.found.isdigit() or stop.found in ("+", "-", "*", "//", ":"))
    ):
        said = f"one equation gives all elements at plain indices: `{left[1]}[i] = if i == 0 then FIRST else x[i - 1]`"
        return told(said)
    place = len(stop.text)
    reason = re.match(r"(?:,|:|else\b|\bor\b)?\s*(\"[^\"\n]*\"|'[^'\"\n]*')(?:[ \t]*\))?", stop.rest)
    required = re.search(r"\brequire\b(?:[^\n,{}]|\n(?!\s*\w+\s*\[))*$", stop.text)
    if reason is not None and required is not None:
        return _reasoned(stop, required.start(), place + reason.end(), reason[1][1:-1])
    if stop.found == "," and required is not None:
        return Slip(edit("conditions are joined by `and`", Edit(stop.between(place, place + 1), " and")))
    if stop.found == ";" and re.match(r";[ \t]*(#.*)?(\n|$)", stop.rest) and "SEMICOLON" not in stop.accepted:
        # clauses `onnx` end with `;`, and come from this pattern unharmed
        ends = re.compile(r"^(?!\s*onnx\b)[^\n#]*?(;)(?=[ \t]*(?:#.*)?$)", re.MULTILINE)
        begin = stop.whole.rfind("\n", 0, place) + 1
        changes = [Edit(stop.between(*one.span(1)), "") for one in ends.finditer(stop.whole, begin)]
        return Slip(edit("only `onnx` clauses end with `;`", *changes)) if changes else None
    return None
