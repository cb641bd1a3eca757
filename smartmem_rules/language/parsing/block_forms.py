"""Forms of configuration files that authors write in blocks of `key value ...;`."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, Fix, advice, edit
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_IN_BLOCK = re.compile(rf"(?:{'|'.join(BLOCK_WORDS)})\b[^{{]*\{{[^}}]*$")
_KEY = re.compile(r"[;{]\s*\w+\s*$")


def block_forms(stop: Stop) -> Fix | None:
    """What to write in place of what stops the parse inside of a block."""
    if _IN_BLOCK.match(stop.before) is None:
        return None
    if stop.found == ",":
        return edit("values stand apart by blanks, without commas", *(Edit(one, "") for one in stop.along(",")))
    if stop.found in (":", "=") and _KEY.search(stop.text):
        key = stop.text.split()[-1].lstrip("{;")
        places = (stop.here(1), *stop.along(r"[;{]\s*\w+\s*([:=])", 1))
        return edit(f"values follow their key: `{key} VALUE;`", *(Edit(one, "") for one in places))
    if stop.found == "}" and "SEMICOLON" in stop.accepted:
        return edit("each key with its values ends with `;`", Edit(stop.behind_text(), ";"))
    if stop.found in ("[", "("):
        return advice("values stand beside each other without brackets: `rulesets eliminate algebra;`")
    return None
