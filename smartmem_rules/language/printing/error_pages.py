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
    examples = _read(corpus)
    made = {f"{code}.md": _page(code, examples) for code in Code}
    lines = [f"- [{code}]({code}.md): {EXPLANATIONS[code]}" for code in Code]
    made["README.md"] = "# Messages of the rule language\n\n" + "\n".join(lines) + "\n"
    return made


def page(code: Code, corpus: Path) -> str:
    """One page."""
    return _page(code, _read(corpus))


def _read(corpus: Path) -> list[tuple[str, str]]:
    """The files that are short enough to be shown, in the order of their names, and their messages."""
    goldens = sorted(corpus.glob("*.smr.txt"))
    read = [(golden.with_suffix("").read_text("utf-8"), golden.read_text("utf-8")) for golden in goldens]
    return [(source, messages) for source, messages in read if source.count("\n") <= _LONGEST]


def _page(code: Code, examples: list[tuple[str, str]]) -> str:
    title = code.name.lower().replace("_", " ")
    parts = [f"# {code}: {title}\n\n{EXPLANATIONS[code]}\n"]
    parts += list(_examples(code, examples))
    return "\n".join(parts)


def _examples(code: Code, examples: list[tuple[str, str]]) -> Iterator[str]:
    """The shortest files whose first message has the code."""
    found: list[tuple[int, str, str]] = []
    for source, messages in examples:
        if f" {code}: " in messages:
            first = f" {code}: " in messages.split("\n", 1)[0]
            found.append((0 if first else 1, source, messages))
    found.sort(key=lambda one: (one[0], len(one[1]) + len(one[2])))
    for _, source, messages in found[:MOST_EXAMPLES]:
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
