"""Lists of words in the clauses of rules."""

from __future__ import annotations

import re

from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import RULE_CLAUSES

_CLAUSES = frozenset({*RULE_CLAUSES, "after"})


def words(stop: Stop) -> Slip | None:
    """`relaxes reassociation nan`, words without commas between them."""
    begun = re.search(r"\b(relaxes|tags|after)[ \t]+(\w+(?:[ \t]*,?[ \t]*\w+)*)[ \t]*\Z", stop.text)
    rest = re.match(r"\w+(?:[ \t]*,?[ \t]*\w+)*", stop.rest)
    if begun is None or rest is None:
        return None
    found = [word for word in re.findall(r"\w+", f"{begun[2]} {rest[0]}") if word not in ("and", "or")]
    if _CLAUSES.intersection(found):
        return None
    last, new = re.findall(r"\w+", begun[2])[-1], ", ".join(found)
    said = f"words stand between commas: write `{begun[1]} {new}`"
    message = f"nothing joins `{last}` and `{stop.found}`"
    return written(stop, said, begun.start(2), len(stop.text) + rest.end(), new, message)
