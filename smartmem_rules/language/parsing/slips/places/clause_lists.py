"""Clauses of rules with brackets, quotes and words that they do not take."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.places.pieces import closing, in_rule
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, written
from smartmem_rules.language.parsing.stops import Stop

_LISTS = re.compile(r"\b(relaxes|tags|after)\s*\Z")
_NO_CLAUSES = {
    **dict.fromkeys(("priority", "benefit", "weight", "order", "rank"), "levels and strategies order rule sets"),
    **dict.fromkeys(("bidirectional", "reversible", "both", "symmetric"), "a rule of both directions has `<=>`"),
    **dict.fromkeys(("commutative", "internal", "override"), "it is a clause of operators"),
    **dict.fromkeys(("cost",), "`cost` is a clause of operators; rules say nothing of it"),
    "defers": "it is a clause of `keep`",
}
_SOURCES = ("source", "from", "see", "ref", "reference", "paper", "citation", "url", "author", "by", "credits")
_LABELS = ("labels", "label", "keywords", "categories", "category", "groups")


def clause_lists(stop: Stop) -> Slip | None:
    """What to write in and for a clause of a rule."""
    return _bracketed(stop) or (_texts(stop) or _flags(stop) or _no_clause(stop) if in_rule(stop) else None)


def _bracketed(stop: Stop) -> Slip | None:
    """`relaxes [a, b]`, `where (a, b)` and `where { a }`."""
    place = len(stop.text)
    listed = re.match(r"[\[({]([\w\s,;|\"']*)[\])}]", stop.rest)
    if listed is not None and _LISTS.search(stop.text):
        new = ", ".join(re.findall(r"\w+", listed[1]))
        return written(stop, f"words stand without brackets: write `{new}`", place, place + listed.end(), new)
    if not in_rule(stop):
        return None
    guarded = re.search(r"\bwhere\s*:?\s*([({])", stop.text + stop.rest[:1])
    if guarded is None or guarded.end() > place + 1:
        return None
    begin = guarded.start(1)
    end = closing(stop.whole, begin)
    if end < 0 or end < place or (stop.found != "," and guarded[1] == "("):
        return None
    new = stop.whole[begin + 1 : end - 1].strip().rstrip(";,").replace(";", ",")
    if re.match(r"\s*(?:,|and\b|or\b|[-+*/<>=])", stop.whole[end:]):
        return None
    return written(stop, "guards stand without brackets, with commas between them", begin, end, new)


def _texts(stop: Stop) -> Slip | None:
    """`cites "a", "b"`, `cites ("a")` and `source "a"`."""
    place = len(stop.text)
    bare = re.match(r"\(\s*(\"[^\"\n]*\")\s*\)", stop.rest)
    if bare is not None and re.search(r"\b(cites|unsound)\s*\Z", stop.text):
        return written(stop, "the text stands without parentheses", place, place + bare.end(), bare[1])
    more = re.match(r"(?:\s*,\s*\"[^\"\n]*\")+", stop.rest)
    first = re.search(r"\bcites\s+\"([^\"\n]*)\"\s*\Z", stop.text)
    if first is not None and more is not None:
        new = ", ".join([first[1], *re.findall(r'"([^"\n]*)"', more[0])])
        begin = first.start(1) - 1
        return written(stop, f'a rule cites one text: write `"{new}"`', begin, place + more.end(), f'"{new}"')
    word = re.match(r"(\w+)\s*:?\s*\"", stop.rest)
    if word is not None and word[1] in _SOURCES and stop.begins_line() and "CITES" in stop.accepted:
        return written(stop, "write `cites`", place, place + len(word[1]), "cites")
    return None


def _flags(stop: Stop) -> Slip | None:
    """`explores true`."""
    flag = re.search(r"\b(explores|defers)\s*\Z", stop.text)
    value = re.match(r"(?:[=:]\s*)?(?:true|True|yes|1)\b", stop.rest)
    if flag is not None and value is not None:
        end = len(stop.text) + value.end()
        return written(stop, f"`{flag[1]}` stands alone: leave the rest out", flag.end(1), end, "")
    return None


def _no_clause(stop: Stop) -> Slip | None:
    """A word at the beginning of a line that begins no clause here."""
    if not stop.begins_line() or "OPERATOR" not in stop.accepted:
        return None
    place = len(stop.text)
    word = re.match(r"[A-Za-z_]\w*", stop.rest)
    if word is None or not stop.line[:1].isspace() or re.match(r"\w+\s*\(", stop.rest):
        return None
    message = f"`{word[0]}` is no clause of a {stop.before.split()[0]} rule".replace("rewrite rule", "rule")
    where = stop.between(place, place + word.end())
    if word[0] in ("explores", "relaxes", "unsound", "defers", "explore", "relax") and word[0] not in stop.signs:
        kind = stop.before.split()[0]
        if (word[0] == "explore" and "explores" in stop.signs) or (word[0] == "relax" and "relaxes" in stop.signs):
            return None
        of_keep = word[0] == "defers"
        said = "only `keep` has it" if of_keep else "only a `rewrite` has it"
        rest = Edit(stop.between(place, line_end(stop)), "")
        return Slip(edit(f"{said}: leave it out", rest), where, f"`{kind}` has no `{word[0]}`")
    if word[0] in _LABELS:
        return written(stop, "write `tags`", place, place + word.end(), "tags", message)
    if word[0] in _NO_CLAUSES:
        return Slip(advice(f"{_NO_CLAUSES[word[0]]}: leave it out"), where, message)
    bound = re.match(r"(with|var|val|def|set|const|define)\s+[a-z_]\w*\s*:?=(?!=)", stop.rest)
    if bound is not None and "RULE_LET" in stop.accepted:
        return written(stop, "write `let`", place, place + len(bound[1]), "let", message)
    return None
