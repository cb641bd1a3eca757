"""Tables in markdown, printed or put into a page between its marks."""

from __future__ import annotations

import re
from pathlib import Path


def markdown(header: str, rows: list[list[str]]) -> str:
    """A table, numbers to the right."""
    rule = "|" + "|".join(["---", *["---:"] * header.count(" | ")]) + "|"
    return "\n".join([f"| {header} |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def replace_table(path: Path, name: str, text: str) -> None:
    """Put a table between its marks; the file must have them."""
    old = path.read_text()
    pattern = rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)"
    if not re.search(pattern, old, re.DOTALL):
        raise SystemExit(f"{path} has no place for the table {name!r}")
    path.write_text(re.sub(pattern, lambda found: f"{found[1]}{text}\n{found[2]}", old, flags=re.DOTALL))
