"""Blocks, tables and families as other languages write them."""

from __future__ import annotations

import re
from fractions import Fraction

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip, all_of, line_end, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.schema import keys_of_kind
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_BLOCK = re.compile(rf"(?:{'|'.join(BLOCK_WORDS)})\b[^{{]*\{{")


def blocks(stop: Stop) -> Slip | None:
    """What to write in blocks and tables, and round the items of a family."""
    if _BLOCK.match(stop.before):
        return _values(stop)
    if re.fullmatch(rf"(?:{'|'.join(BLOCK_WORDS)})\s+\w+(?:\s+for\s+\w+)?\s*", stop.before):
        return _subject(stop)
    if re.match(r"table\b", stop.before):
        return _table(stop)
    return _family(stop) if re.match(r"for\b", stop.before) else None


def _values(stop: Stop) -> Slip | None:
    """Missing `;`, `rulesets { a b }` and `rulesets [a, b];`, and keys with `:`, `=` and quotes."""
    place = len(stop.text)
    if stop.found == "}" and "SEMICOLON" in stop.accepted:
        ends = list(re.compile(r"[\w\"](?=[ \t]*(?:\n|\}))").finditer(stop.whole, stop.whole.find("{") + 1))
        last = [one.end() for one in ends if one.end() <= place]
        if len(last) > 1:
            changes = [Edit(stop.between(at, at), ";") for at in last]
            where = stop.between(last[0] - 1, last[0])
            return Slip(edit("each key with its values ends with `;`", *changes), where, "`;` is missing here")
    if stop.found == "=" and re.search(r"\bphase\b[^;]*\w$", stop.text.rstrip()):
        count = re.match(r"=\s*(\w+)", stop.rest)
        word = stop.text.split()[-1]
        if count is not None:
            said = f"a limit and its number stand beside each other: write `{word} {count[1]}`"
            return Slip(edit(said, Edit(stop.between(place, place + count.end()), f" {count[1]}")))
    keys = re.compile(r"(?<=[;{,\n])[ \t]*\"?(\w+)\"?[ \t]*[:=]([^;\n}]*?)[,;]?[ \t]*(?=\n|\}|;|$)")
    if stop.found in (":", "=") or (stop.found.startswith('"') and re.search(r"[;{,\n]\s*$", stop.text)):
        open_brace = stop.whole.find("{")
        found = list(keys.finditer(stop.whole, open_brace + 1))
        changes = []
        for one in found:
            indent = one[0][: len(one[0]) - len(one[0].lstrip())]
            inner = re.sub(r"[\[\](),]", " ", one[2])
            shown = " ".join((inner if one[1] in _texts() else inner.replace('"', " ")).split())
            end = one.end() + (stop.whole[one.end() : one.end() + 1] == ";")
            changes.append(Edit(stop.between(one.start(), end), f"{indent}{one[1]} {shown};"))
        if changes:
            near = next((one.text.strip() for one in changes if _is_of(one, stop)), None)
            said = f"a key and its values stand beside each other: write `{near}`" if near else _ENTRY
            return Slip(edit(said, *changes))
    bare = re.search(r"[;{\n]\s*(\w+)\s+([^\";\n]*)$", stop.text)
    if bare is not None and bare[1] in _texts() and '"' not in stop.rest.partition(";")[0]:
        end = place + len(stop.rest.partition(";")[0].partition("\n")[0])
        new = f'"{stop.whole[bare.start(2) : end].strip()}"'
        said = f"the value of `{bare[1]}` is a text: write `{new}`"
        return Slip(edit(said, Edit(stop.between(bare.start(2), end), new)))
    computed = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)\s*$", stop.text)
    more = re.match(r"(?:\s*(?:\*\*?|/|\+|-|<<)\s*\d+(?:\.\d+)?)+(?=\s*[;}])", stop.rest)
    if computed is not None and more is not None:
        new = _computed(computed[1] + more[0])
        return written(
            stop, f"values are numbers as they are: write `{new}`", computed.start(1), place + more.end(), new
        )
    bracketed = re.match(r"(?:\{([^{}]*)\}|\[([^\[\]]*)\]|\(([^()]*)\))(?:[ \t]*;)?", stop.rest)
    key = re.search(r"[;{\n]\s*(\w+)\s*$", stop.text)
    if bracketed is None or key is None or stop.found not in ("{", "[", "("):
        return None
    values = " ".join(re.split(r"[\s,;]+", (bracketed[1] or bracketed[2] or bracketed[3] or "").strip(" ;,\n")))
    said = f"values stand beside each other without brackets: `{key[1]} {values};`"
    return Slip(edit(said, Edit(stop.between(place, place + bracketed.end()), f"{values};")))


