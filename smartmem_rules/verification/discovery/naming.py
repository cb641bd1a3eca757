"""Names for rewrites that were found, from what stands on their left sides."""

from __future__ import annotations

import re
from collections.abc import Collection

from smartmem_rules.verification.semantics.terms import Leaf, Term

LONGEST = 48
_NUMBERS = {0: "zero", 1: "one", 2: "two"}


def name_of(term: Term, taken: Collection[str]) -> str:
    """`neg_of_neg`, `add_of_mul_and_one`: operators with what they are of; numbered where the name is taken."""
    words = _words(term)
    if len(words) > LONGEST:
        words = words[:LONGEST].rpartition("_")[0]
    number, name = 1, words
    while name in taken:
        number += 1
        name = f"{words}_{number}"
    return name


def _words(term: Term) -> str:
    if isinstance(term, Leaf):
        number = term.number
        return "" if number is None else _NUMBERS.get(int(number), "number")
    parts = [words for operand in term.operands if operand is not None and (words := _words(operand))]
    own = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", term.operator).lower()
    own = re.sub(r"[^a-z0-9_]", "_", own)
    return own + ("_of_" + "_and_".join(parts) if parts else "")
