"""What is missing at the end of a clause, so that the word of the next one reads as a name."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.places.pieces import clauses_here, in_body, pieces
from smartmem_rules.language.parsing.slips.slip import Slip
from smartmem_rules.language.parsing.stops import Stop

_GOES_ON = frozenset(
    (
        *(",", "+", "-", "*", "/", "//", "%", "**", "=", "==", "!=", "<", "<=", ">", ">=", "=>", "<=>", "|", ":="),
        *("and", "or", "not", "if", "then", "else", "where", "relaxes", "tags", "cites", "unsound", "require", "let"),
    )
)
_FORMS = {
    "where": "guards follow: `where rank(x) == 2, constant(c)`",
    "relaxes": "words follow: `relaxes reassociation, nan`",
    "tags": "words follow: `tags NAME, NAME`",
    "cites": 'a text follows: `cites "TEXT"`',
    "unsound": 'a text follows: `unsound "REASON"`',
    "require": "a condition follows: `require K > 0`",
    "let": "a name and its value follow: `let n = rank(S)`",
    "=": "write the value behind it",
    "=>": "write the right side behind it",
    "<=>": "write the right side behind it",
}


def dangling(stop: Stop) -> Slip | None:
    """A comma, an operator or a word behind which a value is missing, before the line of the next clause."""
    begun = _clause_begun(stop)
    if begun is None:
        return None
    text = stop.text[:begun].rstrip()
    last = pieces(text)[-1] if text.strip() else None
    if last is None or last[0] not in _GOES_ON:
        return None
    word = last[0]
    where = stop.between(*last.span())
    message = f"nothing stands behind `{word}`"
    if word == ",":
        return Slip(edit("leave the comma out, or write what follows it", Edit(where, "")), where, message)
    said = _FORMS.get(word, f"write the value that follows it, or leave `{word}` out")
    if word in ("where", "relaxes", "tags", "cites"):
        said = f"{said}; or leave `{word}` out"
    return Slip(advice(said), where, message)


def _clause_begun(stop: Stop) -> int | None:
    """Where the line begins of a clause whose first words the parser took for a value; None where none does."""
    clauses = clauses_here(stop)
    if not clauses:
        return None
    words = "|".join(clauses)
    item = r"|[A-Za-z_]\w*\s*\[[^\[\]\n]*\]\s*" if in_body(stop) else ""
    found = re.search(rf"\n[^\S\n]*(?:(?:{words})[^\S\n]*{item})\Z", stop.text)
    if found is None and stop.begins_line() and re.match(rf"(?:{words})\b", stop.rest):
        return stop.text.rfind("\n")
    return None if found is None else found.start()
