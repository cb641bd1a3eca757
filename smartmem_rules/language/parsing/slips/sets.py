"""Rules that name no rule set."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip
from smartmem_rules.language.parsing.stops import Stop

_SETS = "`algebra` has the equations, `recognise` what becomes an operator of its own"


def sets(stop: Stop) -> Slip | None:
    """What is missing between the name of a rule and its left side."""
    heading = re.match(r"\s*(rewrite|eliminate)\s+(\w+)\s*(:?)\s*$", stop.text)
    if heading is None or heading[2] == "in" or "IN" not in stop.accepted:
        return None
    word, name = heading[1], heading[2]
    behind = heading.end(2)
    bare = re.match(r"\s*(?::\s*|\(\s*)?([a-z_]\w*)(?:\s*\))?(?=[^\S\n]*(?:\n|\Z))", stop.rest)
    if bare is not None and bare[1] not in ("in", "where"):
        whole = stop.between(behind, len(stop.text) + bare.end())
        new = f" in {bare[1]}"
        return Slip(edit(f"write `{word} {name} in {bare[1]}`", Edit(whole, new)))
    if word != "rewrite" or re.match(r"[A-Z(]\w*", stop.rest) is None:
        return None
    said = f"a rule names its rule set: write `rewrite {name} in RULESET`; {_SETS}"
    return Slip(advice(said), stop.between(*heading.span(2)), f"`in RULESET` is missing behind `{name}`")
