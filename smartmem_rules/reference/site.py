"""Writes the reference as a folder of HTML pages that need no server."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from smartmem_rules.language.printing.builtin_docs import DOCS, KEYWORDS
from smartmem_rules.reference.content import Verdicts, language, sections
from smartmem_rules.rulebase.base import RuleBase

_WORD = re.compile(r"[A-Za-z_][\w.]*")


def write_reference(base: RuleBase, folder: Path, verdicts: Verdicts) -> list[Path]:
    """Write all pages; gives their paths, the start page first."""
    pages = sections(base, verdicts)
    names = {entry.name: f"{page.name}.html#{entry.anchor}" for page in reversed(pages) for entry in page.entries}
    environment = Environment(loader=PackageLoader("smartmem_rules.reference"), autoescape=True, trim_blocks=True)
    environment.filters["smr"] = lambda code: _linked(code, names)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"index.html": environment.get_template("index.html").render(pages=pages, here="index")}
    for page in pages:
        files[f"{page.name}.html"] = environment.get_template("section.html").render(
            pages=pages, page=page, here=page.name
        )
    files["language.html"] = environment.get_template("language.html").render(
        pages=pages, here="language", **language()
    )
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in files]


def _linked(code: str, names: dict[str, str]) -> Markup:
    """Rule text in which operators and functions lead to their definitions."""
    parts: list[str] = []
    end = 0
    for match in _WORD.finditer(code):
        parts.append(escape(code[end : match.start()]))
        word, text = match[0], escape(match[0])
        followed = code[match.end() : match.end() + 1]
        if word in names and (word[0].isupper() or followed == "("):
            parts.append(Markup('<a href="{}">{}</a>').format(names[word], text))
        elif word in DOCS and followed == "(":
            parts.append(Markup('<a class="built-in" href="language.html#{}">{}</a>').format(word, text))
        elif word in KEYWORDS:
            parts.append(Markup("<b>{}</b>").format(text))
        else:
            parts.append(text)
        end = match.end()
    return Markup("").join([*parts, escape(code[end:])])