def _computed(text: str) -> str:
    """What a term of numbers is, as Python and C compute it."""
    powers = re.sub(r"(\d+)\s*\*\*\s*(\d{1,2})\b", lambda found: str(int(found[1]) ** int(found[2])), text)
    first, *places = (sum(map(_product, _TERM.findall(one)), Fraction()) for one in powers.split("<<"))
    value = first * 2 ** sum(min(int(one), 64) for one in places)
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def _product(term: str) -> Fraction:
    value = Fraction(-1 if term.startswith("-") else 1)
    for sign, number in re.findall(r"([*/]?)\s*(\d+(?:\.\d+)?)", term):
        value = value * Fraction(number) if sign != "/" else value / (Fraction(number) or 1)
    return value


_TERM = re.compile(r"[+-]?\s*\d+(?:\.\d+)?(?:\s*[*/]\s*\d+(?:\.\d+)?)*")
_ENTRY = "an entry reads `KEY VALUE VALUE;`"


def _is_of(change: Edit, stop: Stop) -> bool:
    """Whether a change ends on the line of the place."""
    return change.span.end_line == stop.text.count("\n") + 1


def _texts() -> frozenset[str]:
    """The keys whose values stand between quotation marks."""
    keys = (key for kind in BLOCK_WORDS for key in keys_of_kind(kind))
    return frozenset(key.name for key in keys if key.kind in ("text", "clause"))


def _subject(stop: Stop) -> Slip | None:
    """`schedule mine contraction {` and `fuse mine for prologue, chain {`."""
    place = len(stop.text)
    if stop.begins_line() and "LBRACE" in stop.accepted and re.match(r"\w+\s[^\n]*;", stop.rest):
        end = len(stop.whole.rstrip())
        closing = [] if "}" in stop.rest else [Edit(stop.between(end, end), "\n}")]
        return Slip(edit("the entries of a block stand in braces: `{ ... }`", Edit(stop.behind_text(), " {"), *closing))
    word = re.match(r"(\w+)\s*\{", stop.rest)
    if word is not None and "FOR" in stop.accepted:
        said = f"`for` stands before what a block is for: write `for {word[1]}`"
        return Slip(edit(said, Edit(stop.between(place, place), "for ")))
    heritage = re.match(r"(?:extends|inherits|like|from|based\s+on|of|:|\()\s*(\w+)\s*\)?\s*(?=\{)", stop.rest)
    if heritage is not None:
        kind = stop.before.split()[0]
        said = f"no block takes keys from another: leave it out, and write the keys of `{kind} {heritage[1]}` here"
        return Slip(advice(said), stop.between(place, place + len(heritage[0].rstrip())))
    more = re.match(r"(\s*,\s*\w+)+", stop.rest)
    if more is not None:
        return Slip(
            edit("a block is for one thing: write a second block", Edit(stop.between(place, place + more.end()), ""))
        )
    return None


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
    if stop.found == "rewrite" and "LBRACE" in stop.accepted:
        end = len(stop.whole.rstrip())
        whole = (Edit(stop.behind_text(), " {"), Edit(stop.between(end, end), "\n}"))
        return Slip(edit("the items of a family stand in braces: `for Op in Relu, Exp { ... }`", *whole))
    inner = re.match(r"\(([^()\n]*\bin\b[^()\n]*)\)", stop.rest)
    if inner is not None:
        return written(stop, f"write `for {inner[1]}`, without parentheses", place, place + inner.end(), inner[1])
    return None
