"""Documents and rule files have lines of at most 120 columns, so that a diff shows them whole."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WIDTH = 120
FOLDERS = ("bench", "docs", "editors", "examples", "rules", "tests")
FILES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "*.smr")
    for path in (*ROOT.glob(pattern), *(found for folder in FOLDERS for found in (ROOT / folder).rglob(pattern)))
)

# Rows of Markdown tables and of rule tables cannot be broken.  These pages have tables that a command writes.
WRITTEN_TABLES = {
    "README.md": "bench/tables.py",
    "docs/fuzzing.md": "bench/fuzz.py",
    "docs/models.md": "bench/models.py",
    "docs/numerics.md": "bench/numerics.py",
    "docs/numerics_by_operator.md": "bench/special_values.py",
    "docs/published_rules.md": "bench/published.py",
    "docs/simplify.md": "bench/simplify.py",
}
# A cell of DNNFusion's table names an action and a mapping type: its five columns need 122.
WIDE_ROWS = {"rules/tables.smr"}
# Messages of the corpus, as `smartmem check` prints them.
MESSAGES = "docs/errors"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_lines_are_short(path: Path) -> None:
    lines = enumerate((ROOT / path).read_text("utf-8").split("\n"), 1)
    assert [number for number, line in lines if len(line) > WIDTH and not allowed(path.as_posix(), line)] == []


def allowed(path: str, line: str) -> bool:
    """Whether the line may be longer."""
    if path.startswith(MESSAGES):
        return " SMR" in line or line.startswith(("  note: ", "  fix: "))
    return (path in WRITTEN_TABLES and line.startswith("|")) or (path in WIDE_ROWS and "/" in line)


@pytest.mark.parametrize(("page", "command"), WRITTEN_TABLES.items())
def test_pages_with_long_tables_are_written_by_a_command(page: str, command: str) -> None:
    assert (ROOT / page).exists()
    assert (ROOT / command).exists()
