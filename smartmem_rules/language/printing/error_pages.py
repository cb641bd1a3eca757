"""The page of each code, made of its explanation and of the examples of the corpus.

`python -m smartmem_rules.language.printing.error_pages tests/corpus/fail docs/errors` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from smartmem_rules.language.codes import EXPLANATIONS, Code

MOST_EXAMPLES = 2
_LONGEST = 40
"""Lines of an example; longer ones show less than they hide."""


def pages(corpus: Path) -> dict[str, str]:
    """File names and texts of all pages, the list of all codes among them."""
    made = {f"{code}.md": page(code, corpus) for code in Code}
    lines = [f"- [{code}]({code}.md): {EXPLANATIONS[code]}" for code in Code]
    made["README.md"] = "# Messages of the rule language\n\n" + "\n".join(lines) + "\n"
    return made


def page(code: Code, corpus: Path) -> str:
    """One page."""
    title = code.name.lower().replace("_", " ")
    parts = [f"# {code}: {title}\n\n{EXPLANATIONS[code]}\n"]
    parts += list(_examples(code, corpus))
    return "\n".join(parts)


def _examples(code: Code, corpus: Path) -> Iterator[str]:
    """The shortest files whose first message has the code."""
    found: list[tuple[int, Path, str, str]] = []
    for golden in sorted(corpus.glob("*.smr.txt")):
        messages = golden.read_text("utf-8")
        source = golden.with_suffix("").read_text("utf-8")
        if f" {code}: " in messages and source.count("\n") <= _LONGEST:
            first = f" {code}: " in messages.split("\n", 1)[0]
            found.append((0 if first else 1, golden, source, messages))
    found.sort(key=lambda one: (one[0], len(one[2]) + len(one[3])))
    for _, _, source, messages in found[:MOST_EXAMPLES]:
        shown = [message for message in messages.rstrip().split("\n\n") if f" {code}: " in message]
        text = "\n\n".join(shown)
        yield f"```smr\n{source.rstrip()}\n```\n\n```\n{text}\n```\n"


def main(corpus: str, target: str) -> None:
    """Write all pages into a folder."""
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(Path(corpus))
    for old in folder.glob("SMR*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
